//! Runs the program of a frame: its nodes in order, on one thread, without arrivals (see [`crate::plan::frames::program`]).
//!
//! A loop runs in two states in turns, so that the buffers of one iteration stay as they are while the next one reads
//! them: a value that a kernel wrote into its planned buffer is shown to the next iteration without a reference. The
//! thread has the token of the running iteration, and hands it from state to state.
//!
//! A loop is left to the propagation of arrivals between two iterations when other threads could help with its nodes.

use super::{
    FrameState, Iteration,
    iteration::not_set,
    value::{Crossing, is_set},
};
use crate::{
    executor::step::deadline_error,
    plan::{
        frames::{
            FrameInput,
            program::{ALWAYS, Program, Step, Task, Turn},
        },
        node_flags,
    },
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tenon_framework::KernelError;

/// Looks for costly nodes are this many steps, or iterations, apart.
const LOOK_EVERY: u32 = 16;

/// Whether some node of a plan was costly at the last look.
#[derive(Default)]
pub(super) struct Help {
    asked: AtomicU32,
    is_costly: AtomicBool,
}

impl FrameState {
    /// Whether the frame of this plan runs by its program now.
    pub(super) fn runs_program(&self, plan: u32) -> bool {
        self.frame(plan).program.is_some()
            && self.tracing.load(Ordering::Relaxed) == 0
            && !self.has_help(plan)
    }

    /// Whether other threads could run nodes of the frame of this plan at the same time.
    fn has_help(&self, plan: u32) -> bool {
        // SAFETY: the environment outlives the state.
        if unsafe { &*self.env }.pool.threads() < 2 {
            return false;
        }
        let help = &self.help[plan as usize];
        let asked = help.asked.load(Ordering::Relaxed);
        help.asked.store(asked.wrapping_add(1), Ordering::Relaxed);
        if asked.is_multiple_of(LOOK_EVERY) {
            let is_costly = self.plans[plan as usize].nodes.iter().any(|node| node.is_costly());
            help.is_costly.store(is_costly, Ordering::Relaxed);
        }
        help.is_costly.load(Ordering::Relaxed)
    }

    /// Runs the program of an iteration of which the caller has the token; returns the iteration of which it has the
    /// token afterwards.
    pub(super) fn run_program(&self, id: u32) -> u32 {
        let state = self.iteration(id);
        let Some(program) = &state.form.plan().program else { return id };
        match &program.turn {
            Some(turn) => self.run_loop(id, program, turn),
            None => {
                state.run(program, true);
                id
            }
        }
    }

    /// The state of an iteration.
    fn iteration(&self, id: u32) -> &Iteration {
        let state = self.structure().state(id);
        // SAFETY: the states are freed only when this object is dropped.
        unsafe { state.as_ref() }
    }

    /// Runs the iterations of a loop from this one on, the first.
    fn run_loop(&self, first: u32, program: &Program, turn: &Turn) -> u32 {
        let (mut id, mut spare) = (first, None);
        let mut state = self.iteration(first);
        loop {
            if !state.run(program, spare.is_none()) {
                break;
            }
            let goes_on = state.is_live(turn.continues);
            if !goes_on || self.has_help(state.form.number) {
                self.structure().end_program(id, spare);
                state.cross_all(if goes_on { &turn.nexts } else { &turn.exits });
                break;
            }
            let next_id = self.structure().turn(self, id, spare);
            let next = self.iteration(next_id);
            if !state.hand_over(&turn.nexts, next) {
                break;
            }
            (spare, id, state) = (Some(id), next_id, next);
        }
        id
    }
}

impl Iteration {
    /// Whether a class of the program is live.
    pub(super) fn is_live(&self, class: u32) -> bool {
        self.form.live[class as usize].load(Ordering::Relaxed)
    }

    fn set_live(&self, class: u32) {
        self.form.live[class as usize].store(true, Ordering::Relaxed);
    }

    /// Runs the nodes of the program once; returns false if the step was stopped.
    pub(super) fn run(&self, program: &Program, first: bool) -> bool {
        self.form.live.iter().for_each(|live| live.store(false, Ordering::Relaxed));
        self.set_live(ALWAYS);
        let alone = self.is_alone();
        let (mut tick, mask) = self.sampling();
        let mut at = 0;
        while let Some(step) = program.steps.get(at) {
            if !self.is_live(step.class) {
                at = self.leave_out(step, at, alone);
                continue;
            }
            at += 1;
            tick = tick.wrapping_add(1);
            let measured = tick & mask == 0;
            if self.shared.is_stopped() || (measured && self.is_late()) {
                return false;
            }
            if let Err(error) = self.step(program, step, first, measured, alone) {
                self.fail_node(step.node, &error);
                return false;
            }
        }
        true
    }

    /// Stops the step if its deadline has passed; returns whether it has.
    fn is_late(&self) -> bool {
        let late = self.past_deadline();
        if late {
            self.shared.fail(deadline_error());
        }
        late
    }

    /// Leaves a step out whose class is dead; returns the position of the next one.
    fn leave_out(&self, step: &Step, at: usize, alone: bool) -> usize {
        if !step.releases {
            return step.next as usize;
        }
        self.slots.release_inputs(self.hot(step.node), alone);
        let node = self.form.node(step.node);
        if let Some(input) = node.inputs.of(&self.form.plan().inputs).first()
            && input.counted
        {
            self.slots.release_input(input.output, alone);
        }
        at + 1
    }

    #[inline(always)]
    fn step(
        &self,
        program: &Program,
        step: &Step,
        first: bool,
        measured: bool,
        alone: bool,
    ) -> Result<(), KernelError> {
        let node = self.form.node(step.node);
        match step.task {
            Task::Node => return self.perform(step.node, measured, alone),
            Task::Pass => self.pass(self.form.input(node, 0), node.output)?,
            Task::Switch(classes) => {
                let taken = self.selected(self.form.input(node, 1).output, step.node)?;
                self.pass(self.form.input(node, 0), node.output + taken)?;
                self.set_live(classes + taken);
            }
            Task::Merge { inputs, class } => {
                let classes = inputs.of(&program.merged);
                let live = classes.iter().position(|&class| self.is_live(class));
                // A class that several imply may be live although none of them is.
                let Some(input) = live else { return Ok(()) };
                let input = input as u32;
                self.merge(self.form.input(node, input), input, node)?;
                self.set_live(class);
            }
            Task::Loop { enter, next } => {
                let input = if first { enter } else { next };
                self.merge(self.form.input(node, input), input, node)?;
            }
            Task::Both { with, class } => {
                if self.is_live(with) {
                    self.set_live(class);
                }
                return Ok(());
            }
        }
        self.count_call(step.node, alone);
        self.slots.release_inputs(self.hot(step.node), alone);
        Ok(())
    }

    /// Runs a node that does not forward.
    #[inline(always)]
    fn perform(&self, index: u32, measured: bool, alone: bool) -> Result<(), KernelError> {
        let node = self.hot(index);
        self.count_call(index, alone);
        if node.flags & node_flags::FORWARD == 0 {
            if measured {
                self.compute_measured(index)?;
            } else if node.flags == 0 {
                self.compute_plain(index, node)?;
            } else if node.flags & node_flags::PASSES == 0 || !self.pass_on(index) {
                self.compute_checked(index)?;
            }
        }
        self.slots.release_inputs(node, alone);
        Ok(())
    }

    /// Runs the nodes that lead out of the iteration; its value is that of its first input.
    fn cross_all(&self, nodes: &[u32]) {
        for &index in nodes {
            self.count_call(index, self.is_alone());
            let input = self.form.input(self.form.node(index), 0);
            if let Err(error) = self.cross(index, self.hot(index), input) {
                return self.fail_node(index, &error);
            }
        }
    }

    /// Hands the values for the next iteration over to its state, and ends this one. Returns false if the step was
    /// stopped.
    fn hand_over(&self, nodes: &[u32], next: &Iteration) -> bool {
        let alone = self.is_alone();
        for &index in nodes {
            self.count_call(index, alone);
            let node = self.form.node(index);
            if let Err(error) = self.show(self.form.input(node, 0), next, node.output, alone) {
                self.fail_node(index, &error);
                return false;
            }
        }
        self.finish(&mut Vec::new());
        true
    }

    /// Shows a value in an output of the next iteration. A planned buffer is not written again before that iteration has
    /// ended, so it is shown without a reference.
    fn show(
        &self,
        from: FrameInput,
        next: &Iteration,
        to: u32,
        alone: bool,
    ) -> Result<(), KernelError> {
        let FrameInput { output, counted } = from;
        // SAFETY: the node that wrote the value is done, and this thread runs both iterations.
        let (slot, shown, value) =
            unsafe { (self.slots.slot(output), next.slots.slot_mut(to), next.slots.value_mut(to)) };
        if !is_set(slot) {
            return Err(not_set());
        }
        if self.plan.outputs[output as usize].planned {
            value.lend(shown, slot);
            return Ok(());
        }
        // SAFETY: the node reads the value, whose readers are counted, and needs only the slot after this.
        let owner = if counted { unsafe { self.slots.take_over(output) } } else { None };
        Crossing { slot, owner }.show(shown, value);
        if counted {
            self.slots.release_input(output, alone);
        }
        Ok(())
    }
}
