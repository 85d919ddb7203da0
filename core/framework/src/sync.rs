//! The synchronisation types of the whole project, from one place: the standard library's, or loom's under
//! `--cfg loom`. Locks ignore poisoning: a panic is contained where it happens, and what a lock guards is
//! kept valid at every point where one can occur.

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(loom))]
use std::sync as imp;

#[cfg(loom)]
pub use loom::{sync::atomic, thread};
#[cfg(not(loom))]
pub use std::{sync::atomic, thread};

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

/// A rank orders locks: a thread takes them in rising order only. Checked in debug builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(pub u8);

/// Ranks of the locks of the project, from the outermost to the innermost.
pub mod rank {
    use super::Rank;

    /// A saver's checkpoint that is written in the background: held while its session takes the values.
    pub const SAVER: Rank = Rank(3);
    /// A server's table of sessions: held while one of them changes.
    pub const SERVER: Rank = Rank(5);
    /// The session's table of plans.
    pub const SESSION: Rank = Rank(10);
    /// The stream that writes a variable: held while a call waits for it. A device that is lost meanwhile is
    /// reported by the registry.
    pub const WRITER: Rank = Rank(15);
    /// The registry's writers.
    pub const REGISTRY: Rank = Rank(20);
    /// Variables, in the order of their numbers.
    pub const VARIABLE: Rank = Rank(30);
    /// The table of resources.
    pub const RESOURCES: Rank = Rank(40);
    /// The state of a step.
    pub const STEP: Rank = Rank(50);
    /// The rendezvous.
    pub const RENDEZVOUS: Rank = Rank(60);
    /// What is on its way to another process.
    pub const LINK: Rank = Rank(65);
    /// The thread pool.
    pub const POOL: Rank = Rank(70);
    /// Allocators.
    pub const MEMORY: Rank = Rank(80);
    /// A lock under which no other is taken.
    pub const LEAF: Rank = Rank(255);
}

#[cfg(all(debug_assertions, not(loom)))]
mod held {
    use super::Rank;
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<Rank>> = const { RefCell::new(Vec::new()) };
    }

    pub fn take(rank: Rank) {
        HELD.with(|held| {
            let mut held = held.borrow_mut();
            if let Some(&last) = held.last() {
                assert!(last < rank, "lock of rank {} taken under one of rank {}", rank.0, last.0);
            }
            held.push(rank);
        });
    }

    pub fn give(rank: Rank) {
        HELD.with(|held| {
            let mut held = held.borrow_mut();
            if let Some(at) = held.iter().rposition(|&other| other == rank) {
                held.remove(at);
            }
        });
    }
}

#[cfg(not(all(debug_assertions, not(loom))))]
mod held {
    use super::Rank;

    pub fn take(_rank: Rank) {}
    pub fn give(_rank: Rank) {}
}

/// A mutex with a rank.
pub struct Mutex<T> {
    inner: imp::Mutex<T>,
    rank: Rank,
}

/// A locked [`Mutex`].
pub struct MutexGuard<'a, T> {
    /// `Some` except while a condition variable has it.
    inner: Option<imp::MutexGuard<'a, T>>,
    rank: Rank,
}

impl<T> Mutex<T> {
    /// A mutex of this rank.
    pub fn ranked(rank: Rank, value: T) -> Mutex<T> {
        Mutex { inner: imp::Mutex::new(value), rank }
    }

    /// A mutex under which no other is taken.
    pub fn new(value: T) -> Mutex<T> {
        Mutex::ranked(rank::LEAF, value)
    }

    /// Locks.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        held::take(self.rank);
        let inner = self.inner.lock().unwrap_or_else(|poison| poison.into_inner());
        MutexGuard { inner: Some(inner), rank: self.rank }
    }

    /// The value, without a lock, since no other code has the mutex.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("a guard holds its lock")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("a guard holds its lock")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.inner = None;
        held::give(self.rank);
    }
}

/// A condition variable for [`Mutex`].
#[derive(Default)]
pub struct Condvar {
    inner: imp::Condvar,
}

impl Condvar {
    /// A condition variable.
    pub fn new() -> Condvar {
        Condvar { inner: imp::Condvar::new() }
    }

    /// Waits; may wake without cause.
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        if let Some(inner) = guard.inner.take() {
            let inner = self.inner.wait(inner).unwrap_or_else(|poison| poison.into_inner());
            guard.inner = Some(inner);
        }
        guard
    }

    /// Waits at most for this time; may wake without cause.
    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> MutexGuard<'a, T> {
        if let Some(inner) = guard.inner.take() {
            let (inner, _) =
                self.inner.wait_timeout(inner, limit).unwrap_or_else(|poison| poison.into_inner());
            guard.inner = Some(inner);
        }
        guard
    }

    /// Wakes one.
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

#[cfg(all(test, debug_assertions, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "lock of rank 10 taken under one of rank 60")]
    fn locks_taken_against_their_rank_are_found() {
        let outer = Mutex::ranked(rank::RENDEZVOUS, ());
        let inner = Mutex::ranked(rank::SESSION, ());
        let _held = outer.lock();
        let _wrong = inner.lock();
    }
}
