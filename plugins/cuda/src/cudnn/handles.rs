//! cuDNN's handles of one GPU: one for each stream on which there are convolutions.

use super::api::Api;
use crate::device::{Context, Stream};
use cudarc::{cudnn::sys::cudnnHandle_t, driver::sys::CUresult};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tenon_sdk::KernelError;

/// The handles; made when a stream is used first, destroyed with the last kernel of the GPU that holds this.
pub(crate) struct Handles {
    context: Arc<Context>,
    api: &'static Api,
    by_stream: Mutex<HashMap<usize, Arc<Mutex<Handle>>>>,
}

impl Handles {
    /// Those of a GPU, shared by its kernels.
    ///
    /// # Errors
    /// `UNAVAILABLE` without the library.
    pub fn of(context: &Arc<Context>) -> Result<Arc<Handles>, KernelError> {
        static ALIVE: Mutex<Vec<Weak<Handles>>> = Mutex::new(Vec::new());
        super::require()?;
        let mut alive = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
        alive.retain(|one| one.strong_count() > 0);
        let of_context = |one: &Arc<Handles>| Arc::ptr_eq(&one.context, context);
        if let Some(found) = alive.iter().filter_map(Weak::upgrade).find(of_context) {
            return Ok(found);
        }
        let made = Arc::new(Handles {
            context: Arc::clone(context),
            api: Api::get()?,
            by_stream: Mutex::default(),
        });
        alive.push(Arc::downgrade(&made));
        Ok(made)
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
        self.context.enter()?;
        let handle = {
            let mut all = self.by_stream.lock().unwrap_or_else(PoisonError::into_inner);
            let key = stream.raw().addr();
            if !all.contains_key(&key) {
                all.insert(key, Arc::new(Mutex::new(Handle::new(self.api)?)));
            }
            Arc::clone(&all[&key])
        };
        let handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
        // Each time: a stream that is gone may have been followed by one at the same address.
        // SAFETY: a handle of this object, and a stream of its context.
        let result = unsafe { (self.api.cudnnSetStream)(handle.0, stream.raw().cast()) };
        self.api.check(result, "cudnnSetStream")?;
        run(handle.0)
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.context.release(|| {
            let mut all = self.by_stream.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, handle) in all.drain() {
                let handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
                // SAFETY: made by this object, and used by nobody any more.
                let _ = unsafe { (self.api.cudnnDestroy)(handle.0) };
            }
            CUresult::CUDA_SUCCESS
        });
    }
}

struct Handle(cudnnHandle_t);

// SAFETY: a handle may be used from any thread, by one at a time.
unsafe impl Send for Handle {}

impl Handle {
    fn new(api: &Api) -> Result<Handle, KernelError> {
        let mut raw: cudnnHandle_t = std::ptr::null_mut();
        // SAFETY: a place for the result.
        api.check(unsafe { (api.cudnnCreate)(&mut raw) }, "cudnnCreate")?;
        Ok(Handle(raw))
    }
}
