//! Nodes that call functions.

use super::{
    callee::{OpenCall, Progress},
    partition::PartitionState,
    propagate::{Propagate, Waiting},
};
use crate::error::StepError;
use tenon_framework::{Code, KernelError, Tensor};
use tenon_host::call::{Value, monotonic_ns};

impl<P: Propagate> PartitionState<P> {
    /// Calls a function with the inputs of a node; its results become the outputs.
    pub(super) fn call_function(&self, index: u32, function: u32, ready: &mut Vec<u32>) {
        self.count(index);
        let began = monotonic_ns();
        let mut call = match self.begin_call(index, function) {
            Ok(call) => call,
            Err(error) => return self.fail_node(index, &error),
        };
        if call.advance() == Progress::Done {
            return self.called(index, began, call.finish(), ready);
        }
        P::raise(self);
        let waiting = Waiting::new(self);
        call.wait(Box::new(move |result| {
            let state = waiting.state();
            let mut ready = Vec::new();
            state.called(index, began, result, &mut ready);
            P::lower(state, ready);
        }));
    }

    fn begin_call(&self, index: u32, function: u32) -> Result<Box<dyn OpenCall>, KernelError> {
        let callees = self.shared.callees();
        let callees = callees.ok_or_else(|| {
            KernelError::new(Code::CANCELLED, "the session that the step belongs to is closed")
        })?;
        let mut args = Vec::with_capacity(self.node(index).inputs.len());
        for &input in &self.node(index).inputs {
            // SAFETY: the node that wrote the input is done, so no thread writes the slot.
            let arg = Value::tensor(unsafe { self.slot_mut(input) });
            args.push(arg.ok_or_else(|| KernelError::internal("an argument has no buffer"))?);
        }
        callees.begin(function, &args, self.frame(index).env())
    }

    /// Ends a call: stores its results, and notifies the successors.
    fn called(
        &self,
        index: u32,
        began: u64,
        result: Result<Vec<Tensor>, StepError>,
        ready: &mut Vec<u32>,
    ) {
        let ended = monotonic_ns();
        self.node(index).sample(ended.saturating_sub(began));
        if let Some(trace) = &self.frame(index).env().trace {
            trace.span(&self.node(index).info.name, "", began, ended);
        }
        let results = match result {
            Ok(results) => results,
            Err(error) => return self.shared.fail(error),
        };
        let first = self.node(index).first_output;
        for (output, tensor) in (first..).zip(&results) {
            if let Err(error) = self.check_received(output, tensor) {
                return self.fail_node(index, &error);
            }
            // SAFETY: this thread completes the node, and owns its outputs.
            let (value, slot) = unsafe { (self.value_mut(output), self.slot_mut(output)) };
            value.hold_on_host(slot, tensor);
        }
        self.propagate(index, ready);
    }
}
