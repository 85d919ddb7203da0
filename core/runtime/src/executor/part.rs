//! The part of a step's state that is on one device: with or without control flow, as its plan says.

use super::{
    dispatch::Driver, frames::FrameState, partition::PartitionState, propagate::Acyclic,
    replay::Replayer, shared::StepShared, streams::StepStreams,
};
use crate::{error::StepError, plan::Plan, rendezvous::Rendezvous};
use std::sync::Arc;
use tenon_framework::Tensor;
use tenon_host::call::StepEnv;

/// The state of one partition.
pub(super) enum Part {
    /// Nothing steers.
    Acyclic(PartitionState<Acyclic>),
    /// With frames and dead values.
    Framed(Arc<FrameState>),
}

impl Part {
    /// State for steps over `plan`. It points to `env`, which stays where it is; [`Part::settle`] follows.
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

    /// Points its parts at each other; it does not move any more.
    pub fn settle(&mut self) {
        match self {
            Part::Acyclic(state) => state.settle(),
            Part::Framed(state) => state.settle(),
        }
    }

    /// Asks the kernels for a trace, or not.
    pub fn set_tracing(&mut self, tracing: u32) {
        match self {
            Part::Acyclic(state) => state.set_tracing(tracing),
            Part::Framed(state) => state.set_tracing(tracing),
        }
    }

    /// Begins a step.
    #[inline(always)]
    pub fn begin(&self, ready: &mut Vec<u32>) {
        match self {
            Part::Acyclic(state) => state.begin(ready),
            Part::Framed(state) => state.begin(),
        }
    }

    /// Runs what is ready, and what becomes ready by it.
    #[inline(always)]
    pub fn drain(&self, ready: &mut Vec<u32>) {
        match self {
            Part::Acyclic(state) => state.drain::<Driver>(ready),
            Part::Framed(state) => state.drain(ready),
        }
    }

    /// Whether it held nodes back which can go on now.
    #[inline(always)]
    pub fn is_due(&self) -> bool {
        match self {
            Part::Acyclic(state) => state.replay.as_deref().is_some_and(Replayer::is_due),
            Part::Framed(_) => false,
        }
    }

    /// Before the streams of a step go that did not come to its end.
    pub fn abandon(&self) {
        match self {
            Part::Acyclic(state) => {
                if let (Some(replay), Some(streams)) = (&state.replay, &state.streams) {
                    replay.abandon(streams);
                }
            }
            Part::Framed(_) => {}
        }
    }

    /// Why it is not done although nothing runs any more.
    #[inline(always)]
    pub fn stalled(&self) -> Option<StepError> {
        match self {
            Part::Acyclic(_) => None,
            Part::Framed(state) => state.stalled(),
        }
    }

    /// Ends a step: what was held for it is given back.
    #[inline(always)]
    pub fn end(&self) {
        match self {
            Part::Acyclic(state) => state.end(),
            Part::Framed(state) => state.end(),
        }
    }

    /// Shows a fed tensor.
    ///
    /// # Safety
    /// No node runs.
    #[inline(always)]
    pub unsafe fn feed(&self, output: u32, tensor: &Tensor) {
        match self {
            // SAFETY: no node runs, as the caller guarantees.
            Part::Acyclic(state) => unsafe { state.feed(output, tensor) },
            // SAFETY: no node runs, as the caller guarantees.
            Part::Framed(state) => unsafe { state.feed(output, tensor) },
        }
    }

    /// The tensor of an output; `None` when it is dead.
    ///
    /// # Safety
    /// The step is done.
    #[inline(always)]
    pub unsafe fn fetch(&self, output: u32) -> Option<Tensor> {
        match self {
            // SAFETY: the step is done, as the caller guarantees, and so is the node that writes the output.
            Part::Acyclic(state) => unsafe { state.fetch(output) },
            // SAFETY: the step is done, as the caller guarantees.
            Part::Framed(state) => unsafe { state.fetch(output) },
        }
    }
}
