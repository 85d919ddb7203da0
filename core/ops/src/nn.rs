//! Neural networks: activations, convolutions, pooling, normalisation, losses.

mod activation;
mod conv;
mod fractional;
mod loss;
mod norm;
mod pool;

pub(crate) use conv::{conv_nhwc, depthwise_nhwc};
pub(crate) use norm::{biased, with_channels};
pub(crate) use pool::{Pooling, pool_nhwc};

use crate::shape::with_identity;
use tenon_author::{Dim, ShapeContext, ShapeHandle};
use tenon_framework::KernelError;
use tenon_geometry::{DataFormat, Padding};

pub(crate) const FORMAT: &str = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
pub(crate) const FORMAT_3D: &str = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'";
pub(crate) const PADDING: &str = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
pub(crate) const COMPUTED_PADDING: &str = "padding: {'SAME', 'VALID'}";
pub(crate) const EXPLICIT: &str = "explicit_paddings: list(int) = []";
pub(crate) const DILATIONS: &str = "dilations: list(int) = [1, 1, 1, 1]";
pub(crate) const DILATIONS_3D: &str = "dilations: list(int) = [1, 1, 1, 1, 1]";

/// Attribute `data_format`.
pub(crate) fn format(c: &ShapeContext<'_>) -> Result<DataFormat, KernelError> {
    Ok(DataFormat::parse(c.attr("data_format")?)?)
}

/// Attribute `padding`.
pub(crate) fn padding(c: &ShapeContext<'_>) -> Result<Padding, KernelError> {
    Ok(Padding::parse(c.attr("padding")?)?)
}

/// The sizes of a shape of known rank, with -1 for unknown ones.
pub(crate) fn sizes(c: &ShapeContext<'_>, shape: ShapeHandle) -> Vec<i64> {
    c.dims(shape).unwrap_or_default()
}

/// A shape with these sizes and the batch dimension of the input.
pub(crate) fn image(
    c: &ShapeContext<'_>,
    sizes: &[i64],
    input: ShapeHandle,
    format: DataFormat,
    channels: Option<Dim>,
) -> ShapeHandle {
    let channel = format.channel_dim(sizes.len());
    with_identity(c, sizes, |at| match at {
        0 => Some(c.dim(input, 0)),
        at if at == channel => channels,
        _ => None,
    })
}

#[cfg(test)]
mod tests;
