//! The lock of a graph.
//!
//! Whoever holds it may run Python code, so a thread that waits for it gives Python's lock up meanwhile. A thread that holds it and
//! asks for it again gets an error.

use crate::fail::Fail;
use pyo3::{prelude::*, sync::MutexExt};
use std::{
    ops::{Deref, DerefMut},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A value behind a lock.
pub(crate) struct Locked<T> {
    value: Mutex<T>,
    /// The thread that holds the lock; 0 for none.
    holder: AtomicUsize,
}

/// The value, as long as the lock is held.
pub(crate) struct Guard<'a, T> {
    value: MutexGuard<'a, T>,
    holder: &'a AtomicUsize,
}

thread_local! {
    static OWN: u8 = const { 0 };
}

/// A number that no other thread has while this one lives: the address of a variable of its own.
fn this_thread() -> usize {
    OWN.with(|own| std::ptr::from_ref(own) as usize)
}

impl<T> Locked<T> {
    pub fn new(value: T) -> Locked<T> {
        Locked { value: Mutex::new(value), holder: AtomicUsize::new(0) }
    }

    /// Takes the lock.
    ///
    /// # Errors
    /// This thread holds it.
    pub fn lock(&self) -> Result<Guard<'_, T>, Fail> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => self.wait()?,
        };
        self.holder.store(this_thread(), Ordering::Relaxed);
        Ok(Guard { value, holder: &self.holder })
    }

    fn wait(&self) -> Result<MutexGuard<'_, T>, Fail> {
        // Another thread stores its own number, so this one is there only if this thread stored it.
        if self.holder.load(Ordering::Relaxed) == this_thread() {
            return Err(Fail::precondition(
                "the graph is being changed by the call that runs this function: a shape function or a gradient of \
                 tenon.op may use its arguments, and no other part of the graph",
            ));
        }
        let waited = Python::try_attach(|py| {
            self.value.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
        });
        Ok(waited.unwrap_or_else(|| self.value.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::Relaxed);
    }
}
