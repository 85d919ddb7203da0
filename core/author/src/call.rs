//! Calls that finish later, and callbacks for cancellation.

use crate::compute::ComputeContext;
use std::ffi::c_void;
use tenon_abi::{Call, CancelCallback, Code, NO_CALLBACK, Str};
use tenon_framework::{KernelError, plugin::guard};

/// A call whose completion is owed: by [`AsyncCall::finish`], from any thread. Dropped without it, the
/// call fails with `INTERNAL`, so that a step never hangs on a forgotten one.
pub struct AsyncCall {
    call: *const Call,
}

// SAFETY: the host keeps the call alive until it completes, and its services take any thread.
unsafe impl Send for AsyncCall {}

impl AsyncCall {
    /// Takes the completion over.
    ///
    /// # Safety
    /// `call` lives until it completes, nothing else completes it, and `compute` returns `PENDING`.
    pub unsafe fn new(call: *const Call) -> AsyncCall {
        AsyncCall { call }
    }

    /// Inputs, outputs and services. One context at a time hands out outputs.
    pub fn context(&mut self) -> ComputeContext<'_> {
        // SAFETY: the call lives until `finish`, which takes `self`.
        unsafe { ComputeContext::new(&*self.call) }
    }

    /// Completes the call.
    pub fn finish(self, result: Result<(), KernelError>) {
        self.complete(result);
        std::mem::forget(self);
    }

    fn complete(&self, result: Result<(), KernelError>) {
        // SAFETY: the call lives; the host fills services and entries. After `complete` it is not touched.
        unsafe {
            let record = (*self.call).record;
            let services = &*(*self.call).services;
            let code = match result {
                Ok(()) => Code::OK,
                Err(error) => services.fail.expect("the host fills every entry")(
                    record,
                    error.code,
                    Str::new(&error.message),
                ),
            };
            services.complete.expect("the host fills every entry")(record, code);
        }
    }
}

impl Drop for AsyncCall {
    fn drop(&mut self) {
        self.complete(Err(KernelError::internal(
            "the kernel dropped its call without finishing it",
        )));
    }
}

/// Withdraws a cancellation callback when it is dropped.
pub struct CancelGuard<'a> {
    call: &'a Call,
    token: u64,
    callback: *mut Callback<'a>,
}

type Callback<'a> = Box<dyn Fn() + Send + Sync + 'a>;

unsafe extern "C" fn run_callback(data: *mut c_void) {
    // SAFETY: `data` points to the callback of a `CancelGuard` that has not withdrawn it yet.
    let callback = unsafe { &*data.cast::<Callback<'_>>() };
    // A panic has nowhere to go: the callback's own effect is lost, the host goes on.
    let _ = guard(callback);
}

impl<'a> ComputeContext<'a> {
    /// Calls `callback` once when the step is cancelled, from any thread, or now when it already is. It
    /// is withdrawn when the guard is dropped.
    pub fn on_cancel(&self, callback: impl Fn() + Send + Sync + 'a) -> CancelGuard<'a> {
        let boxed: Callback<'a> = Box::new(callback);
        let callback = Box::into_raw(Box::new(boxed));
        let entry = self.services().on_cancel.expect("the host fills every entry");
        // SAFETY: the callback lives until the guard has withdrawn it.
        let token = unsafe {
            entry(self.raw().record, CancelCallback { run: Some(run_callback) }, callback.cast())
        };
        CancelGuard { call: self.raw(), token, callback }
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        // SAFETY: the call lives for `'a`, the host fills services and entries; afterwards the callback is
        // neither running nor will it run, so that it can be freed.
        unsafe {
            if self.token != NO_CALLBACK {
                let services = &*self.call.services;
                services.off_cancel.expect("the host fills every entry")(
                    self.call.record,
                    self.token,
                );
            }
            drop(Box::from_raw(self.callback));
        }
    }
}
