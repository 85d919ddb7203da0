//! The state that the threads of one step share.
//!
//! States of a step: *running*, until its driver finds no ready node and nothing outstanding;
//! *stopped*, from the first error, cancellation or passed deadline on: ready nodes are dropped,
//! and the driver only waits for outstanding work. Ownership: `inbox` and `outstanding` are changed
//! under the lock by completing threads; `first` is set once.
//!
//! The state of a call within a step has no driver that waits: while only outstanding work is left,
//! the call is parked in the inbox, and the change that lets it go on resumes it.
//!
//! `outstanding` counts the work that will still add to the inbox: pending asynchronous calls,
//! waiting receivers and jobs on the pool. It is raised before the work is handed over, and lowered
//! in the same critical section that adds the result to the inbox, so the driver always sees one or
//! the other.

use super::callee::{Callees, Progress};
use crate::error::StepError;
use std::{
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};
use tenon_framework::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
    rank,
};
use tenon_host::call::Cancellation;

#[cfg(all(test, loom))]
mod model;

/// A call that waits without a thread.
pub(crate) trait Parked: Send {
    /// Drives the call on another thread.
    fn resume(self: Box<Self>);
}

/// A node that became ready on another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub partition: u32,
    pub node: u32,
}

#[derive(Default)]
struct Inbox {
    ready: Vec<Ready>,
    outstanding: usize,
    /// Whether the driver was notified that the step is stopped.
    told: bool,
    /// The call whose state this is, while it waits.
    parked: Option<Box<dyn Parked>>,
    /// Set when work is handed over, and cleared when the driver finds everything done: while it is
    /// set, the step can still fail.
    open: bool,
}

/// The state that the threads of one step share.
pub(crate) struct StepShared {
    inbox: Mutex<Inbox>,
    changed: Condvar,
    /// Whether the driver waits for outstanding work; it changes under the inbox's lock and is read
    /// without it.
    waiting: AtomicBool,
    /// Set once work is handed off; lets the driver skip `wait` for purely inline steps.
    used: AtomicBool,
    /// The number of the running step; 0 if there is none to cancel.
    step: AtomicU64,
    first: OnceLock<StepError>,
    pub cancellation: Arc<Cancellation>,
    /// The functions that the step's nodes call, if they call any.
    callees: Option<Weak<dyn Callees>>,
}

/// The result of waiting.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "it says whether the step goes on"]
pub(crate) enum Wait {
    /// Nodes were added to the list, or the step was stopped and the list is empty. The stop is
    /// reported once, so that the driver aborts the receivers instead of waiting for them forever.
    Ready,
    /// No work is outstanding.
    Idle,
    /// The time has run out.
    TimedOut,
}

impl StepShared {
    pub fn new(cancellation: Arc<Cancellation>, callees: Option<Weak<dyn Callees>>) -> StepShared {
        StepShared {
            inbox: Mutex::ranked(rank::STEP, Inbox::default()),
            changed: Condvar::new(),
            waiting: AtomicBool::new(false),
            used: AtomicBool::new(false),
            step: AtomicU64::new(0),
            first: OnceLock::new(),
            cancellation,
            callees,
        }
    }

    /// The functions that the step's nodes call, unless their session is gone.
    pub fn callees(&self) -> Option<Arc<dyn Callees>> {
        self.callees.as_ref()?.upgrade()
    }

    /// Whether the step is stopped, so that ready nodes are dropped.
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// The first error, if any.
    pub fn error(&self) -> Option<&StepError> {
        self.first.get()
    }

    /// Stops the step with an error; only the first one is kept.
    pub fn fail(&self, error: StepError) {
        let _ = self.first.set(error);
        self.cancellation.cancel();
        self.wake();
    }

    /// Stops step `step` with an error outside any outstanding work. Returns false if that step is
    /// done or has already failed.
    pub fn fail_step(self: &Arc<Self>, step: u64, error: StepError) -> bool {
        let mut inbox = self.inbox.lock();
        // While the inbox is open, it belongs to the step with the stored number.
        if !inbox.open || self.step.load(Ordering::Relaxed) != step {
            return false;
        }
        // The count keeps the step from ending, so that the error still belongs to it.
        inbox.outstanding += 1;
        drop(inbox);
        let first = self.first.set(error).is_ok();
        self.cancellation.cancel();
        self.lower(None);
        first
    }

    /// Wakes the driver, so that it checks the state again.
    pub fn wake(&self) {
        let mut inbox = self.inbox.lock();
        let parked = inbox.parked.take();
        self.notify(inbox);
        if let Some(parked) = parked {
            parked.resume();
        }
    }

    /// Unlocks the inbox and notifies the driver, if it waits: notifying is a system call, even without
    /// a waiting thread.
    fn notify(&self, inbox: MutexGuard<'_, Inbox>) {
        let is_awaited = self.driver_waits();
        drop(inbox);
        if is_awaited {
            self.changed.notify_all();
        }
    }

    /// Drives the call whose state this is by `advance`, until nothing of it is left, and returns it;
    /// or parks it, and returns nothing.
    pub fn drive_or_park<C: Parked + 'static>(
        &self,
        mut call: Box<C>,
        advance: impl Fn(&mut C) -> Progress,
    ) -> Option<Box<C>> {
        while advance(&mut call) == Progress::Pending {
            let mut own = Some(call);
            self.park(|| own.take().map(|call| call as Box<dyn Parked>));
            // It is still here if something was completed meanwhile.
            call = own?;
        }
        Some(call)
    }

    /// Parks the call that `call` makes, which is asked for it only if nothing lets the call go on
    /// at once.
    fn park(&self, call: impl FnOnce() -> Option<Box<dyn Parked>>) {
        let mut inbox = self.inbox.lock();
        let is_told = inbox.told || !self.is_stopped();
        if inbox.ready.is_empty() && inbox.outstanding > 0 && is_told {
            inbox.parked = call();
        }
    }

    /// Counts outstanding work before it is handed over.
    pub fn raise(&self) {
        self.used.store(true, Ordering::Release);
        let mut inbox = self.inbox.lock();
        inbox.outstanding += 1;
        inbox.open = true;
    }

    /// Ends outstanding work and adds its result, if any. Once nothing is outstanding, the step may
    /// end and its state may be freed, so this keeps its own reference until it has notified the
    /// driver.
    pub fn lower(self: &Arc<Self>, ready: Option<Ready>) {
        let this = Arc::clone(self);
        let mut inbox = this.inbox.lock();
        inbox.outstanding -= 1;
        inbox.ready.extend(ready);
        let goes_on = !inbox.ready.is_empty() || inbox.outstanding == 0;
        let parked = if goes_on { inbox.parked.take() } else { None };
        this.notify(inbox);
        if let Some(parked) = parked {
            parked.resume();
        }
    }

    /// Whether the driver can skip [`StepShared::wait`].
    #[inline(always)]
    pub fn is_untouched(&self) -> bool {
        !self.used.load(Ordering::Acquire)
    }

    /// Takes the nodes that became ready, or waits for some until `until`.
    pub fn wait(&self, ready: &mut Vec<Ready>, until: Option<Instant>) -> Wait {
        let mut inbox = self.inbox.lock();
        loop {
            if !inbox.ready.is_empty() {
                ready.append(&mut inbox.ready);
                return Wait::Ready;
            }
            if inbox.outstanding == 0 {
                inbox.open = false;
                return Wait::Idle;
            }
            if !inbox.told && self.is_stopped() {
                inbox.told = true;
                return Wait::Ready;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Wait::TimedOut;
            }
            self.waiting.store(true, Ordering::Relaxed);
            inbox = match left {
                None => self.changed.wait(inbox),
                Some(left) => self.changed.wait_timeout(inbox, left),
            };
            self.waiting.store(false, Ordering::Relaxed);
        }
    }

    /// Whether the driver is idle. The answer may be out of date when it is used.
    #[inline(always)]
    pub fn driver_waits(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Starts a step.
    #[inline(always)]
    pub fn begin(&self, step: u64) {
        self.step.store(step, Ordering::Relaxed);
    }

    /// Cancels the running step, if there is one since [`StepShared::begin`].
    pub fn cancel_running(&self) {
        if self.step.load(Ordering::Relaxed) != 0 {
            self.cancellation.cancel();
            self.wake();
        }
    }

    /// Resets the state after a successful step, with no error and nothing outstanding.
    #[inline(always)]
    pub fn reset(&self) {
        self.step.store(0, Ordering::Relaxed);
        if self.used.load(Ordering::Relaxed) || self.cancellation.is_cancelled() {
            self.used.store(false, Ordering::Relaxed);
            self.inbox.lock().told = false;
            self.cancellation.reset();
        }
    }
}
