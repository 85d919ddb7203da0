//! What registrations state of ops: facts that passes go by.

use tenon_sdk::prelude::*;

fn same(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

register_op!(
    "ZooFactsPass",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same,
    passes_input = (0, 0),
    refuses = Refusal::Nothing,
    summary = "x as it is.",
);

fn copy(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
    Ok(())
}

register_kernel!("ZooFactsPass" on "CPU": fn copy);

register_op!(
    "ZooFactsSum",
    inputs = &["a: float", "b: float"],
    outputs = &["y: float"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.merge(c.input(0), c.input(1))?),
    refuses = Refusal::UnequalShapes,
    symmetry = Symmetry::Bits,
    summary = "a plus b, of the same shape.",
);

register_kernel!("ZooFactsSum" on "CPU": fn crate::shapes::sum);

register_op!(
    "ZooFactsShape",
    inputs = &["x: float"],
    outputs = &["y: int64"],
    shape = |c: &ShapeContext<'_>| {
        let rank = c.rank(c.input(0)).map(|rank| rank as i64);
        c.set_output(0, c.make_shape(&[c.make_dim(rank)]))
    },
    value = ValueRule::Shape,
    refuses = Refusal::Nothing,
    gradient = GradientRule::None,
    summary = "The shape of x.",
);

fn dims(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    c.output::<i64>(0, &[x.dims.len() as i64])?.data.copy_from_slice(x.dims);
    Ok(())
}

register_kernel!("ZooFactsShape" on "CPU": fn dims);

register_op!(
    "ZooFactsCheck",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same,
    checks = true,
    passes_input = (0, 0),
    summary = "x as it is, which must not be below zero.",
);

fn check(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    match c.input::<f32>(0)?.data.iter().position(|x| *x < 0.0) {
        None => copy(c),
        Some(at) => Err(KernelError::invalid_argument(format!("x is below zero at {at}"))),
    }
}

register_kernel!("ZooFactsCheck" on "CPU": fn check);
