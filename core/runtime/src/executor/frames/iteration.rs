//! Propagation after a node of an iteration is done or dead.

use super::{
    FrameState, Iteration,
    value::{clear, forward, is_set},
};
use crate::{
    executor::{partition::PartitionState, propagate::Propagate, shared::Ready},
    plan::{
        Action, HotNode, Transfer,
        frames::{
            FrameEdge, FrameNode, FramePlan, Role,
            counts::{self, Arrival},
        },
    },
    rendezvous::Key,
};
use std::{
    borrow::Cow,
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_abi::{DType, slot_flags};
use tenon_framework::{KernelError, tensor::Buffer};

/// The form with control flow: the additional state of an iteration.
pub(crate) struct Framed {
    owner: *const FrameState,
    /// The number in the structure's table.
    pub(super) id: u32,
    plan: Arc<FramePlan>,
    /// The arrivals that each node waits for, see [`counts`].
    counts: Box<[AtomicU64]>,
    /// The numbers of the frame instance and of the iteration; they do not change while the
    /// iteration has tokens.
    frame: AtomicU64,
    iteration: AtomicU64,
    /// The calls of each node that its plan has not counted yet.
    calls: Box<[AtomicU64]>,
}

// SAFETY: the owner is `Send` and `Sync`, and outlives its iterations.
unsafe impl Send for Framed {}
// SAFETY: as for `Send`.
unsafe impl Sync for Framed {}

impl Framed {
    pub(super) fn new(owner: &FrameState, id: u32, plan: Arc<FramePlan>) -> Framed {
        Framed {
            owner,
            id,
            counts: plan.nodes.iter().map(|node| AtomicU64::new(node.count)).collect(),
            calls: plan.nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            plan,
            frame: AtomicU64::new(0),
            iteration: AtomicU64::new(0),
        }
    }

    fn owner(&self) -> &FrameState {
        // SAFETY: the owner outlives its iterations.
        unsafe { &*self.owner }
    }

    pub(super) fn plan(&self) -> &FramePlan {
        &self.plan
    }

    fn node(&self, index: u32) -> &FrameNode {
        &self.plan.nodes[index as usize]
    }

    pub(super) fn count(&self, index: u32) -> u64 {
        self.counts[index as usize].load(Ordering::Acquire)
    }

    pub(super) fn frame(&self) -> u64 {
        self.frame.load(Ordering::Relaxed)
    }

    pub(super) fn iteration(&self) -> u64 {
        self.iteration.load(Ordering::Relaxed)
    }
}

/// One iteration in this number counts its calls in the plan; the others do so when the step ends.
const COUNTED_EVERY: u64 = 1024;

fn not_set() -> KernelError {
    KernelError::internal("a forwarded value is not set")
}

thread_local! {
    /// Scratch space for dead nodes that have not notified their successors yet.
    static DEAD: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// The nodes that become ready or dead.
struct Wave<'r> {
    ready: &'r mut Vec<u32>,
    dead: Vec<u32>,
}

impl<'r> Wave<'r> {
    fn new(ready: &'r mut Vec<u32>) -> Wave<'r> {
        Wave { ready, dead: DEAD.take() }
    }

    /// Propagates deadness until no further node becomes dead.
    fn run(mut self, state: &Iteration) {
        while let Some(node) = self.dead.pop() {
            state.dead(node, &mut self);
        }
        DEAD.set(self.dead);
    }
}

impl Propagate for Framed {
    fn begin(state: &Iteration) {
        for (count, node) in state.form.counts.iter().zip(&state.form.plan.nodes) {
            count.store(node.count, Ordering::Relaxed);
        }
    }

    fn propagate(state: &Iteration, index: u32, node: &HotNode, ready: &mut Vec<u32>) {
        state.count_call(index);
        let mut wave = Wave::new(ready);
        if let Err(error) = state.live(index, node, &mut wave) {
            state.fail_node(index, &error);
        }
        wave.run(state);
    }

    fn propagate_dead(state: &Iteration, index: u32, ready: &mut Vec<u32>) {
        counts::mark_dead(&state.form.counts[index as usize]);
        let mut wave = Wave::new(ready);
        state.tell(index, |_| true, true, &mut wave);
        wave.run(state);
    }

    fn raise(state: &Iteration) {
        let owner = state.form.owner();
        owner.structure.lock().take_token(state.form.id);
        owner.shared.raise();
    }

    fn lower(state: &Iteration, ready: Vec<u32>) {
        let owner = state.form.owner();
        let mut structure = owner.structure.lock();
        for node in ready {
            structure.wake(state.form.id, node, false);
        }
        structure.give_token(owner, state.form.id);
        let woken = structure.has_woken();
        drop(structure);
        // The woken nodes are in the structure's list; the inbox entry only signals that there are
        // some.
        owner.shared.lower(woken.then_some(Ready { partition: owner.index, node: 0 }));
    }

    fn key<'t>(state: &Iteration, transfer: &'t Transfer) -> Cow<'t, Key> {
        if state.form.frame() == 0 {
            return Cow::Borrowed(&transfer.key);
        }
        let (frame, iteration) = (state.form.frame(), state.form.iteration());
        Cow::Owned(Key { frame, iteration, ..transfer.key.clone() })
    }
}

impl PartitionState<Framed> {
    /// Puts a woken node on `ready`, or propagates its deadness; `None` means the plan's roots.
    pub(super) fn wake(&self, node: Option<u32>, dead: bool, ready: &mut Vec<u32>) {
        let Some(node) = node else {
            return ready.extend_from_slice(&self.plan.roots);
        };
        let mut wave = Wave::new(ready);
        if dead {
            wave.dead.push(node)
        } else {
            wave.ready.push(node)
        }
        wave.run(self);
    }

    /// Prepares the state for iteration `iteration` of the instance `frame`. It must have no
    /// tokens.
    pub(super) fn start(&self, frame: u64, iteration: u64) {
        self.form.frame.store(frame, Ordering::Relaxed);
        self.form.iteration.store(iteration, Ordering::Relaxed);
        // The roots of the root frame are woken through the list, like all nodes.
        self.reset();
        for record in &self.frames {
            // SAFETY: the iteration has no tokens, so no thread uses its calls.
            unsafe { record.set_iteration(frame, iteration) };
        }
    }

    /// Counts a call of a node.
    fn count_call(&self, index: u32) {
        let calls = &self.form.calls[index as usize];
        match self.is_alone() {
            true => calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
            false => _ = calls.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Adds the calls so far to those of the plan.
    pub(super) fn count_calls(&self) {
        for (calls, node) in self.form.calls.iter().zip(&self.plan.nodes) {
            let made = calls.load(Ordering::Relaxed);
            if made > 0 {
                calls.store(0, Ordering::Relaxed);
                node.calls.fetch_add(made, Ordering::Relaxed);
            }
        }
    }

    /// Ends the iteration: releases its buffers, or moves those that work on a stream may still use
    /// to `retired`.
    pub(super) fn finish(&self, retired: &mut Vec<Buffer>) {
        // A long loop shows its calls while it runs.
        if self.form.iteration() % COUNTED_EVERY == COUNTED_EVERY - 1 {
            self.count_calls();
        }
        let has_stream = self.lanes.streams().is_some();
        for &(output, _) in &self.plan.readers {
            // SAFETY: the iteration has no tokens, so no thread uses its outputs.
            let (value, slot) =
                unsafe { (self.slots.value_mut(output), self.slots.slot_mut(output)) };
            let owner = value.owner.take();
            if has_stream {
                retired.extend(owner);
            }
            // A planned output keeps its buffer, into which a kernel of a later iteration writes.
            if slot.flags & slot_flags::PLANNED == 0 {
                clear(slot);
            }
        }
        self.lanes.retire(retired);
    }

    /// Handles a node that has run: forwards its value, notifies its successors, and releases its
    /// inputs.
    fn live(&self, index: u32, hot: &HotNode, wave: &mut Wave<'_>) -> Result<(), KernelError> {
        let node = *self.form.node(index);
        match node.role {
            Role::Plain | Role::Trigger => self.tell(index, |_| false, false, wave),
            Role::LoopCond => {
                self.pass(self.input(index, 0), node.output)?;
                self.tell(index, |_| false, false, wave);
            }
            Role::Switch => {
                let taken = self.selected(self.input(index, 1), index)?;
                self.pass(self.input(index, 0), node.output + taken)?;
                self.tell(index, |output| output != taken, false, wave);
            }
            Role::Merge => {
                let first = counts::first_input(self.form.count(index));
                self.merge(self.input(index, first), first, &node)?;
                self.tell(index, |_| false, false, wave);
            }
            Role::Enter { .. } | Role::Exit | Role::NextIteration => {
                return self.cross(index, hot);
            }
        }
        self.slots.release_inputs(hot, self.is_alone());
        Ok(())
    }

    /// Forwards the value of a node into another iteration.
    fn cross(&self, index: u32, hot: &HotNode) -> Result<(), KernelError> {
        // SAFETY: the node that wrote the value is done, so no thread writes the slot.
        let value = unsafe { self.slots.slot(self.input(index, 0)) };
        if !is_set(value) {
            return Err(not_set());
        }
        let owner = self.form.owner();
        let mut structure = owner.structure.lock();
        structure.cross(owner, self.form.id, index, Some(value))?;
        // A kernel of the other iteration takes the buffer over only if nothing here holds it any
        // more. Most such kernels run after this, since nodes are woken under the lock.
        self.slots.release_inputs(hot, self.is_alone());
        Ok(())
    }

    /// Handles a node that does not run because something that it waited for is dead.
    fn dead(&self, index: u32, wave: &mut Wave<'_>) {
        if matches!(self.node(index).action, Action::Recv(_)) {
            // Its `Send` is dead, and sends a dead value.
            return wave.ready.push(index);
        }
        self.slots.release_inputs(self.hot(index), self.is_alone());
        if let Action::Send(transfer) = &self.node(index).action {
            self.send_dead(index, transfer);
        }
        match self.form.node(index).role {
            Role::Trigger => wave.ready.push(index),
            Role::Enter { .. } | Role::Exit | Role::NextIteration => {
                let owner = self.form.owner();
                if let Err(error) = owner.structure.lock().cross(owner, self.form.id, index, None) {
                    self.fail_node(index, &error);
                }
            }
            _ => self.tell(index, |_| true, true, wave),
        }
    }

    /// Notifies the nodes of this iteration that wait for `index`.
    fn tell(&self, index: u32, is_dead: impl Fn(u32) -> bool, all: bool, wave: &mut Wave<'_>) {
        for edge in self.form.node(index).edges.of(&self.form.plan.edges) {
            let dead = if edge.is_control() { all } else { is_dead(edge.output) };
            match self.arrive(edge, dead, false) {
                Some(true) if self.form.node(edge.node).role != Role::Trigger => {
                    wave.dead.push(edge.node);
                }
                Some(_) => wave.ready.push(edge.node),
                None => {}
            }
        }
    }

    /// Counts the arrival of an edge. If its node waits for nothing more, returns whether it is
    /// dead.
    pub(super) fn arrive(&self, edge: &FrameEdge, dead: bool, by_enter: bool) -> Option<bool> {
        let node = self.form.node(edge.node);
        let count = &self.form.counts[edge.node as usize];
        if node.role != Role::Merge {
            return counts::arrive(count, dead, self.is_alone());
        }
        let arrival = match (edge.is_control(), dead, by_enter) {
            (true, ..) => Arrival::Control,
            (false, false, _) => Arrival::Value(edge.input),
            (false, true, false) => Arrival::Dead,
            (false, true, true) => Arrival::DeadEnter,
        };
        counts::arrive_merge(count, node.inputs, arrival, self.is_alone())
    }

    /// The slot of a node's input.
    fn input(&self, index: u32, input: u32) -> u32 {
        self.node(index).inputs[input as usize]
    }

    fn pass(&self, from: u32, to: u32) -> Result<(), KernelError> {
        // SAFETY: this thread runs the node and owns its outputs; the input is only read.
        unsafe {
            let (source, slot) = (self.slots.slot(from), self.slots.slot_mut(to));
            if !forward(source, slot, self.slots.value_mut(to)) {
                return Err(not_set());
            }
            slot.alias = source.alias;
        }
        Ok(())
    }

    /// Forwards the input of a `Merge`, and its number.
    fn merge(&self, from: u32, input: u32, node: &FrameNode) -> Result<(), KernelError> {
        self.pass(from, node.output)?;
        let number = node.output + 1;
        if !self.plan.outputs[number as usize].unused {
            let value = &self.form.plan.numbers[input as usize];
            // SAFETY: this thread runs the node and owns its outputs.
            unsafe { self.slots.value_mut(number).hold(self.slots.slot_mut(number), value) };
        }
        if self.plan.outputs[from as usize].is_counted() {
            self.slots.release_input(from, self.is_alone());
        }
        Ok(())
    }

    /// The output that the selector of a `Switch` names: a bool, or the number of an output. A
    /// number that no output has names the last one.
    fn selected(&self, at: u32, index: u32) -> Result<u32, KernelError> {
        // SAFETY: the node that wrote the predicate is done, so no thread writes the slot.
        let slot = unsafe { self.slots.slot(at) };
        if slot.data.is_null() || slot.elements != 1 || slot.rank != 0 {
            return Err(KernelError::invalid_argument(format!(
                "expected a predicate of shape [], found {} dimensions with {} elements",
                slot.rank, slot.elements
            )));
        }
        if slot.dtype != DType::INT32 {
            // SAFETY: the slot holds one bool in host memory.
            return Ok(u32::from(unsafe { *slot.data.cast::<u8>() } != 0));
        }
        // SAFETY: the slot holds one int32 in host memory, aligned as tensors are.
        let number = unsafe { *slot.data.cast::<i32>() };
        let last = (self.node(index).info.outputs.len() as u32).saturating_sub(1);
        Ok(u32::try_from(number).map_or(last, |number| number.min(last)))
    }
}
