//! Streams: commands enqueued on a stream run in order.

use crate::{
    event::Event,
    queue::{Command, Queue, Work},
};
use std::sync::Arc;
use tenon_sdk::{Code, KernelError, device::author::Notification};

/// A stream of one device: one lane of its queue. Any thread may use it.
///
/// The first error on a stream stays: commands enqueued after it do not compute, events recorded
/// after it complete with its code, and a stream that waits for such an event fails with that code
/// too, so that no command computes with missing results.
pub struct Stream {
    queue: Arc<Queue>,
    lane: u64,
}

impl Stream {
    /// Opens a lane.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost.
    pub fn new(queue: &Arc<Queue>) -> Result<Stream, KernelError> {
        Ok(Stream { queue: Arc::clone(queue), lane: queue.open_lane()? })
    }

    /// Enqueues a kernel; `name` prefixes its errors.
    ///
    /// # Errors
    /// `UNAVAILABLE` when the device is lost. Errors of `body` go to the stream.
    pub fn kernel(
        &self,
        name: &'static str,
        body: impl FnOnce() -> Result<(), KernelError> + Send + 'static,
    ) -> Result<(), KernelError> {
        self.queue.enqueue(self.lane, Command::Work(Work::kernel(name, body)))
    }

    /// Enqueues a copy.
    ///
    /// # Errors
    /// As [`Stream::kernel`].
    pub fn copy(
        &self,
        body: impl FnOnce() -> Result<(), KernelError> + Send + 'static,
    ) -> Result<(), KernelError> {
        self.queue.enqueue(self.lane, Command::Work(Work::copy(body)))
    }

    /// Enqueues a cleanup, which runs even after an error, and at once when the device is lost.
    pub fn cleanup(&self, body: impl FnOnce() + Send + 'static) {
        // If the queue refuses it, it has run already.
        let _ = self.queue.enqueue(self.lane, Command::Cleanup(Box::new(body)));
    }

    /// Runs `done` after everything enqueued, with the first error so far, or `OK`.
    pub fn notify(&self, done: Notification) {
        // If the queue refuses it, it has run with that error.
        let _ = self.queue.enqueue(self.lane, Command::Notify(done));
    }

    /// Records an event after everything enqueued.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an event of another device, `UNAVAILABLE` when the device is lost.
    pub fn record(&self, event: &Event) -> Result<(), KernelError> {
        self.check(event)?;
        self.queue.enqueue(self.lane, Command::Record(event.record()))
    }

    /// Makes later commands wait for the event's most recent recording.
    ///
    /// # Errors
    /// As [`Stream::record`].
    pub fn wait(&self, event: &Event) -> Result<(), KernelError> {
        self.check(event)?;
        match event.last() {
            Some(recording) => self.queue.enqueue(self.lane, Command::Wait(recording)),
            None => self.queue.health().check(),
        }
    }

    /// Waits until everything enqueued so far is done. It must not be called on the queue's own
    /// thread, where notifications run.
    ///
    /// # Errors
    /// The stream's first error.
    pub fn synchronize(&self) -> Result<(), KernelError> {
        self.queue.synchronize_lane(self.lane)
    }

    fn check(&self, event: &Event) -> Result<(), KernelError> {
        match event.is_of(&self.queue) {
            true => Ok(()),
            false => Err(KernelError::new(
                Code::INVALID_ARGUMENT,
                "an event of another device: streams wait only for events of their own device",
            )),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.close_lane(self.lane);
    }
}
