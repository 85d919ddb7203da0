//! Streams: commands enqueued on one run in order.

use super::{
    context::Context,
    event::Event,
    foreign,
    notify::{self, Errand},
    spare::Spare,
};
use cudarc::driver::sys::{self, CUresult, CUstream};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tenon_sdk::{Code, KernelError};

/// A stream of one GPU. Any thread may use it.
///
/// It does not wait for the default stream, nor that for it. An error that a command meets on the device is sticky:
/// it loses the device, so that nothing computes with results that are not there.
pub struct Stream {
    context: Arc<Context>,
    raw: CUstream,
    /// Of the driver's stream: no other one of this process has it, before or after.
    number: u64,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// One that the context kept, or a new one.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost; what the driver says.
    pub fn new(context: &Arc<Context>) -> Result<Stream, KernelError> {
        context.enter()?;
        if let Some(Spare { raw, number }) = context.spare().take() {
            return Ok(Stream { context: Arc::clone(context), raw, number });
        }
        let mut raw: CUstream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a place for the result.
        context.call("cuStreamCreate", || unsafe { sys::cuStreamCreate(&mut raw, flags) })?;
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Ok(Stream { context: Arc::clone(context), raw, number })
    }

    /// What tells the driver's stream from every other one of this process, also from one that had its handle before.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.raw
    }

    /// Its GPU.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Waits until all that is enqueued so far is done.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost, or found to be.
    pub fn synchronize(&self) -> Result<(), KernelError> {
        self.context.wait_for(self.raw)
    }

    /// What is enqueued from now on waits for the event's last recording so far.
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

    /// Has an errand run once, behind what is enqueued; with its error when the device does not take it.
    pub(super) fn when_done(&self, errand: Errand) {
        let ticket = notify::owe(self.context.desk(), errand);
        let data = ticket.as_pointer();
        // SAFETY: the function takes the ticket's number and nothing behind it.
        let launch = || unsafe { sys::cuLaunchHostFunc(self.raw, Some(notify::paid), data) };
        if let Err(error) = self.context.call("cuLaunchHostFunc", launch) {
            ticket.settle(error.code);
        }
    }

    /// Whether what is enqueued now is recorded instead of run.
    ///
    /// # Errors
    /// As [`Stream::synchronize`].
    pub fn is_recording(&self) -> Result<bool, KernelError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: a stream of this context, a place for the result.
        let ask = || unsafe { sys::cuStreamIsCapturing(self.raw, &mut status) };
        self.context.call("cuStreamIsCapturing", ask)?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Refuses what only the host can do behind a command, while the stream records: it would be recorded as well, and
    /// done again with each run of the graph, long after its memory went to somebody else.
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

    /// Whether all that was enqueued is done.
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
        // One that still works, or records, or fails, is not kept.
        let spare = Spare { raw: self.raw, number: self.number };
        if matches!(self.is_done(), Ok(true)) && self.context.spare().keep(spare).is_ok() {
            return;
        }
        self.context.objects().stream_ends(self.number);
        // SAFETY: a stream of this object, which nobody uses any more.
        self.context.release(|| unsafe { sys::cuStreamDestroy_v2(self.raw) });
    }
}
