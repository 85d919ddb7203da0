//! The state of one partition in one step, and the loop that runs its nodes.
//!
//! Who owns what: a node's call frame and its outputs' slots and values belong to the thread that runs the
//! node, from the moment it was ready until its successors are told; then they are only read, until the
//! last reader is done. Counters are atomic; everything else is handed over by them.

use super::{
    dispatch::{Calls, Thread},
    frame::call_frame,
    propagate::{Acyclic, Propagate},
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
    /// On a device that has streams.
    pub(super) streams: Option<Arc<StepStreams>>,
    /// What has to live until the streams are done: sources of copies to the device.
    pub(super) keep_alive: Mutex<Vec<Tensor>>,
    /// Whether the device computes in host memory: then nothing is copied, and nothing kept alive.
    host_only: bool,
    /// Runs that have begun.
    pub(super) runs: AtomicU32,
    slots: Box<[UnsafeCell<Slot>]>,
    values: Box<[UnsafeCell<Value>]>,
    /// When an asynchronous call of each node began.
    pub(super) began: Box<[AtomicU64]>,
    /// Kernels that were chosen by shapes.
    pub(super) last_used: LastUsed,
    /// Where steps are recorded and run again.
    pub(super) replay: Option<Box<Replayer>>,
    /// How nodes tell each other that they are done.
    pub(super) form: P,
}

// SAFETY: see the ownership rule in the module's docs.
unsafe impl<P: Propagate + Send> Send for PartitionState<P> {}
// SAFETY: as above.
unsafe impl<P: Propagate + Sync> Sync for PartitionState<P> {}

impl<P: Propagate> PartitionState<P> {
    /// State for steps over `plan`. Its frames point into it and to `env`: both stay where they are.
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

    /// Points the frames at themselves and at this state, which does not move any more.
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

    /// Asks the kernels for a trace, or not.
    pub fn set_tracing(&mut self, tracing: u32) {
        for frame in &mut self.frames {
            frame.set_tracing(tracing);
        }
    }

    fn prefill(&self) {
        for (at, output) in self.plan.outputs.iter().enumerate() {
            // SAFETY: nobody else sees this state yet.
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
    /// The caller owns the output (see the module's docs).
    #[allow(clippy::mut_from_ref, reason = "ownership follows the graph, see the module's docs")]
    #[inline(always)]
    pub unsafe fn slot_mut(&self, at: u32) -> &mut Slot {
        // SAFETY: the caller owns the output (see the module's docs), and its position comes from the plan.
        unsafe { &mut *self.slots.get_unchecked(at as usize).get() }
    }

    /// The value of an output.
    ///
    /// # Safety
    /// As [`PartitionState::slot_mut`].
    #[allow(clippy::mut_from_ref, reason = "ownership follows the graph, see the module's docs")]
    #[inline(always)]
    pub unsafe fn value_mut(&self, at: u32) -> &mut Value {
        // SAFETY: the caller owns the output and so its value; the position comes from the plan.
        unsafe { &mut *self.values.get_unchecked(at as usize).get() }
    }

    /// Begins a step: counters are set, the nodes without predecessors go onto `ready`.
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
            // SAFETY: no node runs yet.
            unsafe { self.value_mut(output) }.readers.store(readers, Ordering::Relaxed);
        }
    }

    /// Ends a step: what was held for it is given back.
    pub fn end(&self) {
        for &(output, _) in &self.plan.readers {
            // SAFETY: no node runs any more.
            unsafe { self.value_mut(output) }.release();
        }
        if !self.host_only {
            self.keep_alive.lock().clear();
        }
    }

    /// Shows a fed tensor.
    ///
    /// # Safety
    /// No node runs.
    pub unsafe fn feed(&self, output: u32, tensor: &Tensor) {
        // SAFETY: no node runs, as the caller guarantees, so that nobody else uses the output.
        unsafe { self.value_mut(output).hold_on_host(self.slot_mut(output), tensor) };
    }

    /// The tensor of an output.
    ///
    /// # Safety
    /// The node that writes it is done.
    pub unsafe fn fetch(&self, output: u32) -> Option<Tensor> {
        // SAFETY: the node that writes the output is done, as the caller guarantees, so that nobody writes it now.
        let slot = unsafe { self.slot_mut(output) };
        if slot.flags & slot_flags::REF == 0 {
            return Value::tensor(slot);
        }
        let (mut shown, mut value) = (Slot::EMPTY, Value::default());
        // SAFETY: the node that filled the slot is done, and its step keeps the variable until the step is disarmed.
        unsafe { dereference(slot, &mut shown, &mut value) }.ok()?;
        Value::tensor(&shown)
    }

    /// Before a call: shows the values behind the references that the node takes as plain inputs. A variable without a
    /// value is an error, unless the node is there to give it one.
    ///
    /// # Safety
    /// This thread owns the node, whose predecessors are done.
    pub(super) unsafe fn show_references(&self, index: u32) -> Result<(), KernelError> {
        for &Reference { slot: reference, shown } in &self.node(index).references {
            // SAFETY: the caller owns the node and the slots that it shows; the nodes that wrote its references are
            // done.
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

    pub(super) fn hot(&self, node: u32) -> &HotNode {
        debug_assert!((node as usize) < self.plan.hot.len());
        // SAFETY: numbers of nodes come from the plan.
        unsafe { self.plan.hot.get_unchecked(node as usize) }
    }

    pub(super) fn node(&self, node: u32) -> &PlanNode {
        &self.plan.nodes[node as usize]
    }

    pub(super) fn frame(&self, node: u32) -> &CallFrame {
        debug_assert!((node as usize) < self.frames.len());
        // SAFETY: numbers of nodes come from the plan.
        unsafe { self.frames.get_unchecked(node as usize) }
    }

    /// Runs what is on `ready`, and what becomes ready by it, until nothing is left, or nothing that this thread is to
    /// run.
    pub fn drain<T: Thread>(&self, ready: &mut Vec<u32>) {
        if let Some(replay) = &self.replay
            && replay.is_busy()
        {
            return self.drain_replay::<T>(replay, ready);
        }
        let (mut tick, mask) = self.sampling();
        while let Some(index) = ready.pop() {
            if T::LEAVES && self.goes_home(index) {
                return ready.push(index);
            }
            let node = self.hot(index);
            tick = tick.wrapping_add(1);
            if node.flags != 0 || tick & mask == 0 || self.shared.is_stopped() {
                self.detour(index, ready);
                continue;
            }
            let frame = self.frame(index);
            // SAFETY: this thread owns the node, whose predecessors are done.
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

    /// Everything that is not the straight path.
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

    /// Runs a kernel here, measured, with every check.
    pub(super) fn run_inline(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: this thread owns the node, whose predecessors are done.
        if let Err(error) = unsafe { self.show_references(index) } {
            return self.fail_node(index, &error);
        }
        let node = self.hot(index);
        self.call(index, node.compute, node.state, ready);
    }

    /// Calls the kernel of a node whose references are shown.
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
        // SAFETY: this thread owns the node, whose predecessors are done; a kernel's entry with its own state.
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
                // SAFETY: it has succeeded, and what follows takes its tensors.
                unsafe { frame.tell_tensors(&**trace) };
            }
            self.stream_ends(index);
        }
        if !code.is_ok() {
            return self.failed(index, code, ready);
        }
        self.after(index, ready);
    }

    /// Counts a call, where calls are counted.
    pub(super) fn count(&self, index: u32) {
        if let Some(runs) = &self.node(index).runs {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// After a kernel returned or completed with success: checks its outputs, tells its successors.
    pub(super) fn after(&self, index: u32, ready: &mut Vec<u32>) {
        if let Err(error) = self.check_outputs(index) {
            self.fail_node(index, &error);
            return;
        }
        self.frame(index).end();
        self.propagate(index, ready);
    }

    /// Makes sure that planned outputs have a buffer that nobody else holds.
    ///
    /// # Safety
    /// This thread owns the node.
    #[inline(always)]
    pub(super) unsafe fn plan_outputs(&self, node: &HotNode) {
        for &output in node.planned.of(&self.plan.planned) {
            // SAFETY: the caller owns the node's outputs; a planned slot has the buffer that its value keeps.
            unsafe {
                let slot = self.slot_mut(output);
                if slot.flags & slot_flags::PLANNED == 0 || !Buffer::raw_is_unique(slot.buffer) {
                    self.replan(output);
                }
            }
        }
    }

    /// Gives a planned output a fresh buffer. Without memory the slot stays unplanned: the kernel asks for
    /// it then, and gets the error.
    ///
    /// # Safety
    /// As [`PartitionState::plan_outputs`].
    #[cold]
    #[inline(never)]
    unsafe fn replan(&self, output: u32) {
        let spec = &self.plan.outputs[output as usize];
        let Some(shape) = &spec.full else { return };
        // SAFETY: the caller owns the node, and the output is one of this node's.
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

    /// Whether the planned outputs still are as planned: a kernel that asked for another shape has
    /// replaced its slot.
    ///
    /// # Safety
    /// This thread owns the node.
    #[inline(always)]
    unsafe fn outputs_are_planned(&self, node: &HotNode) -> bool {
        node.planned.of(&self.plan.planned).iter().all(|&output| {
            // SAFETY: the caller owns the node, and the output is one of this node's.
            unsafe { self.slot_mut(output) }.flags & slot_flags::PLANNED != 0
        })
    }

    /// A call failed, or its outputs are not as planned.
    #[cold]
    fn failed(&self, index: u32, code: Code, ready: &mut Vec<u32>) {
        let frame = self.frame(index);
        frame.end();
        let error = if code.is_ok() {
            match self.check_outputs(index) {
                Err(error) => error,
                // It replaced its planned output by one of the right shape.
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

    /// A node is done: tells its successors.
    #[inline(always)]
    pub(super) fn propagate(&self, index: u32, ready: &mut Vec<u32>) {
        let node = self.hot(index);
        if node.flags & node_flags::EVENTS != 0 && !self.record_event(index) {
            return;
        }
        P::propagate(self, index, node, ready);
    }

    /// Gives back what a node was the last to read.
    #[inline(always)]
    pub(super) fn give_back_inputs(&self, node: &HotNode) {
        for &input in node.counted.of(&self.plan.counted) {
            self.give_back_input(input);
        }
    }

    /// A reader of an output, whose readers are counted, is done.
    #[inline(always)]
    pub(super) fn give_back_input(&self, input: u32) {
        // SAFETY: the node reads the output, so that it is alive; whoever lowers the count to 0 owns it.
        unsafe {
            if self.value_mut(input).readers.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.value_mut(input).release();
            }
        }
    }
}
