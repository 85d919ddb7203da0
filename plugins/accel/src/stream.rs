//! Streams: commands enqueued on one run in order.

use crate::{
    event::Event,
    queue::{Command, Queue, Work},
};
use std::sync::Arc;
use tenon_sdk::{Code, KernelError, device::author::Notification};

/// A stream of one device: one lane of its queue. Any thread may use it.
///
/// The first error on a stream stays: what is enqueued after it does not compute, events recorded after it
/// happen with its code, and a stream that waits for such an event fails with that code too, so that
/// nothing computes with results that are not there.
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

    /// Enqueues a kernel; `name` stands before its errors.
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

    /// Enqueues something that is done also after an error, and at once when the device is lost.
    pub fn cleanup(&self, body: impl FnOnce() + Send + 'static) {
        // Where the queue refuses it, it has been done.
        let _ = self.queue.enqueue(self.lane, Command::Cleanup(Box::new(body)));
    }

    /// Has `done` run with the first error so far, or `OK`, behind what is enqueued.
    pub fn notify(&self, done: Notification) {
        // Where the queue refuses it, it has run with that error.
        let _ = self.queue.enqueue(self.lane, Command::Notify(done));
    }

    /// Records an event behind what is enqueued.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for an event of another device, `UNAVAILABLE` when the device is lost.
    pub fn record(&self, event: &Event) -> Result<(), KernelError> {
        self.check(event)?;
        self.queue.enqueue(self.lane, Command::Record(event.record()))
    }

    /// What is enqueued from now on waits for the event's last recording so far.
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

    /// Waits until all that is enqueued so far is done. Not on the queue's own thread, where
    /// notifications run.
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
