//! Idle streams that are kept for reuse.
//!
//! A stream of the driver costs tens of microseconds to make, and memory of the GPU. On an H100,
//! sixteen processes that each made and destroyed thousands of streams a minute had filled its 80
//! GB within 20 s, while no buffer was in use.
//!
//! # Ownership
//! A kept stream is idle: nothing is enqueued on it, and it is not recording. It keeps its number
//! and the libraries' objects for it. The context drops the kept streams.

use cudarc::driver::sys::CUstream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most streams kept: more than steps in flight use at once.
const MOST: usize = 64;

/// A stream of the driver, and the plugin's number for it.
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

    /// Takes a kept stream, if there is one.
    pub fn take(&self) -> Option<Spare> {
        self.all().pop()
    }

    /// Keeps an idle stream, or returns it where there are enough.
    pub fn keep(&self, stream: Spare) -> Result<(), Spare> {
        let mut all = self.all();
        if all.len() >= MOST {
            return Err(stream);
        }
        all.push(stream);
        Ok(())
    }

    /// Takes all kept streams.
    pub fn clear(&self) -> Vec<Spare> {
        std::mem::take(&mut *self.all())
    }
}
