//! Kernels of one op that differ in their time and in what they promise, for policy `measured`.
//!
//! Tests of the policy (`tests/graphs/tuning.rs`) choose among these kernels, whose order of speed
//! is known. One of them fails; the others compute the same values.

use std::{hint::black_box, path::PathBuf, thread, time::Duration};
use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

register_op!(
    "TunedTwice",
    inputs = &["x: float"],
    outputs = &["y: float"],
    attrs = &["gate: string = ''"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(0)),
    summary = "2x. Where `gate` names a file, one of the kernels waits as long as it is there.",
);

fn twice(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    let y = c.output::<f32>(0, x.dims)?;
    y.data.iter_mut().zip(x.data).for_each(|(y, x)| *y = x + x);
    Ok(())
}

/// Takes its time: so many rounds of nothing.
fn rounds(count: u64) {
    for at in 0..count {
        black_box(at);
    }
}

fn slow(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rounds(200_000);
    twice(c)
}

fn fast(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rounds(10_000);
    twice(c)
}

fn near(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rounds(1_000);
    twice(c)
}

fn fails(_: &ComputeContext<'_>) -> Result<(), KernelError> {
    Err(KernelError::internal("zoo: this kernel never works"))
}

register_kernel!("TunedTwice" on "CPU": fn slow, priority = 10, numerics = Numerics::EXACT);
register_kernel!("TunedTwice" on "CPU": fn fast, label = "fast", numerics = Numerics::EXACT);
register_kernel!("TunedTwice" on "CPU": fn fails, label = "fails", numerics = Numerics::EXACT);
register_kernel!("TunedTwice" on "CPU": fn near, label = "near", numerics = Numerics::relative(0.0, 1e-6));
// The fastest, and it promises nothing.
register_kernel!("TunedTwice" on "CPU": fn twice, label = "loose");

struct Waits {
    gate: PathBuf,
}

impl Kernel for Waits {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Waits { gate: PathBuf::from(c.attr::<&str>("gate")?) })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        while self.gate.exists() {
            thread::sleep(Duration::from_millis(2));
        }
        twice(c)
    }
}

impl Supports for Waits {
    fn supports(c: &CreateContext<'_>) -> Supported {
        match c.attr::<&str>("gate") {
            Ok("") | Err(_) => Supported::No("it waits for a file only".into()),
            Ok(_) => Supported::Yes,
        }
    }
}

register_kernel!("TunedTwice" on "CPU": Waits, label = "waits", numerics = Numerics::EXACT);
