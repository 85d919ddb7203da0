//! Streams: commands enqueued on a stream run in order.

use super::{context::Context, event::Event, foreign, spare::Spare};
use cudarc::driver::sys::{self, CUresult, CUstream};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tenon_sdk::{
    Code, KernelError,
    device::author::callbacks::{self, Callback},
};

/// A stream of one GPU. Any thread may use it.
///
/// It does not synchronise with the default stream. An error of a command on the device is sticky:
/// it loses the device, so that no command computes with missing results.
pub struct Stream {
    context: Arc<Context>,
    raw: CUstream,
    /// Number of the driver's stream, which no other stream of this process has, before or after.
    number: u64,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as for `Send`.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that the context kept, or a new one.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; the driver's error.
    pub fn new(context: &Arc<Context>) -> Result<Stream, KernelError> {
        context.enter()?;
        if let Some(Spare { raw, number }) = context.spare().take() {
            return Ok(Stream { context: Arc::clone(context), raw, number });
        }
        let mut raw: CUstream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the result pointer is valid for writes.
        context.call("cuStreamCreate", || unsafe { sys::cuStreamCreate(&mut raw, flags) })?;
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Ok(Stream { context: Arc::clone(context), raw, number })
    }

    /// Number that distinguishes the driver's stream from all others of this process, even from an
    /// earlier one with the same handle.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// The stream's GPU.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits until everything enqueued so far is done.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost, or found to be lost.
    pub fn synchronize(&self) -> Result<(), KernelError> {
        self.context.wait_for(self.raw)
    }

    /// Makes later commands wait for the event's most recent recording.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an event of another device; `UNAVAILABLE` when the device is lost.
    pub fn wait(&self, event: &Event) -> Result<(), KernelError> {
        if !event.is_of(&self.context) {
            return Err(foreign("an event"));
        }
        // SAFETY: a stream and an event of this context.
        let wait = || unsafe { sys::cuStreamWaitEvent(self.raw, event.raw(), 0) };
        self.context.call("cuStreamWaitEvent", wait)
    }

    /// Runs a callback once, after everything enqueued; with the error when the device does not
    /// accept it.
    pub(super) fn when_done(&self, callback: Callback) {
        let registration = callbacks::register(self.context.callbacks(), callback);
        let data = registration.as_pointer();
        // SAFETY: the function takes the registration's number and nothing behind it.
        let launch =
            || unsafe { sys::cuLaunchHostFunc(self.raw, Some(callbacks::stream_reached), data) };
        if let Err(error) = self.context.call("cuLaunchHostFunc", launch) {
            registration.complete(error.code);
        }
    }

    /// Whether commands are now recorded instead of run.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn is_recording(&self) -> Result<bool, KernelError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: a stream of this context; the result pointer is valid for writes.
        let ask = || unsafe { sys::cuStreamIsCapturing(self.raw, &mut status) };
        self.context.call("cuStreamIsCapturing", ask)?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Refuses work of the host that follows a command, while the stream records: it would be
    /// recorded too, and repeated with each run of the graph, long after its memory was reused.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` while the stream records.
    pub(super) fn refuse_recording(&self, what: &str) -> Result<(), KernelError> {
        if !self.is_recording()? {
            return Ok(());
        }
        Err(KernelError::new(
            Code::FAILED_PRECONDITION,
            format!(
                "{what} needs the host, and the stream records: enqueue it outside of the recording"
            ),
        ))
    }

    /// Whether everything enqueued is done.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn is_done(&self) -> Result<bool, KernelError> {
        let mut done = true;
        // SAFETY: a stream of this context.
        let query = || match unsafe { sys::cuStreamQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => {
                done = false;
                CUresult::CUDA_SUCCESS
            }
            result => result,
        };
        self.context.call("cuStreamQuery", query)?;
        Ok(done)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A stream that still runs, records or fails is not kept.
        let spare = Spare { raw: self.raw, number: self.number };
        if matches!(self.is_done(), Ok(true)) && self.context.spare().keep(spare).is_ok() {
            return;
        }
        self.context.objects().stream_ends(self.number);
        // SAFETY: this object owns the stream, and nothing uses it any more.
        self.context.release(|| unsafe { sys::cuStreamDestroy_v2(self.raw) });
    }
}
