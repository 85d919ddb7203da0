//! Gradients of pooling.

use super::alike;
use crate::{
    nn::{COMPUTED_PADDING, EXPLICIT, FORMAT, PADDING},
    shape::input_of_rank,
};
use tenon_framework::{
    author::{ShapeContext, ShapeResult},
    register_op,
};

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
        "T: realnumbertype = DT_FLOAT"
    ],
    shape = max_pool_grad,
    summary = "The gradient of `MaxPool`: each window's goes to its greatest element, of equal ones to the first.",
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
        "T: realnumbertype"
    ],
    shape = max_pool_grad_with_argmax,
    summary = "The gradient of `MaxPoolWithArgmax`.",
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
        "T: {half, bfloat16, float, double}"
    ],
    shape = avg_pool_grad,
    summary = "The gradient of `AvgPool`: each window's goes to its elements in equal parts.",
);

fn max_pool_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "orig_input", 4)?;
    let output = input_of_rank(c, 1, "orig_output", 4)?;
    alike(c, "grad", output, input_of_rank(c, 2, "grad", 4)?)?;
    c.set_output(0, input)
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
