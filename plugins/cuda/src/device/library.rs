//! Handles of NVIDIA's libraries on a GPU.
//!
//! A handle takes milliseconds, device memory, and heap that cuDNN does not give back (78 KiB each, of 9.19), so that it
//! is made once, by the first kernel that wants it, and lives as long as the context.
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

/// The objects that a context has, one of each type.
#[derive(Default)]
pub(super) struct Objects(Mutex<Vec<Arc<dyn Any + Send + Sync>>>);

impl Objects {
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
    pub fn library<T: Any + Send + Sync>(
        self: &Arc<Context>,
        make: impl FnOnce() -> Result<T, KernelError>,
    ) -> Result<Library<T>, KernelError> {
        self.enter()?;
        let mut objects = self.objects().0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = objects.iter().find_map(|one| Arc::clone(one).downcast::<T>().ok());
        let object = match known {
            Some(known) => known,
            None => {
                let made = Arc::new(make()?);
                objects.push(Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
                made
            }
        };
        Ok(Library { object, _context: Arc::clone(self) })
    }
}
