//! Calls into the runtime: without Python's lock, with panics as errors, and refused after a fork.
//!
//! A call that may take a lock of the runtime, or wait, runs through [`blocking`]. No thread of the runtime then waits for a
//! thread that holds Python's lock.

use crate::fail::Fail;
use pyo3::prelude::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether this process was forked from one in which the runtime had started.
static FORKED: AtomicBool = AtomicBool::new(false);

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
