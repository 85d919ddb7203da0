//! Detects an `exit` that a kernel calls.
//!
//! A plugin in the host's process may call `exit(0)`: the process then ends with a status of
//! success, and nothing of what was requested is done. A program that runs steps and reports their
//! result by its status holds an [`ExitGuard`] meanwhile: then an `exit`, from any thread, is
//! reported on standard error and ends the process with [`EXIT_STATUS`].
//!
//! It uses the C library's `atexit`, which `_exit`, `abort` and signals bypass; a plugin in a
//! process of its own only ends that process.

use std::sync::{
    Once,
    atomic::{AtomicUsize, Ordering},
};

/// The status of a process in which `exit` was called while a guard existed, whatever the argument
/// was.
pub const EXIT_STATUS: i32 = 1;

static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// While one exists, an `exit` is an error. A program that calls `exit` on purpose drops it first.
#[derive(Debug)]
#[must_use = "the guard works until it is dropped"]
pub struct ExitGuard(());

impl ExitGuard {
    /// Creates a guard.
    pub fn new() -> ExitGuard {
        static LISTEN: Once = Once::new();
        LISTEN.call_once(listen);
        GUARDS.fetch_add(1, Ordering::AcqRel);
        ExitGuard(())
    }
}

impl Default for ExitGuard {
    fn default() -> ExitGuard {
        ExitGuard::new()
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(unix)]
fn listen() {
    // SAFETY: a function that lives as long as the process. If memory for it is missing, `exit` is
    // unaffected.
    let _ = unsafe { libc::atexit(at_exit) };
}

/// Other systems do not report an `exit` in time.
#[cfg(not(unix))]
fn listen() {}

#[cfg(unix)]
extern "C" fn at_exit() {
    const MESSAGE: &str = "error [INTERNAL]: exit was called while steps may run, by a kernel or the code of another \
                           plugin: the process ends here, and what it was to do is not done; --isolate FILE gives a \
                           plugin a process of its own\n";
    if GUARDS.load(Ordering::Acquire) == 0 {
        return;
    }
    // SAFETY: the text has this many bytes, and is written without a lock that any thread may hold;
    // then the process ends, without running its other exit handlers.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(EXIT_STATUS);
    }
}
