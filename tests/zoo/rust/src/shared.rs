//! Variables that several calls use at the same time, and what goes with a step.

use std::sync::atomic::{AtomicU32, Ordering};
use tenon_sdk::prelude::*;

register_op!(
    "ZooVariableScatterAdd",
    inputs = &["handle: resource", "index: int64", "amount: float"],
    stateful = true,
    shape = |_: &ShapeContext<'_>| Ok(()),
    summary = "Adds an amount to one element of the variable, at the same time as other calls.",
);

/// Adds to an element that other calls may add to as well.
fn add(element: &AtomicU32, amount: f32) {
    let sum = |bits| Some((f32::from_bits(bits) + amount).to_bits());
    let _ = element.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
}

fn scatter_add(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (state, index, amount) = (c.state(), c.input::<i64>(1)?, c.input::<f32>(2)?);
    let (&[index], &[amount]) = (index.data, amount.data) else {
        return Err(KernelError::invalid_argument("expected one index and one amount"));
    };
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let shared = state.share_for_update(&variables)?;
    let slot = shared.update(0)?;
    let at = usize::try_from(index).ok().filter(|at| (*at as u64) < slot.elements);
    let at = at.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "index: expected 0 to {}, found {index}",
            slot.elements
        ))
    })?;
    // SAFETY: the slot shows as many floats, which other calls use by atomic operations while it is shared.
    add(unsafe { &*slot.data.cast::<AtomicU32>().add(at) }, amount);
    Ok(())
}

register_kernel!("ZooVariableScatterAdd" on "CPU": fn scatter_add);

register_op!(
    "ZooVariableGather",
    inputs = &["handle: resource", "index: int64"],
    outputs = &["value: float"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "One element of the variable, read at the same time as other calls.",
);

fn gather(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (state, index) = (c.state(), c.input::<i64>(1)?.data.first().copied().unwrap_or(-1));
    let variable = state.input_variable(0)?;
    let variables = [&variable];
    let shared = state.share(&variables)?;
    let slot = shared.read(0)?;
    let at = usize::try_from(index).ok().filter(|at| (*at as u64) < slot.elements);
    let at = at.ok_or_else(|| KernelError::invalid_argument("index: out of range"))?;
    // SAFETY: as in `scatter_add`.
    let element = unsafe { &*slot.data.cast::<AtomicU32>().add(at) };
    c.output::<f32>(0, &[])?.data[0] = f32::from_bits(element.load(Ordering::Relaxed));
    Ok(())
}

register_kernel!("ZooVariableGather" on "CPU": fn gather);

struct Calls(AtomicU32);

impl ResourceValue for Calls {
    const NAME: &'static str = "zoo.Calls";
}

register_op!(
    "ZooStepCount",
    outputs = &["count: int64"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.scalar()),
    summary = "How often nodes of this op ran in the step so far, this one included.",
);

fn step_count(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let state = c.state();
    let container = state.step_container();
    let calls = state.find_or_create(&container, "calls", || Ok(Calls(AtomicU32::new(0))))?;
    let count = calls.0.fetch_add(1, Ordering::Relaxed) + 1;
    c.output::<i64>(0, &[])?.data[0] = count.into();
    Ok(())
}

register_kernel!("ZooStepCount" on "CPU": fn step_count);
