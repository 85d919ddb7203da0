//! Nodes that leave the thread: asynchronous and blocking kernels, jobs for the pool, transfers.

use super::{partition::PartitionState, propagate::Propagate};
use crate::plan::{Action, node_flags};
use std::sync::atomic::Ordering;
use tenon_abi::Code;
use tenon_framework::KernelError;
use tenon_host::call::{CallFrame, monotonic_ns};

/// Completion of an asynchronous call: puts its node into the step's inbox, or stops the step.
///
/// # Safety
/// `frame` is a frame of a partition's state whose step waits for this call.
pub(super) unsafe fn completed<P: Propagate>(frame: *mut CallFrame, code: Code) {
    // SAFETY: the caller's promise.
    let (frame, state) = unsafe { (&*frame, &*(*frame).owner.cast::<PartitionState<P>>()) };
    let index = frame.index;
    let mut ready = Vec::new();
    state.trace_end(index);
    if code.is_ok() {
        state.after(index, &mut ready);
    } else {
        let error = frame.take_error(code);
        frame.end();
        state.fail_node(index, &error);
    }
    P::lower(state, ready);
}

/// A partition's state on another thread; the step waits for what was raised before.
struct Job<P: Propagate>(*const PartitionState<P>, u32);

// SAFETY: the state may be shared between threads, and lives until the job has lowered what it raised.
unsafe impl<P: Propagate> Send for Job<P> {}

impl<P: Propagate> Job<P> {
    fn run(self) {
        // SAFETY: see the type.
        let state = unsafe { &*self.0 };
        let mut ready = Vec::new();
        if !state.shared.is_stopped() {
            state.run_inline(self.1, &mut ready);
            state.drain(&mut ready);
        }
        P::lower(state, ready);
    }
}

impl<P: Propagate> PartitionState<P> {
    /// An asynchronous call begins.
    fn trace_begin(&self, index: u32) {
        if self.frame(index).env().trace.is_some() {
            self.began[index as usize].store(monotonic_ns(), Ordering::Relaxed);
            self.stream_begins(index);
        }
    }

    /// An asynchronous call has ended.
    fn trace_end(&self, index: u32) {
        let frame = self.frame(index);
        if let Some(trace) = &frame.env().trace {
            let began = self.began[index as usize].load(Ordering::Relaxed);
            trace.span(&frame.node().name, "", began, monotonic_ns());
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
                Action::Kernel | Action::Nothing => self.propagate(index, ready),
            }
        } else if flags & node_flags::ASYNC != 0 {
            self.run_async(index, ready);
        } else if flags & node_flags::BLOCKING == 0 {
            self.run_inline(index, ready);
        } else {
            P::raise(self);
            let job = Job(self, index);
            if let Err(error) = self.frame(index).env().pool.spawn_blocking(move || job.run()) {
                self.fail_node(index, &error);
                P::lower(self, Vec::new());
            }
        }
    }

    /// Runs a costly node on the pool.
    pub(super) fn spawn(&self, index: u32) {
        P::raise(self);
        let job = Job(self, index);
        self.frame(index).env().pool.spawn(move || job.run());
    }

    fn run_async(&self, index: u32, ready: &mut Vec<u32>) {
        let (node, frame) = (self.hot(index), self.frame(index));
        // SAFETY: this thread owns the node, whose predecessors are done.
        if let Err(error) = unsafe { self.show_references(index) } {
            return self.fail_node(index, &error);
        }
        if !frame.begin_async() {
            let error = KernelError::internal("an earlier call of this node is still running");
            return self.fail_node(index, &error);
        }
        P::raise(self);
        self.trace_begin(index);
        // SAFETY: this thread owns the node, whose predecessors are done. Once the call is pending, it
        // belongs to whoever completes it.
        let code = unsafe {
            self.clear_outputs(index);
            self.plan_outputs(node);
            self.count(index);
            (node.compute)(node.state, &frame.call)
        };
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
        self.trace_end(index);
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
