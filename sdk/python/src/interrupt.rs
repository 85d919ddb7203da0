//! Ctrl-C while the main thread waits for a step.
//!
//! Python notes a signal and raises `KeyboardInterrupt` once its main thread runs Python code again; a thread that waits for a step
//! runs none. While steps of the main thread run, a handler is therefore in front of Python's. It wakes a thread that cancels the
//! step, if Python's handler is the one that raises `KeyboardInterrupt`, and calls Python's handler.
//!
//! Where the program has no handler of Python's for the signal, nothing is changed.

use crate::blocking::calling;
use pyo3::prelude::*;
use std::{
    ffi::{c_int, c_void},
    mem,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
use tenon_runtime::CancelToken;

/// The thread in which Python handles signals; 0 before [`start`].
static MAIN: AtomicU64 = AtomicU64::new(0);
/// Python's handler, behind ours.
static BEHIND: AtomicUsize = AtomicUsize::new(0);
/// The end of the pipe to which the handler writes.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// The process that watches: a child of it has the pipe and the handler too, and nothing to interrupt.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// The token of the steps of the main thread.
static TOKEN: OnceLock<Mutex<CancelToken>> = OnceLock::new();

fn token() -> &'static Mutex<CancelToken> {
    TOKEN.get_or_init(Mutex::default)
}

/// What is written: its value says nothing.
static BYTE: u8 = 1;

/// What the system runs for the signal: it may only call functions that are safe in a handler.
extern "C" fn handle(signal: c_int) {
    // SAFETY: `getpid` and `write` are safe in a handler, and the pipe does not block; the byte is readable. What is behind is the handler that Python installed, a function
    // of a signal's number.
    unsafe {
        if libc::getpid() == OWNER.load(Ordering::Relaxed) {
            let errno = *libc::__errno_location();
            let byte = (&raw const BYTE).cast::<c_void>();
            let _ = libc::write(WAKE.load(Ordering::Relaxed), byte, 1);
            *libc::__errno_location() = errno;
        }
        let behind = BEHIND.load(Ordering::Acquire);
        if behind != 0 {
            let behind: extern "C" fn(c_int) = mem::transmute(behind);
            behind(signal);
        }
    }
}

fn own() -> usize {
    let own: extern "C" fn(c_int) = handle;
    own as usize
}

/// Puts the handler in front of Python's, where it is not there yet.
fn install() {
    // SAFETY: both structs are plain data, and the calls change nothing else; `handle` is a handler of the form that the flags say.
    unsafe {
        let mut found: libc::sigaction = mem::zeroed();
        if libc::sigaction(libc::SIGINT, std::ptr::null(), &mut found) != 0 {
            return;
        }
        let handler = found.sa_sigaction;
        let takes_more = found.sa_flags & libc::SA_SIGINFO != 0;
        if handler == own() || handler == libc::SIG_DFL || handler == libc::SIG_IGN || takes_more {
            return;
        }
        BEHIND.store(handler, Ordering::Release);
        found.sa_sigaction = own();
        libc::sigaction(libc::SIGINT, &found, std::ptr::null_mut());
    }
}

/// Waits for signals, and cancels the steps of the main thread.
fn watch(pipe: c_int) {
    let mut byte = 0u8;
    // SAFETY: the byte may be written.
    while unsafe { libc::read(pipe, (&raw mut byte).cast::<c_void>(), 1) } == 1 {
        let raises = calling(|py| {
            let signal = py.import("signal")?;
            let now = signal.getattr("getsignal")?.call1((libc::SIGINT,))?;
            Ok::<_, PyErr>(now.is(&signal.getattr("default_int_handler")?))
        });
        match raises {
            Some(Ok(true)) => {
                token().lock().unwrap_or_else(PoisonError::into_inner).cancel();
            }
            Some(_) => {}
            None => return,
        }
    }
}

/// Begins to watch, once. A system without a pipe or a thread left has no interruption of steps.
pub(crate) fn start(py: Python<'_>) {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return;
        }
        // SAFETY: the descriptor is this call's; a handler must not wait for room in the pipe.
        unsafe { libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) };
        WAKE.store(ends[1], Ordering::Relaxed);
        // SAFETY: the call has no conditions.
        OWNER.store(unsafe { libc::getpid() }, Ordering::Relaxed);
        let watched = thread::Builder::new().name("tenon-signals".to_owned());
        if watched.spawn(move || watch(ends[0])).is_err() {
            return;
        }
        let main = py.import("threading").and_then(|threading| {
            threading.getattr("main_thread")?.call0()?.getattr("ident")?.extract::<u64>()
        });
        MAIN.store(main.unwrap_or(0), Ordering::Relaxed);
    });
}

/// The token for a step of this thread: of the main thread, one that Ctrl-C cancels.
pub(crate) fn token_here() -> Option<CancelToken> {
    // SAFETY: the call has no conditions.
    let own = unsafe { libc::pthread_self() } as u64;
    if own != MAIN.load(Ordering::Relaxed) {
        return None;
    }
    install();
    let mut token = token().lock().unwrap_or_else(PoisonError::into_inner);
    if token.is_cancelled() {
        *token = CancelToken::new();
    }
    Some(token.clone())
}
