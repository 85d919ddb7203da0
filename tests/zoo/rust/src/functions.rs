//! Calls of functions of the graph's library: within the step of a call, and beyond it.

use crate::resources::Named;
use std::sync::{Mutex, PoisonError};
use tenon_sdk::prelude::*;

/// The first result of a function as output 0.
fn give_first(c: &ComputeContext<'_>, results: FunctionResults) -> Result<(), KernelError> {
    match results?.first() {
        Some(first) => c.output_kept(0, first),
        None => Err(KernelError::invalid_argument("expected a function with a result")),
    }
}

fn schedule(c: &CreateContext<'_>) -> Result<Schedule, KernelError> {
    Ok(if c.attr::<bool>("on_pool")? { Schedule::Pool } else { Schedule::Inline })
}

register_op!(
    "ZooApply",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["f: func", "on_pool: bool = false"],
    stateful = true,
    summary = "Calls f with x, within the step; the first result is y.",
);

struct Apply(Schedule);

impl Kernel for Apply {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        schedule(c).map(Apply)
    }

    fn start(&self, mut call: AsyncCall) {
        let context = call.context();
        let parts = context.function("f").and_then(|f| Ok((f, context.keep(0)?)));
        let (f, x) = match parts {
            Ok(parts) => parts,
            Err(error) => return call.finish(Err(error)),
        };
        f.call_within(call, &[x], self.0, |mut call, results| {
            let result = give_first(&call.context(), results);
            call.finish(result);
        });
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Ok(())
    }
}

register_kernel!("ZooApply" on "CPU": Apply);

/// A place for a function.
struct Place(Mutex<Option<Function>>);

impl ResourceValue for Place {
    const NAME: &'static str = "zoo.Function";
}

impl Named {
    fn place(&self, c: &ComputeContext<'_>) -> Result<ResourceHandle<Place>, KernelError> {
        c.state().find_or_create(&self.container, &self.name, || Ok(Place(Mutex::default())))
    }

    fn function(&self, c: &ComputeContext<'_>) -> Result<Function, KernelError> {
        let place = self.place(c)?;
        let kept = place.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept.ok_or_else(|| {
            KernelError::new(Code::FAILED_PRECONDITION, "no function is kept: keep one first")
        })
    }
}

register_op!(
    "ZooFunctionKeep",
    attrs = &["f: func", "container: string = ''", "shared_name: string = ''"],
    stateful = true,
    summary = "Keeps f under a name, in the place of what was kept there.",
);

struct Keep(Named);

impl Kernel for Keep {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Keep)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let f = c.function("f")?;
        let place = self.0.place(c)?;
        *place.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(f);
        Ok(())
    }
}

register_kernel!("ZooFunctionKeep" on "CPU": Keep);

register_op!(
    "ZooFunctionCall",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["container: string = ''", "shared_name: string = ''", "on_pool: bool = false"],
    stateful = true,
    summary = "Calls a function that was kept, as a step of its own.",
);

struct CallKept(Named, Schedule);

impl Kernel for CallKept {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(CallKept(Named::new(c)?, schedule(c)?))
    }

    fn start(&self, mut call: AsyncCall) {
        let context = call.context();
        let parts = self.0.function(&context).and_then(|f| Ok((f, context.keep(0)?)));
        let (f, x) = match parts {
            Ok(parts) => parts,
            Err(error) => return call.finish(Err(error)),
        };
        f.call(&[x], self.1, move |results| {
            let result = give_first(&call.context(), results);
            call.finish(result);
        });
    }

    fn compute(&self, _: &ComputeContext<'_>) -> Result<(), KernelError> {
        Ok(())
    }
}

register_kernel!("ZooFunctionCall" on "CPU": CallKept);

register_op!(
    "ZooFunctionCancel",
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    summary = "Ends the calls of a function that was kept.",
);

struct Cancel(Named);

impl Kernel for Cancel {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Cancel)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        self.0.function(c)?.cancel();
        Ok(())
    }
}

register_kernel!("ZooFunctionCancel" on "CPU": Cancel);
