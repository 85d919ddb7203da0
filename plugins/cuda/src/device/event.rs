//! Events: points in streams.

use super::{context::Context, foreign, stream::Stream};
use cudarc::driver::sys::{self, CUevent, CUresult};
use std::sync::Arc;
use tenon_sdk::KernelError;

/// An event of one GPU. An event that was never recorded counts as complete.
pub struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as for `Send`.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event that only orders streams.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; the driver's error.
    pub fn new(context: &Arc<Context>) -> Result<Event, KernelError> {
        Event::with(context, sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// Creates an event that also records the time.
    ///
    /// # Errors
    /// As [`Event::new`].
    pub fn timed(context: &Arc<Context>) -> Result<Event, KernelError> {
        Event::with(context, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn with(context: &Arc<Context>, flags: sys::CUevent_flags) -> Result<Event, KernelError> {
        let mut raw: CUevent = std::ptr::null_mut();
        // SAFETY: the result pointer is valid for writes.
        context.call("cuEventCreate", || unsafe { sys::cuEventCreate(&mut raw, flags as u32) })?;
        Ok(Event { context: Arc::clone(context), raw })
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUevent {
        self.raw
    }

    /// Whether the event belongs to this GPU.
    pub fn is_of(&self, context: &Arc<Context>) -> bool {
        Arc::ptr_eq(&self.context, context)
    }

    /// Records the event after everything enqueued on the stream.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a stream of another device; `UNAVAILABLE` when the device is lost.
    pub fn record(&self, stream: &Stream) -> Result<(), KernelError> {
        if !self.is_of(stream.context()) {
            return Err(foreign("a stream"));
        }
        // SAFETY: an event and a stream of this context.
        self.context.call("cuEventRecord", || unsafe { sys::cuEventRecord(self.raw, stream.raw()) })
    }

    /// Whether the last recording is complete.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost, or found to be lost.
    pub fn query(&self) -> Result<bool, KernelError> {
        let mut happened = true;
        // SAFETY: an event of this context.
        let query = || match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => {
                happened = false;
                CUresult::CUDA_SUCCESS
            }
            result => result,
        };
        self.context.call("cuEventQuery", query)?;
        Ok(happened)
    }

    /// Nanoseconds from an earlier event to this one; both must be timed and complete.
    ///
    /// # Errors
    /// The driver's error.
    pub fn since(&self, earlier: &Event) -> Result<u64, KernelError> {
        let mut milliseconds = 0f32;
        let entry = elapsed_entry()?;
        // SAFETY: events of this context; the result pointer is valid for writes.
        let elapsed = || unsafe { entry(&mut milliseconds, earlier.raw, self.raw) };
        self.context.call("cuEventElapsedTime", elapsed)?;
        Ok((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
    }
}

type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// The entry by its name from before CUDA 12.8, which all drivers have; cudarc only has the newer
/// name.
fn elapsed_entry() -> Result<ElapsedTime, KernelError> {
    // SAFETY: an event exists, so the driver is loaded; the entry has had this signature since CUDA
    // 2.
    let entry = unsafe { sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime\0") };
    entry.map(|entry| *entry).map_err(|error| {
        KernelError::internal(format!("the driver has no cuEventElapsedTime: {error}"))
    })
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: this object owns the event, and nothing waits for it any more.
        self.context.release(|| unsafe { sys::cuEventDestroy_v2(self.raw) });
    }
}
