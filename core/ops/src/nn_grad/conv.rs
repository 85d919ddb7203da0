//! Gradients of convolutions.

use crate::{
    nn::{COMPUTED_PADDING, DILATIONS, DILATIONS_3D, EXPLICIT, FORMAT, FORMAT_3D, PADDING, format},
    shape::{dims_of, input_of_rank},
};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

/// Test cases of a convolution's gradients by its input and by its filter, from one table:
/// attributes and the bounds of symbols, then the shapes of input, filter and gradient.
macro_rules! gradient_cases {
    ($by_input:ident, $by_filter:ident, $rank:literal:
     $($attrs:literal, $input:literal, $filter:literal, $gradient:literal;)*) => {
        const $by_input: &[&str] = &[$(concat!(
            $attrs, "; input_sizes: [", $rank, "] values(", $input, "); filter: [", $filter,
            "]; out_backprop: [", $gradient, "]"
        )),*];
        const $by_filter: &[&str] = &[$(concat!(
            $attrs, "; input: [", $input, "]; filter_sizes: [", $rank, "] values(", $filter,
            "); out_backprop: [", $gradient, "]"
        )),*];
    };
}

gradient_cases! {
    BY_INPUT_2D, BY_FILTER_2D, 4:
    "same; strides = [1, 1, 1, 1]; padding = 'SAME'; \
     dilations in {[1, 1, 1, 1], [1, 2, 2, 1]}; c in 1..9; m in 1..9",
    "n, h, w, c", "3, 2, c, m", "n, h, w, m";
    "strided; strides = [1, 2, 2, 1]; padding = 'SAME'; c in 1..9; m in 1..9",
    "n, 2*h, 2*w, c", "3, 3, c, m", "n, h, w, m";
    "valid; strides = [1, 1, 1, 1]; padding = 'VALID'; c in 1..9; m in 1..9",
    "n, h+2, w+1, c", "3, 2, c, m", "n, h, w, m";
    "explicit; strides = [1, 1, 1, 1]; padding = 'EXPLICIT'; \
     explicit_paddings = [0, 0, 1, 1, 0, 1, 0, 0]; c in 1..9; m in 1..9",
    "n, h, w, c", "3, 2, c, m", "n, h, w, m";
    "channels_first; data_format = 'NCHW'; strides = [1, 1, 1, 1]; padding = 'SAME'; \
     c in 1..9; m in 1..9",
    "n, c, h, w", "3, 2, c, m", "n, m, h, w";
}

gradient_cases! {
    BY_INPUT_3D, BY_FILTER_3D, 5:
    "same; strides = [1, 1, 1, 1, 1]; padding = 'SAME'; \
     dilations in {[1, 1, 1, 1, 1], [1, 2, 1, 2, 1]}; c in 1..9; m in 1..9",
    "n, d, h, w, c", "2, 3, 2, c, m", "n, d, h, w, m";
    "strided; strides = [1, 2, 1, 2, 1]; padding = 'SAME'; c in 1..9; m in 1..9",
    "n, 2*d, h, 2*w, c", "2, 3, 2, c, m", "n, d, h, w, m";
    "valid; strides = [1, 1, 1, 1, 1]; padding = 'VALID'; c in 1..9; m in 1..9",
    "n, d+1, h+2, w+1, c", "2, 3, 2, c, m", "n, d, h, w, m";
    "channels_first; data_format = 'NCDHW'; strides = [1, 1, 1, 1, 1]; padding = 'SAME'; \
     c in 1..9; m in 1..9",
    "n, c, d, h, w", "2, 3, 2, c, m", "n, m, d, h, w";
}

gradient_cases! {
    DEPTHWISE_BY_INPUT, DEPTHWISE_BY_FILTER, 4:
    "same; strides = [1, 1, 1, 1]; padding = 'SAME'; \
     dilations in {[1, 1, 1, 1], [1, 2, 2, 1]}; c in 1..9",
    "n, h, w, c", "3, 2, c, 1", "n, h, w, c";
    "strided; strides = [1, 2, 2, 1]; padding = 'SAME'; c in 1..9",
    "n, 2*h, 2*w, c", "3, 3, c, 2", "n, h, w, 2*c";
    "valid; strides = [1, 1, 1, 1]; padding = 'VALID'; c in 1..9",
    "n, h+2, w+1, c", "3, 2, c, 2", "n, h, w, 2*c";
    "explicit; strides = [1, 1, 1, 1]; padding = 'EXPLICIT'; \
     explicit_paddings = [0, 0, 1, 1, 0, 1, 0, 0]; c in 1..9",
    "n, h, w, c", "3, 2, c, 2", "n, h, w, 2*c";
    "channels_first; data_format = 'NCHW'; strides = [1, 1, 1, 1]; padding = 'SAME'; \
     c in 1..9",
    "n, c, h, w", "3, 2, c, 2", "n, 2*c, h, w";
}

register_op!(
    "Conv2DBackpropInput",
    inputs = &["input_sizes: int32", "filter: T", "out_backprop: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double, int32}",
        "strides: list(int)",
        "use_cudnn_on_gpu: bool = true",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
    ],
    shape = backprop_input,
    summary = "The gradient of `Conv2D` by its input.",
    cases = BY_INPUT_2D,
);

register_op!(
    "Conv2DBackpropFilter",
    inputs = &["input: T", "filter_sizes: int32", "out_backprop: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int)",
        "use_cudnn_on_gpu: bool = true",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
    ],
    shape = backprop_filter,
    summary = "The gradient of `Conv2D` by its filter.",
    cases = BY_FILTER_2D,
);

register_op!(
    "Conv3DBackpropInputV2",
    inputs = &["input_sizes: Tshape", "filter: T", "out_backprop: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        DILATIONS_3D,
        "Tshape: {int32, int64} = DT_INT32",
    ],
    shape = backprop_input,
    summary = "The gradient of `Conv3D` by its input.",
    cases = BY_INPUT_3D,
);

register_op!(
    "Conv3DBackpropFilterV2",
    inputs = &["input: T", "filter_sizes: int32", "out_backprop: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        DILATIONS_3D,
    ],
    shape = backprop_filter,
    summary = "The gradient of `Conv3D` by its filter.",
    cases = BY_FILTER_3D,
);

register_op!(
    "DepthwiseConv2dNativeBackpropInput",
    inputs = &["input_sizes: int32", "filter: T", "out_backprop: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int)",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
    ],
    shape = backprop_input,
    summary = "The gradient of `DepthwiseConv2dNative` by its input.",
    cases = DEPTHWISE_BY_INPUT,
);

register_op!(
    "DepthwiseConv2dNativeBackpropFilter",
    inputs = &["input: T", "filter_sizes: int32", "out_backprop: T"],
    outputs = &["output: T"],
    attrs = &[
        "T: {half, bfloat16, float, double}",
        "strides: list(int)",
        PADDING,
        EXPLICIT,
        FORMAT,
        DILATIONS,
    ],
    shape = backprop_filter,
    summary = "The gradient of `DepthwiseConv2dNative` by its filter.",
    cases = DEPTHWISE_BY_FILTER,
);

/// The number of dimensions of the images, from the length of the format's name.
fn rank(c: &ShapeContext<'_>) -> Result<usize, KernelError> {
    Ok(c.attr::<&str>("data_format")?.len())
}

/// The shape given by the first input, as a whole or by rows and columns only.
fn backprop_input(c: &ShapeContext<'_>) -> ShapeResult {
    let (rank, format) = (rank(c)?, format(c)?);
    let filter = input_of_rank(c, 1, "filter", rank)?;
    let gradient = input_of_rank(c, 2, "out_backprop", rank)?;
    let given = c.constant_as_shape(0)?;
    let dims = dims_of(c, given);
    if c.rank(given).is_some() && dims.len() != rank {
        if dims.len() + 2 != rank || rank != 4 {
            let found = dims.len();
            return Err(GeometryError::Length { what: "input_sizes", expected: rank, found }.into());
        }
        let mut whole: Vec<Dim> = vec![c.dim(gradient, 0), c.dim(filter, 2), dims[0], dims[1]];
        if format.channel_dim(4) == 3 {
            whole.swap(1, 3);
            whole.swap(1, 2);
        }
        return c.set_output(0, c.make_shape(&whole));
    }
    c.set_output(0, c.with_rank(given, rank)?)
}

/// The shape given by the second input.
fn backprop_filter(c: &ShapeContext<'_>) -> ShapeResult {
    let rank = rank(c)?;
    input_of_rank(c, 0, "input", rank)?;
    input_of_rank(c, 2, "out_backprop", rank)?;
    let given = c.constant_as_shape(1)?;
    match c.rank(given) {
        Some(found) if found != rank => {
            Err(GeometryError::Length { what: "filter_sizes", expected: rank, found }.into())
        }
        _ => c.set_output(0, c.with_rank(given, rank)?),
    }
}
