//! Functions that kernels call.
//!
//! A call of a kernel is a call within the step of the kernel's call, or a step of its own: one
//! that has its own number and container, no deadline, and the cancellation of the handle that the
//! kernel holds. What a kernel holds keeps the functions, so that a value that outlives the session
//! (an iterator, say) can call them.

use super::{
    callee::{Callees, Done, Progress},
    function::Functions,
};
use crate::error::StepError;
use std::sync::Arc;
use tenon_framework::{KernelError, Tensor, attr::FuncValue};
use tenon_graph::FunctionKey;
use tenon_host::call::{CallableFunction, FunctionCall, FunctionTable};

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

impl CallableFunction for Callable {
    fn call(&self, args: &[Tensor], call: FunctionCall<'_>) {
        let FunctionCall { step, cancellation, depth, on_pool, end } = call;
        let functions = &self.functions;
        let own = step.is_none().then(|| functions.step_of_its_own(cancellation, depth));
        let Some(env) = step.or(own.as_ref()) else { return };
        let begun = functions.accepts(self.number, args);
        let mut run = match begun.and_then(|()| functions.begin(self.number, args, env)) {
            Ok(run) => run,
            Err(error) => return end(Err(error)),
        };
        let resources = own.as_ref().map(|own| (Arc::clone(&own.resources), own.step.step_id));
        let done: Done = Box::new(move |result| {
            if let Some((resources, step)) = resources {
                resources.end_step(step);
            }
            end(result.map_err(|error| of_kernel(&error)));
        });
        if on_pool {
            return functions.pool().spawn(move || run.wait(done));
        }
        match run.advance() {
            Progress::Done => done(run.finish()),
            Progress::Pending => run.wait(done),
        }
    }
}
