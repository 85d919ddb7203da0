//! Calls into the runtime: without Python's lock, with panics as errors, and refused after a fork.
//!
//! A call that may take a lock of the runtime, or wait, runs through [`blocking`]. No thread of the runtime then waits for a
//! thread that holds Python's lock.
//!
//! A thread that asks for Python's lock while the interpreter ends is stopped where it is (before Python 3.14), in the middle of
//! native code. So the interpreter waits at its exit, for a while, until no thread is about to ask ([`at_exit`]).

use crate::fail::Fail;
use pyo3::prelude::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Whether this process was forked from one in which the runtime had started.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Whether the interpreter has begun to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Calls into the runtime that will take Python's lock again.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Calls of the runtime into Python.
static CALLING: AtomicUsize = AtomicUsize::new(0);

/// How long the interpreter waits at its exit for functions of Python's that the runtime has called.
const FOR_CALLS: Duration = Duration::from_secs(10);
/// How long it waits for steps of other threads. One that waits for a queue may never end.
const FOR_STEPS: Duration = Duration::from_millis(500);

/// A call that is counted while it lasts.
struct Counted(&'static AtomicUsize);

impl Counted {
    fn begin(count: &'static AtomicUsize) -> Counted {
        count.fetch_add(1, Ordering::SeqCst);
        Counted(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs something with Python's lock, on a thread of the runtime; `None` once the interpreter ends.
pub(crate) fn calling<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _counted = Counted::begin(&CALLING);
    match ENDING.load(Ordering::SeqCst) {
        true => None,
        false => Python::try_attach(call),
    }
}

/// What the interpreter calls when it begins to end: other threads get time to come back.
#[pyfunction]
pub(crate) fn at_exit(py: Python<'_>) {
    if is_forked() {
        return;
    }
    ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        for (count, most) in [(&CALLING, FOR_CALLS), (&WAITING, FOR_STEPS)] {
            let end = Instant::now() + most;
            while count.load(Ordering::SeqCst) > 0 && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

extern "C" fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Makes children of this process refuse calls: a child has none of the runtime's threads.
pub(crate) fn watch_forks() {
    static WATCH: Once = Once::new();
    // SAFETY: the function that is registered only stores to an atomic, which is allowed in a child.
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(forked));
    });
}

/// Whether this process is such a child.
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Refuses calls in a child.
///
/// # Errors
/// `FAILED_PRECONDITION` after a fork.
pub(crate) fn check_fork() -> Result<(), Fail> {
    match is_forked() {
        false => Ok(()),
        true => Err(Fail::precondition(
            "this process was forked after the runtime had started, and has none of its threads: start worker processes \
             with the method 'spawn' or 'forkserver', or fork before the first use of tenon",
        )),
    }
}

/// Runs something without Python's lock.
///
/// # Errors
/// The error of the call; `INTERNAL` if it panics; a fork.
pub(crate) fn blocking<T: Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, Fail> + Send,
) -> Result<T, Fail> {
    check_fork()?;
    let _counted = Counted::begin(&WAITING);
    py.detach(|| guarded(call))
}

/// Runs something, with a panic as an error.
///
/// # Errors
/// As [`blocking`].
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, Fail>) -> Result<T, Fail> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(Fail::panic(&*payload)))
}

/// Drops something whose end may wait for threads; in a child, where these are missing, it is leaked.
pub(crate) fn end<T: Send>(value: T) {
    if is_forked() {
        std::mem::forget(value);
        return;
    }
    // Without an interpreter, at its end, no lock is held either.
    let mut value = Some(value);
    let _ = Python::try_attach(|py| py.detach(|| drop(value.take())));
    drop(value);
}
