//! Workers keep off the core of the thread that gives them work.
//!
//! An operating system may wake a worker on the core of the thread that woke it although another is idle. The two
//! then take turns, a loop takes longer than on one thread, and since both sleep in between, no balance of load
//! comes to part them. A worker that finds itself there moves: it may run wherever it was allowed to, that core
//! excepted. Nothing is bound before that happens, nor where there is only one core to run on.

use std::time::{Duration, Instant};

/// Threads that post work from several cores in turn would have a worker move all the time: it stays so long.
const STAY: Duration = Duration::from_millis(10);

/// The core of nobody.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The core that this thread runs on, or [`NOWHERE`] where that cannot be known.
pub(super) fn current_core() -> u32 {
    os::current_core()
}

/// Where a thread may run.
pub(super) struct Placement {
    /// Without what this placement left out.
    allowed: Option<os::Cores>,
    chosen: Option<os::Cores>,
    moved: Option<Instant>,
}

impl Placement {
    /// That of the thread that calls it, and later calls [`Placement::keep_off`].
    pub fn of_this_thread() -> Placement {
        Placement { allowed: os::Cores::of_this_thread(), chosen: None, moved: None }
    }

    /// Moves this thread when it runs on this core, has stayed for a while, and may run on another. Cores that
    /// somebody else gave the thread in the meantime are the ones it is allowed to have.
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

    /// Some cores, of the 1,024 that the C library's sets have: bits of words.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub struct Cores([c_ulong; SIZE / size_of::<c_ulong>()]);

    pub fn current_core() -> u32 {
        // SAFETY: the function only asks.
        u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(NOWHERE)
    }

    impl Cores {
        /// Those that this thread may run on; `None` where the system does not say.
        pub fn of_this_thread() -> Option<Cores> {
            let mut cores = Cores([0; _]);
            let set = (&raw mut cores.0).cast::<cpu_set_t>();
            // SAFETY: the set is writable for its size; 0 is this thread.
            let status = unsafe { libc::sched_getaffinity(0, SIZE, set) };
            (status == 0).then_some(cores)
        }

        /// All but one; `None` when that leaves none.
        pub fn without(mut self, core: u32) -> Option<Cores> {
            let word = self.0.get_mut((core / c_ulong::BITS) as usize)?;
            *word &= !(1 << (core % c_ulong::BITS));
            self.0.iter().any(|&word| word != 0).then_some(self)
        }

        /// Has this thread run on these only. A system that refuses leaves it where it is.
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
    /// Cores of an operating system that moves threads as it likes.
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

    /// What a new thread of its own finds.
    fn apart<T: Send>(body: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(body).join().expect("the body does not panic"))
    }

    #[test]
    fn a_thread_leaves_a_core_and_may_have_all_others() {
        apart(|| {
            let all = Cores::of_this_thread();
            let mut placement = Placement::of_this_thread();
            // The core may change between the look and the call, then nothing is to be done.
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
            // One core left: all others are taken away.
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
