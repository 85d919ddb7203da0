//! Gradients of rows as whole tensors.

use crate::{Gradient, GradientError};
use tenon_framework::{KernelError, Tensor};
use tenon_graph::{GraphBuilder, Output};

/// The gradient of `x` as one tensor: the slices of a gradient of rows are added up, by nodes beside
/// the one that has their values.
///
/// # Errors
/// The graph refuses a node.
pub fn dense(
    b: &mut GraphBuilder<'_>,
    x: Output,
    gradient: Gradient,
) -> Result<Output, GradientError> {
    let (values, indices, dense_shape) = match gradient {
        Gradient::Dense(tensor) => return Ok(tensor),
        Gradient::Slices { values, indices, dense_shape } => (values, indices, dense_shape),
    };
    let near = b.graph().node(values.node).name.clone();
    let name =
        |b: &mut GraphBuilder<'_>, what: &str| b.unused_name(&format!("{near}_dense/{what}"));
    let shape = match dense_shape {
        Some(shape) => shape,
        None => {
            let shape = name(b, "Shape");
            b.op("Shape").name(&shape).input(x).build()?.into()
        }
    };
    let zero = Tensor::scalar(0i32);
    let zero = zero.map_err(|error| KernelError::new(error.code(), error.to_string()))?;
    let first = name(b, "first");
    let first = b.constant(&first, zero)?;
    let rows = name(b, "rows");
    let rows = b.op("GatherV2").name(&rows).inputs([shape, first, first]).build()?;
    let sum = name(b, "sum");
    let sum = b.op("UnsortedSegmentSum").name(&sum);
    Ok(sum.inputs([values, indices, rows.into()]).build()?.into())
}
