//! Elementwise functions between layers, and softmax.

use crate::shape::{input_of_rank_at_least, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::Refusal;

register_op!(
    "Relu",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {realnumbertype, qint8}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "The greater of 0 and each element.",
);

register_op!(
    "Relu6",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: realnumbertype"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "Each element clamped to 0 and 6.",
);

register_op!(
    "Softmax",
    inputs = &["logits: T"],
    outputs = &["softmax: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = softmax,
    summary = "The exponentials along the last dimension, divided by their sum.",
    bench = &[
        "digits; logits: [64, 10]",
        "classes; logits: [128, 1000]",
        "attention; logits: [1536, 128]",
    ],
);

register_op!(
    "Elu",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "e^x - 1 for elements below 0; other elements unchanged.",
);

register_op!(
    "Selu",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "A scaled `Elu`, whose constants keep mean 0 and variance 1 from layer to layer.",
);

register_op!(
    "LeakyRelu",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs =
        &["alpha: float = 0.20000000298023224", "T: {half, bfloat16, float, double} = DT_FLOAT"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "Each element, multiplied by alpha unless it is above 0.",
);

register_op!(
    "Softplus",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "ln(1 + e^x).",
);

register_op!(
    "Softsign",
    inputs = &["features: T"],
    outputs = &["activations: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = unchanged,
    elementwise = true,
    refuses = Refusal::Nothing,
    summary = "x / (1 + |x|).",
);

register_op!(
    "LogSoftmax",
    inputs = &["logits: T"],
    outputs = &["logsoftmax: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = softmax,
    summary = "The logarithm of `Softmax`.",
    bench = &[
        "digits; logits: [64, 10]",
        "classes; logits: [128, 1000]",
        "attention; logits: [1536, 128]",
    ],
);

fn softmax(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank_at_least(c, 0, "logits", 1)?)
}
