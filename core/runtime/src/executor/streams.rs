//! The streams of one partition in a step, and the events by which they wait for each other.
//!
//! Which node enqueues where, and which waits for which, says the plan ([`crate::plan::NodeStream`]). Streams
//! and events are made with the step's state and used by one step after the other: a step makes none.
//!
//! States of an event in a step: *old*, its recording is of an earlier step, until its node has enqueued and
//! records it, once; *recorded* from then on, and only then are the nodes told that wait for it. What a stream
//! has to be told of a recorded event it is told once ([`Told`]), by whichever of its nodes comes first.
//!
//! At the end of a step all streams are waited for, also behind one that failed and on a device that is lost:
//! when [`StepStreams::synchronise`] has returned nothing of the step runs on the device any more, and what it
//! kept may go.

use self::timing::Timing;
use super::{partition::PartitionState, propagate::Propagate};
use crate::plan::{Action, Plan};
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

/// The streams that were told to wait for an event, a bit for each.
#[derive(Debug, Default)]
struct Told(AtomicU32);

impl Told {
    /// Has `tell` run unless somebody has told this stream already: when this returns, whatever the caller
    /// enqueues on the stream is behind the wait. Two who come at once may both tell, which is harmless.
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
    /// For traces.
    name: Arc<str>,
    /// When the stream came to what it runs now, where a trace is asked for.
    began: Arc<std::sync::atomic::AtomicU64>,
}

/// The streams of one partition, and its events.
pub(crate) struct StepStreams {
    device: Arc<dyn LocalDevice>,
    lanes: Vec<Lane>,
    events: Vec<(EventId, Told)>,
    timing: Timing,
    /// One event for each stream, for what runs on the first for all.
    joins: OnceLock<Vec<EventId>>,
}

impl StepStreams {
    /// Those of a plan; `None` on a device without streams.
    ///
    /// # Errors
    /// What the device says; what was made goes back.
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

    /// One of the streams.
    pub fn stream(&self, at: u32) -> StreamId {
        self.lanes[at as usize].stream
    }

    /// Begins a step: nothing runs.
    pub fn begin(&self) {
        self.events.iter().for_each(|(_, told)| told.forget());
    }

    /// Makes a stream wait for an event of this step, which is recorded.
    fn wait(&self, stream: u32, event: u32) -> Result<(), KernelError> {
        let (event, told) = &self.events[event as usize];
        told.tell_once(stream, || self.device.wait_event(self.stream(stream), *event))
    }

    fn record(&self, event: u32, stream: u32) -> Result<(), KernelError> {
        self.device.record_event(self.events[event as usize].0, self.stream(stream))
    }

    /// Waits until nothing that was enqueued runs any more or will.
    ///
    /// # Errors
    /// The streams' first errors. One stream that waits for another fails with it: all of them are said.
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

    /// Notes when a stream has come to what is enqueued next.
    fn mark_begin(&self, stream: u32) {
        let lane = &self.lanes[stream as usize];
        if let Some(timers) = self.device.timers() {
            // What the device does not take is not measured; if it is lost, the step says so.
            let _ = self.timing.begin(&*self.device, timers, lane.stream);
            return;
        }
        let began = Arc::clone(&lane.began);
        let mark = move |_| began.store(monotonic_ns(), std::sync::atomic::Ordering::Relaxed);
        // A device that takes no notification is lost, or will say so when the step ends.
        let _ = self.device.on_done(lane.stream, mark);
    }

    /// Reports what was enqueued since [`StepStreams::mark_begin`], when it is done.
    fn mark_end(&self, stream: u32, trace: &Arc<dyn TraceSink>, node: String) {
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
        // Of a step that failed something may still run; its error has been reported.
        let _ = self.synchronise();
        self.destroy_joins();
        for (event, _) in self.events.drain(..) {
            // SAFETY: no stream waits for it any more, and its name goes.
            unsafe { self.device.destroy_event(event) };
        }
        for lane in self.lanes.drain(..) {
            // SAFETY: nothing is enqueued, and who knew the stream is gone: states go before their streams.
            unsafe { self.device.destroy_stream(lane.stream) };
        }
    }
}

impl<P: Propagate> PartitionState<P> {
    /// The stream that a node enqueues on.
    pub(super) fn stream_of(&self, index: u32) -> Option<StreamId> {
        let streams = self.streams.as_ref()?;
        Some(streams.stream(self.node(index).stream.stream))
    }

    /// Before a node enqueues: its stream waits for those of others. Without success the node has failed.
    pub(super) fn wait_for_streams(&self, index: u32) -> bool {
        let Some(streams) = &self.streams else { return true };
        let own = &self.node(index).stream;
        for &event in &own.waits {
            if let Err(error) = streams.wait(own.stream, event) {
                self.fail_node(index, &error);
                return false;
            }
        }
        true
    }

    /// After a node has enqueued, and before others are told: records its event. Without success the node has
    /// failed.
    pub(super) fn record_event(&self, index: u32) -> bool {
        let own = &self.node(index).stream;
        let (Some(streams), Some(event)) = (&self.streams, own.event) else { return true };
        let recorded = streams.record(event, own.stream);
        recorded.inspect_err(|error| self.fail_node(index, error)).is_ok()
    }

    /// Before a node enqueues, where a trace is asked for.
    pub(super) fn stream_begins(&self, index: u32) {
        if let Some(streams) = &self.streams
            && self.frame(index).env().trace.is_some()
            && self.enqueues(index)
        {
            streams.mark_begin(self.node(index).stream.stream);
        }
    }

    /// After a node has enqueued, where a trace is asked for.
    pub(super) fn stream_ends(&self, index: u32) {
        if let Some(streams) = &self.streams
            && let Some(trace) = &self.frame(index).env().trace
            && self.enqueues(index)
        {
            let node = self.node(index);
            streams.mark_end(node.stream.stream, trace, node.info.name.clone());
        }
    }

    /// Whether a node has something to show on its stream.
    fn enqueues(&self, index: u32) -> bool {
        let node = self.node(index);
        let own = |instance: &Arc<tenon_host::instance::KernelInstance>| {
            instance.def().device_type == "DEFAULT"
        };
        !matches!(node.action, Action::Nothing) && !node.instance.as_ref().is_some_and(own)
    }
}
