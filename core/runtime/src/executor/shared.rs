//! What the threads of one step share.
//!
//! States of a step: *running*, until its driver finds no ready node and nothing outstanding; *stopped*,
//! from the first error, cancellation or passed deadline on: ready nodes are dropped, and only what is
//! outstanding is waited for. Ownership: `inbox` and `outstanding` under the lock, by whoever completes;
//! `first` is set once.
//!
//! `outstanding` counts what will still come into the inbox: pending asynchronous calls, waiting receivers
//! and jobs on the pool. It is raised before the work is handed over, and lowered in the same critical
//! section that puts its result into the inbox, so that the driver never sees neither.

use crate::error::StepError;
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};
use tenon_framework::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering},
    rank,
};
use tenon_host::call::Cancellation;

#[cfg(all(test, loom))]
mod model;

/// A node that became ready elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    pub partition: u32,
    pub node: u32,
}

#[derive(Default)]
struct Inbox {
    ready: Vec<Ready>,
    outstanding: usize,
    /// Whether the driver was told that the step is stopped.
    told: bool,
    /// Something was handed over, and the driver has not found everything done since: until then the step can
    /// still fail.
    open: bool,
}

/// What the threads of one step share.
pub(crate) struct StepShared {
    inbox: Mutex<Inbox>,
    changed: Condvar,
    /// Whether the driver waits for what is outstanding; changes under the inbox's lock, read without it.
    waiting: AtomicBool,
    /// Whether anything was ever outstanding in this step: else the driver need not look.
    used: AtomicBool,
    /// The step that runs, 0 for none: only then there is something to cancel.
    step: AtomicU64,
    first: OnceLock<StepError>,
    pub cancellation: Arc<Cancellation>,
}

/// What the driver found.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "it says whether the step goes on"]
pub(crate) enum Wait {
    /// Nodes were put into the list; or, with none, the step was stopped: said once, since a driver that only
    /// waited would never abort the receivers it waits for.
    Ready,
    /// Nothing is outstanding.
    Idle,
    /// The time is up.
    TimedOut,
}

impl StepShared {
    pub fn new(cancellation: Arc<Cancellation>) -> StepShared {
        StepShared {
            inbox: Mutex::ranked(rank::STEP, Inbox::default()),
            changed: Condvar::new(),
            waiting: AtomicBool::new(false),
            used: AtomicBool::new(false),
            step: AtomicU64::new(0),
            first: OnceLock::new(),
            cancellation,
        }
    }

    /// Whether ready nodes are dropped from now on.
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// The first error, if any.
    pub fn error(&self) -> Option<&StepError> {
        self.first.get()
    }

    /// Stops the step with an error; the first one stays.
    pub fn fail(&self, error: StepError) {
        let _ = self.first.set(error);
        self.cancellation.cancel();
        self.wake();
    }

    /// Stops step `step` with an error that nobody waits for. False when that step is done, or has failed before.
    pub fn fail_step(self: &Arc<Self>, step: u64, error: StepError) -> bool {
        let mut inbox = self.inbox.lock();
        // While it is open, it is of the step whose number stands there.
        if !inbox.open || self.step.load(Ordering::Relaxed) != step {
            return false;
        }
        // Held up, so that the error still is this step's.
        inbox.outstanding += 1;
        drop(inbox);
        let first = self.first.set(error).is_ok();
        self.cancellation.cancel();
        self.lower(None);
        first
    }

    /// Wakes the driver, so that it looks again.
    pub fn wake(&self) {
        drop(self.inbox.lock());
        self.changed.notify_all();
    }

    /// Before work is handed over.
    pub fn raise(&self) {
        self.used.store(true, Ordering::Release);
        let mut inbox = self.inbox.lock();
        inbox.outstanding += 1;
        inbox.open = true;
    }

    /// After work that was handed over: its result, if it has one. The step may end, and its state go, as
    /// soon as nothing is outstanding: this thread holds on to what it still notifies.
    pub fn lower(self: &Arc<Self>, ready: Option<Ready>) {
        let this = Arc::clone(self);
        let mut inbox = this.inbox.lock();
        inbox.outstanding -= 1;
        inbox.ready.extend(ready);
        drop(inbox);
        this.changed.notify_all();
    }

    /// Whether the driver can skip [`StepShared::wait`].
    #[inline(always)]
    pub fn is_untouched(&self) -> bool {
        !self.used.load(Ordering::Acquire)
    }

    /// Takes what became ready, or waits for it until `until`.
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

    /// Whether the driver has nothing to do. It may have found something by the time that this is known.
    #[inline(always)]
    pub fn driver_waits(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A step begins.
    #[inline(always)]
    pub fn begin(&self, step: u64) {
        self.step.store(step, Ordering::Relaxed);
    }

    /// Cancels the step, when one runs: from [`StepShared::begin`] on.
    pub fn cancel_running(&self) {
        if self.step.load(Ordering::Relaxed) != 0 {
            self.cancellation.cancel();
            self.wake();
        }
    }

    /// Ready for the next step. Only for a step that ended well, with no error and nothing outstanding.
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
