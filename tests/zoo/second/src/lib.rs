//! A second plugin: its kernels update variables that the zoo's kernels made, in either language.

use std::sync::atomic::{AtomicI64, Ordering};
use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

register_op!(
    "ZooSecondScale",
    inputs = &["handle: resource", "factor: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Multiplies every element of a variable by a factor, in place.",
);

fn scale(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let factor =
        *c.input::<f32>(1)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("factor: expected one element, found none")
        })?;
    let state = c.state();
    let variable = state.input_variable(0)?;
    let owned = [&variable];
    let mut locked = state.lock(&owned)?;
    locked.view_mut::<f32>(0)?.data.iter_mut().for_each(|x| *x *= factor);
    Ok(())
}

register_kernel!("ZooSecondScale" on "CPU": fn scale);

register_op!(
    "ZooSecondCount",
    outputs = &["count: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Counts its calls in a resource of the session's.",
);

struct Count(AtomicI64);

impl ResourceValue for Count {
    const NAME: &'static str = "second.Count";
}

fn count(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = c.state().find_or_create("", "count", || Ok(Count(AtomicI64::new(0))))?;
    c.output::<i64>(0, &[])?.data[0] = count.0.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(())
}

register_kernel!("ZooSecondCount" on "CPU": fn count);
