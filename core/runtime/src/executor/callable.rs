//! Functions that kernels call.
//!
//! A call of a kernel is a call within the step of the kernel's call, or a step of its own: one
//! that has its own number and container, no deadline, and the cancellation of the handle that the
//! kernel holds. What a kernel holds keeps the functions, so that a value that outlives the session
//! (an iterator, say) can call them.

use super::{
    callee::{Callees, Done},
    function::Functions,
};
use crate::error::StepError;
use std::sync::Arc;
use tenon_framework::{KernelError, Tensor, attr::FuncValue};
use tenon_graph::FunctionKey;
use tenon_host::call::{CallableFunction, FunctionCall, FunctionEnd, FunctionTable, StepEnv};

/// A function that kernels call.
struct Callable {
    functions: Arc<Functions>,
    number: u32,
}

impl FunctionTable for Functions {
    fn find(&self, function: &FuncValue) -> Option<Arc<dyn CallableFunction>> {
        let number = self.number_of(&FunctionKey::of(function))?;
        Some(Arc::new(Callable { functions: self.upgrade()?, number }))
    }
}

/// The error of a step, as that of the kernel that called it.
fn of_kernel(error: &StepError) -> KernelError {
    KernelError::new(error.code, error.to_string())
}

impl Callable {
    /// Starts a call that belongs to the step of `env`.
    fn start(&self, args: &[Tensor], env: &StepEnv, on_pool: bool, end: FunctionEnd) {
        let accepted = self.functions.accepts(self.number, args);
        let run = match accepted.and_then(|()| self.functions.begin(self.number, args, env)) {
            Ok(run) => run,
            Err(error) => return end(Err(error)),
        };
        let done: Done = Box::new(move |result| end(result.map_err(|error| of_kernel(&error))));
        if on_pool {
            self.functions.pool().spawn(move || run.wait(done));
        } else {
            run.wait(done);
        }
    }
}

impl CallableFunction for Callable {
    fn call(&self, args: &[Tensor], call: FunctionCall<'_>) {
        let FunctionCall { step, cancellation, depth, on_pool, end } = call;
        if let Some(step) = step {
            return self.start(args, step, on_pool, end);
        }
        let own = self.functions.step_of_its_own(cancellation, depth);
        let (resources, step) = (Arc::clone(&own.resources), own.step.step_id);
        let end: FunctionEnd = Box::new(move |result| {
            resources.end_step(step);
            end(result);
        });
        self.start(args, &own, on_pool, end);
    }
}
