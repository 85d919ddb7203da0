//! Nodes that do not simply run on the current thread: asynchronous and blocking kernels, jobs for
//! the pool, transfers.

use super::{
    partition::PartitionState,
    propagate::{Propagate, Waiting},
    shared::StepShared,
};
use crate::{
    error::StepError,
    plan::{Action, Compute, Plan, PlanNode, node_flags},
};
use std::sync::{Arc, atomic::Ordering};
use tenon_abi::{Code, KernelState};
use tenon_framework::KernelError;
use tenon_host::call::{CallFrame, TraceSink, Watch, monotonic_ns};

/// The kind of thread that runs nodes.
pub(crate) trait Thread {
    /// Whether the thread returns costly nodes to the driver while that is idle.
    const RETURNS_COSTLY_NODES: bool;
}

/// The thread that runs the step.
pub(crate) struct Driver;

/// A thread of the pool.
struct PoolThread;

impl Thread for Driver {
    const RETURNS_COSTLY_NODES: bool = false;
}

impl Thread for PoolThread {
    const RETURNS_COSTLY_NODES: bool = true;
}

/// Completes an asynchronous call: puts the ready nodes into the step's inbox, or stops the step. If the thread that
/// started the call has not left it yet, that thread does both.
///
/// # Safety
/// - `frame` must be a call frame that [`PartitionState::settle`] has set up.
/// - The call must not have been completed yet, so that frame and state are alive.
/// - No other thread may complete the same call.
pub(super) unsafe fn completed<P: Propagate>(frame: *mut CallFrame, code: Code) {
    // SAFETY: `settle` set the owner to the state that contains the frame. Both are alive, since
    // the step waits for this call, as the caller guarantees.
    let (frame, state) = unsafe { (&*frame, &*(*frame).owner.cast::<PartitionState<P>>()) };
    let index = frame.index;
    if !frame.handover().arrives(code) {
        return;
    }
    let mut ready = Vec::new();
    state.conclude_async(index, code, &mut ready);
    P::lower(state, ready);
}

/// The step that a partition's calls belong to, for reporting a call that completes twice.
pub(super) struct Calls {
    pub plan: Arc<Plan>,
    pub shared: Arc<StepShared>,
}

/// The error of a node whose kernel completed a call twice.
#[cold]
fn twice(node: &PlanNode) -> KernelError {
    let kernel = node.instance.as_ref().map(|instance| instance.def().to_string());
    KernelError::internal(format!(
        "{} completed its call twice: completion is called exactly once",
        kernel.as_deref().unwrap_or("the kernel")
    ))
}

impl Watch for Calls {
    fn completed_again(&self, index: u32, step: u64) -> bool {
        let node = &self.plan.nodes[index as usize];
        let error = twice(node);
        let device = self.plan.device.name().to_string();
        let error = StepError::node(&node.info.name, &node.info.op, &device, &node.plugin, &error);
        self.shared.fail_step(step, error)
    }
}

/// A started call that was reported to a trace and has not returned. It keeps the plan and the
/// trace alive, since once the call is pending, its completion may end the step and free the state.
struct TracedCall {
    trace: Arc<dyn TraceSink>,
    plan: Arc<Plan>,
    index: u32,
}

impl Drop for TracedCall {
    fn drop(&mut self) {
        self.trace.leaves(&self.plan.nodes[self.index as usize].info.name);
    }
}

/// A node of a partition's state to be run on another thread. The caller has raised the count of
/// outstanding work, so the step waits. The flag tells that the kernel was already chosen by
/// shapes.
struct Job<P: Propagate>(Waiting<P>, u32, bool);

impl<P: Propagate> Job<P> {
    fn run(self) {
        let state = self.0.state();
        let mut ready = Vec::new();
        if !state.shared.is_stopped() {
            if self.2 {
                state.run_chosen(self.1, &mut ready);
            } else if state.hot(self.1).flags & node_flags::ACTION != 0 {
                state.dispatch(self.1, &mut ready);
            } else {
                state.run_inline(self.1, &mut ready);
            }
            state.drain::<PoolThread>(&mut ready);
        }
        P::lower(state, ready);
    }
}

impl<P: Propagate> PartitionState<P> {
    /// Starts an asynchronous call.
    #[must_use = "it tells the trace when the call has returned"]
    fn async_begins(&self, index: u32) -> Option<TracedCall> {
        let entered = self.frame(index).env().trace.as_ref().map(|trace| {
            self.lanes.begins(index);
            trace.enters(&self.node(index).info.name);
            TracedCall { trace: Arc::clone(trace), plan: Arc::clone(&self.plan), index }
        });
        let began =
            if entered.is_some() || self.is_async_measured(index) { monotonic_ns() } else { 0 };
        self.began[index as usize].store(began, Ordering::Relaxed);
        entered
    }

    /// Ends an asynchronous call.
    fn async_ends(&self, index: u32, code: Code) {
        let began = self.began[index as usize].load(Ordering::Relaxed);
        if began == 0 {
            return;
        }
        let ended = monotonic_ns();
        self.node(index).sample(ended.saturating_sub(began));
        let frame = self.frame(index);
        if let Some(trace) = &frame.env().trace {
            trace.span(&frame.node().name, "", began, ended);
            if code.is_ok() {
                // SAFETY: the call has succeeded, and its tensors are not released before its
                // successors are notified.
                unsafe { frame.tell_tensors(&**trace) };
            }
            self.lanes.ends(index, trace);
        }
    }

    /// Runs a node with flags that take it off the fast path.
    pub(super) fn dispatch(&self, index: u32, ready: &mut Vec<u32>) {
        let flags = self.hot(index).flags;
        if flags & node_flags::EVENTS != 0
            && let Err(error) = self.lanes.wait(index)
        {
            return self.fail_node(index, &error);
        }
        if flags & node_flags::ACTION != 0 {
            match &self.node(index).action {
                Action::Send(transfer) => self.send(index, transfer, ready),
                Action::Recv(transfer) => self.recv(index, transfer),
                Action::PerShape { table, at } => self.run_per_shape(index, table, *at, ready),
                Action::Call(function) => self.call_function(index, *function, ready),
                Action::Kernel | Action::Nothing => self.propagate(index, ready),
            }
        } else if flags & node_flags::ASYNC != 0 {
            self.run_async(index, ready);
        } else if flags & node_flags::BLOCKING == 0 {
            self.run_inline(index, ready);
        } else {
            self.spawn_blocking(index, false);
        }
    }

    /// Runs a blocking kernel on a thread that may block.
    pub(super) fn spawn_blocking(&self, index: u32, chosen: bool) {
        P::raise(self);
        let job = Job(Waiting::new(self), index, chosen);
        if let Err(error) = self.frame(index).env().pool.spawn_blocking(move || job.run()) {
            self.fail_node(index, &error);
            P::lower(self, Vec::new());
        }
    }

    /// Hands another costly ready node to the pool if this node is costly too.
    pub(super) fn hand_over_beside(&self, index: u32, ready: &mut Vec<u32>) {
        if ready.is_empty() || self.frame(index).env().pool.threads() < 2 || !self.is_costly(index)
        {
            return;
        }
        let Some(at) = ready.iter().position(|&node| self.is_costly(node)) else { return };
        let node = ready.swap_remove(at);
        self.spawn(node);
    }

    /// Whether the deadline of the step has passed.
    pub(super) fn past_deadline(&self) -> bool {
        let deadline = self.frames.first().map_or(0, |frame| frame.env().step.deadline_ns);
        deadline != 0 && monotonic_ns() >= deadline
    }

    /// Whether a node is worth handing to another thread. A node with events is not: it waits for
    /// them in `dispatch`.
    pub(super) fn is_costly(&self, node: u32) -> bool {
        self.hot(node).flags & node_flags::EVENTS == 0 && self.node(node).is_costly()
    }

    /// Whether a pool thread should return a node to the idle driver. The pool thread can then help
    /// with the node's parallel loops; otherwise the driver would sleep until the step ends, and
    /// every loop would have one thread less.
    pub(super) fn returns_to_driver(&self, index: u32) -> bool {
        self.shared.driver_waits() && self.is_costly(index)
    }

    /// Runs a costly node on the pool.
    fn spawn(&self, index: u32) {
        P::raise(self);
        let job = Job(Waiting::new(self), index, false);
        self.frame(index).env().pool.spawn(move || job.run());
    }

    fn run_async(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: the node is ready and this thread runs it, so it owns the node, and the
        // predecessors are done.
        if let Err(error) = unsafe { self.slots.show_references(index, &self.shared.cancellation) }
        {
            return self.fail_node(index, &error);
        }
        let node = self.hot(index);
        self.call_async(index, node.compute, node.state, ready);
    }

    /// Calls the asynchronous kernel of a node whose references are already resolved.
    pub(super) fn call_async(
        &self,
        index: u32,
        compute: Compute,
        state: *mut KernelState,
        ready: &mut Vec<u32>,
    ) {
        let (node, frame) = (self.hot(index), self.frame(index));
        if !frame.begin_async() {
            let error = KernelError::internal("an earlier call of this node is still running");
            return self.fail_node(index, &error);
        }
        let entered = self.async_begins(index);
        // SAFETY: the node is ready and this thread runs it; `compute` and `state` belong to the
        // same kernel. Once the call is pending, the completing thread owns the node.
        let code = unsafe {
            self.slots.clear_outputs(index);
            self.slots.plan_outputs(node);
            self.count(index);
            compute(state, frame.call())
        };
        if code == Code::PENDING {
            return self.leave_async(index, entered, ready);
        }
        drop(entered);
        if !frame.end_inline() {
            // The call has completed already: returning a result as well is an error.
            let error = KernelError::internal(
                "the kernel completed its call and also returned a result: it must do only one",
            );
            return self.fail_node(index, &error);
        }
        self.conclude_async(index, code, ready);
    }

    /// Leaves a call that has not returned a result to the thread that completes it, unless it is completed already.
    fn leave_async(&self, index: u32, entered: Option<TracedCall>, ready: &mut Vec<u32>) {
        let handover = self.frame(index).handover();
        let waits = !handover.is_done();
        if waits {
            // Once the call is left, its completion lowers the count.
            P::raise(self);
        }
        let code = handover.waits();
        drop(entered);
        let Some(code) = code else { return };
        // The step had no outstanding work then, so that it could not fail at once.
        if self.frame(index).was_completed_again() {
            self.fail_node(index, &twice(self.node(index)));
        }
        self.conclude_async(index, code, ready);
        if waits {
            P::lower(self, Vec::new());
        }
    }

    /// Handles an asynchronous call that is done.
    fn conclude_async(&self, index: u32, code: Code, ready: &mut Vec<u32>) {
        self.async_ends(index, code);
        self.conclude(index, self.outcome(index, code), ready);
    }
}
