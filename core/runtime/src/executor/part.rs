//! The part of a step's state on one device, with or without control flow.

use super::{
    dispatch::Driver, frames::FrameState, partition::PartitionState, propagate::Acyclic,
    recorder::Recorder, shared::StepShared, streams::StepStreams,
};
use crate::{error::StepError, plan::Plan, rendezvous::Rendezvous};
use std::sync::Arc;
use tenon_abi::Slot;
use tenon_framework::{KernelError, Tensor};
use tenon_host::call::StepEnv;

/// The state of one partition.
#[allow(clippy::large_enum_variant, reason = "a step has few parts, and most are acyclic")]
pub(super) enum Part {
    /// The state of a partition without control flow.
    Acyclic(PartitionState<Acyclic>),
    /// The state of a partition with frames and dead values.
    Framed(Arc<FrameState>),
}

impl Part {
    /// Creates the state for steps over `plan`. It points to `env`, which must not move. Call
    /// [`Part::settle`] next.
    pub fn new(
        plan: Arc<Plan>,
        index: u32,
        env: *const StepEnv,
        shared: Arc<StepShared>,
        rendezvous: Arc<dyn Rendezvous>,
        streams: Option<Arc<StepStreams>>,
    ) -> Part {
        if plan.frame.is_some() {
            return Part::Framed(FrameState::new(plan, index, env, shared, rendezvous, streams));
        }
        let form = Acyclic::new(&plan);
        Part::Acyclic(PartitionState::new(plan, index, env, shared, rendezvous, streams, form))
    }

    /// Connects the parts with each other; the value must not move afterwards.
    pub fn settle(&mut self) {
        match self {
            Part::Acyclic(state) => state.settle(),
            Part::Framed(state) => state.settle(),
        }
    }

    /// Sets whether kernels report to a trace.
    pub fn set_tracing(&mut self, tracing: u32) {
        match self {
            Part::Acyclic(state) => state.set_tracing(tracing),
            Part::Framed(state) => state.set_tracing(tracing),
        }
    }

    /// Starts a step.
    #[inline(always)]
    pub fn begin(&self, ready: &mut Vec<u32>) {
        match self {
            Part::Acyclic(state) => state.begin(ready),
            Part::Framed(state) => state.begin(),
        }
    }

    /// Runs the ready nodes, and the nodes that become ready in turn.
    #[inline(always)]
    pub fn drain(&self, ready: &mut Vec<u32>) {
        match self {
            Part::Acyclic(state) => state.drain::<Driver>(ready),
            Part::Framed(state) => state.drain(ready),
        }
    }

    /// Whether nodes that were held back can run now.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        match self {
            Part::Acyclic(state) => state.replay.as_deref().is_some_and(Recorder::is_due),
            Part::Framed(_) => false,
        }
    }

    /// Ends an unfinished recording before the streams of a failed step are dropped.
    pub fn abandon(&self) {
        match self {
            Part::Acyclic(state) => {
                if let (Some(replay), Some(streams)) = (&state.replay, state.lanes.streams()) {
                    replay.abandon(streams);
                }
            }
            Part::Framed(_) => {}
        }
    }

    /// The error if the partition cannot finish although no node runs any more.
    #[inline(always)]
    pub fn stalled(&self) -> Option<StepError> {
        match self {
            Part::Acyclic(_) => None,
            Part::Framed(state) => state.stalled(),
        }
    }

    /// Ends a step and releases what it held.
    #[inline(always)]
    pub fn end(&self) {
        match self {
            Part::Acyclic(state) => state.end(),
            Part::Framed(state) => state.end(),
        }
    }

    /// Stores a fed value, which a slot shows, in its output; returns false if the slot shows none.
    ///
    /// # Safety
    /// - No node of the partition may run during the call.
    /// - `output` must be the number of an output of the plan.
    #[inline(always)]
    pub unsafe fn feed(&self, output: u32, fed: &Slot) -> bool {
        match self {
            // SAFETY: no node runs, as the caller guarantees.
            Part::Acyclic(state) => unsafe { state.slots.feed(output, fed) },
            // SAFETY: no node runs, as the caller guarantees.
            Part::Framed(state) => unsafe { state.feed(output, fed) },
        }
    }

    /// The tensor of an output; `None` if it is dead.
    ///
    /// # Safety
    /// - The step must be done, so that no node runs.
    /// - `output` must be the number of an output of the plan.
    #[inline(always)]
    pub unsafe fn fetch(&self, output: u32) -> Result<Option<Tensor>, KernelError> {
        match self {
            // SAFETY: the step is done, as the caller guarantees, and so is the node that writes
            // the output.
            Part::Acyclic(state) => unsafe {
                state.slots.fetch(output, &state.shared.cancellation)
            },
            // SAFETY: the step is done, as the caller guarantees.
            Part::Framed(state) => unsafe { state.fetch(output) },
        }
    }
}
