//! Propagation after a node of an iteration is done or dead.

use super::{
    FrameState, Iteration,
    value::{Crossing, clear, is_set},
};
use crate::{
    executor::{partition::PartitionState, propagate::Propagate, shared::Ready},
    plan::{
        Action, HotNode, Transfer,
        frames::{
            FrameEdge, FrameInput, FrameNode, FramePlan, Role,
            counts::{self, Arrival},
        },
        node_flags,
    },
    rendezvous::Key,
};
use std::{
    borrow::Cow,
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tenon_abi::slot_flags;
use tenon_framework::{KernelError, tensor::Buffer};

/// The form with control flow: the additional state of an iteration.
pub(crate) struct Framed {
    owner: *const FrameState,
    /// The number in the structure's table.
    pub(super) id: u32,
    /// The number of the plan.
    pub(super) number: u32,
    plan: Arc<FramePlan>,
    /// The arrivals that each node waits for, see [`counts`].
    counts: Box<[AtomicU64]>,
    /// The numbers of the frame instance and of the iteration; they do not change while the
    /// iteration has tokens.
    frame: AtomicU64,
    iteration: AtomicU64,
    /// The calls of each node that its plan has not counted yet.
    calls: Box<[AtomicU64]>,
    /// Whether the values that enter every iteration of the frame instance are in their slots.
    has_steady: AtomicBool,
    /// Whether they are there from the start of the current iteration on.
    starts_steady: AtomicBool,
    /// Whether the current iteration runs by the program of the frame.
    by_program: AtomicBool,
    /// The classes of the program that are live.
    pub(super) live: Box<[AtomicBool]>,
}

// SAFETY: the owner is `Send` and `Sync`, and outlives its iterations.
unsafe impl Send for Framed {}
// SAFETY: as for `Send`.
unsafe impl Sync for Framed {}

impl Framed {
    /// The form of a state with its number and that of its plan.
    pub(super) fn new(
        owner: &FrameState,
        (number, id): (u32, u32),
        plan: Arc<FramePlan>,
    ) -> Framed {
        let classes = plan.program.as_ref().map_or(0, |program| program.classes);
        Framed {
            owner,
            id,
            number,
            by_program: AtomicBool::new(false),
            live: (0..classes).map(|_| AtomicBool::new(false)).collect(),
            counts: plan.counts.iter().map(|&count| AtomicU64::new(count)).collect(),
            calls: plan.nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            plan,
            frame: AtomicU64::new(0),
            iteration: AtomicU64::new(0),
            has_steady: AtomicBool::new(false),
            starts_steady: AtomicBool::new(false),
        }
    }

    fn owner(&self) -> &FrameState {
        // SAFETY: the owner outlives its iterations.
        unsafe { &*self.owner }
    }

    pub(super) fn plan(&self) -> &FramePlan {
        &self.plan
    }

    /// Whether the values that enter every iteration are in their slots.
    pub(super) fn has_steady(&self) -> bool {
        self.has_steady.load(Ordering::Relaxed)
    }

    /// The class of an output, if the iteration runs by the program of the frame.
    pub(super) fn class(&self, output: u32) -> Option<u32> {
        let program =
            self.plan.program.as_ref().filter(|_| self.by_program.load(Ordering::Relaxed));
        program.map(|program| program.outputs[output as usize])
    }

    pub(super) fn node(&self, index: u32) -> &FrameNode {
        &self.plan.nodes[index as usize]
    }

    /// The input at this position of a node that forwards.
    pub(super) fn input(&self, node: &FrameNode, input: u32) -> FrameInput {
        node.inputs.of(&self.plan.inputs)[input as usize]
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

pub(super) fn not_set() -> KernelError {
    KernelError::internal("a forwarded value is not set")
}

thread_local! {
    /// Scratch space for dead nodes that have not notified their successors yet.
    static DEAD: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// The number of dead nodes that need no scratch space.
const FEW: usize = 8;

/// The nodes that become ready or dead.
struct Wave<'r> {
    ready: &'r mut Vec<u32>,
    /// The dead nodes: the first `few` of `first`, then those of `more`.
    first: [u32; FEW],
    few: usize,
    /// It takes the scratch space of the thread when it is needed.
    more: Vec<u32>,
}

impl<'r> Wave<'r> {
    fn new(ready: &'r mut Vec<u32>) -> Wave<'r> {
        Wave { ready, first: [0; FEW], few: 0, more: Vec::new() }
    }

    fn dies(&mut self, node: u32) {
        if let Some(place) = self.first.get_mut(self.few) {
            *place = node;
            self.few += 1;
            return;
        }
        if self.more.capacity() == 0 {
            self.more = DEAD.take();
        }
        self.more.push(node);
    }

    fn next(&mut self) -> Option<u32> {
        if let Some(node) = self.more.pop() {
            return Some(node);
        }
        self.few = self.few.checked_sub(1)?;
        Some(self.first[self.few])
    }

    /// Propagates deadness until no further node becomes dead.
    fn run(mut self, state: &Iteration) {
        while let Some(node) = self.next() {
            state.dead(node, &mut self);
        }
        if self.more.capacity() != 0 {
            DEAD.set(self.more);
        }
    }
}

impl Propagate for Framed {
    fn begin(state: &Iteration) {
        let plan = &state.form.plan;
        let is_steady = state.form.starts_steady.load(Ordering::Relaxed);
        let from = if is_steady { &plan.steady_counts } else { &plan.counts };
        for (count, &from) in state.form.counts.iter().zip(from) {
            count.store(from, Ordering::Relaxed);
        }
    }

    fn propagate(state: &Iteration, index: u32, node: &HotNode, ready: &mut Vec<u32>) {
        state.count_call(index, state.is_alone());
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
        owner.structure().take_token(state.form.id);
        owner.shared.raise();
    }

    fn lower(state: &Iteration, ready: Vec<u32>) {
        let owner = state.form.owner();
        let mut structure = owner.structure();
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
        if !dead {
            return wave.ready.push(node);
        }
        wave.dies(node);
        wave.run(self);
    }

    /// Prepares the state for iteration `iteration` of the instance `frame`; `steady` says that the
    /// values that enter every iteration are in their slots, and need not arrive. It must have no
    /// tokens.
    pub(super) fn start(&self, frame: u64, iteration: u64, steady: bool) {
        self.form.starts_steady.store(steady, Ordering::Relaxed);
        self.form.by_program.store(false, Ordering::Relaxed);
        // The roots of the root frame are woken through the list, like all nodes.
        self.reset();
        self.set_iteration(frame, iteration);
    }

    /// As [`PartitionState::start`], for an iteration that runs by the program of the frame, with the values that enter
    /// every iteration in their slots.
    pub(super) fn start_program(&self, frame: u64, iteration: u64) {
        self.form.by_program.store(true, Ordering::Relaxed);
        self.reset_slots();
        self.set_iteration(frame, iteration);
    }

    fn set_iteration(&self, frame: u64, iteration: u64) {
        self.form.frame.store(frame, Ordering::Relaxed);
        self.form.iteration.store(iteration, Ordering::Relaxed);
        // The calls of the root frame have these numbers from the beginning.
        if frame == 0 {
            return;
        }
        for &node in &self.form.plan.calls {
            // SAFETY: the iteration has no tokens, so no thread uses its calls.
            unsafe { self.frame(node).set_iteration(frame, iteration) };
        }
    }

    /// Counts a call of a node; `alone` says that no other thread counts.
    #[inline(always)]
    pub(super) fn count_call(&self, index: u32, alone: bool) {
        let calls = &self.form.calls[index as usize];
        match alone {
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
        for &(output, _) in &self.plan.readers {
            self.release(output, retired);
        }
        // The values that enter every iteration have all arrived, and stay for the next one.
        self.form.has_steady.store(true, Ordering::Relaxed);
        self.lanes.retire(retired);
    }

    /// Releases the values that entered every iteration of a loop, at its end. The state must have no
    /// tokens.
    pub(super) fn release_steady(&self, retired: &mut Vec<Buffer>) {
        self.form.has_steady.store(false, Ordering::Relaxed);
        for &output in &self.form.plan.steady {
            self.release(output, retired);
        }
    }

    /// Releases the value of an output of an iteration without tokens, and clears its slot.
    fn release(&self, output: u32, retired: &mut Vec<Buffer>) {
        // SAFETY: the iteration has no tokens, so no thread uses its outputs.
        let (value, slot) = unsafe { (self.slots.value_mut(output), self.slots.slot_mut(output)) };
        if let Some(owner) = value.owner.take()
            && self.lanes.streams().is_some()
        {
            retired.push(owner);
        }
        // A planned output keeps its buffer, into which a kernel of a later iteration writes.
        if slot.flags & slot_flags::PLANNED == 0 {
            clear(slot);
        }
    }

    /// Adds the `Exit` nodes that are dead in this iteration.
    pub(super) fn dead_exits(&self, dead: &mut Vec<u32>) {
        let is_dead = |exit: &u32| {
            let count = self.form.count(*exit);
            counts::is_complete(false, count) && counts::is_dead(count)
        };
        dead.extend(self.form.plan.exits.iter().copied().filter(is_dead));
    }

    /// Handles a node that has run: forwards its value, notifies its successors, and releases its
    /// inputs.
    fn live(&self, index: u32, hot: &HotNode, wave: &mut Wave<'_>) -> Result<(), KernelError> {
        let node = *self.form.node(index);
        match node.role {
            Role::Plain | Role::Trigger => self.tell(index, |_| false, false, wave),
            Role::LoopCond => {
                self.pass(self.form.input(&node, 0), node.output)?;
                self.tell(index, |_| false, false, wave);
            }
            Role::Switch => {
                let taken = self.selected(self.form.input(&node, 1).output, index)?;
                self.pass(self.form.input(&node, 0), node.output + taken)?;
                self.tell(index, |output| output != taken, false, wave);
            }
            Role::Merge => {
                let first = counts::first_input(self.form.count(index));
                self.merge(self.form.input(&node, first), first, &node)?;
                self.tell(index, |_| false, false, wave);
            }
            Role::Enter { .. } | Role::Exit | Role::NextIteration => {
                return self.cross(index, hot, self.form.input(&node, 0));
            }
        }
        self.slots.release_inputs(hot, self.is_alone());
        Ok(())
    }

    /// Forwards the value of a node into another iteration.
    pub(super) fn cross(
        &self,
        index: u32,
        hot: &HotNode,
        input: FrameInput,
    ) -> Result<(), KernelError> {
        let FrameInput { output, counted } = input;
        // SAFETY: the node that wrote the value is done, so no thread writes the slot.
        let slot = unsafe { self.slots.slot(output) };
        if !is_set(slot) {
            return Err(not_set());
        }
        // SAFETY: the node reads the value, whose readers are counted; after this it needs only the
        // slot, which the end of the iteration clears.
        let taken = if counted { unsafe { self.slots.take_over(output) } } else { None };
        let owner = self.form.owner();
        let mut structure = owner.structure();
        structure.cross(owner, self.form.id, index, Some(Crossing { slot, owner: taken }))?;
        // A kernel of the other iteration takes the buffer over only if nothing here holds it any
        // more. Most such kernels run after this, since nodes are woken under the lock.
        let alone = self.is_alone();
        if counted {
            self.slots.release_input(output, alone);
        }
        self.slots.release_inputs(hot, alone);
        Ok(())
    }

    /// Handles a node that does not run because something that it waited for is dead.
    fn dead(&self, index: u32, wave: &mut Wave<'_>) {
        let (hot, node) = (self.hot(index), self.form.node(index));
        let transfer = match hot.flags & (node_flags::ACTION | node_flags::FORWARD) {
            node_flags::ACTION => match &self.node(index).action {
                // Its `Send` is dead, and sends a dead value.
                Action::Recv(_) => return wave.ready.push(index),
                Action::Send(transfer) => Some(transfer),
                _ => None,
            },
            _ => None,
        };
        let alone = self.is_alone();
        self.slots.release_inputs(hot, alone);
        if let Some(transfer) = transfer {
            self.send_dead(index, transfer);
        }
        // A dead `Merge` has no value; others may have one, and wait for something dead.
        if let (false, Some(input)) =
            (node.role == Role::Merge, node.inputs.of(&self.form.plan.inputs).first())
            && input.counted
        {
            self.slots.release_input(input.output, alone);
        }
        match node.role {
            Role::Trigger => wave.ready.push(index),
            // A loop ends when its `NextIteration` is dead; its dead `Exit`s count when it has
            // ended.
            Role::Exit | Role::NextIteration => {}
            Role::Enter { .. } => {
                let owner = self.form.owner();
                let crossed = owner.structure().cross(owner, self.form.id, index, None);
                if let Err(error) = crossed {
                    self.fail_node(index, &error);
                }
            }
            _ => self.tell(index, |_| true, true, wave),
        }
    }

    /// Notifies the nodes of this iteration that wait for `index`.
    fn tell(&self, index: u32, is_dead: impl Fn(u32) -> bool, all: bool, wave: &mut Wave<'_>) {
        let plan = &*self.form.plan;
        for edge in plan.nodes[index as usize].edges.of(&plan.edges) {
            let dead = if edge.is_control() { all } else { is_dead(edge.output) };
            match self.arrive(edge, dead, false) {
                Some(true) if !edge.triggers => wave.dies(edge.node),
                Some(_) => wave.ready.push(edge.node),
                None => {}
            }
        }
    }

    /// Counts the arrival of an edge. If its node waits for nothing more, returns whether it is
    /// dead.
    #[inline(always)]
    pub(super) fn arrive(&self, edge: &FrameEdge, dead: bool, by_enter: bool) -> Option<bool> {
        let count = &self.form.counts[edge.node as usize];
        if edge.merged == 0 {
            return counts::arrive(count, dead, self.is_alone());
        }
        let arrival = match (edge.is_control(), dead, by_enter) {
            (true, ..) => Arrival::Control,
            (false, false, _) => Arrival::Value(edge.input),
            (false, true, false) => Arrival::Dead,
            (false, true, true) => Arrival::DeadEnter,
        };
        counts::arrive_merge(count, edge.merged, arrival, self.is_alone())
    }
}
