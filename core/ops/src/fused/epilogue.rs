//! The further inputs of products and convolutions.

use crate::shape::{dims_of, input_of_rank};
use tenon_author::{Dim, ShapeContext, ShapeHandle};
use tenon_framework::KernelError;
use tenon_geometry::fused::{Epilogue, EpilogueStep};

/// The shape of a product after its epilogue. Inputs from `first` on belong to the steps; `channel`
/// is the position of the channels.
pub(super) fn after(
    c: &ShapeContext<'_>,
    product: ShapeHandle,
    first: usize,
    channel: usize,
) -> Result<ShapeHandle, KernelError> {
    let names: Vec<&str> = c.attr("fused_ops")?;
    let epilogue = Epilogue::parse(&names)?;
    epilogue.check_args(c.input_count() - first)?;
    let mut output = product;
    for (step, arg) in epilogue.placed() {
        output = step_shape(c, output, step, first + arg, channel)?;
    }
    Ok(output)
}

fn step_shape(
    c: &ShapeContext<'_>,
    shape: ShapeHandle,
    step: EpilogueStep,
    arg: usize,
    channel: usize,
) -> Result<ShapeHandle, KernelError> {
    match step {
        step if step.takes_whole() => c.merge(shape, c.input(arg)),
        EpilogueStep::BiasAdd => with_vectors(c, shape, channel, arg, &["bias"]),
        EpilogueStep::FusedBatchNorm => {
            with_vectors(c, shape, channel, arg, &["scale", "offset", "mean", "variance"])
        }
        _ => Ok(shape),
    }
}

/// The shape, with as many channels as each vector has values.
fn with_vectors(
    c: &ShapeContext<'_>,
    shape: ShapeHandle,
    channel: usize,
    first: usize,
    names: &[&'static str],
) -> Result<ShapeHandle, KernelError> {
    let mut dims: Vec<Dim> = dims_of(c, shape);
    for (at, name) in names.iter().enumerate() {
        let vector = input_of_rank(c, first + at, name, 1)?;
        dims[channel] = c.merge_dim(dims[channel], c.dim(vector, 0))?;
    }
    Ok(c.make_shape(&dims))
}
