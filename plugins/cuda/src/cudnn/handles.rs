//! cuDNN's handles of one GPU: one for each stream with convolutions.
//!
//! # Ownership
//! A stream receives a handle, a free one or a new one, when it is used first; the handle is free
//! again when the stream ends. So the number of handles is the greatest number of streams that had
//! one at the same time.

use super::api::Api;
use crate::device::{Context, Library, LibraryObject, Stream};
use cudarc::cudnn::sys::cudnnHandle_t;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::KernelError;

/// The handles of a GPU.
pub(crate) struct Handles {
    api: &'static Api,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    /// Handles by the stream's number.
    by_stream: HashMap<u64, Arc<Mutex<Handle>>>,
    free: Vec<Arc<Mutex<Handle>>>,
}

impl Handles {
    /// The handles of a GPU, shared by its kernels.
    ///
    /// # Errors
    /// `UNAVAILABLE` without the library.
    pub fn of(context: &Arc<Context>) -> Result<Library<Handles>, KernelError> {
        super::require()?;
        context.library(|| Ok(Handles { api: Api::get()?, all: Mutex::default() }))
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `run` with the handle of this stream, exclusively.
    ///
    /// # Errors
    /// `UNAVAILABLE` on a lost device; cuDNN's error; the error of `run`.
    pub fn with<R>(
        &self,
        stream: &Stream,
        run: impl FnOnce(cudnnHandle_t) -> Result<R, KernelError>,
    ) -> Result<R, KernelError> {
        stream.context().enter()?;
        let handle = self.of_stream(stream)?;
        let handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
        run(handle.0)
    }

    fn of_stream(&self, stream: &Stream) -> Result<Arc<Mutex<Handle>>, KernelError> {
        let mut all = self.all();
        let All { by_stream, free } = &mut *all;
        let place = match by_stream.entry(stream.number()) {
            Entry::Occupied(known) => return Ok(Arc::clone(known.get())),
            Entry::Vacant(place) => place,
        };
        let handle = match free.pop() {
            Some(handle) => handle,
            None => Arc::new(Mutex::new(Handle::new(self.api)?)),
        };
        let raw = handle.lock().unwrap_or_else(PoisonError::into_inner).0;
        // SAFETY: a handle that no stream has, and a stream of its context.
        let result = unsafe { (self.api.cudnnSetStream)(raw, stream.raw().cast()) };
        if let Err(error) = self.api.check(result, "cudnnSetStream") {
            free.push(handle);
            return Err(error);
        }
        Ok(Arc::clone(place.insert(handle)))
    }
}

impl LibraryObject for Handles {
    fn stream_ends(&self, stream: u64) {
        let mut all = self.all();
        if let Some(handle) = all.by_stream.remove(&stream) {
            all.free.push(handle);
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let All { by_stream, free } = std::mem::take(&mut *self.all());
        for handle in by_stream.into_values().chain(free) {
            let handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: this object created it, and nothing uses it any more; the context is current,
            // as it drops its objects.
            let _ = unsafe { (self.api.cudnnDestroy)(handle.0) };
        }
    }
}

struct Handle(cudnnHandle_t);

// SAFETY: a handle may move between threads as long as one thread at a time uses it.
unsafe impl Send for Handle {}

impl Handle {
    fn new(api: &Api) -> Result<Handle, KernelError> {
        let mut raw: cudnnHandle_t = std::ptr::null_mut();
        // SAFETY: the result pointer is valid for writes.
        api.check(unsafe { (api.cudnnCreate)(&mut raw) }, "cudnnCreate")?;
        Ok(Handle(raw))
    }
}
