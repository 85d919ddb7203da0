//! Keeps workers off the core of the thread that posts work.
//!
//! An operating system may wake a worker on the core of the waking thread although another core is
//! idle. The two then take turns, a loop takes longer than on one thread, and since both sleep in
//! between, the system's load balancing does not separate them. A worker that detects this moves:
//! it may run wherever it was allowed to, except on that core. Affinities are unchanged until that
//! happens, and where there is only one core.

use std::time::{Duration, Instant};

/// How long a worker stays before it moves again: threads that post work from several cores in turn
/// would otherwise make it move all the time.
const STAY: Duration = Duration::from_millis(10);

/// Stands for no core.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The core on which this thread runs, or [`NOWHERE`] if that is unknown.
pub(super) fn current_core() -> u32 {
    os::current_core()
}

/// The cores on which a thread may run.
pub(super) struct Placement {
    /// The allowed cores, including those that this placement excluded.
    allowed: Option<os::Cores>,
    chosen: Option<os::Cores>,
    moved: Option<Instant>,
}

impl Placement {
    /// The placement of the calling thread, which must be the one that calls
    /// [`Placement::keep_off`].
    pub fn of_this_thread() -> Placement {
        Placement { allowed: os::Cores::of_this_thread(), chosen: None, moved: None }
    }

    /// Moves this thread if it runs on this core, has stayed for a while, and may run elsewhere. If
    /// something else changed the thread's cores in the meantime, those are the allowed ones.
    pub fn keep_off(&mut self, core: u32) {
        if core == NOWHERE || core != current_core() || !self.has_stayed() {
            return;
        }
        let now = os::Cores::of_this_thread();
        if now != self.chosen {
            self.allowed = now;
        }
        self.moved = Some(Instant::now());
        self.chosen = self.allowed.and_then(|allowed| allowed.without(core));
        if let Some(cores) = self.chosen {
            cores.give_this_thread();
        }
    }

    fn has_stayed(&self) -> bool {
        self.moved.is_none_or(|moved| moved.elapsed() >= STAY)
    }
}

#[cfg(target_os = "linux")]
mod os {
    use super::NOWHERE;
    use libc::{c_ulong, cpu_set_t};

    const SIZE: usize = size_of::<cpu_set_t>();

    /// A set of cores, of the 1,024 in the C library's sets: bits of words.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Cores([c_ulong; SIZE / size_of::<c_ulong>()]);

    pub fn current_core() -> u32 {
        // SAFETY: the function only queries.
        u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(NOWHERE)
    }

    impl Cores {
        /// The cores on which this thread may run; `None` if the system does not say.
        pub fn of_this_thread() -> Option<Cores> {
            let mut cores = Cores([0; _]);
            let set = (&raw mut cores.0).cast::<cpu_set_t>();
            // SAFETY: the set is writable for its size; 0 is this thread.
            let status = unsafe { libc::sched_getaffinity(0, SIZE, set) };
            (status == 0).then_some(cores)
        }

        /// The set without one core; `None` if none is left.
        pub fn without(mut self, core: u32) -> Option<Cores> {
            let word = self.0.get_mut((core / c_ulong::BITS) as usize)?;
            *word &= !(1 << (core % c_ulong::BITS));
            self.0.iter().any(|&word| word != 0).then_some(self)
        }

        /// Restricts this thread to these cores. If the system refuses, the thread stays where it
        /// is.
        pub fn give_this_thread(&self) {
            let set = (&raw const self.0).cast::<cpu_set_t>();
            // SAFETY: the set is readable for its size; 0 is this thread.
            let status = unsafe { libc::sched_setaffinity(0, SIZE, set) };
            if status != 0 {
                let error = std::io::Error::last_os_error();
                tracing::debug!("a worker stays on its caller's core: {error}");
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    /// Cores on an operating system that does not support affinities.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Cores;

    pub fn current_core() -> u32 {
        super::NOWHERE
    }

    impl Cores {
        pub fn of_this_thread() -> Option<Cores> {
            None
        }

        pub fn without(self, _core: u32) -> Option<Cores> {
            None
        }

        pub fn give_this_thread(&self) {}
    }
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::{os::Cores, *};

    /// Runs `body` on a new thread.
    fn apart<T: Send>(body: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(body).join().expect("the body does not panic"))
    }

    #[test]
    fn a_thread_leaves_a_core_and_may_have_all_others() {
        apart(|| {
            let all = Cores::of_this_thread();
            let mut placement = Placement::of_this_thread();
            // The core may change between the query and the call; then there is nothing to do.
            let left = (0..1000).find_map(|_| {
                let core = current_core();
                placement.keep_off(core);
                placement.moved.map(|_| core)
            });
            let left = left.expect("in a thousand looks one is on the same core as the call");
            let others = all.and_then(|all| all.without(left));
            assert!(placement.chosen == others);
            if others.is_some() {
                assert!(Cores::of_this_thread() == others);
                assert_ne!(current_core(), left);
            }
        });
    }

    #[test]
    fn a_thread_that_moved_stays_for_a_while() {
        apart(|| {
            let mut placement = Placement::of_this_thread();
            let moved = Instant::now() + Duration::from_secs(3600);
            placement.moved = Some(moved);
            for _ in 0..1000 {
                placement.keep_off(current_core());
            }
            assert!(placement.moved == Some(moved) && placement.chosen.is_none());
        });
    }

    #[test]
    fn a_thread_with_one_core_stays_there() {
        apart(|| {
            let only = current_core();
            let all = Cores::of_this_thread().expect("Linux says where a thread may run");
            let mut others = vec![all];
            // Excludes all cores but one.
            for core in (0..1024).filter(|&core| core != only) {
                others.extend(others.last().and_then(|cores| cores.without(core)));
            }
            let one = others.pop().expect("at least all");
            one.give_this_thread();
            let mut placement = Placement::of_this_thread();
            placement.keep_off(only);
            assert!(placement.chosen.is_none() && Cores::of_this_thread() == Some(one));
        });
    }
}
