//! Gradients of pooling over three dimensions.

use super::alike;
use crate::{
    nn::{COMPUTED_PADDING, FORMAT_3D},
    shape::input_of_rank,
};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "MaxPool3DGrad",
    inputs = &["orig_input: TInput", "orig_output: TInput", "grad: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        "T: {half, bfloat16, float} = DT_FLOAT",
        "TInput: {half, bfloat16, float} = DT_FLOAT",
    ],
    shape = max_pool_grad,
    summary = "The gradient of `MaxPool3D`: that of each window goes to every element that equals the window's output.",
    cases = &[
        "halves; ksize = [1, 2, 2, 2, 1]; strides = [1, 2, 2, 2, 1]; padding in {'SAME', 'VALID'}; \
         orig_input: [n, 2*d, 2*h, 2*w, c] integers(0..3); orig_output: [n, d, h, w, c] integers(0..3); \
         grad: [n, d, h, w, c]",
        "channels_first; data_format = 'NCDHW'; ksize = [1, 1, 2, 3, 2]; strides = [1, 1, 1, 1, 1]; \
         padding = 'SAME'; orig_input: [n, c, d, h, w] integers(0..3); \
         orig_output: [n, c, d, h, w] integers(0..3); grad: [n, c, d, h, w]",
    ],
);

register_op!(
    "AvgPool3DGrad",
    inputs = &["orig_input_shape: int32", "grad: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        "T: {half, bfloat16, float, double}",
    ],
    shape = avg_pool_grad,
    summary =
        "The gradient of `AvgPool3D`: that of each window is divided equally among its elements.",
    cases = &[
        "same; ksize = [1, 2, 3, 2, 1]; strides = [1, 1, 1, 1, 1]; padding = 'SAME'; \
         orig_input_shape: [5] values(n, d, h, w, c); grad: [n, d, h, w, c]",
        "halves; ksize = [1, 2, 2, 2, 1]; strides = [1, 2, 2, 2, 1]; padding in {'SAME', 'VALID'}; \
         orig_input_shape: [5] values(n, 2*d, 2*h, 2*w, c); grad: [n, d, h, w, c]",
        "channels_first; data_format = 'NCDHW'; ksize = [1, 1, 2, 2, 2]; strides = [1, 1, 2, 2, 2]; \
         padding = 'VALID'; orig_input_shape: [5] values(n, c, 2*d, 2*h, 2*w); grad: [n, c, d, h, w]",
    ],
);

fn max_pool_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "orig_input", 5)?;
    let output = input_of_rank(c, 1, "orig_output", 5)?;
    alike(c, "grad", output, input_of_rank(c, 2, "grad", 5)?)?;
    c.set_output(0, input)
}

fn avg_pool_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "grad", 5)?;
    c.set_output(0, c.with_rank(c.constant_as_shape(0)?, 5)?)
}
