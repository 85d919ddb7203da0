//! The structure of the frames, behind a lock that is left out while one thread works on the step.

use super::structure::Structure;
use std::{
    cell::UnsafeCell,
    ops::{Deref, DerefMut},
};
use tenon_framework::sync::{Mutex, MutexGuard, Rank};

/// The rank is below the locks of a step, which an iteration takes under this lock, and below those of
/// the allocators, to which its buffers go back.
const FRAMES: Rank = Rank(45);

/// The structure, which one thread at a time holds.
pub(super) struct Guarded {
    lock: Mutex<()>,
    structure: UnsafeCell<Structure>,
}

// SAFETY: `hold` gives the structure to one thread at a time.
unsafe impl Sync for Guarded {}

/// The structure, held by a thread.
pub(super) struct Held<'g> {
    structure: &'g mut Structure,
    _lock: Option<MutexGuard<'g, ()>>,
}

impl Guarded {
    pub fn new(structure: Structure) -> Guarded {
        Guarded { lock: Mutex::ranked(FRAMES, ()), structure: UnsafeCell::new(structure) }
    }

    /// Holds the structure until the result is dropped; waits for another thread that holds it, unless
    /// the caller is `alone`.
    ///
    /// # Safety
    /// - The caller does not hold the structure already.
    /// - With `alone`, no other thread holds the structure, or asks for it before the result is
    ///   dropped.
    #[inline(always)]
    pub unsafe fn hold(&self, alone: bool) -> Held<'_> {
        let lock = if alone { None } else { Some(self.lock.lock()) };
        // SAFETY: no other thread has the structure: the lock keeps them out, or there is none, as the
        // caller guarantees.
        Held { structure: unsafe { &mut *self.structure.get() }, _lock: lock }
    }
}

impl Deref for Held<'_> {
    type Target = Structure;

    #[inline(always)]
    fn deref(&self) -> &Structure {
        self.structure
    }
}

impl DerefMut for Held<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Structure {
        self.structure
    }
}
