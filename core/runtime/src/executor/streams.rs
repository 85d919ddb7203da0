//! The streams of one partition in a step, and the events by which they wait for each other.
//!
//! The plan states which stream each node enqueues on, and which events it waits for
//! ([`crate::plan::NodeStream`]). Streams and events are created with the step's state and reused
//! by later steps.
//!
//! States of an event in a step: *old*, recorded by an earlier step, until its node has enqueued
//! and records it, once; then *recorded*, and only then are the waiting nodes notified. Each stream
//! is told to wait for a recorded event at most once ([`Told`]), by the first of its nodes that
//! needs it.
//!
//! The end of a step waits for all streams, even if one failed or the device is lost. When
//! [`StepStreams::synchronise`] has returned, nothing of the step runs on the device any more, and
//! its buffers may be released.

use self::timing::Timing;
use crate::plan::Plan;
use std::sync::{Arc, OnceLock};
use tenon_framework::{
    KernelError,
    device::base::{EventId, LocalDevice, StreamId},
    sync::atomic::{AtomicU32, Ordering},
};
use tenon_host::call::{TraceSink, monotonic_ns};

mod joins;
mod timing;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

/// The streams that were told to wait for an event, one bit each.
#[derive(Debug, Default)]
struct Told(AtomicU32);

impl Told {
    /// Calls `tell` unless this stream was told before. When it returns, anything that the caller
    /// enqueues on the stream comes after the wait. Two threads at once may both tell, which is
    /// harmless.
    fn tell_once<E>(&self, stream: u32, tell: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let bit = 1 << stream;
        if self.0.load(Ordering::Acquire) & bit == 0 {
            tell()?;
            self.0.fetch_or(bit, Ordering::Release);
        }
        Ok(())
    }

    fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

struct Lane {
    stream: StreamId,
    /// The name for traces.
    name: Arc<str>,
    /// The time when the stream reached its current work, if there is a trace.
    began: Arc<std::sync::atomic::AtomicU64>,
}

/// The streams of one partition, and its events.
pub(crate) struct StepStreams {
    device: Arc<dyn LocalDevice>,
    lanes: Vec<Lane>,
    events: Vec<(EventId, Told)>,
    timing: Timing,
    /// One event per stream, for work that runs on the first stream on behalf of all.
    joins: OnceLock<Vec<EventId>>,
}

impl StepStreams {
    /// Creates the streams of a plan; `None` on a device without streams.
    ///
    /// # Errors
    /// The error of the device; streams and events created before are destroyed.
    pub fn new(plan: &Plan) -> Result<Option<Arc<StepStreams>>, KernelError> {
        if plan.streams == 0 {
            return Ok(None);
        }
        StepStreams::make(&plan.device, plan.streams, plan.events).map(|it| Some(Arc::new(it)))
    }

    fn make(
        device: &Arc<dyn LocalDevice>,
        streams: u32,
        events: u32,
    ) -> Result<StepStreams, KernelError> {
        let device = Arc::clone(device);
        let mut made = StepStreams {
            device,
            lanes: Vec::new(),
            events: Vec::new(),
            timing: Timing::default(),
            joins: OnceLock::new(),
        };
        let id = made.device.name().id.unwrap_or_default();
        for number in 0..streams {
            let name = format!("{}:{id} stream {number}", made.device.device_type());
            let stream = made.device.create_stream()?;
            made.lanes.push(Lane { stream, name: name.into(), began: Arc::default() });
        }
        for _ in 0..events {
            made.events.push((made.device.create_event()?, Told::default()));
        }
        Ok(made)
    }

    /// The stream at this position.
    pub fn stream(&self, at: u32) -> StreamId {
        self.lanes[at as usize].stream
    }

    /// Starts a step. No node may be running.
    pub fn begin(&self) {
        self.events.iter().for_each(|(_, told)| told.forget());
    }

    /// Makes a stream wait for an event that was recorded in this step.
    pub fn wait(&self, stream: u32, event: u32) -> Result<(), KernelError> {
        let (event, told) = &self.events[event as usize];
        told.tell_once(stream, || self.device.wait_event(self.stream(stream), *event))
    }

    pub fn record(&self, event: u32, stream: u32) -> Result<(), KernelError> {
        self.device.record_event(self.events[event as usize].0, self.stream(stream))
    }

    /// Waits until no enqueued work runs any more.
    ///
    /// # Errors
    /// The first error of each stream. A stream that waits for another fails with it, so all
    /// messages are joined.
    pub fn synchronise(&self) -> Result<(), KernelError> {
        let mut failed: Option<KernelError> = None;
        for lane in &self.lanes {
            let Err(error) = self.device.synchronize_stream(lane.stream) else { continue };
            match &mut failed {
                None => failed = Some(error),
                Some(first) if first.message.contains(&error.message) => {}
                Some(first) => first.message = format!("{}; {}", first.message, error.message),
            }
        }
        self.timing.report(&*self.device);
        failed.map_or(Ok(()), Err)
    }

    /// Marks the time when a stream reaches the work enqueued next.
    pub fn mark_begin(&self, stream: u32) {
        let lane = &self.lanes[stream as usize];
        if let Some(timers) = self.device.timers() {
            // If the device refuses, the work is not measured; if the device is lost, the step
            // reports it.
            let _ = self.timing.begin(&*self.device, timers, lane.stream);
            return;
        }
        let began = Arc::clone(&lane.began);
        let mark = move |_| began.store(monotonic_ns(), std::sync::atomic::Ordering::Relaxed);
        // If the device refuses the callback, it is lost or will report an error at the end of the
        // step.
        let _ = self.device.on_done(lane.stream, mark);
    }

    /// Reports the work enqueued since [`StepStreams::mark_begin`] once it is done.
    pub fn mark_end(&self, stream: u32, trace: &Arc<dyn TraceSink>, node: String) {
        let lane = &self.lanes[stream as usize];
        if let Some(timers) = self.device.timers() {
            let shown = (&lane.name, node);
            let _ = self.timing.end(&*self.device, timers, lane.stream, shown, trace);
            return;
        }
        let (began, name) = (Arc::clone(&lane.began), Arc::clone(&lane.name));
        let trace = Arc::clone(trace);
        let report = move |_| {
            let began = began.load(std::sync::atomic::Ordering::Relaxed);
            trace.stream_span(&name, &node, began, monotonic_ns());
        };
        let _ = self.device.on_done(lane.stream, report);
    }
}

impl Drop for StepStreams {
    fn drop(&mut self) {
        // Work of a failed step may still run; its error was already reported.
        let _ = self.synchronise();
        self.destroy_joins();
        for (event, _) in self.events.drain(..) {
            // SAFETY: all streams are done, so none waits for the event; its id is dropped here.
            unsafe { self.device.destroy_event(event) };
        }
        for lane in self.lanes.drain(..) {
            // SAFETY: nothing is enqueued, and the states that know the stream were dropped before.
            unsafe { self.device.destroy_stream(lane.stream) };
        }
    }
}
