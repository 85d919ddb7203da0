//! The state of one partition in one step, and the loop that runs its nodes.
//!
//! It is composed of what the nodes compute ([`Slots`]), where they enqueue ([`Lanes`]), the record of
//! steps that are replayed ([`Recorder`]), and the form of propagation. Nodes that leave the loop are
//! handed over in `dispatch`, `transfer` and `call`.
//!
//! # Ownership
//! A node's call frame belongs to the thread that runs the node, as the slots of its outputs do.

use super::{
    dispatch::{Calls, Thread},
    lanes::Lanes,
    propagate::{Acyclic, Propagate},
    recorder::Recorder,
    select::LastUsed,
    shared::StepShared,
    slots::Slots,
    streams::StepStreams,
};
use crate::{
    plan::{Compute, HotNode, Plan, PlanNode, node_flags},
    rendezvous::Rendezvous,
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
use tenon_abi::{Code, KernelState};
use tenon_framework::KernelError;
use tenon_host::call::{CallFrame, StepEnv, Watch, monotonic_ns};

/// The state of one partition in one step; with control flow, of one iteration of a frame.
pub(crate) struct PartitionState<P: Propagate = Acyclic> {
    pub(super) plan: Arc<Plan>,
    pub(super) index: u32,
    pub(super) frames: Box<[CallFrame]>,
    pub(super) shared: Arc<StepShared>,
    pub(super) rendezvous: Arc<dyn Rendezvous>,
    /// What the nodes compute.
    pub(super) slots: Slots,
    /// Where they enqueue.
    pub(super) lanes: Lanes,
    /// The number of runs started so far.
    pub(super) runs: AtomicU32,
    /// The start time of each node's asynchronous call, if it is measured.
    pub(super) began: Box<[AtomicU64]>,
    /// The kernels that were chosen by shapes.
    pub(super) last_used: LastUsed,
    /// The recording of steps, if the plan can be recorded.
    pub(super) replay: Option<Box<Recorder>>,
    /// The form of propagation between nodes.
    pub(super) form: P,
}

// SAFETY: the module's ownership rule prevents concurrent access to frames.
unsafe impl<P: Propagate + Send> Send for PartitionState<P> {}
// SAFETY: as for `Send`.
unsafe impl<P: Propagate + Sync> Sync for PartitionState<P> {}

impl<P: Propagate> PartitionState<P> {
    /// Creates the state for steps over `plan`. Its frames point into it and to `env`: both stay
    /// put.
    pub fn new(
        plan: Arc<Plan>,
        index: u32,
        env: *const StepEnv,
        shared: Arc<StepShared>,
        rendezvous: Arc<dyn Rendezvous>,
        streams: Option<Arc<StepStreams>>,
        form: P,
    ) -> PartitionState<P> {
        let slots = Slots::new(Arc::clone(&plan));
        PartitionState {
            frames: slots.frames(env),
            slots,
            lanes: Lanes::new(Arc::clone(&plan), streams),
            replay: Recorder::new(&plan).map(Box::new),
            began: plan.nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            last_used: LastUsed::new(plan.open),
            plan,
            index,
            shared,
            rendezvous,
            runs: AtomicU32::new(0),
            form,
        }
    }

    /// Points the frames at themselves and at this state, which must not move afterwards.
    pub fn settle(&mut self) {
        let owner = (&raw mut *self).cast();
        let watch: Arc<dyn Watch> =
            Arc::new(Calls { plan: Arc::clone(&self.plan), shared: Arc::clone(&self.shared) });
        for index in 0..self.frames.len() {
            let stream = self.lanes.stream_of(index as u32);
            let frame = &mut self.frames[index];
            frame.owner = owner;
            frame.index = index as u32;
            frame.set_completion(super::dispatch::completed::<P>);
            if !self.plan.of_state.is_empty() {
                frame.set_are_read(super::read::are_read::<P>);
            }
            if self.plan.hot[index].flags & node_flags::ASYNC != 0 {
                frame.set_watch(Arc::clone(&watch));
            }
            frame.set_stream(stream.map_or(std::ptr::null_mut(), |stream| stream.as_raw()));
            frame.settle();
        }
    }

    /// Sets whether kernels report to a trace.
    pub fn set_tracing(&mut self, tracing: u32) {
        for frame in &mut self.frames {
            frame.set_tracing(tracing);
        }
    }

    /// Starts a step: sets the counters, and puts the nodes without predecessors on `ready`.
    pub fn begin(&self, ready: &mut Vec<u32>) {
        self.reset();
        if let Some(replay) = &self.replay {
            replay.begin();
        }
        ready.extend_from_slice(&self.plan.roots);
    }

    /// Sets the counters.
    #[inline(always)]
    pub(super) fn reset(&self) {
        P::begin(self);
        self.reset_slots();
    }

    /// Counts a run, and sets the counters of the slots.
    #[inline(always)]
    pub(super) fn reset_slots(&self) {
        self.runs.store(self.runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.slots.begin();
    }

    /// Ends a step and releases what it held.
    pub fn end(&self) {
        self.slots.end();
        self.lanes.end();
    }

    /// Whether one thread at a time has worked on the step so far, each after the one before, so that
    /// a counter needs no atomic change. Work is handed to another thread while this one goes on
    /// only after the shared part was told.
    #[inline(always)]
    pub(super) fn is_alone(&self) -> bool {
        self.shared.is_untouched()
    }

    pub(super) fn hot(&self, node: u32) -> &HotNode {
        debug_assert!((node as usize) < self.plan.hot.len());
        // SAFETY: node numbers come from the plan.
        unsafe { self.plan.hot.get_unchecked(node as usize) }
    }

    pub(super) fn node(&self, node: u32) -> &PlanNode {
        &self.plan.nodes[node as usize]
    }

    pub(super) fn frame(&self, node: u32) -> &CallFrame {
        debug_assert!((node as usize) < self.frames.len());
        // SAFETY: node numbers come from the plan, and each node has a frame.
        unsafe { self.frames.get_unchecked(node as usize) }
    }

    /// Runs nodes from `ready`, and the nodes that become ready, until none is left for this
    /// thread.
    pub fn drain<T: Thread>(&self, ready: &mut Vec<u32>) {
        if let Some(replay) = &self.replay
            && replay.is_busy()
        {
            return self.drain_replay::<T>(replay, ready);
        }
        let (mut tick, mask) = self.sampling();
        while let Some(index) = ready.pop() {
            if T::RETURNS_COSTLY_NODES && self.returns_to_driver(index) {
                return ready.push(index);
            }
            let node = self.hot(index);
            tick = tick.wrapping_add(1);
            if !node.is_plain() || tick & mask == 0 || self.shared.is_stopped() {
                let forwards = node.flags & node_flags::FORWARD != 0 && tick & mask != 0;
                if forwards && !self.shared.is_stopped() {
                    P::propagate(self, index, node, ready);
                } else {
                    self.detour(index, ready);
                }
                continue;
            }
            if node.flags != 0 {
                if node.flags & node_flags::PASSES != 0 && self.pass_on(index) {
                    P::propagate(self, index, node, ready);
                } else {
                    self.run_checked(index, ready);
                }
                continue;
            }
            let frame = self.frame(index);
            // SAFETY: this thread took the node from `ready` and owns it; its predecessors are
            // done.
            unsafe {
                self.slots.plan_outputs(node);
                let code = (node.compute)(node.state, frame.call());
                if !code.is_ok() || !self.slots.outputs_are_planned(node) {
                    self.failed(index, code, ready);
                    continue;
                }
            }
            frame.end();
            P::propagate(self, index, node, ready);
        }
    }

    /// Handles everything off the fast path.
    #[inline(never)]
    fn detour(&self, index: u32, ready: &mut Vec<u32>) {
        if self.shared.is_stopped() {
            return;
        }
        if self.past_deadline() {
            self.shared.fail(super::step::deadline_error());
            return;
        }
        if !self.hot(index).is_plain() {
            return self.dispatch(index, ready);
        }
        self.hand_over_beside(index, ready);
        self.run_inline(index, ready);
    }

    /// Does what the kernel of a node does that passes its input on; returns whether the input is set.
    #[inline(always)]
    pub(super) fn pass_on(&self, index: u32) -> bool {
        let node = self.node(index);
        let (from, to) = (node.inputs[0], node.first_output);
        let counted = self.plan.outputs[from as usize].is_counted();
        // SAFETY: the node is ready and this thread runs it, so it owns its output and reads its input.
        unsafe { self.slots.pass(from, to, counted) }
    }

    /// Runs a kernel on this thread with all checks, without measuring it.
    #[inline(never)]
    fn run_checked(&self, index: u32, ready: &mut Vec<u32>) {
        if self.is_costly(index) {
            return self.detour(index, ready);
        }
        self.conclude(index, self.compute_checked(index), ready);
    }

    /// Calls the kernel of a node with all checks, without measuring it.
    #[inline(always)]
    pub(super) fn compute_checked(&self, index: u32) -> Result<(), KernelError> {
        let (node, frame) = (self.hot(index), self.frame(index));
        // SAFETY: the node is ready and this thread runs it, so it owns the node; its predecessors
        // are done.
        let code = unsafe {
            self.slots.show_references(index, &self.shared.cancellation)?;
            self.slots.clear_outputs(index);
            self.slots.plan_outputs(node);
            (node.compute)(node.state, frame.call())
        };
        self.count(index);
        self.outcome(index, code)
    }

    /// Calls the kernel of a node that needs no checks.
    #[inline(always)]
    pub(super) fn compute_plain(&self, index: u32, node: &HotNode) -> Result<(), KernelError> {
        let frame = self.frame(index);
        // SAFETY: the node is ready and this thread runs it, so it owns the node; its predecessors
        // are done.
        unsafe {
            self.slots.plan_outputs(node);
            let code = (node.compute)(node.state, frame.call());
            if !code.is_ok() || !self.slots.outputs_are_planned(node) {
                return self.outcome(index, code);
            }
        }
        frame.end();
        Ok(())
    }

    /// Calls the kernel of a node with all checks, and measures it.
    pub(super) fn compute_measured(&self, index: u32) -> Result<(), KernelError> {
        // SAFETY: the node is ready and this thread runs it, so it owns the node.
        unsafe { self.slots.show_references(index, &self.shared.cancellation) }?;
        let node = self.hot(index);
        let code = self.measured(index, node.compute, node.state);
        self.outcome(index, code)
    }

    /// What came of a call: checks the outputs of one that succeeded.
    #[inline(always)]
    pub(super) fn outcome(&self, index: u32, code: Code) -> Result<(), KernelError> {
        if !code.is_ok() {
            return Err(self.error_of(index, code));
        }
        self.slots.check_outputs(index)?;
        self.frame(index).end();
        Ok(())
    }

    /// The error of a call that failed.
    #[cold]
    fn error_of(&self, index: u32, code: Code) -> KernelError {
        let frame = self.frame(index);
        frame.end();
        if code == Code::PENDING {
            return KernelError::internal(
                "the kernel returned PENDING, but its table does not say that it is asynchronous",
            );
        }
        frame.take_error(code)
    }

    /// Runs a kernel on this thread with all checks, and measures it.
    pub(super) fn run_inline(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: the node is ready and this thread runs it, so it owns the node.
        if let Err(error) = unsafe { self.slots.show_references(index, &self.shared.cancellation) }
        {
            return self.fail_node(index, &error);
        }
        let node = self.hot(index);
        self.call(index, node.compute, node.state, ready);
    }

    /// Calls the kernel of a node whose references are already resolved.
    #[inline(always)]
    pub(super) fn call(
        &self,
        index: u32,
        compute: Compute,
        state: *mut KernelState,
        ready: &mut Vec<u32>,
    ) {
        let code = self.measured(index, compute, state);
        self.conclude(index, self.outcome(index, code), ready);
    }

    /// Calls the kernel of a node whose references are already resolved, and measures it.
    #[inline(always)]
    fn measured(&self, index: u32, compute: Compute, state: *mut KernelState) -> Code {
        let (node, frame) = (self.hot(index), self.frame(index));
        let trace = frame.env().trace.as_ref();
        if let Some(trace) = trace {
            self.lanes.begins(index);
            trace.enters(&frame.node().name);
        }
        let began = monotonic_ns();
        // SAFETY: the node is ready and runs here; `compute` and `state` belong to one kernel.
        let code = unsafe {
            self.slots.clear_outputs(index);
            self.slots.plan_outputs(node);
            compute(state, frame.call())
        };
        let ended = monotonic_ns();
        self.node(index).sample(ended - began);
        self.count(index);
        if let Some(trace) = trace {
            trace.leaves(&frame.node().name);
            trace.span(&frame.node().name, "", began, ended);
            if code.is_ok() {
                // SAFETY: the call has succeeded, and its tensors are not released yet.
                unsafe { frame.tell_tensors(&**trace) };
            }
            self.lanes.ends(index, trace);
        }
        code
    }

    /// Counts a call, if calls are counted.
    pub(super) fn count(&self, index: u32) {
        if let Some(runs) = &self.node(index).runs {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Handles a call that failed or replaced a planned output.
    #[cold]
    fn failed(&self, index: u32, code: Code, ready: &mut Vec<u32>) {
        // One that succeeded has replaced its planned output by one of the right shape.
        self.conclude(index, self.outcome(index, code), ready);
    }

    /// Goes on after a call: notifies the successors, or fails the node.
    #[inline(always)]
    pub(super) fn conclude(
        &self,
        index: u32,
        outcome: Result<(), KernelError>,
        ready: &mut Vec<u32>,
    ) {
        match outcome {
            Ok(()) => self.propagate(index, ready),
            Err(error) => self.fail_node(index, &error),
        }
    }

    /// Notifies the successors of a finished node.
    #[inline(always)]
    pub(super) fn propagate(&self, index: u32, ready: &mut Vec<u32>) {
        let node = self.hot(index);
        if node.flags & node_flags::EVENTS != 0
            && let Err(error) = self.lanes.record(index)
        {
            return self.fail_node(index, &error);
        }
        P::propagate(self, index, node, ready);
    }
}
