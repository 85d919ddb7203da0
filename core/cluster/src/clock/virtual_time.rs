//! A time that passes only when nothing else can happen.
//!
//! Whoever drives a simulation calls [`VirtualTime::pass`] again and again. It waits until every other thread of the process
//! sleeps, and then moves the time to that of the next timer, which it fires. Between two timers no time passes, however long
//! the threads compute.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

static CURRENT: RwLock<Option<Arc<VirtualTime>>> = RwLock::new(None);

/// The virtual time of the process, while there is one.
pub(crate) fn current() -> Option<Arc<VirtualTime>> {
    CURRENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

type Fire = Box<dyn FnOnce() + Send>;
/// The time of a timer, and its number.
type Key = (Duration, u64);

/// A virtual time.
pub(crate) struct VirtualTime {
    base: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Duration,
    next: u64,
    timers: BTreeMap<Key, Fire>,
}

/// A timer that does not fire once this is dropped.
pub(crate) struct Timer {
    time: Arc<VirtualTime>,
    key: Key,
}

impl Drop for Timer {
    fn drop(&mut self) {
        let gone = self.time.state().timers.remove(&self.key);
        // What it would have done may use the time while it is dropped.
        drop(gone);
    }
}

/// Makes a virtual time that of the process until it is dropped.
pub(crate) struct Installed(pub Arc<VirtualTime>);

impl Installed {
    /// A new time. There may be one at a time.
    pub fn new() -> Installed {
        let time = Arc::new(VirtualTime { base: Instant::now(), state: Mutex::default() });
        *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&time));
        Installed(time)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// What a step of the time came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A timer was fired.
    Fired,
    /// No timer is left: nothing happens any more.
    Idle,
    /// Threads have computed for longer than any of them should.
    Busy,
}

impl VirtualTime {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.state().now
    }

    /// The time as one of the system's clock.
    pub fn instant(&self) -> Instant {
        self.base + self.elapsed()
    }

    /// Calls `fire` at a time since the beginning, unless the timer is dropped before.
    pub fn at(self: &Arc<Self>, when: Duration, fire: impl FnOnce() + Send + 'static) -> Timer {
        Timer { time: Arc::clone(self), key: self.insert(when, Box::new(fire)) }
    }

    /// As [`VirtualTime::at`], for a timer that always fires.
    pub fn schedule(self: &Arc<Self>, when: Duration, fire: impl FnOnce() + Send + 'static) {
        self.insert(when, Box::new(fire));
    }

    fn insert(&self, when: Duration, fire: Fire) -> Key {
        let mut state = self.state();
        state.next += 1;
        let key = (when, state.next);
        state.timers.insert(key, fire);
        key
    }

    pub fn at_instant(
        self: &Arc<Self>,
        when: Instant,
        fire: impl FnOnce() + Send + 'static,
    ) -> Timer {
        self.at(when.saturating_duration_since(self.base), fire)
    }

    pub async fn sleep(self: Arc<Self>, time: Duration) {
        let (sender, fired) = oneshot::channel::<()>();
        let when = self.elapsed() + time;
        let _timer = self.at(when, move || drop(sender));
        // It ends when the timer drops the sender.
        let _ = fired.await;
    }

    /// Waits until nothing happens without time, moves the time to the next timer, and fires it.
    pub fn pass(&self, patience: Duration) -> Passed {
        if settled(patience) { self.fire_next() } else { Passed::Busy }
    }

    fn fire_next(&self) -> Passed {
        let mut state = self.state();
        let Some((key, fire)) = state.timers.pop_first() else { return Passed::Idle };
        state.now = state.now.max(key.0);
        drop(state);
        fire();
        Passed::Fired
    }
}

/// Waits until all other threads of the process sleep; whether they do within this time.
///
/// Two looks have to agree: a thread that slept at the first one, and was then woken by another, runs at the second one, or
/// has been given a core once more.
fn settled(patience: Duration) -> bool {
    let begin = Instant::now();
    let mut before = None;
    loop {
        let found = asleep();
        if found.is_some() && found == before {
            return true;
        }
        before = found;
        if begin.elapsed() > patience {
            return false;
        }
        if before.is_none() {
            thread::yield_now();
        }
    }
}

/// The other threads with how often each was given a core; `None` if one of them runs.
fn asleep() -> Option<Vec<(String, String)>> {
    let own = fs::read_link("/proc/thread-self").ok()?.file_name()?.to_str()?.to_owned();
    let mut found = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let thread = thread.ok()?.file_name().into_string().ok()?;
        if thread == own {
            continue;
        }
        // One that has ended has no file.
        let Ok(status) = fs::read_to_string(format!("/proc/self/task/{thread}/status")) else {
            continue;
        };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        if !field("State:")?.trim_start().starts_with('S') {
            return None;
        }
        found.push((thread, field("voluntary_ctxt_switches:")?.trim().to_owned()));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_not_once_they_are_dropped() {
        let time = Arc::new(VirtualTime { base: Instant::now(), state: Mutex::default() });
        let fired = Arc::new(Mutex::new(Vec::new()));
        let note = |number: u32| {
            let fired = Arc::clone(&fired);
            move || fired.lock().unwrap().push(number)
        };
        let _second = time.at(Duration::from_secs(20), note(2));
        let _first = time.at(Duration::from_secs(10), note(1));
        drop(time.at(Duration::from_secs(15), note(3)));
        let next = || (time.fire_next(), time.elapsed().as_secs());
        assert_eq!([next(), next()], [(Passed::Fired, 10), (Passed::Fired, 20)]);
        assert_eq!(next(), (Passed::Idle, 20));
        assert_eq!(*fired.lock().unwrap(), [1, 2]);
    }
}
