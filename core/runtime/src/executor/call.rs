//! Nodes that call functions.

use super::{
    callee::CallError,
    partition::PartitionState,
    propagate::{Propagate, Waiting},
};
use crate::{error::StepError, sampling::wants};
use std::sync::atomic::Ordering;
use tenon_framework::{Code, KernelError, Tensor};
use tenon_host::call::monotonic_ns;

/// One call in this number of a function is measured, as a power of two. Several nodes may call the
/// function in turns.
const MEASURED_EVERY_LOG2: u32 = 6;

impl<P: Propagate> PartitionState<P> {
    /// Calls a function with the inputs of a node; its results become the outputs.
    pub(super) fn call_function(&self, index: u32, function: u32, ready: &mut Vec<u32>) {
        self.count(index);
        let frame = self.frame(index);
        let Some(callees) = self.shared.callees() else {
            let closed = "the session that the step belongs to is closed";
            return self.fail_node(index, &KernelError::new(Code::CANCELLED, closed));
        };
        let number = callees.count(function);
        let is_new = self.node(index).cost_ns.load(Ordering::Relaxed) == 0;
        let measured = is_new || wants(number, MEASURED_EVERY_LOG2);
        let began = (measured || frame.env().trace.is_some()).then(monotonic_ns);
        // SAFETY: the node is ready, so the nodes that wrote its inputs are done.
        let args = unsafe { frame.input_slots() };
        let mut take = |at: u32, tensor: Tensor| self.take_result(index, at, &tensor);
        match callees.call(function, args, frame.env(), &mut take) {
            Ok(None) => {
                self.measure(index, began);
                self.propagate(index, ready);
            }
            Ok(Some(call)) => {
                P::raise(self);
                let waiting = Waiting::new(self);
                call.wait(Box::new(move |result| {
                    let state = waiting.state();
                    let mut ready = Vec::new();
                    state.called(index, began, result, &mut ready);
                    P::lower(state, ready);
                }));
            }
            Err(CallError::Node(error)) => self.fail_node(index, &error),
            Err(CallError::Step(error)) => self.shared.fail(error),
        }
    }

    /// Ends a call that was open: stores its results, and notifies the successors.
    fn called(
        &self,
        index: u32,
        began: Option<u64>,
        result: Result<Vec<Tensor>, StepError>,
        ready: &mut Vec<u32>,
    ) {
        self.measure(index, began);
        let results = match result {
            Ok(results) => results,
            Err(error) => return self.shared.fail(error),
        };
        for (at, tensor) in (0..).zip(&results) {
            if let Err(error) = self.take_result(index, at, tensor) {
                return self.fail_node(index, &error);
            }
        }
        self.propagate(index, ready);
    }

    /// Measures a call that began at this time, and reports it to a trace.
    fn measure(&self, index: u32, began: Option<u64>) {
        let Some(began) = began else { return };
        let ended = monotonic_ns();
        self.node(index).sample(ended.saturating_sub(began));
        if let Some(trace) = &self.frame(index).env().trace {
            trace.span(&self.node(index).info.name, "", began, ended);
        }
    }

    /// Stores a result of a call in the output at this position.
    fn take_result(&self, index: u32, at: u32, tensor: &Tensor) -> Result<(), KernelError> {
        let output = self.node(index).first_output + at;
        self.check_received(output, tensor)?;
        // SAFETY: this thread completes the node, and owns its outputs.
        let (value, slot) = unsafe { (self.slots.value_mut(output), self.slots.slot_mut(output)) };
        value.hold_on_host(slot, tensor);
        Ok(())
    }
}
