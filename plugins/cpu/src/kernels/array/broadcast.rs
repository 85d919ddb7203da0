//! `BroadcastTo`, `BroadcastArgs`, `BroadcastGradientArgs`.

use super::moves::{Item, Move, TEXTS, check_vector, produce, write_integers};
use crate::lists;
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    geometry::{
        BroadcastPlan, Dims, broadcast_gradient_axes, broadcast_shape, check_broadcast_to,
        validate_dims,
    },
    reg::Numerics,
    register_kernel,
};

/// The plan of the input and of the output.
struct Spread(BroadcastPlan<2>);

impl Move for Spread {
    fn run<T: Item>(
        &self,
        _: &ComputeContext<'_>,
        x: &[&[T]],
        y: &mut [T],
    ) -> Result<(), KernelError> {
        for run in self.0.runs() {
            let (x, y) = (&x[0][run.offsets[0]..], &mut y[run.output..][..run.len]);
            match run.strides[0] {
                0 => y.fill(x[0]),
                _ => y.copy_from_slice(&x[..run.len]),
            }
        }
        Ok(())
    }
}

fn broadcast_to(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 1, "shape")?;
    let (dims, shape) = (c.dims(0), lists::short(c, 1)?);
    validate_dims(&shape)?;
    check_broadcast_to(dims, &shape)?;
    if shape == *dims {
        return c.share(0, 0, &shape);
    }
    produce(c, &[0], &shape, &Spread(BroadcastPlan::new([dims, &shape])?))
}

/// Both inputs, which are shapes.
fn shapes(c: &ComputeContext<'_>) -> Result<[Dims; 2], KernelError> {
    check_vector(c, 0, "s0")?;
    check_vector(c, 1, "s1")?;
    Ok([lists::short(c, 0)?, lists::short(c, 1)?])
}

fn broadcast_args(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [a, b] = shapes(c)?;
    let output = broadcast_shape(&a, &b)?;
    write_integers(c, 0, &[output.len() as i64], output.iter().copied())
}

fn broadcast_gradient_args(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let [a, b] = shapes(c)?;
    for (output, axes) in broadcast_gradient_axes(&a, &b)?.iter().enumerate() {
        write_integers(c, output, &[axes.len() as i64], axes.iter().copied())?;
    }
    Ok(())
}

register_kernel!("BroadcastTo" on "CPU": fn broadcast_to, types = ("T", TEXTS),
    host_memory = &["shape"], numerics = Numerics::EXACT);
register_kernel!("BroadcastArgs" on "CPU": fn broadcast_args, numerics = Numerics::EXACT,
    host_memory = &["s0", "s1", "r0"]);
register_kernel!("BroadcastGradientArgs" on "CPU": fn broadcast_gradient_args,
    host_memory = &["s0", "s1", "r0", "r1"], numerics = Numerics::EXACT);
