//! Streams that are kept when their owner goes, for the next owner.
//!
//! A stream of the driver costs tens of microseconds to make, and memory of the GPU. On an H100, sixteen processes that
//! each made and destroyed thousands of streams a minute had filled its 80 GB within 20 s, while no buffer was in use.
//!
//! # Ownership
//! A stream is kept idle: nothing is enqueued on it, and it records nothing. Its number and what libraries have for it
//! stay. What is kept goes with the context.

use cudarc::driver::sys::CUstream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most streams that are kept: more than steps in flight have at once.
const MOST: usize = 64;

/// A stream of the driver, and the number of ours for it.
pub(super) struct Spare {
    pub raw: CUstream,
    pub number: u64,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Spare {}

/// The streams that a context keeps.
#[derive(Default)]
pub(super) struct SpareStreams(Mutex<Vec<Spare>>);

impl SpareStreams {
    fn all(&self) -> MutexGuard<'_, Vec<Spare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that was kept, if there is any.
    pub fn take(&self) -> Option<Spare> {
        self.all().pop()
    }

    /// Keeps an idle stream; gives it back where there are enough.
    pub fn keep(&self, stream: Spare) -> Result<(), Spare> {
        let mut all = self.all();
        if all.len() >= MOST {
            return Err(stream);
        }
        all.push(stream);
        Ok(())
    }

    /// Takes all.
    pub fn clear(&self) -> Vec<Spare> {
        std::mem::take(&mut *self.all())
    }
}
