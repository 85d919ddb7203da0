//! Instances of frames and their iterations.
//!
//! Everything here changes under the lock of [`FrameState`]. Iterations stand in a table and are named by their
//! number in it; one that is done goes onto the free list of its plan, so that a loop in steady state makes no
//! new ones. Instances likewise.

use super::{FrameState, Iteration, RETIRED_BUFFERS, value::Passed};
use crate::plan::frames::{FramePlan, Role, counts::digest};
use std::{collections::VecDeque, ptr::NonNull};
use tenon_framework::tensor::Buffer;

/// The step itself: number of its iteration, and of its instance.
pub(super) const ROOT: u32 = 0;

/// A node to go on with; it is a token of its iteration.
pub(super) struct Woken {
    pub state: NonNull<Iteration>,
    pub iteration: u32,
    /// `None` for the roots of the step itself.
    pub node: Option<u32>,
    pub dead: bool,
}

// SAFETY: an iteration's state may be used from any thread that has a token of it.
unsafe impl Send for Woken {}

struct Record {
    state: NonNull<Iteration>,
    plan: u32,
    instance: u32,
    tokens: u32,
    /// Plans and instances of the frames that were entered from here and are open.
    children: Vec<(u32, u32)>,
}

// SAFETY: as for `Woken`.
unsafe impl Send for Record {}

#[derive(Default)]
struct Instance {
    plan: u32,
    /// The iteration from which it was entered.
    parent: u32,
    /// Number for keys and kernels.
    number: u64,
    /// Iterations that are not done, in order, and the number of the first.
    iterations: VecDeque<u32>,
    first: u64,
    /// `Enter` nodes that have not run.
    missing: u32,
    /// Values for every iteration, by the `Enter` that brought them; `None` is dead.
    constants: Vec<(u32, Option<Passed>)>,
    /// Values for the next iteration, which may not run yet, by the `NextIteration` that brought them.
    waiting: Vec<(u32, Passed)>,
    /// `Exit` nodes that were dead in the last iteration.
    dead_exits: Vec<u32>,
}

/// Instances of frames, their iterations, and what was woken in them.
pub(super) struct Structure {
    iterations: Vec<Record>,
    free_iterations: Vec<Vec<u32>>,
    instances: Vec<Instance>,
    free_instances: Vec<u32>,
    woken: VecDeque<Woken>,
    /// Buffers that work on the stream may still use.
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

    /// Makes the step's own iteration.
    pub fn make_root(&mut self, owner: &FrameState) {
        if self.iterations.is_empty() {
            self.make(owner, 0);
            self.instances[ROOT as usize].iterations.push_back(ROOT);
        }
    }

    /// The states that were made.
    pub fn states(&self) -> impl Iterator<Item = NonNull<Iteration>> {
        self.iterations.iter().map(|record| record.state)
    }

    pub fn state(&self, id: u32) -> NonNull<Iteration> {
        self.iterations[id as usize].state
    }

    fn record(&mut self, id: u32) -> &mut Record {
        &mut self.iterations[id as usize]
    }

    /// Begins a step.
    pub fn begin(&mut self) {
        let state = self.state(ROOT);
        // SAFETY: no node runs.
        unsafe { state.as_ref() }.start(0, 0);
        self.push(ROOT, None, false);
    }

    /// Ends a step: nothing runs, no frame is open.
    pub fn end(&mut self) {
        self.record(ROOT).tokens = 0;
        self.retired.clear();
    }

    /// The plan of a frame that is open.
    pub fn open_frame(&self) -> Option<u32> {
        self.iterations[ROOT as usize].children.first().map(|&(plan, _)| plan)
    }

    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    pub fn take_token(&mut self, id: u32) {
        self.record(id).tokens += 1;
    }

    /// Gives a token back: the iteration may be done by that.
    pub fn give_token(&mut self, owner: &FrameState, id: u32) {
        let record = self.record(id);
        record.tokens -= 1;
        if record.tokens == 0 && !owner.shared.is_stopped() {
            let instance = record.instance;
            self.retire(owner, instance);
        }
    }

    /// Gives back the token of what was done, and takes what was woken next; and buffers to be dropped, when
    /// there are too many.
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

    fn push(&mut self, id: u32, node: Option<u32>, dead: bool) {
        let record = self.record(id);
        record.tokens += 1;
        let woken = Woken { state: record.state, iteration: id, node, dead };
        self.woken.push_back(woken);
    }

    /// A node is ready, or dead.
    pub fn wake(&mut self, id: u32, node: u32, dead: bool) {
        self.push(id, Some(node), dead);
    }

    /// A node that leads from one iteration to another is done, with its value, or dead.
    pub fn cross(&mut self, owner: &FrameState, id: u32, index: u32, value: Option<Passed>) {
        let plan = owner.frame(self.iterations[id as usize].plan);
        match (plan.nodes[index as usize].role, value) {
            (Role::Enter { frame, constant }, value) => {
                self.enter(owner, id, index, (frame, constant), value);
            }
            (Role::NextIteration, Some(value)) => self.next_iteration(owner, id, index, value),
            (Role::Exit, Some(value)) => {
                let parent = self.instances[self.iterations[id as usize].instance as usize].parent;
                self.deliver(parent, plan, index, Some(&value), false);
            }
            (Role::Exit, None) => {
                // A loop that goes on after this iteration forgets it again.
                let instance = self.iterations[id as usize].instance;
                let instance = &mut self.instances[instance as usize];
                if instance.iterations.back() == Some(&id) {
                    instance.dead_exits.push(index);
                }
            }
            // A loop ends where its next iteration is dead.
            _ => {}
        }
    }

    /// Shows a value in another iteration and tells who waits for it there; `None` is dead.
    fn deliver(
        &mut self,
        target: u32,
        plan: &FramePlan,
        index: u32,
        value: Option<&Passed>,
        by_enter: bool,
    ) {
        let node = &plan.nodes[index as usize];
        let state = self.state(target);
        // SAFETY: states live as long as their owner, which calls.
        let state = unsafe { state.as_ref() };
        if let Some(value) = value {
            // SAFETY: the output belongs to the node that crosses, which nobody has been told of yet.
            unsafe { value.show(state.slot_mut(node.output), state.value_mut(node.output)) };
        }
        for edge in node.edges.of(&plan.edges) {
            if let Some(dead) = state.arrive(edge, value.is_none(), by_enter) {
                self.wake(target, edge.node, dead);
            }
        }
    }

    fn enter(
        &mut self,
        owner: &FrameState,
        id: u32,
        index: u32,
        (frame, constant): (u32, bool),
        value: Option<Passed>,
    ) {
        let plan = owner.frame(self.iterations[id as usize].plan);
        let open = self.iterations[id as usize].children.iter().find(|child| child.0 == frame);
        let at = match open.map(|child| child.1) {
            Some(at) => at,
            None => self.open(owner, id, frame),
        };
        self.instances[at as usize].missing -= 1;
        if constant {
            for position in 0..self.instances[at as usize].iterations.len() {
                let target = self.instances[at as usize].iterations[position];
                self.deliver(target, plan, index, value.as_ref(), true);
            }
            self.instances[at as usize].constants.push((index, value));
        } else {
            let target = self.instances[at as usize].iterations[0];
            self.deliver(target, plan, index, value.as_ref(), true);
        }
        if self.instances[at as usize].missing == 0 {
            self.retire(owner, at);
        }
    }

    /// A new instance of a frame, with its first iteration.
    fn open(&mut self, owner: &FrameState, parent: u32, plan: u32) -> u32 {
        let at = self.free_instances.pop().unwrap_or(self.instances.len() as u32);
        if at as usize == self.instances.len() {
            self.instances.push(Instance::default());
        }
        let state = self.state(parent);
        // SAFETY: states live as long as their owner.
        let form = unsafe { &state.as_ref().form };
        let number = number_of(form.frame(), form.iteration(), owner.frame(plan).digest);
        let instance = &mut self.instances[at as usize];
        debug_assert!(instance.iterations.is_empty() && instance.constants.is_empty());
        instance.plan = plan;
        instance.parent = parent;
        instance.number = number;
        instance.first = 0;
        instance.missing = owner.frame(plan).enters;
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
        self.record(id).instance = at;
        let instance = &mut self.instances[at as usize];
        let iteration = instance.first + instance.iterations.len() as u64;
        instance.iterations.push_back(id);
        instance.dead_exits.clear();
        let (number, parent) = (instance.number, instance.parent);
        let constants = std::mem::take(&mut instance.constants);
        let state = self.state(id);
        // SAFETY: states live as long as their owner; this one has no tokens.
        unsafe { state.as_ref() }.start(number, iteration);
        let outer = owner.frame(self.iterations[parent as usize].plan);
        for (index, value) in &constants {
            self.deliver(id, outer, *index, value.as_ref(), true);
        }
        self.instances[at as usize].constants = constants;
    }

    fn next_iteration(&mut self, owner: &FrameState, id: u32, index: u32, value: Passed) {
        let at = self.iterations[id as usize].instance;
        let plan = owner.frame(self.iterations[id as usize].plan);
        let instance = &mut self.instances[at as usize];
        let position = instance.iterations.iter().position(|&other| other == id).unwrap_or(0) + 1;
        if position == instance.iterations.len() {
            if position >= plan.parallel {
                instance.waiting.push((index, value));
                return;
            }
            self.start(owner, at);
        }
        let target = self.instances[at as usize].iterations[position];
        self.deliver(target, plan, index, Some(&value), false);
    }

    /// Takes away what is done: iterations from the first on, then the instance, then perhaps those around.
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
            // SAFETY: the iteration has no tokens.
            unsafe { state.as_ref() }.finish(&mut self.retired);
            let instance = &mut self.instances[at as usize];
            instance.iterations.pop_front();
            instance.first += 1;
            self.free_iterations[plan as usize].push(id);
            self.go_on(owner, at);
        }
    }

    /// Starts the iteration for which values wait, now that one may run.
    fn go_on(&mut self, owner: &FrameState, at: u32) {
        let mut waiting = std::mem::take(&mut self.instances[at as usize].waiting);
        if !waiting.is_empty() {
            self.start(owner, at);
            let instance = &self.instances[at as usize];
            if let Some(&target) = instance.iterations.back() {
                let plan = owner.frame(self.iterations[target as usize].plan);
                for (index, value) in waiting.drain(..) {
                    self.deliver(target, plan, index, Some(&value), false);
                }
            }
        }
        self.instances[at as usize].waiting = waiting;
    }

    /// Ends an instance: what did not come out of it is dead in the frame around.
    fn close(&mut self, owner: &FrameState, at: u32) {
        let instance = &mut self.instances[at as usize];
        instance.constants.clear();
        let mut dead_exits = std::mem::take(&mut instance.dead_exits);
        let (parent, plan) = (instance.parent, owner.frame(instance.plan));
        self.record(parent).children.retain(|child| child.1 != at);
        for index in dead_exits.drain(..) {
            self.deliver(parent, plan, index, None, false);
        }
        self.instances[at as usize].dead_exits = dead_exits;
        self.free_instances.push(at);
    }
}

/// The number of an instance, from that of the frame around, the iteration there and the name: the same in
/// every partition and process.
fn number_of(frame: u64, iteration: u64, name: u64) -> u64 {
    let parts = [frame, iteration, name];
    digest(parts.into_iter().flat_map(u64::to_le_bytes)).max(1)
}
