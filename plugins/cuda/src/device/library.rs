//! Handles of NVIDIA's libraries on a GPU.
//!
//! Creating a handle takes milliseconds, device memory, and heap that cuDNN does not free (78 KiB
//! each, of 9.19). So the first kernel that needs a handle creates it, and it lives as long as the
//! context. A handle that belongs to one stream is notified when the stream ends, and is reused for
//! another.
//!
//! # Ownership
//! The context owns every object. Each kernel has a [`Library`], which keeps the context alive:
//! only [`Objects::clear`] drops an object, while the context still exists.

use super::Context;
use std::{
    any::Any,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::KernelError;

/// An object of a library that a context owns.
pub trait LibraryObject: Any + Send + Sync {
    /// Called when the stream of this [number](super::Stream::number) ends; everything enqueued on
    /// it is done, or never will be.
    fn stream_ends(&self, stream: u64) {
        let _ = stream;
    }
}

/// The objects that a context owns, one of each type.
#[derive(Default)]
pub(super) struct Objects(Mutex<Vec<Arc<dyn LibraryObject>>>);

impl Objects {
    /// Notifies all objects of the end of a stream.
    pub fn stream_ends(&self, stream: u64) {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.iter().for_each(|one| one.stream_ends(stream));
    }

    /// Drops all objects; the context must be current.
    pub fn clear(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A kernel's reference to an object of a library.
pub struct Library<T> {
    // Dropped first.
    object: Arc<T>,
    _context: Arc<Context>,
}

impl<T> Deref for Library<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

impl Context {
    /// The object of this type: the existing one, or the result of `make`, which runs with the
    /// context current.
    ///
    /// # Errors
    /// `UNAVAILABLE` on a lost device; the error of `make`.
    pub fn library<T: LibraryObject>(
        self: &Arc<Context>,
        make: impl FnOnce() -> Result<T, KernelError>,
    ) -> Result<Library<T>, KernelError> {
        self.enter()?;
        let mut objects = self.objects().0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = objects.iter().find_map(|one| {
            let any: Arc<dyn Any + Send + Sync> = Arc::clone(one) as _;
            any.downcast::<T>().ok()
        });
        let object = match known {
            Some(known) => known,
            None => {
                let made = Arc::new(make()?);
                objects.push(Arc::clone(&made) as Arc<dyn LibraryObject>);
                made
            }
        };
        Ok(Library { object, _context: Arc::clone(self) })
    }
}
