//! Kernels that break their contract, each in one way that a host must survive.
//!
//! What it is: ops whose kernels return without an output, with a wrong shape, and so on; the step
//! fails with an error that names the kernel, and the process goes on.
//!
//! What it is not: kernels that end the process (`tests/zoo/fatal`) or compute wrong values
//! (`tests/zoo/wrong`).

use std::time::Duration;
use tenon_sdk::{abi::CallRecord, author::spawn, prelude::*};

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
    attrs = &["first_ms: int = 0", "second_ms: int = 0"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "1, by a kernel that completes its call twice: after `first_ms`, and again `second_ms` later. Both \
               0: before it returns, without a thread.",
);

struct Twice {
    first: Duration,
    second: Duration,
}

/// What completes a call once more than it should be.
struct Again {
    record: *mut CallRecord,
    complete: unsafe extern "C" fn(record: *mut CallRecord, code: Code),
}

// SAFETY: the host takes completions from any thread.
unsafe impl Send for Again {}

impl Again {
    fn of(call: &mut AsyncCall) -> Again {
        let context = call.context();
        let raw = context.raw();
        // SAFETY: the host fills services and entries.
        let complete = unsafe { (*raw.services).complete.expect("the host fills every entry") };
        Again { record: raw.record, complete }
    }

    fn complete(self) {
        // SAFETY: no call is pending any more that this record names: that it is completed again is the point,
        // and what a host has to survive.
        unsafe { (self.complete)(self.record, Code::OK) }
    }
}

impl Twice {
    /// Completes the call twice by the host's service, and then says that it is pending.
    fn at_once(mut call: AsyncCall) {
        let (first, second) = (Again::of(&mut call), Again::of(&mut call));
        let _ = one(&call.context());
        first.complete();
        second.complete();
        std::mem::forget(call);
    }

    fn run(first: Duration, second: Duration, mut call: AsyncCall) {
        std::thread::sleep(first);
        let (result, again) = (one(&call.context()), Again::of(&mut call));
        call.finish(result);
        std::thread::sleep(second);
        again.complete();
    }
}

impl Kernel for Twice {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Twice { first: delay(c, "first_ms")?, second: delay(c, "second_ms")? })
    }

    fn start(&self, call: AsyncCall) {
        let (first, second) = (self.first, self.second);
        if first.is_zero() && second.is_zero() {
            return Twice::at_once(call);
        }
        let _ = spawn("zoo-twice", move || Twice::run(first, second, call));
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        one(c)
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

fn delay(c: &CreateContext<'_>, attr: &str) -> Result<Duration, KernelError> {
    let delay: i64 = c.attr(attr)?;
    u64::try_from(delay).map(Duration::from_millis).map_err(|_| {
        KernelError::invalid_argument(format!("{attr}: expected at least 0, found {delay}"))
    })
}

fn one(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.output::<f32>(0, &[])?.data[0] = 1.0;
    Ok(())
}

impl Kernel for Late {
    const MODE: Mode = Mode::Async;

    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Late { delay: delay(c, "delay_ms")? })
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
        Ok(Sleep { delay: delay(c, "delay_ms")? })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        std::thread::sleep(self.delay);
        let x = c.input::<f32>(0)?;
        c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
        Ok(())
    }
}

register_kernel!("ZooSleep" on "CPU": Sleep);

register_op!(
    "ZooSlow",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["delay_ms: int"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary =
        "x, by the kernel of ZooSleep. It has no state, so that it may run ahead of the step.",
);

register_kernel!("ZooSlow" on "CPU": Sleep);
