//! Time limits of operations: one thread for all of a worker, which runs while there are limits.

use super::member::Member;
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};
use tenon_framework::sync::{Condvar, Mutex, rank};

/// How long the thread stays without limits.
const IDLE: Duration = Duration::from_secs(1);

/// A limit, by its time.
struct Limit {
    at: Instant,
    member: Weak<Member>,
}

impl PartialEq for Limit {
    fn eq(&self, other: &Limit) -> bool {
        self.at == other.at
    }
}

impl Eq for Limit {}

impl PartialOrd for Limit {
    fn partial_cmp(&self, other: &Limit) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Limit {
    fn cmp(&self, other: &Limit) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

#[derive(Default)]
struct State {
    limits: BinaryHeap<Reverse<Limit>>,
    runs: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The limits.
pub(super) struct Timer(Arc<Shared>);

impl Default for Timer {
    fn default() -> Timer {
        let state = Mutex::ranked(rank::RENDEZVOUS, State::default());
        Timer(Arc::new(Shared { state, changed: Condvar::default() }))
    }
}

impl Timer {
    /// Gives a member its limit. False if there is no thread to watch it.
    pub fn add(&self, member: &Arc<Member>, limit: Duration) -> bool {
        let Some(at) = Instant::now().checked_add(limit) else { return true };
        let mut state = self.0.state.lock();
        state.limits.push(Reverse(Limit { at, member: Arc::downgrade(member) }));
        if !state.runs {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("tenon-collective".to_owned());
            state.runs = thread.spawn(move || watch(&shared)).is_ok();
            return state.runs;
        }
        drop(state);
        self.0.changed.notify_one();
        true
    }
}

fn watch(shared: &Shared) {
    let mut state = shared.state.lock();
    loop {
        let now = Instant::now();
        let next = state.limits.peek().map(|Reverse(limit)| limit.at);
        match next {
            Some(at) if at <= now => {
                let member = state.limits.pop().and_then(|Reverse(limit)| limit.member.upgrade());
                drop(state);
                if let Some(member) = member {
                    member.time_out();
                }
                state = shared.state.lock();
            }
            Some(at) => state = shared.changed.wait_timeout(state, at - now),
            None => {
                state = shared.changed.wait_timeout(state, IDLE);
                if state.limits.is_empty() {
                    state.runs = false;
                    return;
                }
            }
        }
    }
}
