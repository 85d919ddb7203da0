//! The state of one partition in one step, and the loop that runs its nodes.
//!
//! Ownership: a node's call frame and the slots and values of its outputs belong to the thread that
//! runs the node, from when it becomes ready until its successors are notified. After that they are
//! only read, until the last reader is done. Atomic counters pass the ownership on.

use super::{
    dispatch::{Calls, Thread},
    frame::call_frame,
    propagate::{Acyclic, Propagate, count_down},
    replay::Replayer,
    select::LastUsed,
    shared::StepShared,
    streams::StepStreams,
};
use crate::{
    plan::{Compute, HotNode, Plan, PlanNode, Reference, node_flags},
    rendezvous::Rendezvous,
};
use std::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};
use tenon_abi::{Code, KernelState, Slot, slot_flags};
use tenon_framework::{
    KernelError, Tensor,
    sync::{Mutex, rank},
    tensor::Buffer,
};
use tenon_host::call::{CallFrame, StepEnv, Value, Watch, fill_slot, monotonic_ns};
use tenon_host::services::state::{dereference, is_initialized};

/// The state of one partition in one step; with control flow, of one iteration of a frame.
pub(crate) struct PartitionState<P: Propagate = Acyclic> {
    pub(super) plan: Arc<Plan>,
    pub(super) index: u32,
    pub(super) frames: Box<[CallFrame]>,
    pub(super) shared: Arc<StepShared>,
    pub(super) rendezvous: Arc<dyn Rendezvous>,
    /// The streams, on a device that has them.
    pub(super) streams: Option<Arc<StepStreams>>,
    /// The sources of copies to the device, which must live until the streams are done.
    pub(super) keep_alive: Mutex<Vec<Tensor>>,
    /// Whether the device computes in host memory, so that nothing is copied or kept alive.
    pub(super) host_only: bool,
    /// The number of runs started so far.
    pub(super) runs: AtomicU32,
    slots: Box<[UnsafeCell<Slot>]>,
    values: Box<[UnsafeCell<Value>]>,
    /// The start time of each node's asynchronous call.
    pub(super) began: Box<[AtomicU64]>,
    /// The kernels that were chosen by shapes.
    pub(super) last_used: LastUsed,
    /// The recording of steps, if the plan can be recorded.
    pub(super) replay: Option<Box<Replayer>>,
    /// The form of propagation between nodes.
    pub(super) form: P,
}

// SAFETY: the module's ownership rule prevents concurrent access to slots, values and frames.
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
        let slots: Box<[UnsafeCell<Slot>]> =
            plan.outputs.iter().map(|_| UnsafeCell::new(Slot::EMPTY)).collect();
        let values: Box<[UnsafeCell<Value>]> =
            plan.outputs.iter().map(|_| UnsafeCell::new(Value::default())).collect();
        let began = plan.nodes.iter().map(|_| AtomicU64::new(0)).collect();
        let frames = plan.nodes.iter().map(|node| call_frame(node, env, &slots, &values)).collect();
        let host_only = plan.device.info().host_memory;
        let last_used = LastUsed::new(plan.open);
        let replay = Replayer::new(&plan).map(Box::new);
        let state = PartitionState {
            replay,
            plan,
            index,
            frames,
            shared,
            rendezvous,
            streams,
            keep_alive: Mutex::ranked(rank::STEP, Vec::new()),
            host_only,
            runs: AtomicU32::new(0),
            slots,
            values,
            began,
            last_used,
            form,
        };
        state.prefill();
        state
    }

    /// Points the frames at themselves and at this state, which must not move afterwards.
    pub fn settle(&mut self) {
        let owner = (&raw mut *self).cast();
        let watch: Arc<dyn Watch> =
            Arc::new(Calls { plan: Arc::clone(&self.plan), shared: Arc::clone(&self.shared) });
        for index in 0..self.frames.len() {
            let stream = self.stream_of(index as u32);
            let frame = &mut self.frames[index];
            frame.owner = owner;
            frame.index = index as u32;
            frame.set_completion(super::dispatch::completed::<P>);
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

    fn prefill(&self) {
        for (at, output) in self.plan.outputs.iter().enumerate() {
            // SAFETY: the state is still being created, so no other thread uses it.
            let (slot, value) = unsafe { (self.slot_mut(at as u32), self.value_mut(at as u32)) };
            slot.dtype = output.dtype.base();
            slot.memory = output.memory.kind();
            slot.alias = at as u32 + 1;
            if output.unused {
                slot.flags |= slot_flags::UNUSED;
            }
            if let Some(tensor) = &output.constant {
                value.hold(slot, tensor);
                slot.flags |= slot_flags::CONSTANT;
            }
        }
    }

    /// The slot of an output.
    ///
    /// # Safety
    /// - The caller must own the output (see the module's docs).
    /// - `at` must be the number of an output of the plan.
    #[allow(clippy::mut_from_ref, reason = "ownership follows the graph, see the module's docs")]
    #[inline(always)]
    pub unsafe fn slot_mut(&self, at: u32) -> &mut Slot {
        // SAFETY: the caller owns the output, and `at` is within the plan's outputs.
        unsafe { &mut *self.slots.get_unchecked(at as usize).get() }
    }

    /// The value of an output.
    ///
    /// # Safety
    /// As for [`PartitionState::slot_mut`].
    #[allow(clippy::mut_from_ref, reason = "ownership follows the graph, see the module's docs")]
    #[inline(always)]
    pub unsafe fn value_mut(&self, at: u32) -> &mut Value {
        // SAFETY: as in `slot_mut`.
        unsafe { &mut *self.values.get_unchecked(at as usize).get() }
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
        self.runs.store(self.runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        for &(output, readers) in &self.plan.readers {
            // SAFETY: no node of the step runs yet.
            unsafe { self.value_mut(output) }.readers.store(readers, Ordering::Relaxed);
        }
    }

    /// Ends a step and releases what it held.
    pub fn end(&self) {
        for &(output, _) in &self.plan.readers {
            // SAFETY: no node runs any more.
            unsafe { self.value_mut(output) }.release();
        }
        if !self.host_only {
            self.keep_alive.lock().clear();
        }
    }

    /// Stores a fed tensor in its output.
    ///
    /// # Safety
    /// - No node of the partition may run during the call.
    /// - `output` must be the number of an output of the plan.
    pub unsafe fn feed(&self, output: u32, tensor: &Tensor) {
        // SAFETY: no node runs, as the caller guarantees, so no other thread uses the output.
        unsafe { self.value_mut(output).hold_on_host(self.slot_mut(output), tensor) };
    }

    /// The tensor of an output.
    ///
    /// # Safety
    /// - The node that writes the output must be done.
    /// - `output` must be the number of an output of the plan.
    pub unsafe fn fetch(&self, output: u32) -> Result<Option<Tensor>, KernelError> {
        // SAFETY: the node that writes the output is done, as the caller guarantees.
        let slot = unsafe { self.slot_mut(output) };
        if slot.flags & slot_flags::REF == 0 {
            return Ok(Value::tensor(slot));
        }
        let (mut shown, mut value) = (Slot::EMPTY, Value::default());
        // SAFETY: the node that set the slot is done, and the step still keeps the variable.
        unsafe { dereference(slot, &mut shown, &mut value) }?;
        Ok(Value::tensor(&shown))
    }

    /// Resolves references before a call: stores the values behind those that the node reads as
    /// plain inputs. A variable without a value is an error, unless the op may initialise it.
    ///
    /// # Safety
    /// - The calling thread must own the node.
    /// - The predecessors of the node must be done.
    pub(super) unsafe fn show_references(&self, index: u32) -> Result<(), KernelError> {
        for &Reference { slot: reference, shown } in &self.node(index).references {
            // SAFETY: the caller owns the node; the nodes that wrote its references are done.
            unsafe {
                let reference = self.slot_mut(reference);
                match shown {
                    Some(shown) => {
                        dereference(reference, self.slot_mut(shown), self.value_mut(shown))?;
                    }
                    None => is_initialized(reference)?,
                }
            }
        }
        Ok(())
    }

    /// Whether only one thread has worked on the step so far, so that a counter needs no atomic
    /// change. Work is handed to another thread only after the shared part was told.
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
                self.detour(index, ready);
                continue;
            }
            if node.flags != 0 {
                self.run_checked(index, ready);
                continue;
            }
            let frame = self.frame(index);
            // SAFETY: this thread took the node from `ready` and owns it; its predecessors are
            // done.
            unsafe {
                self.plan_outputs(node);
                let code = (node.compute)(node.state, frame.call());
                if !code.is_ok() || !self.outputs_are_planned(node) {
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

    /// Runs a kernel on this thread with all checks, without measuring it.
    #[inline(never)]
    fn run_checked(&self, index: u32, ready: &mut Vec<u32>) {
        if self.is_costly(index) {
            return self.detour(index, ready);
        }
        let (node, frame) = (self.hot(index), self.frame(index));
        // SAFETY: the node is ready and this thread runs it, so it owns the node; its predecessors
        // are done.
        let code = unsafe {
            if let Err(error) = self.show_references(index) {
                return self.fail_node(index, &error);
            }
            self.clear_outputs(index);
            self.plan_outputs(node);
            (node.compute)(node.state, frame.call())
        };
        self.count(index);
        match code.is_ok() {
            true => self.after(index, ready),
            false => self.failed(index, code, ready),
        }
    }

    /// Runs a kernel on this thread with all checks, and measures it.
    pub(super) fn run_inline(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: the node is ready and this thread runs it, so it owns the node.
        if let Err(error) = unsafe { self.show_references(index) } {
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
        let (node, frame) = (self.hot(index), self.frame(index));
        let trace = frame.env().trace.as_ref();
        if let Some(trace) = trace {
            self.stream_begins(index);
            trace.enters(&frame.node().name);
        }
        let began = monotonic_ns();
        // SAFETY: the node is ready and runs here; `compute` and `state` belong to one kernel.
        let code = unsafe {
            self.clear_outputs(index);
            self.plan_outputs(node);
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
            self.stream_ends(index);
        }
        if !code.is_ok() {
            return self.failed(index, code, ready);
        }
        self.after(index, ready);
    }

    /// Counts a call, if calls are counted.
    pub(super) fn count(&self, index: u32) {
        if let Some(runs) = &self.node(index).runs {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Checks the outputs after a successful call, and notifies the successors.
    pub(super) fn after(&self, index: u32, ready: &mut Vec<u32>) {
        if let Err(error) = self.check_outputs(index) {
            self.fail_node(index, &error);
            return;
        }
        self.frame(index).end();
        self.propagate(index, ready);
    }

    /// Ensures that planned outputs have a buffer that nothing else refers to.
    ///
    /// # Safety
    /// The calling thread must own `node`, which must be in the plan.
    #[inline(always)]
    pub(super) unsafe fn plan_outputs(&self, node: &HotNode) {
        for &output in node.planned.of(&self.plan.planned) {
            // SAFETY: the caller owns the outputs; the value of a planned slot keeps its buffer.
            unsafe {
                let slot = self.slot_mut(output);
                if slot.flags & slot_flags::PLANNED == 0 || !Buffer::raw_is_unique(slot.buffer) {
                    self.replan(output);
                }
            }
        }
    }

    /// Gives a planned output a new buffer, or none without memory: the kernel then gets the error.
    ///
    /// # Safety
    /// The calling thread must own the node that writes this output.
    #[cold]
    #[inline(never)]
    unsafe fn replan(&self, output: u32) {
        let spec = &self.plan.outputs[output as usize];
        let Some(shape) = &spec.full else { return };
        // SAFETY: the caller owns the node that writes the output.
        let (slot, value) = unsafe { (self.slot_mut(output), self.value_mut(output)) };
        value.release();
        slot.flags &= !slot_flags::PLANNED;
        let bytes = shape.elements() * spec.dtype.size().unwrap_or(0);
        let reusable = value.kept.as_ref().is_some_and(|kept| kept.is_unique());
        if !reusable {
            match Buffer::allocate(&spec.memory, spec.dtype, shape.elements(), bytes) {
                Ok(buffer) => value.kept = Some(buffer),
                Err(_) => return,
            }
        }
        if let Some(buffer) = &value.kept {
            fill_slot(slot, buffer, spec.dtype, shape.dims(), slot_flags::PLANNED);
            slot.alias = output + 1;
            if spec.unused {
                slot.flags |= slot_flags::UNUSED;
            }
        }
    }

    /// Whether no planned slot was replaced by a kernel that allocated another shape.
    ///
    /// # Safety
    /// The calling thread must own `node`, which must be in the plan.
    #[inline(always)]
    unsafe fn outputs_are_planned(&self, node: &HotNode) -> bool {
        node.planned.of(&self.plan.planned).iter().all(|&output| {
            // SAFETY: the caller owns the node, and the output is one of its outputs.
            unsafe { self.slot_mut(output) }.flags & slot_flags::PLANNED != 0
        })
    }

    /// Handles a call that failed or replaced a planned output.
    #[cold]
    fn failed(&self, index: u32, code: Code, ready: &mut Vec<u32>) {
        let frame = self.frame(index);
        frame.end();
        let error = if code.is_ok() {
            match self.check_outputs(index) {
                Err(error) => error,
                // The kernel replaced its planned output by one of the right shape.
                Ok(()) => return self.propagate(index, ready),
            }
        } else if code == Code::PENDING {
            KernelError::internal(
                "the kernel returned PENDING, but its table does not say that it is asynchronous",
            )
        } else {
            frame.take_error(code)
        };
        self.fail_node(index, &error);
    }

    /// Notifies the successors of a finished node.
    #[inline(always)]
    pub(super) fn propagate(&self, index: u32, ready: &mut Vec<u32>) {
        let node = self.hot(index);
        if node.flags & node_flags::EVENTS != 0 && !self.record_event(index) {
            return;
        }
        P::propagate(self, index, node, ready);
    }

    /// Releases the inputs of which a node is the last reader.
    #[inline(always)]
    pub(super) fn release_inputs(&self, node: &HotNode) {
        for &input in node.counted.of(&self.plan.counted) {
            self.release_input(input);
        }
    }

    /// Counts down the readers of an output, and releases it after the last one.
    #[inline(always)]
    pub(super) fn release_input(&self, input: u32) {
        // SAFETY: the node reads the output, so it is alive; the last reader owns it.
        unsafe {
            if count_down(&self.value_mut(input).readers, self.is_alone()) == 1 {
                self.value_mut(input).release();
            }
        }
    }
}
