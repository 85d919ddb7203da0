//! What a process does about an `exit` that a kernel calls.
//!
//! A plugin in the host's process may call `exit(0)`: the process ends as if all were well, and nothing of what was
//! asked for is done. Whoever runs steps and answers for them by a status keeps an [`ExitGuard`] meanwhile: then an
//! `exit`, from any thread, is told on standard error and ends the process with [`EXIT_STATUS`].
//!
//! It hears what the C library tells at the end of a process, by `atexit`. `_exit`, `abort` and signals pass it by;
//! a plugin in a process of its own ends that one alone, whatever it calls.

use std::sync::{
    Once,
    atomic::{AtomicUsize, Ordering},
};

/// The status of a process in which `exit` was called while a guard was there, whatever it was called with.
pub const EXIT_STATUS: i32 = 1;

static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// While there is one, an `exit` is an error. A program that ends by `exit` on purpose drops it first.
#[derive(Debug)]
#[must_use = "the guard works until it is dropped"]
pub struct ExitGuard(());

impl ExitGuard {
    /// A guard, from here on.
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
    // SAFETY: a function that lives as long as the process. Without memory for it, `exit` stays as it was.
    let _ = unsafe { libc::atexit(at_exit) };
}

/// Other systems tell nobody in time.
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
    // SAFETY: a text of as many bytes, written without a lock that the thread or another one may hold; then the
    // process ends, without whatever else waits to be run at its end.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(EXIT_STATUS);
    }
}
