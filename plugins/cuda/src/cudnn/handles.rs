//! cuDNN's handles of one GPU: one for each stream on which there are convolutions.

use super::api::Api;
use crate::device::{Context, Library, Stream};
use cudarc::cudnn::sys::cudnnHandle_t;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, PoisonError},
};
use tenon_sdk::KernelError;

/// The handles; each is made when its stream is used first.
pub(crate) struct Handles {
    api: &'static Api,
    by_stream: Mutex<HashMap<usize, Arc<Mutex<Handle>>>>,
}

impl Handles {
    /// Those of a GPU, shared by its kernels.
    ///
    /// # Errors
    /// `UNAVAILABLE` without the library.
    pub fn of(context: &Arc<Context>) -> Result<Library<Handles>, KernelError> {
        super::require()?;
        context.library(|| Ok(Handles { api: Api::get()?, by_stream: Mutex::default() }))
    }

    /// Runs with a handle whose calls go to this stream, which nobody else uses meanwhile.
    ///
    /// # Errors
    /// `UNAVAILABLE` on a lost device; what cuDNN says, and what `run` says.
    pub fn with<R>(
        &self,
        stream: &Stream,
        run: impl FnOnce(cudnnHandle_t) -> Result<R, KernelError>,
    ) -> Result<R, KernelError> {
        stream.context().enter()?;
        let handle = {
            let mut all = self.by_stream.lock().unwrap_or_else(PoisonError::into_inner);
            match all.entry(stream.raw().addr()) {
                Entry::Occupied(known) => Arc::clone(known.get()),
                Entry::Vacant(place) => {
                    Arc::clone(place.insert(Arc::new(Mutex::new(Handle::new(self.api)?))))
                }
            }
        };
        let mut handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
        handle.turn_to(self.api, stream)?;
        run(handle.raw)
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let all = self.by_stream.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, handle) in all.drain() {
            let handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: made by this object, and used by nobody any more; the context is current, as it drops its objects.
            let _ = unsafe { (self.api.cudnnDestroy)(handle.raw) };
        }
    }
}

struct Handle {
    raw: cudnnHandle_t,
    /// Number of the stream that its calls go to: one that is gone may have been followed by one at the same address.
    stream: Option<u64>,
}

// SAFETY: a handle may be used from any thread, by one at a time.
unsafe impl Send for Handle {}

impl Handle {
    fn new(api: &Api) -> Result<Handle, KernelError> {
        let mut raw: cudnnHandle_t = std::ptr::null_mut();
        // SAFETY: a place for the result.
        api.check(unsafe { (api.cudnnCreate)(&mut raw) }, "cudnnCreate")?;
        Ok(Handle { raw, stream: None })
    }

    /// Has its calls go to a stream.
    fn turn_to(&mut self, api: &Api, stream: &Stream) -> Result<(), KernelError> {
        if self.stream == Some(stream.number()) {
            return Ok(());
        }
        // SAFETY: a handle that is there, and a stream of its context.
        let result = unsafe { (api.cudnnSetStream)(self.raw, stream.raw().cast()) };
        api.check(result, "cudnnSetStream")?;
        self.stream = Some(stream.number());
        Ok(())
    }
}
