//! Cancellation of a step.
//!
//! States: `live` → `cancelled`, once. The flag is read without the lock; callbacks are registered,
//! run and withdrawn under it. Each callback is in one of these states: in `waiting`, named by
//! `running`, or gone. `withdraw` returns only when its callback is neither waiting nor running,
//! except on the thread that runs it.

use std::{ffi::c_void, sync::atomic::AtomicU32};
use tenon_abi::{CancelCallback, NO_CALLBACK};
use tenon_framework::sync::{
    Condvar, Mutex,
    atomic::Ordering,
    thread::{self, ThreadId},
};

#[cfg(all(test, loom))]
mod model;

struct Callback {
    token: u64,
    run: CancelCallback,
    data: *mut c_void,
}

// SAFETY: the contract of `on_cancel` says that callbacks run on any thread.
unsafe impl Send for Callback {}

#[derive(Default)]
struct State {
    next: u64,
    waiting: Vec<Callback>,
    running: Option<(u64, ThreadId)>,
}

/// The cancellation flag. Under loom there is a second one, since loom's atomics do not have the
/// layout that kernels read.
#[derive(Default)]
struct Flag {
    value: tenon_framework::sync::atomic::AtomicU32,
    #[cfg(loom)]
    plain: AtomicU32,
}

impl Flag {
    fn plain(&self) -> &AtomicU32 {
        #[cfg(loom)]
        return &self.plain;
        #[cfg(not(loom))]
        return &self.value;
    }

    /// Sets the flag; returns whether it was set before.
    fn set(&self) -> bool {
        #[cfg(loom)]
        self.plain.store(1, Ordering::SeqCst);
        self.value.swap(1, Ordering::SeqCst) != 0
    }

    fn clear(&self) {
        #[cfg(loom)]
        self.plain.store(0, Ordering::Relaxed);
        self.value.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn is_set(&self, order: Ordering) -> bool {
        self.value.load(order) != 0
    }
}

/// The cancellation flag of a step, with the callbacks to run.
#[derive(Default)]
pub struct Cancellation {
    flag: Flag,
    state: Mutex<State>,
    idle: Condvar,
}

impl Cancellation {
    /// A cancellation that has not happened.
    pub fn new() -> Cancellation {
        Cancellation::default()
    }

    /// The flag that kernels read.
    pub fn flag(&self) -> &AtomicU32 {
        self.flag.plain()
    }

    /// Whether the step is cancelled.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_set(Ordering::Relaxed)
    }

    /// Resets a finished step's object for the next step. Callbacks that a kernel did not withdraw
    /// are dropped.
    pub fn reset(&self) {
        self.flag.clear();
        let mut state = self.state.lock();
        state.waiting.clear();
    }

    /// Cancels the step and runs the callbacks; later calls do nothing.
    pub fn cancel(&self) {
        if self.flag.set() {
            return;
        }
        loop {
            let mut state = self.state.lock();
            let Some(callback) = state.waiting.pop() else { return };
            state.running = Some((callback.token, thread::current().id()));
            drop(state);
            run(&callback);
            self.state.lock().running = None;
            self.idle.notify_all();
        }
    }

    /// Registers a callback and returns its token, or [`NO_CALLBACK`] when the step is cancelled
    /// and the callback ran at once.
    pub fn register(&self, run_callback: CancelCallback, data: *mut c_void) -> u64 {
        let mut state = self.state.lock();
        state.next += 1;
        let callback = Callback { token: state.next, run: run_callback, data };
        if !self.flag.is_set(Ordering::SeqCst) {
            let token = callback.token;
            state.waiting.push(callback);
            return token;
        }
        drop(state);
        run(&callback);
        NO_CALLBACK
    }

    /// Withdraws a callback.
    pub fn withdraw(&self, token: u64) {
        let mut state = self.state.lock();
        state.waiting.retain(|callback| callback.token != token);
        while let Some((running, thread)) = state.running {
            if running != token || thread == thread::current().id() {
                return;
            }
            state = self.idle.wait(state);
        }
    }
}

fn run(callback: &Callback) {
    if let Some(entry) = callback.run.run {
        // SAFETY: a registered callback is valid until it is withdrawn.
        unsafe { entry(callback.data) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    unsafe extern "C" fn count(data: *mut c_void) {
        // SAFETY: the tests pass a counter.
        unsafe { (*data.cast::<AtomicU32>()).fetch_add(1, Ordering::SeqCst) };
    }

    #[test]
    fn a_callback_runs_once_and_not_after_it_is_withdrawn() {
        let counter = AtomicU32::new(0);
        let data = (&raw const counter).cast_mut().cast();
        let cancellation = Cancellation::new();
        let first = cancellation.register(CancelCallback { run: Some(count) }, data);
        let second = cancellation.register(CancelCallback { run: Some(count) }, data);
        assert!(first != 0 && second != first);
        cancellation.withdraw(first);
        cancellation.cancel();
        cancellation.cancel();
        assert_eq!(counter.load(Ordering::SeqCst), 1);
        assert_eq!(cancellation.register(CancelCallback { run: Some(count) }, data), 0);
        assert_eq!(counter.load(Ordering::SeqCst), 2);
    }
}
