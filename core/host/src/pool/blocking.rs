//! Threads for jobs that may block on something other than computation.
//!
//! States of a thread: *running* a job → *idle*, waiting for the next one → *running*, or → *ended*
//! after [`IDLE`] without one, or when the pool closes. A job is queued, then run once. `State` is
//! protected by one lock; `threads` counts those that have not ended, `idle` those that wait.

use crate::fpu::FpGuard;
use std::{
    cell::Cell,
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code, KernelError,
    plugin::panic_message,
    sync::{Condvar, Mutex, rank},
};

/// Most threads for blocking jobs of one pool. Further jobs wait: a graph whose blocking kernels
/// wait for each other must not have more than this many at once.
pub const BLOCKING_CAP: usize = 256;
/// How long an idle thread waits before it ends.
const IDLE: Duration = Duration::from_secs(10);

pub(super) type BoxedJob = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<BoxedJob>,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
}

thread_local! {
    /// The pool that owns this thread; null on all others.
    static OWNER: Cell<*const Shared> = const { Cell::new(std::ptr::null()) };
}

/// The threads.
pub(super) struct Blocking {
    shared: Arc<Shared>,
}

impl Blocking {
    pub fn new() -> Blocking {
        let state = Mutex::ranked(rank::POOL, State::default());
        let shared = Shared { state, work: Condvar::new(), ended: Condvar::new() };
        Blocking { shared: Arc::new(shared) }
    }

    pub fn spawn(&self, job: BoxedJob) -> Result<(), KernelError> {
        let mut state = self.shared.state.lock();
        state.jobs.push_back(job);
        let enough = state.idle >= state.jobs.len() || state.threads >= BLOCKING_CAP;
        if enough {
            drop(state);
            self.shared.work.notify_one();
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name("tenon-blocking".to_owned());
        match builder.spawn(move || run(&shared)) {
            Ok(_) => Ok(()),
            Err(error) => self.refused(&error),
        }
    }

    /// Handles a thread that the operating system did not create: the job stays queued if other
    /// threads will take it.
    fn refused(&self, error: &std::io::Error) -> Result<(), KernelError> {
        let mut state = self.shared.state.lock();
        state.threads -= 1;
        if state.threads > 0 {
            return Ok(());
        }
        let job = state.jobs.pop_back();
        drop(state);
        drop(job);
        Err(KernelError::new(
            Code::RESOURCE_EXHAUSTED,
            format!("a blocking kernel needs a thread, and the system gives none: {error}"),
        ))
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.work.notify_all();
        // A job of this pool may be its last owner: that thread ends without being waited for.
        let own = usize::from(OWNER.with(Cell::get) == Arc::as_ptr(&self.shared));
        while state.threads > own {
            state = self.shared.ended.wait(state);
        }
    }
}

/// A thread.
fn run(shared: &Shared) {
    OWNER.with(|owner| owner.set(shared));
    let _flush = FpGuard::for_kernels(false);
    let mut state = shared.state.lock();
    loop {
        if let Some(job) = state.jobs.pop_front() {
            drop(state);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(job)) {
                tracing::error!("a blocking job panicked: {}", panic_message(&*payload));
            }
            state = shared.state.lock();
            continue;
        }
        if state.closed {
            break;
        }
        let begin = Instant::now();
        state.idle += 1;
        state = shared.work.wait_timeout(state, IDLE);
        state.idle -= 1;
        if state.jobs.is_empty() && begin.elapsed() >= IDLE {
            break;
        }
    }
    state.threads -= 1;
    drop(state);
    shared.ended.notify_all();
}
