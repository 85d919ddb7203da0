//! Threads for work that must not run on the thread that asks for it.
//!
//! A job goes to an idle thread, or to a new one. A thread that finds no job for a while ends.

use std::{
    cell::Cell,
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tenon_sdk::author::{guard, spawn};

/// How long a thread waits for a job.
const IDLE: Duration = Duration::from_secs(2);

type Job = Box<dyn FnOnce() + Send>;

struct Jobs {
    waiting: VecDeque<Job>,
    /// The number of threads that wait for a job.
    idle: usize,
}

static JOBS: Mutex<Jobs> = Mutex::new(Jobs { waiting: VecDeque::new(), idle: 0 });
static ADDED: Condvar = Condvar::new();

thread_local! {
    static IS_HELPER: Cell<bool> = const { Cell::new(false) };
}

fn lock() -> MutexGuard<'static, Jobs> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this thread is one of these.
pub fn is_helper() -> bool {
    IS_HELPER.get()
}

/// Runs a job on another thread; on this one if the system gives none.
pub fn run(job: impl FnOnce() + Send + 'static) {
    let mut jobs = lock();
    jobs.waiting.push_back(Box::new(job));
    if jobs.idle >= jobs.waiting.len() {
        ADDED.notify_one();
        return;
    }
    drop(jobs);
    if spawn("tenon-data", serve).is_err() {
        let job = lock().waiting.pop_back();
        job.into_iter().for_each(|job| job());
    }
}

fn serve() {
    IS_HELPER.set(true);
    while let Some(job) = next() {
        // A task deals with its own panics; one of a waker has nowhere to go.
        let _ = guard(job);
    }
}

/// Waits for a job.
fn next() -> Option<Job> {
    let mut jobs = lock();
    jobs.idle += 1;
    let waited = ADDED.wait_timeout_while(jobs, IDLE, |jobs| jobs.waiting.is_empty());
    jobs = waited.unwrap_or_else(PoisonError::into_inner).0;
    jobs.idle -= 1;
    jobs.waiting.pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn jobs_run_at_the_same_time_on_other_threads() {
        let (sender, receiver) = channel();
        let (go, wait) = channel::<()>();
        let first = sender.clone();
        run(move || {
            wait.recv().expect("the test says go");
            first.send((1, is_helper())).expect("the test listens");
        });
        run(move || sender.send((2, is_helper())).expect("the test listens"));
        assert_eq!(receiver.recv().expect("the second job does not wait"), (2, true));
        go.send(()).expect("the job listens");
        assert_eq!(receiver.recv().expect("the first job ends"), (1, true));
        assert!(!is_helper());
    }
}
