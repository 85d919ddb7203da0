//! Gradients of ops per channel.

use super::alike;
use crate::{
    nn::{FORMAT, format, with_channels},
    shape::{input_of_rank, input_of_rank_at_least},
};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::DataFormat;

register_op!(
    "BiasAddGrad",
    inputs = &["out_backprop: T"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", FORMAT],
    shape = bias_add_grad,
    summary = "The sum over everything but the channels.",
    cases = &[
        "rows; out_backprop: [n, c]",
        "images; out_backprop: [n, h, w, c]",
        "channels_first; data_format = 'NCHW'; out_backprop: [n, c, h, w]",
    ],
);

register_op!(
    "FusedBatchNormGrad",
    inputs = &["y_backprop: T", "x: T", "scale: T", "reserve_space_1: T", "reserve_space_2: T"],
    outputs = &[
        "x_backprop: T",
        "scale_backprop: T",
        "offset_backprop: T",
        "reserve_space_3: T",
        "reserve_space_4: T"
    ],
    attrs = &[
        "T: {float}",
        "epsilon: float = 9.999999747378752e-05",
        FORMAT,
        "is_training: bool = true",
    ],
    shape = batch_norm_grad,
    summary = "The gradient of `FusedBatchNorm`, by input, scale and offset.",
    cases = &[
        "last; is_training in {true, false}; y_backprop: [n, h, w, c]; \
         x: [n, h, w, c] uniform(-2, 2); scale: [c] uniform(-4, 4); \
         reserve_space_1: [c] uniform(-1, 1); reserve_space_2: [c] uniform(0.25, 4)",
        "first; is_training in {true, false}; data_format = 'NCHW'; \
         y_backprop: [n, c, h, w]; x: [n, c, h, w] uniform(-2, 2); \
         scale: [c] uniform(-4, 4); reserve_space_1: [c] uniform(-1, 1); \
         reserve_space_2: [c] uniform(0.25, 4)",
    ],
);

register_op!(
    "FusedBatchNormGradV2",
    inputs = &["y_backprop: T", "x: T", "scale: float", "reserve_space_1: U", "reserve_space_2: U"],
    outputs = &[
        "x_backprop: T",
        "scale_backprop: U",
        "offset_backprop: U",
        "reserve_space_3: U",
        "reserve_space_4: U"
    ],
    attrs = &[
        "T: {half, bfloat16, float}",
        "U: {float}",
        "epsilon: float = 9.999999747378752e-05",
        FORMAT,
        "is_training: bool = true",
    ],
    shape = batch_norm_grad,
    summary = "The gradient of `FusedBatchNormV2`, by input, scale and offset.",
    cases = &[
        "last; is_training in {true, false}; y_backprop: [n, h, w, c]; \
         x: [n, h, w, c] uniform(-2, 2); scale: [c] uniform(-4, 4); \
         reserve_space_1: [c] uniform(-1, 1); reserve_space_2: [c] uniform(0.25, 4)",
        "first; is_training in {true, false}; data_format = 'NCHW'; \
         y_backprop: [n, c, h, w]; x: [n, c, h, w] uniform(-2, 2); \
         scale: [c] uniform(-4, 4); reserve_space_1: [c] uniform(-1, 1); \
         reserve_space_2: [c] uniform(0.25, 4)",
    ],
);

register_op!(
    "FusedBatchNormGradV3",
    inputs = &[
        "y_backprop: T",
        "x: T",
        "scale: float",
        "reserve_space_1: U",
        "reserve_space_2: U",
        "reserve_space_3: U"
    ],
    outputs = &[
        "x_backprop: T",
        "scale_backprop: U",
        "offset_backprop: U",
        "reserve_space_4: U",
        "reserve_space_5: U"
    ],
    attrs = &[
        "T: {half, bfloat16, float}",
        "U: {float}",
        "epsilon: float = 9.999999747378752e-05",
        "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'",
        "is_training: bool = true",
    ],
    shape = batch_norm_grad,
    summary = "The gradient of `FusedBatchNormV3`, by input, scale and offset.",
    cases = &[
        "last; is_training in {true, false}; y_backprop: [n, h, w, c]; \
         x: [n, h, w, c] uniform(-2, 2); scale: [c] uniform(-4, 4); \
         reserve_space_1: [c] uniform(-1, 1); reserve_space_2: [c] uniform(0.25, 4); \
         reserve_space_3: [c]",
        "first; is_training in {true, false}; data_format = 'NCHW'; \
         y_backprop: [n, c, h, w]; x: [n, c, h, w] uniform(-2, 2); \
         scale: [c] uniform(-4, 4); reserve_space_1: [c] uniform(-1, 1); \
         reserve_space_2: [c] uniform(0.25, 4); reserve_space_3: [c]",
    ],
);

register_op!(
    "LRNGrad",
    inputs = &["input_grads: T", "input_image: T", "output_image: T"],
    outputs = &["output: T"],
    attrs = &[
        "depth_radius: int = 5",
        "bias: float = 1.0",
        "alpha: float = 1.0",
        "beta: float = 0.5",
        "T: {half, bfloat16, float} = DT_FLOAT",
    ],
    shape = lrn_grad,
    summary = "The gradient of `LRN`.",
    cases = &["plain; depth_radius in {0, 2}; input_grads: [n, h, w, c]; \
         input_image: [n, h, w, c] uniform(-2, 2); output_image: [n, h, w, c] uniform(-1, 1)",],
);

fn bias_add_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let format = format(c)?;
    let gradient = input_of_rank_at_least(c, 0, "out_backprop", 2)?;
    match c.rank(gradient) {
        Some(rank) => c.set_output(0, c.make_shape(&[c.dim(gradient, format.channel_dim(rank))])),
        None => c.set_output(0, c.unknown_of_rank(1)),
    }
}

/// The outputs are `x`'s gradient and the gradients of the vectors; the reserved outputs are empty.
fn batch_norm_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let name: &str = c.attr("data_format")?;
    let rank = if name.contains('D') { 5 } else { 4 };
    let gradient = input_of_rank(c, 0, "y_backprop", rank)?;
    let x = alike(c, "x", gradient, input_of_rank(c, 1, "x", rank)?)?;
    let mut vectors = Vec::new();
    for (at, what) in [(2, "scale"), (3, "reserve_space_1"), (4, "reserve_space_2")] {
        vectors.push((input_of_rank(c, at, what, 1)?, what));
    }
    let format = DataFormat::parse(name)?;
    let x = with_channels(c, x, format, &vectors)?;
    let channels = c.make_shape(&[c.dim(x, format.channel_dim(rank))]);
    c.set_output(0, x)?;
    c.set_output(1, channels)?;
    c.set_output(2, channels)?;
    let none = c.shape_of(&[0]);
    c.set_output(3, none)?;
    c.set_output(4, none)
}

fn lrn_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let mut shape = input_of_rank(c, 0, "input_grads", 4)?;
    for (at, what) in [(1, "input_image"), (2, "output_image")] {
        shape = alike(c, what, shape, input_of_rank(c, at, what, 4)?)?;
    }
    c.set_output(0, shape)
}
