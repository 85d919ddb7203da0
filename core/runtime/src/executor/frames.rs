//! The frame-aware form of the executor: conditionals, loops, dead values.
//!
//! A partition with control flow has one plan for each of its frames (see [`crate::plan::frames`]), and one
//! [`PartitionState`] for every iteration that runs: its own slots, call frames and counts. Kernels, transfers
//! and checks are those of the acyclic form, since an iteration is a partition to them; only what happens when
//! a node is done differs (`iteration`).
//!
//! What crosses from one iteration to another (`Enter`, `Exit`, `NextIteration`) goes through [`structure`],
//! which knows the instances of frames and their iterations and is behind one lock. A node that becomes ready
//! by it goes onto the list `woken`, which the driver works off. As in TensorFlow (`propagator_state.h`):
//!
//! - an iteration is done when nothing of it runs, no inner frame is open and the iteration before is done
//!   (for the first: when every `Enter` has run);
//! - an instance of a frame is done when its iterations are; then its dead `Exit`s are dead in the frame around;
//! - at most `parallel_iterations` iterations run at once; what comes earlier for the next one waits.
//!
//! Who owns what: a *token* is a woken node, a thread that runs an iteration's nodes, or a node that was handed
//! to somebody else. While an iteration has tokens it is used, and its state belongs to them as in the acyclic
//! form. Without tokens it belongs to whoever holds the lock. States of done iterations are used again.

mod iteration;
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
use iteration::Framed;
use std::{
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use structure::{ROOT, Structure};
use tenon_abi::Code;
use tenon_framework::{
    Tensor,
    sync::{Mutex, Rank},
    tensor::Buffer,
};
use tenon_host::call::{StepEnv, Value};

/// The state of one iteration.
pub(super) type Iteration = PartitionState<Framed>;

/// The lock of the structure: over those of a step, of which it takes none but for what an iteration keeps alive.
const FRAMES: Rank = Rank(45);

/// On a stream, buffers of done iterations are kept until the stream is done, but not more than these.
const RETIRED_BUFFERS: usize = 4096;

/// The state of a partition with control flow in one step.
pub(crate) struct FrameState {
    /// The plan of the step itself, then those of the loops; and what each needs beyond.
    plans: Vec<Arc<Plan>>,
    frames: Vec<Arc<FramePlan>>,
    index: u32,
    env: *const StepEnv,
    shared: Arc<StepShared>,
    rendezvous: Arc<dyn Rendezvous>,
    /// One stream, on a device that has streams: iterations use each other's buffers in its order.
    streams: Option<Arc<StepStreams>>,
    tracing: AtomicU32,
    structure: Mutex<Structure>,
}

// SAFETY: see the ownership rule in the module's docs; `env` outlives the state and is shared as it is.
unsafe impl Send for FrameState {}
// SAFETY: as above.
unsafe impl Sync for FrameState {}

impl FrameState {
    /// State for steps over `plan`, that of the step itself. Its calls point to `env`, which stays where it is.
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
        let structure = Mutex::ranked(FRAMES, Structure::new(plans.len()));
        Arc::new(FrameState {
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

    /// Makes the state of the step itself.
    pub fn settle(&self) {
        self.structure.lock().make_root(self);
    }

    /// The iteration that is the step itself.
    fn root(&self) -> &Iteration {
        let root = self.structure.lock().state(ROOT);
        // SAFETY: states live as long as this object.
        unsafe { root.as_ref() }
    }

    /// Makes the state of an iteration, number `id` of the structure's table.
    fn make(&self, plan: u32, id: u32) -> NonNull<Iteration> {
        let form = Framed::new(self, id, Arc::clone(&self.frames[plan as usize]));
        let plan = Arc::clone(&self.plans[plan as usize]);
        let (shared, rendezvous) = (Arc::clone(&self.shared), Arc::clone(&self.rendezvous));
        let (index, env, streams) = (self.index, self.env, self.streams.clone());
        let state = PartitionState::new(plan, index, env, shared, rendezvous, streams, form);
        let state = NonNull::from(Box::leak(Box::new(state)));
        // SAFETY: nobody else knows the state yet, and it stays where it is.
        unsafe {
            (*state.as_ptr()).settle();
            (*state.as_ptr()).set_tracing(self.tracing.load(Ordering::Relaxed));
        }
        state
    }

    /// What the plan of a frame needs beyond the flat arrays.
    fn frame(&self, plan: u32) -> &FramePlan {
        &self.frames[plan as usize]
    }

    /// Asks the kernels for a trace, or not. No node runs.
    pub fn set_tracing(&self, tracing: u32) {
        self.tracing.store(tracing, Ordering::Relaxed);
        for state in self.structure.lock().states() {
            // SAFETY: no node runs.
            unsafe { (*state.as_ptr()).set_tracing(tracing) };
        }
    }

    /// Begins a step.
    pub fn begin(&self) {
        self.structure.lock().begin();
    }

    /// Runs what was woken, and what becomes ready by it, until nothing is left. `ready` is scratch: what is
    /// in it only said that something was woken.
    pub fn drain(&self, ready: &mut Vec<u32>) {
        ready.clear();
        let mut done = None;
        loop {
            let (woken, retired) = self.structure.lock().next(self, done.take());
            if !retired.is_empty() {
                self.drop_retired(retired);
            }
            let Some(woken) = woken else { return };
            // SAFETY: the iteration has a token, which was this entry of the list.
            let state = unsafe { woken.state.as_ref() };
            state.wake(woken.node, woken.dead, ready);
            state.drain::<Driver>(ready);
            done = Some(woken.iteration);
        }
    }

    /// Buffers that work on the stream may still use go back when it is done.
    fn drop_retired(&self, retired: Vec<Buffer>) {
        if let Some(streams) = &self.streams
            && let Err(error) = streams.synchronise()
        {
            self.shared.fail(StepError::device(self.plans[0].device.name(), &error));
        }
        drop(retired);
    }

    /// Why the step is not done although nothing runs any more: a loop waits for a value that never comes.
    pub fn stalled(&self) -> Option<StepError> {
        let frame = self.structure.lock().open_frame()?;
        let name = &self.frame(frame).name;
        let message = format!(
            "the loop '{name}' waits for a value that nothing gives: every Enter of a loop has to run, \
             and its Merge needs what NextIteration brings"
        );
        Some(StepError::step(Code::INVALID_ARGUMENT, message))
    }

    /// Ends a step.
    pub fn end(&self) {
        self.root().finish(&mut Vec::new());
        self.structure.lock().end();
    }

    /// Shows a fed tensor.
    ///
    /// # Safety
    /// No node runs.
    pub unsafe fn feed(&self, output: u32, tensor: &Tensor) {
        // SAFETY: no node runs, as the caller guarantees, hence none of the root iteration.
        unsafe { self.root().feed(output, tensor) };
    }

    /// The tensor of an output; `None` when it is dead.
    ///
    /// # Safety
    /// The step is done.
    pub unsafe fn fetch(&self, output: u32) -> Option<Tensor> {
        let root = self.root();
        let plan = root.form.plan();
        let writer = plan.writers[output as usize];
        if writer != FramePlan::NOBODY {
            let count = root.form.count(writer);
            let is_merge = plan.nodes[writer as usize].role == Role::Merge;
            if counts::is_dead(count) || !counts::is_complete(is_merge, count) {
                return None;
            }
        }
        // SAFETY: the step is done, as the caller guarantees, so that nobody writes the output.
        Value::tensor(unsafe { root.slot_mut(output) })
    }
}

impl Drop for FrameState {
    fn drop(&mut self) {
        for state in self.structure.lock().states() {
            // SAFETY: it was leaked in `make`; nothing runs any more.
            drop(unsafe { Box::from_raw(state.as_ptr()) });
        }
    }
}
