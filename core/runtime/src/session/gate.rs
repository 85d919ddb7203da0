//! The steps in flight of a session, and its closing.
//!
//! # States
//! *open*, then *closed*, once. A step enters while the gate is open, and is inside until its
//! [`Entered`] is dropped. [`Gate::close`] returns when no step is inside; a later one is counted
//! only until it is refused.
//!
//! # Order
//! A step can be cancelled before it enters. [`Gate::close`] first closes and then cancels, and
//! both sides write `inside` in between: either the step finds the gate closed, or the cancellation
//! reaches the step. One cancellation is enough.

use tenon_framework::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    rank,
};

#[cfg(all(test, loom))]
mod model;

/// Counts the steps in flight, and lets `close` wait for them.
pub(super) struct Gate {
    closed: AtomicBool,
    inside: AtomicUsize,
    /// The lock for waiting on `empty` and for signalling it.
    lock: Mutex<()>,
    empty: Condvar,
}

/// A step in flight.
#[must_use = "the step ends where this is dropped"]
pub(super) struct Entered<'g> {
    gate: &'g Gate,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            closed: AtomicBool::new(false),
            inside: AtomicUsize::new(0),
            lock: Mutex::ranked(rank::SESSION, ()),
            empty: Condvar::new(),
        }
    }
}

impl Gate {
    /// Whether the gate is closed to further steps.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The number of steps in flight.
    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    /// Enters a step, which must already be cancellable; `None` if the gate is closed.
    #[inline(always)]
    pub fn enter(&self) -> Option<Entered<'_>> {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let entered = Entered { gate: self };
        (!self.closed.load(Ordering::SeqCst)).then_some(entered)
    }

    /// Closes the gate, cancels the steps inside by `cancel`, and waits until they have left.
    pub fn close(&self, cancel: impl FnOnce()) {
        self.closed.store(true, Ordering::SeqCst);
        // `cancel` reaches any step that entered before this; a step that enters after it finds the
        // gate closed.
        self.inside.fetch_add(0, Ordering::SeqCst);
        cancel();
        let mut lock = self.lock.lock();
        while self.inside.load(Ordering::SeqCst) > 0 {
            lock = self.empty.wait(lock);
        }
    }

    #[cold]
    fn signal(&self) {
        drop(self.lock.lock());
        self.empty.notify_all();
    }
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let was_last = self.gate.inside.fetch_sub(1, Ordering::SeqCst) == 1;
        if was_last && self.gate.closed.load(Ordering::SeqCst) {
            self.gate.signal();
        }
    }
}
