//! Gradients of elementwise functions.

use super::both_alike;
use crate::shape::unchanged;
use tenon_author::register_op;

/// Test cases of gradients that are computed from the op's input.
const BY_INPUT: &[&str] = &[
    "vectors; gradients: [n]; features: [n]",
    "matrices; gradients: [n, k]; features: [n, k]",
    "scalars; gradients: []; features: []",
];
const BY_OUTPUT: &[&str] = &[
    "vectors; gradients: [n]; outputs: [n]",
    "matrices; gradients: [n, k]; outputs: [n, k]",
    "scalars; gradients: []; outputs: []",
];
const OF_OUTPUT: &[&str] =
    &["vectors; y: [n]; dy: [n]", "matrices; y: [n, k]; dy: [n, k]", "scalars; y: []; dy: []"];

register_op!(
    "ReluGrad",
    inputs = &["gradients: T", "features: T"],
    outputs = &["backprops: T"],
    attrs = &["T: realnumbertype"],
    shape = both_alike,
    summary = "The gradient where the input of `Relu` was above 0, otherwise 0 times it.",
    cases = BY_INPUT,
);

register_op!(
    "Relu6Grad",
    inputs = &["gradients: T", "features: T"],
    outputs = &["backprops: T"],
    attrs = &["T: realnumbertype"],
    shape = both_alike,
    summary = "The gradient where the input of `Relu6` was between 0 and 6, otherwise 0 times it.",
    cases = BY_INPUT,
);

register_op!(
    "EluGrad",
    inputs = &["gradients: T", "outputs: T"],
    outputs = &["backprops: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = both_alike,
    summary = "The gradient of `Elu`, from its output.",
    cases = BY_OUTPUT,
);

register_op!(
    "SeluGrad",
    inputs = &["gradients: T", "outputs: T"],
    outputs = &["backprops: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = both_alike,
    summary = "The gradient of `Selu`, from its output.",
    cases = BY_OUTPUT,
);

register_op!(
    "LeakyReluGrad",
    inputs = &["gradients: T", "features: T"],
    outputs = &["backprops: T"],
    attrs =
        &["alpha: float = 0.20000000298023224", "T: {half, bfloat16, float, double} = DT_FLOAT"],
    shape = both_alike,
    summary = "The gradient of `LeakyRelu`, from its input.",
    cases = BY_INPUT,
);

register_op!(
    "SoftplusGrad",
    inputs = &["gradients: T", "features: T"],
    outputs = &["backprops: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = both_alike,
    summary = "The gradient of `Softplus`, from its input.",
    cases = BY_INPUT,
);

register_op!(
    "SoftsignGrad",
    inputs = &["gradients: T", "features: T"],
    outputs = &["backprops: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = both_alike,
    summary = "The gradient of `Softsign`, from its input.",
    cases = BY_INPUT,
);

register_op!(
    "SigmoidGrad",
    inputs = &["y: T", "dy: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    summary = "dy y (1 - y): the gradient of `Sigmoid`, from its output.",
    cases = OF_OUTPUT,
);

register_op!(
    "TanhGrad",
    inputs = &["y: T", "dy: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    summary = "dy (1 - y^2): the gradient of `Tanh`, from its output.",
    cases = OF_OUTPUT,
);

register_op!(
    "SqrtGrad",
    inputs = &["y: T", "dy: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    summary = "dy / 2 y: the gradient of `Sqrt`, from its output.",
    cases = OF_OUTPUT,
);

register_op!(
    "RsqrtGrad",
    inputs = &["y: T", "dy: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    summary = "-dy y^3 / 2: the gradient of `Rsqrt`, from its output.",
    cases = OF_OUTPUT,
);

register_op!(
    "ReciprocalGrad",
    inputs = &["y: T", "dy: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    summary = "-dy y^2: the gradient of `Reciprocal`, from its output.",
    cases = OF_OUTPUT,
);

register_op!(
    "InvGrad",
    inputs = &["y: T", "dy: T"],
    outputs = &["z: T"],
    attrs = &["T: {bfloat16, half, float, double, complex64, complex128}"],
    shape = unchanged,
    summary = "`ReciprocalGrad` under its older name.",
    cases = OF_OUTPUT,
);
