//! Calls that finish later, and callbacks for cancellation.

use crate::compute::ComputeContext;
use std::{
    cell::Cell,
    ffi::c_void,
    ptr,
    sync::{Arc, Mutex, PoisonError},
    thread::{self, ThreadId},
};
use tenon_abi::{Call, CancelCallback, Code, NO_CALLBACK, Str};
use tenon_framework::{KernelError, element::Element, plugin::guard};

/// A call whose start runs on this thread, and the code of its completion once the start has completed it.
#[derive(Clone, Copy)]
struct Starting {
    call: *const Call,
    ended: Option<Code>,
}

thread_local! {
    /// The innermost start on this thread. A call that completes before its start returns needs no further service of the
    /// host: the start returns the code.
    static STARTING: Cell<Starting> = const { Cell::new(Starting { call: ptr::null(), ended: None }) };
}

/// Runs the start of a call. Returns the code of the call if the start completed it on this thread, else `PENDING`.
pub fn start(call: *const Call, body: impl FnOnce()) -> Code {
    let outer = STARTING.replace(Starting { call, ended: None });
    body();
    STARTING.replace(outer).ended.unwrap_or(Code::PENDING)
}

/// The bit of an output; `None` from number 64 on.
fn bit_of(output: usize) -> Option<u64> {
    u32::try_from(output).ok().and_then(|output| 1u64.checked_shl(output))
}

/// A call that is completed by [`AsyncCall::finish`], from any thread. If it is dropped before, the call fails
/// with `INTERNAL`, so that a step never hangs.
pub struct AsyncCall {
    call: *const Call,
    heard: Option<Heard>,
    /// The outputs that [`AsyncCall::prepare`] gave buffers, one bit each.
    prepared: u64,
}

// SAFETY: the host keeps the call alive until it completes, and its services take any thread.
unsafe impl Send for AsyncCall {}

impl AsyncCall {
    /// Takes the completion over.
    ///
    /// # Safety
    /// `call` lives until it completes, nothing else completes it, and `compute` returns the code
    /// that `start` gives.
    pub unsafe fn new(call: *const Call) -> AsyncCall {
        AsyncCall { call, heard: None, prepared: 0 }
    }

    /// Inputs, outputs and services. One context at a time hands out outputs.
    pub fn context(&mut self) -> ComputeContext<'_> {
        // SAFETY: the call lives until `finish`, which takes `self`.
        unsafe { ComputeContext::new(&*self.call) }
    }

    /// Gives an output a buffer of this shape, which [`AsyncCall::prepared`] shows until the call completes. Its contents are
    /// undefined.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INTERNAL` for outputs from number 64 on.
    pub fn prepare(&mut self, output: usize, dims: &[i64]) -> Result<(), KernelError> {
        let bit = bit_of(output).ok_or_else(|| {
            KernelError::internal(format!("output {output} is prepared: expected one below 64"))
        })?;
        self.context().prepare(output, dims)?;
        self.prepared |= bit;
        Ok(())
    }

    /// The buffer of an output that was prepared, with what was written to it.
    ///
    /// # Errors
    /// `INTERNAL` when it was not prepared, is of another type, or is in memory of a device.
    pub fn prepared<T: Element>(&mut self, output: usize) -> Result<&mut [T], KernelError> {
        if bit_of(output).is_none_or(|bit| self.prepared & bit == 0) {
            return Err(KernelError::internal(format!("output {output} was not prepared")));
        }
        let context = self.context();
        let slot = context.output_slot(output)?;
        Ok(context.hand_out::<T>(output, slot)?.data)
    }

    /// Calls `callback` once when the step is cancelled, from any thread, or now when it already is. The last one that
    /// is set is called. It is withdrawn before the call completes; `callback` itself may complete the call, if it
    /// can reach it.
    ///
    /// [`AsyncCall::finish`] waits for a callback that runs on another thread: hold no lock that the callback takes.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use tenon_author::{AsyncCall, ComputeContext, CreateContext, Kernel, Mode};
    /// use tenon_framework::{Code, KernelError};
    ///
    /// /// Waits until the step is cancelled.
    /// struct Forever;
    ///
    /// impl Kernel for Forever {
    ///     const MODE: Mode = Mode::Async;
    ///
    ///     fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
    ///         Ok(Forever)
    ///     }
    ///
    ///     fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
    ///         Ok(())
    ///     }
    ///
    ///     fn start(&self, mut call: AsyncCall) {
    ///         let place = Arc::new(Mutex::new(None::<AsyncCall>));
    ///         let waiting = Arc::clone(&place);
    ///         call.on_cancel(move || {
    ///             let call = waiting.lock().unwrap_or_else(|poison| poison.into_inner()).take();
    ///             if let Some(call) = call {
    ///                 call.finish(Err(KernelError::new(Code::CANCELLED, "the step was cancelled")));
    ///             }
    ///         });
    ///         let mut place = place.lock().unwrap_or_else(|poison| poison.into_inner());
    ///         if !call.context().is_cancelled() {
    ///             *place = Some(call);
    ///             return;
    ///         }
    ///         drop(place);
    ///         call.finish(Err(KernelError::new(Code::CANCELLED, "the step was cancelled")));
    ///     }
    /// }
    /// ```
    pub fn on_cancel(&mut self, callback: impl Fn() + Send + Sync + 'static) {
        self.withdraw();
        let heard = Arc::new(Hearing { callback: Box::new(callback), runs_on: Mutex::new(None) });
        let data = Arc::as_ptr(&heard).cast_mut().cast();
        // SAFETY: the call lives until `finish`; the host fills services and entries. The callback is alive until it is
        // withdrawn.
        let token = unsafe {
            let services = &*(*self.call).services;
            let entry = services.on_cancel.expect("the host fills every entry");
            entry((*self.call).record, CancelCallback { run: Some(run_hearing) }, data)
        };
        self.heard = Some(Heard { token, hearing: heard });
    }

    /// Withdraws the callback, unless it is what completes the call.
    fn withdraw(&mut self) {
        let Some(Heard { token, hearing }) = self.heard.take() else { return };
        let here = Some(thread::current().id());
        let runs_here = *hearing.runs_on.lock().unwrap_or_else(PoisonError::into_inner) == here;
        if token != NO_CALLBACK && !runs_here {
            // SAFETY: the call lives until it is completed; the host fills services and entries.
            unsafe {
                let services = &*(*self.call).services;
                let entry = services.off_cancel.expect("the host fills every entry");
                entry((*self.call).record, token);
            }
        }
    }

    /// Completes the call.
    pub fn finish(mut self, result: Result<(), KernelError>) {
        self.complete(result);
        std::mem::forget(self);
    }

    /// Leaves nothing that has to be dropped.
    fn complete(&mut self, result: Result<(), KernelError>) {
        self.withdraw();
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
            let starting = STARTING.get();
            if ptr::eq(starting.call, self.call) && starting.ended.is_none() {
                STARTING.set(Starting { ended: Some(code), ..starting });
                return;
            }
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

/// A callback that the host has.
struct Heard {
    token: u64,
    hearing: Arc<Hearing>,
}

/// A callback, and the thread that runs it.
struct Hearing {
    callback: Box<dyn Fn() + Send + Sync>,
    runs_on: Mutex<Option<ThreadId>>,
}

unsafe extern "C" fn run_hearing(data: *mut c_void) {
    let data = data.cast_const().cast::<Hearing>();
    // SAFETY: `data` is the `Hearing` of an `AsyncCall` that has not withdrawn it. The reference of this function's own
    // keeps it while the callback completes the call.
    let hearing = unsafe {
        Arc::increment_strong_count(data);
        Arc::from_raw(data)
    };
    let runs_on = |thread| {
        *hearing.runs_on.lock().unwrap_or_else(PoisonError::into_inner) = thread;
    };
    runs_on(Some(thread::current().id()));
    // A panic has nowhere to go: the callback's own effect is lost, the host goes on.
    let _ = guard(&hearing.callback);
    runs_on(None);
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
