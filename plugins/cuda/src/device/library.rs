//! Handles of NVIDIA's libraries on a GPU.
//!
//! A handle takes milliseconds, device memory, and heap that cuDNN does not give back (78 KiB each, of 9.19), so that it
//! is made once, by the first kernel that wants it, and lives as long as the context. One that is a stream's own is told
//! when the stream ends, and goes to another.
//!
//! # Ownership
//! The context has every object, and each kernel a [`Library`], which has the context too: an object goes while the
//! context is still there, and by [`Objects::clear`] alone.

use super::Context;
use std::{
    any::Any,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::KernelError;

/// What a context has of a library.
pub trait LibraryObject: Any + Send + Sync {
    /// The stream of this [number](super::Stream::number) ends; what was enqueued on it is done, or never will be.
    fn stream_ends(&self, stream: u64) {
        let _ = stream;
    }
}

/// The objects that a context has, one of each type.
#[derive(Default)]
pub(super) struct Objects(Mutex<Vec<Arc<dyn LibraryObject>>>);

impl Objects {
    /// Tells all of the end of a stream.
    pub fn stream_ends(&self, stream: u64) {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.iter().for_each(|one| one.stream_ends(stream));
    }

    /// Drops them all. The context is current.
    pub fn clear(&mut self) {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// An object of a library, as a kernel has it.
pub struct Library<T> {
    // Goes first.
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
    /// The object of this type: the one there is, or what `make` gives with the context current.
    ///
    /// # Errors
    /// `UNAVAILABLE` on a lost device; what `make` says.
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
