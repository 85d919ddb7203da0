//! Nodes that leave the thread: asynchronous and blocking kernels, jobs for the pool, transfers.

use super::{partition::PartitionState, propagate::Propagate, shared::StepShared};
use crate::{
    error::StepError,
    plan::{Action, Compute, Plan, node_flags},
};
use std::sync::{Arc, atomic::Ordering};
use tenon_abi::{Code, KernelState};
use tenon_framework::KernelError;
use tenon_host::call::{CallFrame, TraceSink, Watch, monotonic_ns};

/// The thread that runs nodes.
pub(crate) trait Thread {
    /// Whether it leaves costly nodes to the driver when that has nothing to do.
    const LEAVES: bool;
}

/// The thread that runs the step.
pub(crate) struct Driver;

/// A thread of the pool.
struct Elsewhere;

impl Thread for Driver {
    const LEAVES: bool = false;
}

impl Thread for Elsewhere {
    const LEAVES: bool = true;
}

/// A call that costs more is worth handing to another thread.
const HANDOFF_NS: u32 = 50_000;

/// Completion of an asynchronous call: puts its node into the step's inbox, or stops the step.
///
/// # Safety
/// `frame` is a frame of a partition's state whose step waits for this call.
pub(super) unsafe fn completed<P: Propagate>(frame: *mut CallFrame, code: Code) {
    // SAFETY: `settle` set the owner to the frame's state, and both live: the caller says that their step waits.
    let (frame, state) = unsafe { (&*frame, &*(*frame).owner.cast::<PartitionState<P>>()) };
    let index = frame.index;
    let mut ready = Vec::new();
    state.async_ends(index, code);
    if code.is_ok() {
        state.after(index, &mut ready);
    } else {
        let error = frame.take_error(code);
        frame.end();
        state.fail_node(index, &error);
    }
    P::lower(state, ready);
}

/// Whom the calls of a partition's state belong to, for those that are completed twice.
pub(super) struct Calls {
    pub plan: Arc<Plan>,
    pub shared: Arc<StepShared>,
}

impl Watch for Calls {
    fn completed_again(&self, index: u32, step: u64) -> bool {
        let node = &self.plan.nodes[index as usize];
        let kernel = node.instance.as_ref().map(|instance| instance.def().to_string());
        let error = KernelError::internal(format!(
            "{} completed its call twice: completion is called exactly once",
            kernel.as_deref().unwrap_or("the kernel")
        ));
        let device = self.plan.device.name().to_string();
        let error = StepError::node(&node.info.name, &node.info.op, &device, &node.plugin, &error);
        self.shared.fail_step(step, error)
    }
}

/// A call that a trace was told of, and that has not returned. It holds what it names: once the call is pending, whoever
/// completes it may end the step, and the state may go.
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

/// A partition's state on another thread; the step waits for what was raised before. The kernel may have been
/// chosen by shapes already.
struct Job<P: Propagate>(*const PartitionState<P>, u32, bool);

// SAFETY: the state may be shared between threads, and lives until the job has lowered what it raised.
unsafe impl<P: Propagate> Send for Job<P> {}

impl<P: Propagate> Job<P> {
    fn run(self) {
        // SAFETY: see the type.
        let state = unsafe { &*self.0 };
        let mut ready = Vec::new();
        if !state.shared.is_stopped() {
            if self.2 {
                state.run_chosen(self.1, &mut ready);
            } else if state.hot(self.1).flags & node_flags::ACTION != 0 {
                state.dispatch(self.1, &mut ready);
            } else {
                state.run_inline(self.1, &mut ready);
            }
            state.drain::<Elsewhere>(&mut ready);
        }
        P::lower(state, ready);
    }
}

impl<P: Propagate> PartitionState<P> {
    /// An asynchronous call begins.
    #[must_use = "it tells the trace when the call has returned"]
    fn async_begins(&self, index: u32) -> Option<TracedCall> {
        let entered = self.frame(index).env().trace.as_ref().map(|trace| {
            self.stream_begins(index);
            trace.enters(&self.node(index).info.name);
            TracedCall { trace: Arc::clone(trace), plan: Arc::clone(&self.plan), index }
        });
        self.began[index as usize].store(monotonic_ns(), Ordering::Relaxed);
        entered
    }

    /// An asynchronous call has ended.
    fn async_ends(&self, index: u32, code: Code) {
        let (began, ended) = (self.began[index as usize].load(Ordering::Relaxed), monotonic_ns());
        self.node(index).sample(ended.saturating_sub(began));
        let frame = self.frame(index);
        if let Some(trace) = &frame.env().trace {
            trace.span(&frame.node().name, "", began, ended);
            if code.is_ok() {
                // SAFETY: it has succeeded, and what follows takes its tensors.
                unsafe { frame.tell_tensors(&**trace) };
            }
            self.stream_ends(index);
        }
    }

    /// A node whose flags say that it does not just run here.
    pub(super) fn dispatch(&self, index: u32, ready: &mut Vec<u32>) {
        let flags = self.hot(index).flags;
        if flags & node_flags::EVENTS != 0 && !self.wait_for_streams(index) {
            return;
        }
        if flags & node_flags::ACTION != 0 {
            match &self.node(index).action {
                Action::Send(transfer) => self.send(index, transfer, ready),
                Action::Recv(transfer) => self.recv(index, transfer),
                Action::PerShape { table, at } => self.run_per_shape(index, table, *at, ready),
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

    /// Runs a kernel that may block on a thread that may.
    pub(super) fn spawn_blocking(&self, index: u32, chosen: bool) {
        P::raise(self);
        let job = Job(self, index, chosen);
        if let Err(error) = self.frame(index).env().pool.spawn_blocking(move || job.run()) {
            self.fail_node(index, &error);
            P::lower(self, Vec::new());
        }
    }

    /// Hands another costly ready node to the pool, when this one is costly too.
    pub(super) fn hand_over_beside(&self, index: u32, ready: &mut Vec<u32>) {
        if ready.is_empty() || self.frame(index).env().pool.threads() < 2 || !self.is_costly(index)
        {
            return;
        }
        let Some(at) = ready.iter().position(|&node| self.is_costly(node)) else { return };
        let node = ready.swap_remove(at);
        self.spawn(node);
    }

    /// Whether the step has taken its time.
    pub(super) fn past_deadline(&self) -> bool {
        let deadline = self.frames.first().map_or(0, |frame| frame.env().step.deadline_ns);
        deadline != 0 && monotonic_ns() >= deadline
    }

    /// Whether a node is worth handing to another thread. One with events waits for them where it is dispatched.
    fn is_costly(&self, node: u32) -> bool {
        self.hot(node).flags & node_flags::EVENTS == 0
            && self.node(node).cost_ns.load(Ordering::Relaxed) >= HANDOFF_NS
    }

    /// Whether a node that another thread is about to run goes back to the driver, which has nothing to do: this thread
    /// can help with the node's loops then. Else the driver would sleep until the step ends, one thread less for every
    /// loop.
    pub(super) fn goes_home(&self, index: u32) -> bool {
        self.shared.driver_waits() && self.is_costly(index)
    }

    /// Runs a costly node on the pool.
    fn spawn(&self, index: u32) {
        P::raise(self);
        let job = Job(self, index, false);
        self.frame(index).env().pool.spawn(move || job.run());
    }

    fn run_async(&self, index: u32, ready: &mut Vec<u32>) {
        // SAFETY: this thread owns the node, whose predecessors are done.
        if let Err(error) = unsafe { self.show_references(index) } {
            return self.fail_node(index, &error);
        }
        let node = self.hot(index);
        self.call_async(index, node.compute, node.state, ready);
    }

    /// Calls the asynchronous kernel of a node whose references are shown.
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
        P::raise(self);
        let entered = self.async_begins(index);
        // SAFETY: this thread owns the node, whose predecessors are done; a kernel's entry with its own state.
        // Once the call is pending, it belongs to whoever completes it.
        let code = unsafe {
            self.clear_outputs(index);
            self.plan_outputs(node);
            self.count(index);
            compute(state, frame.call())
        };
        drop(entered);
        if code == Code::PENDING {
            return;
        }
        if !frame.end_inline() {
            // It completed already, which lowered what was raised: returning a result too is an error.
            let error = KernelError::internal(
                "the kernel completed its call and returned a result too: it does one of both",
            );
            return self.fail_node(index, &error);
        }
        self.async_ends(index, code);
        if code.is_ok() {
            self.after(index, ready);
        } else {
            let error = frame.take_error(code);
            frame.end();
            self.fail_node(index, &error);
        }
        P::lower(self, Vec::new());
    }
}
