//! Frame instances and their iterations.
//!
//! All of this changes only under the lock of [`FrameState`]. Iterations are numbered by their
//! position in a table. A finished iteration goes to the free list of its plan, so that a loop in
//! steady state creates no new ones. Instances are handled the same way.

mod turns;

use super::{
    FrameState, Iteration, RETIRED_BUFFERS,
    value::{Crossing, Passed},
};
use crate::plan::frames::{FramePlan, Role, counts::combined};
use std::{collections::VecDeque, ptr::NonNull};
use tenon_framework::{KernelError, tensor::Buffer};

/// The number of the root iteration, and of the root instance.
pub(super) const ROOT: u32 = 0;

/// What runs next in an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The roots of the root frame.
    Roots,
    /// A node, or what follows if it is dead.
    Node { node: u32, dead: bool },
    /// The program of the frame.
    Program,
}

/// What runs next; it is a token of its iteration.
pub(super) struct Woken {
    pub state: NonNull<Iteration>,
    pub iteration: u32,
    pub start: Start,
}

// SAFETY: a thread with a token of an iteration may use its state.
unsafe impl Send for Woken {}

struct Record {
    state: NonNull<Iteration>,
    plan: u32,
    instance: u32,
    tokens: u32,
    /// The plans and instances of the open frames that were entered from here.
    children: Vec<(u32, u32)>,
}

// SAFETY: as for `Woken`; the record itself is only used under the lock.
unsafe impl Send for Record {}

#[derive(Default)]
struct Instance {
    plan: u32,
    /// The iteration from which the frame was entered.
    parent: u32,
    /// The number for keys and kernels.
    number: u64,
    /// The unfinished iterations, in order; `first` is the number of the first one.
    iterations: VecDeque<u32>,
    first: u64,
    /// The number of `Enter` nodes that have not run.
    missing: u32,
    /// The values for every iteration, with the `Enter` node that brought each; `None` is a dead
    /// value.
    constants: Vec<(u32, Option<Passed>)>,
    /// The values for the next iteration, which may not start yet, with the `NextIteration` node
    /// that brought each.
    waiting: Vec<(u32, Passed)>,
    /// Whether the values for every iteration have all arrived, and none is dead.
    is_steady: bool,
    /// The `Exit` nodes that are dead in the last iteration, once that is done.
    dead_exits: Vec<u32>,
    /// The `Exit` nodes whose values left.
    exits: Vec<u32>,
    /// Whether nodes are held back until all values have entered, or while the program of the frame runs.
    holds: bool,
    /// The nodes that are held back, and whether each is dead.
    held: Vec<(u32, bool)>,
}

/// The frame instances, their iterations, and the woken nodes.
pub(super) struct Structure {
    iterations: Vec<Record>,
    free_iterations: Vec<Vec<u32>>,
    instances: Vec<Instance>,
    free_instances: Vec<u32>,
    woken: VecDeque<Woken>,
    /// The buffers that work on the stream may still use.
    retired: Vec<Buffer>,
}

impl Structure {
    pub fn new(plans: usize) -> Structure {
        Structure {
            iterations: Vec::new(),
            free_iterations: vec![Vec::new(); plans],
            instances: vec![Instance::default()],
            free_instances: Vec::new(),
            woken: VecDeque::new(),
            retired: Vec::new(),
        }
    }

    /// Creates the root iteration.
    pub fn make_root(&mut self, owner: &FrameState) {
        if self.iterations.is_empty() {
            self.make(owner, 0);
            self.instances[ROOT as usize].iterations.push_back(ROOT);
        }
    }

    /// The states created so far.
    pub fn states(&self) -> impl Iterator<Item = NonNull<Iteration>> {
        self.iterations.iter().map(|record| record.state)
    }

    pub fn state(&self, id: u32) -> NonNull<Iteration> {
        self.iterations[id as usize].state
    }

    fn record(&mut self, id: u32) -> &mut Record {
        &mut self.iterations[id as usize]
    }

    /// Starts a step.
    pub fn begin(&mut self, owner: &FrameState) {
        let state = self.state(ROOT);
        // SAFETY: no node runs, so the state is not in use.
        let state = unsafe { state.as_ref() };
        if owner.runs_program(0) {
            state.start_program(0, 0);
            return self.push(ROOT, Start::Program);
        }
        state.start(0, 0, false);
        self.push(ROOT, Start::Roots);
    }

    /// Ends a step. No node runs, and no frame is open.
    pub fn end(&mut self) {
        self.record(ROOT).tokens = 0;
        self.retired.clear();
    }

    /// The plan of an open frame, if there is one.
    pub fn open_frame(&self) -> Option<u32> {
        self.iterations[ROOT as usize].children.first().map(|&(plan, _)| plan)
    }

    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    pub fn take_token(&mut self, id: u32) {
        self.record(id).tokens += 1;
    }

    /// Releases a token; the iteration may then be done.
    pub fn give_token(&mut self, owner: &FrameState, id: u32) {
        let record = self.record(id);
        record.tokens -= 1;
        if record.tokens == 0 && !owner.shared.is_stopped() {
            let instance = record.instance;
            self.retire(owner, instance);
        }
    }

    /// Releases the token of the finished node and returns the next woken one. Also returns the
    /// retired buffers if there are too many.
    pub fn next(&mut self, owner: &FrameState, done: Option<u32>) -> (Option<Woken>, Vec<Buffer>) {
        if let Some(done) = done {
            self.give_token(owner, done);
        }
        if owner.shared.is_stopped() {
            for woken in std::mem::take(&mut self.woken) {
                self.record(woken.iteration).tokens -= 1;
            }
        }
        let full = self.retired.len() > RETIRED_BUFFERS;
        let retired = if full { std::mem::take(&mut self.retired) } else { Vec::new() };
        (self.woken.pop_front(), retired)
    }

    fn push(&mut self, id: u32, start: Start) {
        let record = self.record(id);
        record.tokens += 1;
        let woken = Woken { state: record.state, iteration: id, start };
        self.woken.push_back(woken);
    }

    /// Records that a node is ready, or dead.
    pub fn wake(&mut self, id: u32, node: u32, dead: bool) {
        self.push(id, Start::Node { node, dead });
    }

    /// Handles a finished node that leads from one iteration to another, with its value; `None` means
    /// that the value is dead. Only an `Enter` passes a dead value on.
    ///
    /// # Errors
    /// The value leaves its loop a second time.
    pub fn cross(
        &mut self,
        owner: &FrameState,
        id: u32,
        index: u32,
        value: Option<Crossing<'_>>,
    ) -> Result<(), KernelError> {
        let plan = owner.frame(self.iterations[id as usize].plan);
        match (plan.nodes[index as usize].role, value) {
            (Role::Enter { frame, constant }, value) => {
                self.enter(owner, id, index, (frame, constant), value);
            }
            (Role::NextIteration, Some(value)) => self.next_iteration(owner, id, index, value),
            (Role::Exit, Some(value)) => {
                let instance = self.iterations[id as usize].instance;
                let instance = &mut self.instances[instance as usize];
                if instance.exits.contains(&index) {
                    return Err(left_twice());
                }
                instance.exits.push(index);
                let parent = instance.parent;
                self.deliver(parent, plan, index, Some(value), false);
            }
            _ => {}
        }
        Ok(())
    }

    /// Stores a value in another iteration and notifies the nodes that wait for it; `None` is a
    /// dead value.
    fn deliver(
        &mut self,
        target: u32,
        plan: &FramePlan,
        index: u32,
        value: Option<Crossing<'_>>,
        by_enter: bool,
    ) {
        let node = &plan.nodes[index as usize];
        let state = self.state(target);
        // SAFETY: the states live as long as `FrameState`, whose structure is held.
        let state = unsafe { state.as_ref() };
        let is_dead = value.is_none();
        if let Some(value) = value {
            let output = node.output;
            // SAFETY: the output belongs to the crossing node, whose successors have not been
            // notified yet.
            unsafe { value.show(state.slots.slot_mut(output), state.slots.value_mut(output)) };
        }
        for edge in node.edges.of(&plan.edges) {
            if let Some(dead) = state.arrive(edge, is_dead, by_enter) {
                self.arrived(target, edge.node, dead);
            }
        }
    }

    fn enter(
        &mut self,
        owner: &FrameState,
        id: u32,
        index: u32,
        (frame, constant): (u32, bool),
        value: Option<Crossing<'_>>,
    ) {
        let plan = owner.frame(self.iterations[id as usize].plan);
        let open = self.iterations[id as usize].children.iter().find(|child| child.0 == frame);
        let at = match open.map(|child| child.1) {
            Some(at) => at,
            None => self.open(owner, id, frame),
        };
        self.instances[at as usize].missing -= 1;
        if constant {
            let slot = value.as_ref().map(|value| value.slot);
            for position in 0..self.instances[at as usize].iterations.len() {
                let target = self.instances[at as usize].iterations[position];
                self.deliver(target, plan, index, slot.map(Crossing::from), true);
            }
            self.instances[at as usize].constants.push((index, slot.and_then(Passed::of)));
        } else {
            let target = self.instances[at as usize].iterations[0];
            self.deliver(target, plan, index, value, true);
        }
        let instance = &mut self.instances[at as usize];
        if instance.missing == 0 {
            instance.is_steady = instance.constants.iter().all(|(_, value)| value.is_some());
            self.entered(at);
            self.retire(owner, at);
        }
    }

    /// Opens a new instance of a frame, with its first iteration.
    fn open(&mut self, owner: &FrameState, parent: u32, plan: u32) -> u32 {
        let at = self.free_instances.pop().unwrap_or(self.instances.len() as u32);
        if at as usize == self.instances.len() {
            self.instances.push(Instance::default());
        }
        let state = self.state(parent);
        // SAFETY: the states live as long as `FrameState`, whose lock is held.
        let form = unsafe { &state.as_ref().form };
        let number = number_of(form.frame(), form.iteration(), owner.frame(plan).digest);
        let instance = &mut self.instances[at as usize];
        debug_assert!(instance.iterations.is_empty() && instance.constants.is_empty());
        instance.plan = plan;
        instance.parent = parent;
        instance.number = number;
        instance.first = 0;
        instance.is_steady = false;
        instance.missing = owner.frame(plan).enters;
        instance.holds = owner.runs_program(plan);
        instance.held.clear();
        self.record(parent).children.push((plan, at));
        self.start(owner, at);
        at
    }

    fn make(&mut self, owner: &FrameState, plan: u32) -> u32 {
        let id = self.iterations.len() as u32;
        let state = owner.make(plan, id);
        let children = Vec::new();
        self.iterations.push(Record { state, plan, instance: ROOT, tokens: 0, children });
        id
    }

    /// Starts the next iteration of an instance.
    fn start(&mut self, owner: &FrameState, at: u32) {
        let plan = self.instances[at as usize].plan;
        let free = self.free_iterations[plan as usize].pop();
        let id = free.unwrap_or_else(|| self.make(owner, plan));
        let record = self.record(id);
        let state = record.state;
        let is_same = std::mem::replace(&mut record.instance, at) == at;
        let instance = &mut self.instances[at as usize];
        let iteration = instance.first + instance.iterations.len() as u64;
        instance.iterations.push_back(id);
        let (number, parent) = (instance.number, instance.parent);
        // SAFETY: the states live as long as `FrameState`, and this one has no tokens.
        let state = unsafe { state.as_ref() };
        let is_steady = is_same && instance.is_steady && state.form.has_steady();
        state.start(number, iteration, is_steady);
        if is_steady {
            // The values for every iteration are still there from its last one.
            for &root in &owner.frame(plan).steady_roots {
                self.arrived(id, root, false);
            }
            return;
        }
        let constants = std::mem::take(&mut self.instances[at as usize].constants);
        let outer = owner.frame(self.iterations[parent as usize].plan);
        for (index, value) in &constants {
            let slot = value.as_ref().map(Passed::slot);
            self.deliver(id, outer, *index, slot.as_ref().map(Crossing::from), true);
        }
        self.instances[at as usize].constants = constants;
    }

    fn next_iteration(&mut self, owner: &FrameState, id: u32, index: u32, value: Crossing<'_>) {
        let at = self.iterations[id as usize].instance;
        let plan = owner.frame(self.iterations[id as usize].plan);
        let instance = &mut self.instances[at as usize];
        let position = instance.iterations.iter().position(|&other| other == id).unwrap_or(0) + 1;
        if position == instance.iterations.len() {
            if position >= plan.parallel {
                instance.waiting.extend(Passed::of(value.slot).map(|value| (index, value)));
                return;
            }
            self.start(owner, at);
        }
        let target = self.instances[at as usize].iterations[position];
        self.deliver(target, plan, index, Some(value), false);
    }

    /// Removes finished iterations in order, then the finished instance, then finished parents.
    fn retire(&mut self, owner: &FrameState, mut at: u32) {
        while at != ROOT {
            self.retire_iterations(owner, at);
            let instance = &self.instances[at as usize];
            if !instance.iterations.is_empty() || instance.missing > 0 {
                return;
            }
            let parent = instance.parent;
            self.close(owner, at);
            if self.iterations[parent as usize].tokens > 0 {
                return;
            }
            at = self.iterations[parent as usize].instance;
        }
    }

    fn retire_iterations(&mut self, owner: &FrameState, at: u32) {
        while let Some(&id) = self.instances[at as usize].iterations.front() {
            let record = &self.iterations[id as usize];
            let is_open = record.tokens > 0 || !record.children.is_empty();
            if is_open || self.instances[at as usize].missing > 0 {
                return;
            }
            let (state, plan) = (record.state, record.plan);
            let instance = &mut self.instances[at as usize];
            // SAFETY: the iteration has no tokens, so no thread uses its state.
            let state = unsafe { state.as_ref() };
            if instance.iterations.len() == 1 && instance.waiting.is_empty() {
                state.dead_exits(&mut instance.dead_exits);
                instance.dead_exits.retain(|exit| !instance.exits.contains(exit));
            }
            state.finish(&mut self.retired);
            instance.iterations.pop_front();
            instance.first += 1;
            self.free_iterations[plan as usize].push(id);
            self.start_waiting(owner, at);
        }
    }

    /// Starts the iteration that values wait for, now that one more may run.
    fn start_waiting(&mut self, owner: &FrameState, at: u32) {
        if self.instances[at as usize].waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.instances[at as usize].waiting);
        self.start(owner, at);
        let instance = &self.instances[at as usize];
        if let Some(&target) = instance.iterations.back() {
            let plan = owner.frame(self.iterations[target as usize].plan);
            for (index, value) in waiting.drain(..) {
                let slot = value.slot();
                self.deliver(target, plan, index, Some(Crossing::from(&slot)), false);
            }
        }
        self.instances[at as usize].waiting = waiting;
    }

    /// Closes an instance: `Exit` values that did not leave it are dead in the parent frame.
    fn close(&mut self, owner: &FrameState, at: u32) {
        self.release_steady(at);
        let instance = &mut self.instances[at as usize];
        instance.constants.clear();
        instance.exits.clear();
        let mut dead_exits = std::mem::take(&mut instance.dead_exits);
        let (parent, plan) = (instance.parent, owner.frame(instance.plan));
        self.record(parent).children.retain(|child| child.1 != at);
        for index in dead_exits.drain(..) {
            self.deliver(parent, plan, index, None, false);
        }
        self.instances[at as usize].dead_exits = dead_exits;
        self.free_instances.push(at);
    }

    /// Releases the values for every iteration of an instance of which no iteration is left.
    fn release_steady(&mut self, at: u32) {
        let plan = self.instances[at as usize].plan;
        for &id in &self.free_iterations[plan as usize] {
            let record = &self.iterations[id as usize];
            // SAFETY: the states live as long as `FrameState`, and a free one has no tokens.
            let state = unsafe { record.state.as_ref() };
            if record.instance == at && state.form.has_steady() {
                state.release_steady(&mut self.retired);
            }
        }
    }
}

fn left_twice() -> KernelError {
    KernelError::invalid_argument(
        "a value leaves its loop in more than one iteration: expected the output of a Switch that the \
         condition of the loop selects",
    )
}

/// The number of an instance, derived from the parent's number, the iteration there and the name.
/// It is the same in every partition and process, TensorFlow's included.
fn number_of(frame: u64, iteration: u64, name: u64) -> u64 {
    combined(frame, combined(iteration, name)).max(1)
}
