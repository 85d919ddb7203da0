//! Kernels that break their contract, each in one way: what a host has to survive.

use std::time::Duration;
use tenon_sdk::{author::spawn, prelude::*};

tenon_sdk::export_plugin!();

register_op!(
    "ZooUnset",
    outputs = &["y: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.unknown()),
    summary = "Returns success without an output.",
);

fn unset(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Ok(())
}

register_kernel!("ZooUnset" on "CPU": fn unset);

register_op!(
    "ZooWrongShape",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "Promises x's shape and gives a vector of three.",
);

fn wrong_shape(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<f32>(0, &[3])?.data.fill(0.0);
    Ok(())
}

register_kernel!("ZooWrongShape" on "CPU": fn wrong_shape);

register_op!(
    "ZooTwice",
    outputs = &["y: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "1, by a kernel that completes its call twice.",
);

struct Twice;

impl Kernel for Twice {
    const MODE: Mode = Mode::Async;

    fn new(_: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Twice)
    }

    fn start(&self, mut call: AsyncCall) {
        let result = self.compute(&call.context());
        let context = call.context();
        let raw = context.raw();
        // SAFETY: the host fills services and entries. That this completes what `finish` completes again is
        // the point; the record outlives both, since the executor holds it until `start` has returned.
        unsafe {
            let complete = (*raw.services).complete.expect("the host fills every entry");
            complete(raw.record, Code::OK);
        }
        call.finish(result);
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.output::<f32>(0, &[])?.data[0] = 1.0;
        Ok(())
    }
}

register_kernel!("ZooTwice" on "CPU": Twice);

register_op!(
    "ZooLate",
    outputs = &["y: float"],
    attrs = &["delay_ms: int"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "1, after a delay, on a thread of its own that does not listen to cancellation.",
);

struct Late {
    delay: Duration,
}

fn delay(c: &CreateContext<'_>) -> Result<Duration, KernelError> {
    let delay: i64 = c.attr("delay_ms")?;
    u64::try_from(delay).map(Duration::from_millis).map_err(|_| {
        KernelError::invalid_argument(format!("delay_ms: expected at least 0, found {delay}"))
    })
}

fn one(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<f32>(0, &[])?.data[0] = 1.0;
    Ok(())
}

impl Kernel for Late {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Late { delay: delay(c)? })
    }

    fn start(&self, mut call: AsyncCall) {
        let delay = self.delay;
        let _ = spawn("zoo-late", move || {
            std::thread::sleep(delay);
            let result = one(&call.context());
            call.finish(result);
        });
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        one(c)
    }
}

register_kernel!("ZooLate" on "CPU": Late);

register_op!(
    "ZooSleep",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["delay_ms: int"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "x, by a kernel that holds its thread up.",
);

struct Sleep {
    delay: Duration,
}

impl Kernel for Sleep {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Sleep { delay: delay(c)? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        std::thread::sleep(self.delay);
        let x = c.input::<f32>(0)?;
        c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
        Ok(())
    }
}

register_kernel!("ZooSleep" on "CPU": Sleep);
