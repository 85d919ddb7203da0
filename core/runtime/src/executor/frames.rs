//! The executor for control flow: conditionals, loops and dead values.
//!
//! A partition with control flow has one plan for each of its frames (see [`crate::plan::frames`]),
//! and one [`PartitionState`] for every running iteration, with its own slots, call frames and
//! counts. Kernels, transfers and checks are shared with the acyclic form, since an iteration is a
//! partition to them; only the propagation after a node differs (`iteration`).
//!
//! A value that passes from one iteration to another (`Enter`, `Exit`, `NextIteration`) goes
//! through [`structure`], which has the frame instances and their iterations, behind one lock (see
//! [`guarded`]). A node that becomes ready there is put on the list `woken`, from which the driver
//! runs it. As in TensorFlow (`propagator_state.h`):
//!
//! - an iteration is done when none of its nodes runs, no inner frame is open and the previous
//!   iteration is done (for the first: when every `Enter` has run);
//! - a frame instance is done when its iterations are; its dead `Exit`s are then dead in the parent
//!   frame;
//! - at most `parallel_iterations` iterations run at once; values for a later one wait.
//!
//! A frame whose nodes one thread can run in order has a program ([`program`]), which needs none of this.
//!
//! Ownership: a *token* is a woken node, a thread that runs an iteration's nodes, or a node that
//! was handed to another thread. While an iteration has tokens, its state belongs to their holders
//! as in the acyclic form. Without tokens, it belongs to the holder of the structure. The states of
//! finished iterations are reused; they keep the values that enter every iteration until the loop
//! ends.

mod forward;
mod guarded;
mod iteration;
mod program;
mod structure;
mod value;

use super::{
    dispatch::Driver, partition::PartitionState, shared::StepShared, streams::StepStreams,
};
use crate::{
    error::StepError,
    plan::{
        Plan,
        frames::{FramePlan, Role, counts},
    },
    rendezvous::Rendezvous,
};
use guarded::{Guarded, Held};
use iteration::Framed;
use program::Help;
use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use structure::{ROOT, Start, Structure};
use tenon_abi::{Code, Slot};
use tenon_framework::{KernelError, Tensor, tensor::Buffer};
use tenon_host::call::StepEnv;

/// The state of one iteration.
pub(super) type Iteration = PartitionState<Framed>;

/// The maximum number of buffers of finished iterations that are kept until the stream is done.
const RETIRED_BUFFERS: usize = 4096;

/// The state of a partition with control flow in one step.
pub(crate) struct FrameState {
    /// The plan of the root frame, then those of the loops; `frames` has the additional data of
    /// each.
    plans: Vec<Arc<Plan>>,
    frames: Vec<Arc<FramePlan>>,
    index: u32,
    env: *const StepEnv,
    shared: Arc<StepShared>,
    rendezvous: Arc<dyn Rendezvous>,
    /// On a device with streams there is one stream, so iterations can reuse buffers in its order.
    streams: Option<Arc<StepStreams>>,
    tracing: AtomicU32,
    /// Whether other threads could help with the nodes of each plan.
    help: Box<[Help]>,
    structure: Guarded,
}

// SAFETY: the module's ownership rule prevents concurrent access to an iteration's state; `env`
// outlives the state and is only shared.
unsafe impl Send for FrameState {}
// SAFETY: as for `Send`.
unsafe impl Sync for FrameState {}

impl FrameState {
    /// Creates the state for steps over `plan`, the plan of the root frame. Its calls point to
    /// `env`, which must not move.
    pub fn new(
        plan: Arc<Plan>,
        index: u32,
        env: *const StepEnv,
        shared: Arc<StepShared>,
        rendezvous: Arc<dyn Rendezvous>,
        streams: Option<Arc<StepStreams>>,
    ) -> Arc<FrameState> {
        let plans: Vec<_> =
            [Arc::clone(&plan)].into_iter().chain(plan.inner.iter().cloned()).collect();
        let frames: Vec<_> = plans.iter().filter_map(|plan| plan.frame.clone()).collect();
        debug_assert!(frames.len() == plans.len());
        let structure = Guarded::new(Structure::new(plans.len()));
        Arc::new(FrameState {
            help: plans.iter().map(|_| Help::default()).collect(),
            plans,
            frames,
            index,
            env,
            shared,
            rendezvous,
            streams,
            tracing: AtomicU32::new(0),
            structure,
        })
    }

    /// The structure, for the calling thread alone.
    #[inline(always)]
    fn structure(&self) -> Held<'_> {
        // SAFETY: as long as the shared part is untouched, one thread at a time works on the step,
        // each after the one before; and no holder of the structure asks for it again, or hands work
        // to another thread.
        unsafe { self.structure.hold(self.shared.is_untouched()) }
    }

    /// Creates the state of the root iteration.
    pub fn settle(&self) {
        self.structure().make_root(self);
    }

    /// The root iteration.
    fn root(&self) -> &Iteration {
        let root = self.structure().state(ROOT);
        // SAFETY: the states are freed only when this object is dropped.
        unsafe { root.as_ref() }
    }

    /// Creates the state of an iteration with number `id` in the structure's table.
    fn make(&self, plan: u32, id: u32) -> NonNull<Iteration> {
        let form = Framed::new(self, (plan, id), Arc::clone(&self.frames[plan as usize]));
        let plan = Arc::clone(&self.plans[plan as usize]);
        let (shared, rendezvous) = (Arc::clone(&self.shared), Arc::clone(&self.rendezvous));
        let (index, env, streams) = (self.index, self.env, self.streams.clone());
        let state = PartitionState::new(plan, index, env, shared, rendezvous, streams, form);
        let state = NonNull::from(Box::leak(Box::new(state)));
        // SAFETY: the state was just allocated, so no other thread uses it, and it never moves.
        unsafe {
            (*state.as_ptr()).settle();
            (*state.as_ptr()).set_tracing(self.tracing.load(Ordering::Relaxed));
        }
        state
    }

    /// The additional plan data of a frame.
    fn frame(&self, plan: u32) -> &FramePlan {
        &self.frames[plan as usize]
    }

    /// Sets whether kernels report to a trace. No node may be running.
    pub fn set_tracing(&self, tracing: u32) {
        self.tracing.store(tracing, Ordering::Relaxed);
        for state in self.structure().states() {
            // SAFETY: no node runs, so the states are not in use.
            unsafe { (*state.as_ptr()).set_tracing(tracing) };
        }
    }

    /// Starts a step.
    pub fn begin(&self) {
        self.structure().begin(self);
    }

    /// Runs the woken nodes, and the nodes that become ready in turn, until none is left. `ready`
    /// is scratch space; its entries only signal that nodes were woken.
    pub fn drain(&self, ready: &mut Vec<u32>) {
        ready.clear();
        let mut done = None;
        loop {
            let (woken, retired) = self.structure().next(self, done.take());
            if !retired.is_empty() {
                self.drop_retired(retired);
            }
            let Some(woken) = woken else { return };
            // SAFETY: the entry was a token of the iteration, so its state is alive and in use by
            // this thread.
            let state = unsafe { woken.state.as_ref() };
            let (node, dead) = match woken.start {
                Start::Program => {
                    done = Some(self.run_program(woken.iteration));
                    continue;
                }
                Start::Roots => (None, false),
                Start::Node { node, dead } => (Some(node), dead),
            };
            state.wake(node, dead, ready);
            state.drain::<Driver>(ready);
            done = Some(woken.iteration);
        }
    }

    /// Drops retired buffers once the stream is done with them.
    fn drop_retired(&self, retired: Vec<Buffer>) {
        if let Some(streams) = &self.streams
            && let Err(error) = streams.synchronise()
        {
            self.shared.fail(StepError::device(self.plans[0].device.name(), &error));
        }
        drop(retired);
    }

    /// The error if the step cannot finish: a loop waits for a value that never arrives.
    pub fn stalled(&self) -> Option<StepError> {
        let frame = self.structure().open_frame()?;
        let name = &self.frame(frame).name;
        let message = format!(
            "the loop '{name}' waits for a value that never arrives: every Enter of a loop must run, \
             and its Merge needs the value of NextIteration"
        );
        Some(StepError::step(Code::INVALID_ARGUMENT, message))
    }

    /// Ends a step.
    pub fn end(&self) {
        self.root().finish(&mut Vec::new());
        let mut structure = self.structure();
        structure.end();
        self.count_calls(&structure);
    }

    /// Counts the calls of all nodes in the plans.
    fn count_calls(&self, structure: &Structure) {
        for state in structure.states() {
            // SAFETY: the states live as long as this object.
            unsafe { state.as_ref() }.count_calls();
        }
    }

    /// Stores a fed value, which a slot shows, in its output; returns false if the slot shows none.
    ///
    /// # Safety
    /// - No node of the partition may run during the call.
    /// - `output` must be the number of an output of the root frame's plan.
    pub unsafe fn feed(&self, output: u32, fed: &Slot) -> bool {
        // SAFETY: no node runs, as the caller guarantees.
        unsafe { self.root().slots.feed(output, fed) }
    }

    /// The tensor of an output; `None` if it is dead.
    ///
    /// # Safety
    /// - The step must be done, so that no node runs.
    /// - `output` must be the number of an output of the root frame's plan.
    pub unsafe fn fetch(&self, output: u32) -> Result<Option<Tensor>, KernelError> {
        let root = self.root();
        let plan = root.form.plan();
        let writer = plan.writers[output as usize];
        if let Some(class) = root.form.class(output) {
            if !root.is_live(class) {
                return Ok(None);
            }
        } else if writer != FramePlan::NONE {
            let count = root.form.count(writer);
            let is_merge = plan.nodes[writer as usize].role == Role::Merge;
            if counts::is_dead(count) || !counts::is_complete(is_merge, count) {
                return Ok(None);
            }
        }
        // SAFETY: the step is done, as the caller guarantees, so the node that writes the output is.
        unsafe { root.slots.fetch(output, &self.shared.cancellation) }
    }
}

impl Drop for FrameState {
    fn drop(&mut self) {
        let structure = self.structure();
        self.count_calls(&structure);
        for state in structure.states() {
            // SAFETY: `make` leaked the box, and no node runs any more.
            drop(unsafe { Box::from_raw(state.as_ptr()) });
        }
    }
}
