//! Second gradients of pooling: of the gradient of a maximum by the gradient that it is given.

use super::{alike, vector_of};
use crate::{
    nn::{COMPUTED_PADDING, FORMAT, FORMAT_3D},
    shape::input_of_rank,
};
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "MaxPoolGradGrad",
    inputs = &["orig_input: T", "orig_output: T", "grad: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 4",
        "strides: list(int) >= 4",
        COMPUTED_PADDING,
        FORMAT,
        "T: realnumbertype",
    ],
    shape = planar,
    summary = "The gradient of `MaxPoolGrad` by its gradient: of each window the element of `grad` at the first place whose input equals the window's output, 0 if there is none.",
    cases = &[
        "halves; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding in {'SAME', 'VALID'}; \
         orig_input: [n, 2*h, 2*w, c] integers(0..3); orig_output: [n, h, w, c] integers(0..3); \
         grad: [n, 2*h, 2*w, c]",
        "channels_first; data_format = 'NCHW'; ksize = [1, 1, 2, 3]; strides = [1, 1, 1, 1]; \
         padding = 'SAME'; orig_input: [n, c, h, w] integers(0..3); \
         orig_output: [n, c, h, w] integers(0..3); grad: [n, c, h, w]",
    ],
);

register_op!(
    "MaxPoolGradGradV2",
    inputs = &["orig_input: T", "orig_output: T", "grad: T", "ksize: int32", "strides: int32"],
    outputs = &["output: T"],
    attrs = &[COMPUTED_PADDING, FORMAT, "T: realnumbertype"],
    shape = planar_v2,
    summary = "`MaxPoolGradGrad` with windows and strides as inputs.",
    cases =
        &["halves; padding in {'SAME', 'VALID'}; orig_input: [n, 2*h, 2*w, c] integers(0..3); \
         orig_output: [n, h, w, c] integers(0..3); grad: [n, 2*h, 2*w, c]; \
         ksize: [4] values(1, 2, 2, 1); strides: [4] values(1, 2, 2, 1)",],
);

register_op!(
    "MaxPoolGradGradWithArgmax",
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
    shape = with_argmax,
    summary = "The gradient of `MaxPoolGradWithArgmax` by its gradient: the elements of `grad` at the given places.",
    cases = &[
        "images; ksize = [1, 2, 2, 1]; strides = [1, 2, 2, 1]; padding = 'VALID'; input: [n, 4, 4, 2]; \
         grad: [n, 4, 4, 2]; argmax: [n, 2, 2, 2] integers(0..32)",
        "input; include_batch_in_index = true; n in 1..200; ksize = [1, 2, 2, 1]; \
         strides = [1, 2, 2, 1]; padding = 'VALID'; input: [n, 4, 4, 2]; grad: [n, 4, 4, 2]; \
         argmax: [n, 2, 2, 2] integers(0..32*n)",
    ],
);

register_op!(
    "MaxPool3DGradGrad",
    inputs = &["orig_input: T", "orig_output: T", "grad: T"],
    outputs = &["output: T"],
    attrs = &[
        "ksize: list(int) >= 5",
        "strides: list(int) >= 5",
        COMPUTED_PADDING,
        FORMAT_3D,
        "T: realnumbertype",
    ],
    shape = volume,
    summary = "`MaxPoolGradGrad` over three dimensions.",
    cases = &[
        "halves; ksize = [1, 2, 2, 2, 1]; strides = [1, 2, 2, 2, 1]; padding in {'SAME', 'VALID'}; \
         orig_input: [n, 2*d, 2*h, 2*w, c] integers(0..3); orig_output: [n, d, h, w, c] integers(0..3); \
         grad: [n, 2*d, 2*h, 2*w, c]",
        "channels_first; data_format = 'NCDHW'; ksize = [1, 1, 2, 3, 2]; strides = [1, 1, 1, 1, 1]; \
         padding = 'SAME'; orig_input: [n, c, d, h, w] integers(0..3); \
         orig_output: [n, c, d, h, w] integers(0..3); grad: [n, c, d, h, w]",
    ],
);

fn planar(c: &ShapeContext<'_>) -> ShapeResult {
    selected(c, 4)
}

fn volume(c: &ShapeContext<'_>) -> ShapeResult {
    selected(c, 5)
}

fn planar_v2(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in [(3, "ksize"), (4, "strides")] {
        vector_of(c, at, what, 4)?;
    }
    selected(c, 4)
}

/// The output has the shape of the pooling's output, the gradient that of its input.
fn selected(c: &ShapeContext<'_>, rank: usize) -> ShapeResult {
    let input = input_of_rank(c, 0, "orig_input", rank)?;
    alike(c, "grad", input, input_of_rank(c, 2, "grad", rank)?)?;
    c.set_output(0, input_of_rank(c, 1, "orig_output", rank)?)
}

fn with_argmax(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "input", 4)?;
    alike(c, "grad", input, input_of_rank(c, 1, "grad", 4)?)?;
    c.set_output(0, input_of_rank(c, 2, "argmax", 4)?)
}
