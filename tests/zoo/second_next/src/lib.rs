//! The next version of zoo-second: a kernel adds the factor where it multiplied, and a resource has
//! another layout.
//!
//! To the host this is plugin `zoo-second`, version 0.2.0 (see `build.rs`). Tests load it in the
//! place of `tests/zoo/second`, and see from a result which of the two computed it.

use std::sync::Mutex;
use tenon_sdk::prelude::*;

tenon_sdk::export_plugin!();

register_op!(
    "ZooSecondScale",
    inputs = &["handle: resource", "factor: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Adds a number to every element of a variable, in place.",
);

fn add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let amount =
        *c.input::<f32>(1)?.data.first().ok_or_else(|| {
            KernelError::invalid_argument("factor: expected one element, found none")
        })?;
    let state = c.state();
    let variable = state.input_variable(0)?;
    let owned = [&variable];
    let mut locked = state.lock(&owned)?;
    locked.view_mut::<f32>(0)?.data.iter_mut().for_each(|x| *x += amount);
    Ok(())
}

register_kernel!("ZooSecondScale" on "CPU": fn add);

register_op!(
    "ZooSecondCount",
    outputs = &["count: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "Counts its calls in a resource of the session's.",
);

/// In version 0.1.0 this was a number.
struct Count(Mutex<Vec<i64>>);

impl ResourceValue for Count {
    const NAME: &'static str = "second.Count";
}

fn count(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let count = c.state().find_or_create("", "count", || Ok(Count(Mutex::new(Vec::new()))))?;
    let mut calls = count.0.lock().unwrap_or_else(|poison| poison.into_inner());
    calls.push(c.step_id() as i64);
    c.output::<i64>(0, &[])?.data[0] = calls.len() as i64;
    Ok(())
}

register_kernel!("ZooSecondCount" on "CPU": fn count);
