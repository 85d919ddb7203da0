//! Gradients of pooling.

use super::{alike, vector_of};
use crate::{
    nn::{COMPUTED_PADDING, EXPLICIT, FORMAT, PADDING},
    shape::input_of_rank,
};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "MaxPoolGrad",
    inputs = &["orig_input: T", "orig_output: T", "grad: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        PADDING,
        EXPLICIT,
        FORMAT,
        "T: realnumbertype = DT_FLOAT",
    ],
    shape = max_pool_grad,
    summary = "The gradient of `MaxPool`: that of each window goes to its greatest element, or to the first of equal ones.",
    cases = &[
        "same; ksize = [1, 3, 2, 1]; strides = [1, 1, 1, 1]; padding = 'SAME'; \
         orig_input: [n, h, w, c]; orig_output: [n, h, w, c]; grad: [n, h, w, c]",
        "halves; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding in {'SAME', 'VALID'}; \
         orig_input: [n, 2*h, 2*w, c]; orig_output: [n, h, w, c]; grad: [n, h, w, c]",
        "channels_first; data_format = 'NCHW'; ksize = [1, 1, 2, 2]; strides = [1, 1, 2, 2]; \
         padding = 'VALID'; orig_input: [n, c, 2*h, 2*w]; orig_output: [n, c, h, w]; \
         grad: [n, c, h, w]",
    ],
);

register_op!(
    "MaxPoolGradV2",
    inputs = &["orig_input: T", "orig_output: T", "grad: T", "ksize: int32", "strides: int32"],
    outputs = &["output: T"],
    attrs = &[COMPUTED_PADDING, FORMAT, "T: realnumbertype = DT_FLOAT"],
    shape = max_pool_grad_v2,
    summary = "`MaxPoolGrad` with windows and strides as inputs.",
    cases = &[
        "halves; padding in {'SAME', 'VALID'}; orig_input: [n, 2*h, 2*w, c]; \
         orig_output: [n, h, w, c]; grad: [n, h, w, c]; ksize: [4] values(1, 2, 2, 1); \
         strides: [4] values(1, 2, 2, 1)",
        "channels_first; data_format = 'NCHW'; padding = 'SAME'; orig_input: [n, c, h, w]; \
         orig_output: [n, c, h, w]; grad: [n, c, h, w]; ksize: [4] values(1, 1, 2, 3); \
         strides: [4] values(1, 1, 1, 1)",
    ],
);

register_op!(
    "MaxPoolGradWithArgmax",
    inputs = &["input: T", "grad: T", "argmax: Targmax"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        COMPUTED_PADDING,
        "include_batch_in_index: bool = false",
        "Targmax: {int32, int64}",
        "T: realnumbertype",
    ],
    shape = max_pool_grad_with_argmax,
    summary = "The gradient of `MaxPoolWithArgmax`.",
    cases = &[
        "pixels; ksize = [1, 1, 1, 1]; strides = [1, 1, 1, 1]; padding = 'VALID'; \
         input: [n, 5, 7, 3]; grad: [n, 5, 7, 3]; argmax: [n, 5, 7, 3] integers(0..105)",
        "images; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding = 'VALID'; input: [n, 4, 4, 2]; \
         grad: [n, 2, 2, 2]; argmax: [n, 2, 2, 2] integers(0..32)",
        "input; include_batch_in_index = true; n in 1..200; ksize = [1, 2, 2, 1]; \
         strides = [1, 2, 2, 1]; padding = 'VALID'; input: [n, 4, 4, 2]; grad: [n, 2, 2, 2]; \
         argmax: [n, 2, 2, 2] integers(0..32*n)",
    ],
);

register_op!(
    "AvgPoolGrad",
    inputs = &["orig_input_shape: int32", "grad: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        COMPUTED_PADDING,
        FORMAT,
        "T: {half, bfloat16, float, double}",
    ],
    shape = avg_pool_grad,
    summary =
        "The gradient of `AvgPool`: that of each window is divided equally among its elements.",
    cases = &[
        "same; ksize = [1, 3, 2, 1]; strides = [1, 1, 1, 1]; padding = 'SAME'; \
         orig_input_shape: [4] values(n, h, w, c); grad: [n, h, w, c]",
        "halves; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding in {'SAME', 'VALID'}; \
         orig_input_shape: [4] values(n, 2*h, 2*w, c); grad: [n, h, w, c]",
        "channels_first; data_format = 'NCHW'; ksize = [1, 1, 2, 2]; strides = [1, 1, 2, 2]; \
         padding = 'VALID'; orig_input_shape: [4] values(n, c, 2*h, 2*w); grad: [n, c, h, w]",
    ],
);

fn max_pool_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "orig_input", 4)?;
    let output = input_of_rank(c, 1, "orig_output", 4)?;
    alike(c, "grad", output, input_of_rank(c, 2, "grad", 4)?)?;
    c.set_output(0, input)
}

fn max_pool_grad_v2(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in [(3, "ksize"), (4, "strides")] {
        vector_of(c, at, what, 4)?;
    }
    max_pool_grad(c)
}

fn max_pool_grad_with_argmax(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 4)?;
    let gradient = input_of_rank(c, 1, "grad", 4)?;
    alike(c, "argmax", gradient, input_of_rank(c, 2, "argmax", 4)?)?;
    c.set_output(0, input)
}

fn avg_pool_grad(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "grad", 4)?;
    c.set_output(0, c.with_rank(c.constant_as_shape(0)?, 4)?)
}
