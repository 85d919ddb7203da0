//! Normalisation and activations that graphs express by many ops.

use crate::shape::{dims_of, input_of_rank, input_of_rank_at_least, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::Refusal;

register_op!(
    "_FusedLayerNorm",
    inputs = &["x: T", "scale: T", "offset: T"],
    outputs = &["y: T"],
    attrs = &["T: {half, bfloat16, float, double}", "epsilon: float = 0.001"],
    shape = layer_norm,
    summary = "Over the last dimension: (x - mean) / sqrt(variance + epsilon) * scale + offset, where the variance is \
               the mean of the squared deviations. scale and offset have one value for each position of the last \
               dimension. Sums are kept in float at least.",
    cases = &[
        "rows; epsilon in {0.001, 0.00001}; x: [n, d]; scale: [d]; offset: [d]",
        "deep; x: [b, n, 64]; scale: [64]; offset: [64]",
    ],
);

register_op!(
    "_FusedGelu",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {half, bfloat16, float, double}", "approximate: bool = false"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "0.5 x (1 + erf(x / sqrt(2))); approximate: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).",
    cases = &["both; approximate in {true, false}; features: [n, m]"],
);

register_op!(
    "_FusedLayerNormGrad",
    inputs = &["dy: T", "x: T", "scale: T"],
    outputs = &["dx: T", "dscale: T", "doffset: T"],
    attrs = &["T: {half, bfloat16, float, double}", "epsilon: float = 0.001"],
    shape = layer_norm_grad,
    summary = "The gradients of the inputs of `_FusedLayerNorm`, from that of its output, dy. dscale and doffset are \
               sums over all rows. Sums are kept in float at least.",
    cases = &[
        "rows; epsilon in {0.001, 0.00001}; dy: [n, d]; x: [n, d]; scale: [d]",
        "deep; dy: [b, n, 64]; x: [b, n, 64]; scale: [64]",
    ],
);

register_op!(
    "_FusedGeluGrad",
    inputs = &["gradients: T", "features: T"],
    outputs = &["backprops: T"],
    attrs = &["T: {half, bfloat16, float, double}", "approximate: bool = false"],
    shape = alike,
    summary = "The gradient of `_FusedGelu`: gradients times the derivative at features.",
    cases = &["both; approximate in {true, false}; gradients: [n, m]; features: [n, m]"],
);

/// Both inputs and the output have one shape.
fn alike(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}

fn layer_norm_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank_at_least(c, 1, "x", 1)?;
    let (x, scale) = (c.merge(c.input(0), c.input(1))?, input_of_rank(c, 2, "scale", 1)?);
    if c.rank(x).is_none() {
        (1..3).try_for_each(|output| c.set_output(output, scale))?;
        return c.set_output(0, c.unknown());
    }
    let mut dims = dims_of(c, x);
    let mut length = c.dim(scale, 0);
    if let Some(last) = dims.last_mut() {
        length = c.merge_dim(*last, length)?;
        *last = length;
    }
    c.set_output(0, c.make_shape(&dims))?;
    let vector = c.make_shape(&[length]);
    (1..3).try_for_each(|output| c.set_output(output, vector))
}

fn layer_norm(c: &ShapeContext<'_>) -> ShapeResult {
    let x = input_of_rank_at_least(c, 0, "x", 1)?;
    let scale = input_of_rank(c, 1, "scale", 1)?;
    let offset = input_of_rank(c, 2, "offset", 1)?;
    let length = c.merge_dim(c.dim(scale, 0), c.dim(offset, 0))?;
    if c.rank(x).is_none() {
        return c.set_output(0, c.unknown());
    }
    let mut dims = dims_of(c, x);
    if let Some(last) = dims.last_mut() {
        *last = c.merge_dim(*last, length)?;
    }
    c.set_output(0, c.make_shape(&dims))
}
