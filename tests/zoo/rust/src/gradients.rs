//! Gradients of ops: of a product, and of a copy whose gradient refuses nodes.

use tenon_sdk::prelude::*;

fn same(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.input(0))
}

register_op!(
    "ZooGradientProduct",
    inputs = &["a: float", "x: float"],
    outputs = &["y: float"],
    shape = same,
    refuses = Refusal::UnequalShapes,
    summary = "a times x, of the same shape.",
);

fn product(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, x) = (c.input::<f32>(0)?, c.input::<f32>(1)?);
    if a.dims != x.dims {
        return Err(KernelError::invalid_argument("expected equal shapes"));
    }
    let y = c.output::<f32>(0, a.dims)?;
    y.data.iter_mut().zip(a.data.iter().zip(x.data)).for_each(|(y, (a, x))| *y = a * x);
    Ok(())
}

register_kernel!("ZooGradientProduct" on "CPU": fn product);
register_gradient!("ZooGradientProduct", |c| {
    let (g, a, x) = (c.gradient(0)?, c.input(0), c.input(1));
    c.set_broadcast(|| c.mul(g, x), || c.mul(g, a))
});

register_op!(
    "ZooGradientRefused",
    inputs = &["x: float"],
    outputs = &["y: float"],
    shape = same,
    summary = "x, of which no gradient is made.",
);

fn copy(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<f32>(0)?;
    c.output::<f32>(0, x.dims)?.data.copy_from_slice(x.data);
    Ok(())
}

register_kernel!("ZooGradientRefused" on "CPU": fn copy);

fn refused(_: &GradientContext<'_>) -> Result<(), KernelError> {
    Err(KernelError::new(Code::FAILED_PRECONDITION, "the zoo refuses"))
}

register_gradient!("ZooGradientRefused", refused);
