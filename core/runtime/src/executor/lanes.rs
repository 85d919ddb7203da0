//! Where the nodes of a partition enqueue: the streams of its device in a step, and the tensors that
//! work on them still reads.
//!
//! On a device without streams nothing is enqueued: only [`Lanes::keep`], [`Lanes::end`] and
//! [`Lanes::retire`] do something, if it has memory of its own.

use super::streams::StepStreams;
use crate::plan::{Action, Plan};
use std::sync::Arc;
use tenon_framework::{
    KernelError, Tensor,
    device::base::StreamId,
    sync::{Mutex, rank},
    tensor::Buffer,
};
use tenon_host::call::TraceSink;

/// The streams of one partition in one step; with control flow, of one iteration.
pub(crate) struct Lanes {
    plan: Arc<Plan>,
    streams: Option<Arc<StepStreams>>,
    /// The sources of copies to the device, which must live until the streams are done.
    keep_alive: Mutex<Vec<Tensor>>,
    /// Whether the device computes in host memory, so that nothing is copied or kept alive.
    host_only: bool,
}

impl Lanes {
    /// The lanes of a plan over these streams.
    pub fn new(plan: Arc<Plan>, streams: Option<Arc<StepStreams>>) -> Lanes {
        let host_only = plan.device.info().host_memory;
        let keep_alive = Mutex::ranked(rank::STEP, Vec::new());
        Lanes { plan, streams, keep_alive, host_only }
    }

    /// The streams, on a device that has them.
    pub fn streams(&self) -> Option<&Arc<StepStreams>> {
        self.streams.as_ref()
    }

    /// The stream on which a node enqueues.
    pub fn stream_of(&self, index: u32) -> Option<StreamId> {
        let streams = self.streams.as_ref()?;
        Some(streams.stream(self.plan.nodes[index as usize].stream.stream))
    }

    /// Makes a node's stream wait for others before the node enqueues.
    pub fn wait(&self, index: u32) -> Result<(), KernelError> {
        let Some(streams) = &self.streams else { return Ok(()) };
        let own = &self.plan.nodes[index as usize].stream;
        own.waits.iter().try_for_each(|&event| streams.wait(own.stream, event))
    }

    /// Records a node's event after the node has enqueued, before its successors are notified.
    pub fn record(&self, index: u32) -> Result<(), KernelError> {
        let own = &self.plan.nodes[index as usize].stream;
        let (Some(streams), Some(event)) = (&self.streams, own.event) else { return Ok(()) };
        streams.record(event, own.stream)
    }

    /// Marks the start of a node's work on its stream, for a trace.
    pub fn begins(&self, index: u32) {
        if let Some(streams) = &self.streams
            && self.enqueues(index)
        {
            streams.mark_begin(self.plan.nodes[index as usize].stream.stream);
        }
    }

    /// Reports the end of a node's work on its stream to a trace.
    pub fn ends(&self, index: u32, trace: &Arc<dyn TraceSink>) {
        if let Some(streams) = &self.streams
            && self.enqueues(index)
        {
            let node = &self.plan.nodes[index as usize];
            streams.mark_end(node.stream.stream, trace, node.info.name.clone());
        }
    }

    /// Whether a node has work to show on its stream.
    fn enqueues(&self, index: u32) -> bool {
        let node = &self.plan.nodes[index as usize];
        let own = |instance: &Arc<tenon_host::instance::KernelInstance>| {
            instance.def().device_type == "DEFAULT"
        };
        !matches!(node.action, Action::Nothing) && !node.instance.as_ref().is_some_and(own)
    }

    /// Keeps a tensor until the streams are done.
    pub fn keep(&self, tensor: Tensor) {
        self.keep_alive.lock().push(tensor);
    }

    /// Releases what was kept. The streams are done.
    pub fn end(&self) {
        if !self.host_only {
            self.keep_alive.lock().clear();
        }
    }

    /// Moves what was kept to `retired`, since work on the stream may still read it.
    pub fn retire(&self, retired: &mut Vec<Buffer>) {
        if self.streams.is_none() {
            return self.end();
        }
        let kept = std::mem::take(&mut *self.keep_alive.lock());
        retired.extend(kept.iter().map(|tensor| tensor.buffer().clone()));
    }
}
