//! Gradients of grey-scale dilation.

use crate::{nn::COMPUTED_PADDING, shape::input_of_rank};
use tenon_author::{ShapeContext, ShapeResult, register_op};

const ATTRS: &[&str] =
    &["T: realnumbertype", "strides: list(int) >= 4", "rates: list(int) >= 4", COMPUTED_PADDING];
const CASES: &[&str] = &[
    "same; strides = [1, 1, 1, 1]; rates in {[1, 1, 1, 1], [1, 2, 3, 1]}; padding = 'SAME'; \
     input: [n, h, w, c]; filter: [2, 3, c]; out_backprop: [n, h, w, c]",
    "halves; strides = [1, 2, 2, 1]; rates = [1, 1, 1, 1]; padding = 'VALID'; \
     input: [n, 2*h, 2*w, c]; filter: [2, 2, c]; out_backprop: [n, h, w, c]",
];

register_op!(
    "Dilation2DBackpropInput",
    inputs = &["input: T", "filter: T", "out_backprop: T"],
    outputs = &["in_backprop: T"],
    attrs = ATTRS,
    shape = by_input,
    summary = "The gradient of `Dilation2D` by its input: that of each window goes to the first pixel whose sum is the greatest.",
    cases = CASES,
);

register_op!(
    "Dilation2DBackpropFilter",
    inputs = &["input: T", "filter: T", "out_backprop: T"],
    outputs = &["filter_backprop: T"],
    attrs = ATTRS,
    shape = by_filter,
    summary = "The gradient of `Dilation2D` by its filter: that of each window goes to the first filter element whose sum is the greatest.",
    cases = CASES,
);

fn by_input(c: &ShapeContext<'_>) -> ShapeResult {
    check(c)?;
    c.set_output(0, input_of_rank(c, 0, "input", 4)?)
}

fn by_filter(c: &ShapeContext<'_>) -> ShapeResult {
    check(c)?;
    c.set_output(0, input_of_rank(c, 1, "filter", 3)?)
}

fn check(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "input", 4)?;
    input_of_rank(c, 1, "filter", 3)?;
    input_of_rank(c, 2, "out_backprop", 4)?;
    Ok(())
}
