//! The lock of a variable: one word, which a call changes by one atomic operation unless it has to wait.
//!
//! Calls wait, and are woken, under a mutex: a call that waits has first marked the word under it, so that the
//! call that unlocks takes the mutex too, and finds it waiting.

use super::Access;
use crate::cancel::Cancellation;
use std::ffi::c_void;
use tenon_abi::CancelCallback;
use tenon_framework::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicU32, Ordering},
    rank,
};

/// A call has the exclusive lock.
const HELD: u32 = 1;
/// Some call waits for either lock: the call that unlocks wakes it.
const AWAITED: u32 = 2;
/// Some call waits for the exclusive lock, so that none takes the shared one.
const EXCLUSIVE_AWAITED: u32 = 4;
/// Values are copied on read.
const COPY_ON_READ: u32 = 8;
/// One call that has the shared lock; the bits from here on are their number.
const SHARER: u32 = 16;
const SHARERS: u32 = !(SHARER - 1);

/// The numbers of calls that wait.
#[derive(Default)]
pub(super) struct Waiting {
    /// For the exclusive lock.
    exclusive: u32,
    /// For either lock.
    all: u32,
}

/// The lock of a variable.
pub(super) struct Lock {
    state: AtomicU32,
    waiting: Mutex<Waiting>,
    freed: Condvar,
}

/// Wakes the calls that wait for a lock, so that they see the cancellation.
///
/// # Safety
/// - `data` is a live [`Lock`].
unsafe extern "C" fn wake(data: *mut c_void) {
    // SAFETY: `data` is the lock, which the waiting call keeps alive until it has withdrawn the callback.
    unsafe { &*data.cast_const().cast::<Lock>() }.wake();
}

impl Lock {
    pub fn new() -> Lock {
        Lock {
            state: AtomicU32::new(0),
            waiting: Mutex::ranked(rank::VARIABLE, Waiting::default()),
            freed: Condvar::new(),
        }
    }

    /// The mutex under which calls wait.
    pub fn mutex(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }

    /// Whether a call waits for the exclusive lock.
    #[cfg(test)]
    pub fn is_awaited(&self) -> bool {
        self.state.load(Ordering::Relaxed) & EXCLUSIVE_AWAITED != 0
    }

    /// Whether values are copied on read.
    pub fn copies_on_read(&self) -> bool {
        self.state.load(Ordering::Relaxed) & COPY_ON_READ != 0
    }

    /// Makes values be copied on read from now on. The caller holds the exclusive lock.
    pub fn copy_on_read(&self) {
        self.state.fetch_or(COPY_ON_READ, Ordering::Relaxed);
    }

    /// Whether calls share the lock.
    pub fn is_shared(&self) -> bool {
        self.state.load(Ordering::Relaxed) & SHARERS != 0
    }

    /// Whether more calls than one share the lock.
    pub fn has_others(&self) -> bool {
        self.state.load(Ordering::Acquire) & SHARERS > SHARER
    }

    /// Changes the state to what `change` gives, unless that is nothing; returns whether it did.
    #[inline]
    fn change(&self, change: impl Fn(u32) -> Option<u32>) -> bool {
        self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, change).is_ok()
    }

    /// Takes the lock if possible; returns whether it did.
    #[inline]
    pub fn take(&self, access: Access) -> bool {
        match access {
            Access::Exclusive => {
                self.change(|now| (now & (HELD | SHARERS) == 0).then_some(now | HELD))
            }
            Access::Shared | Access::SharedUpdate => {
                self.change(|now| (now & (HELD | EXCLUSIVE_AWAITED) == 0).then(|| now + SHARER))
            }
        }
    }

    /// Takes the shared lock for a moment, before calls that wait for the exclusive one, unless that is
    /// taken or values are copied on read; returns whether it did.
    #[inline]
    pub fn peek(&self) -> bool {
        self.change(|now| (now & (HELD | COPY_ON_READ) == 0).then(|| now + SHARER))
    }

    /// Unlocks what the caller has taken.
    #[inline]
    pub fn give(&self) {
        if self.give_silently() {
            self.wake();
        }
    }

    /// Unlocks the shared lock, which the caller has taken.
    #[inline]
    pub fn give_shared(&self) {
        if self.state.fetch_sub(SHARER, Ordering::Release) & AWAITED != 0 {
            self.wake();
        }
    }

    /// As [`Lock::give`], but wakes no call; returns whether one waits.
    #[inline]
    pub fn give_silently(&self) -> bool {
        // While a call has the shared lock, none takes the exclusive one.
        let is_held = self.state.load(Ordering::Relaxed) & HELD != 0;
        let taken = if is_held { HELD } else { SHARER };
        self.state.fetch_sub(taken, Ordering::Release) & AWAITED != 0
    }

    /// Wakes all calls that wait.
    #[cold]
    pub fn wake(&self) {
        // Because of the mutex, a call that has just found the lock taken, or "not cancelled", is
        // waiting by now.
        drop(self.waiting.lock());
        self.freed.notify_all();
    }

    /// Waits for the lock; returns whether it was taken, which it is unless the step is cancelled.
    #[cold]
    pub fn wait(&self, access: Access, cancellation: &Cancellation) -> bool {
        let data = std::ptr::from_ref(self).cast_mut().cast();
        let token = cancellation.register(CancelCallback { run: Some(wake) }, data);
        let mut waiting = self.waiting.lock();
        let exclusive = u32::from(access == Access::Exclusive);
        waiting.exclusive += exclusive;
        waiting.all += 1;
        self.state.fetch_or(AWAITED | (exclusive * EXCLUSIVE_AWAITED), Ordering::Relaxed);
        let mut taken = self.take(access);
        while !taken && !cancellation.is_cancelled() {
            waiting = self.freed.wait(waiting);
            taken = self.take(access);
        }
        waiting.exclusive -= exclusive;
        waiting.all -= 1;
        let gone = match (waiting.all, waiting.exclusive) {
            (0, _) => AWAITED | EXCLUSIVE_AWAITED,
            (_, 0) => EXCLUSIVE_AWAITED,
            _ => 0,
        };
        self.state.fetch_and(!gone, Ordering::Relaxed);
        drop(waiting);
        cancellation.withdraw(token);
        if !taken {
            // Calls that wait for the shared lock were waiting for this one.
            self.freed.notify_all();
        }
        taken
    }
}
