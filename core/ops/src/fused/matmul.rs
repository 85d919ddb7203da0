//! A matrix product with the ops that follow it.

use super::epilogue;
use crate::linalg::matmul_shape;
use tenon_author::{ShapeContext, ShapeResult, register_op};

register_op!(
    "_FusedMatMul",
    inputs = &["a: T", "b: T", "args: num_args * T"],
    outputs = &["product: T"],
    attrs = &[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "T: {bfloat16, half, float, double}",
        "num_args: int >= 0",
        "fused_ops: list(string) = []",
        "epsilon: float = 0.0001",
        "leakyrelu_alpha: float = 0.2",
    ],
    shape = fused_matmul,
    summary = "MatMul of a and b, then the steps of fused_ops in order, each with its inputs among args: BiasAdd (a \
               vector of one value per column), Add (a tensor of the product's shape), activations, gradients of \
               activations (ReluGrad, TanhGrad, SigmoidGrad, each with the activation's output).",
    cases = &[
        "bias; fused_ops = ['BiasAdd']; a: [m, k]; b: [k, n]; args: [n]",
        "bias_relu; fused_ops = ['BiasAdd', 'Relu']; a: [m, k]; b: [k, n]; args: [n]",
        "transposed; transpose_a = true; transpose_b = true; fused_ops = ['BiasAdd', 'Relu6']; a: [k, m]; b: [n, k]; \
         args: [n]",
        "gelu; fused_ops in {['BiasAdd', 'GeluApproximate'], ['BiasAdd', 'GeluExact'], ['BiasAdd', 'Tanh'], \
         ['BiasAdd', 'Sigmoid'], ['BiasAdd', 'Elu'], ['BiasAdd', 'LeakyRelu']}; a: [m, k]; b: [k, n]; args: [n]",
        "residual; fused_ops = ['BiasAdd', 'Add']; a: [m, k]; b: [k, n]; args: [n], [m, n]",
        "slope; fused_ops in {['ReluGrad'], ['TanhGrad'], ['SigmoidGrad']}; a: [m, k]; b: [k, n]; \
         args: [m, n]",
        "plain; fused_ops = ['Relu']; num_args = 0; a: [m, k]; b: [k, n]",
    ],
);

fn fused_matmul(c: &ShapeContext<'_>) -> ShapeResult {
    let product = matmul_shape(c)?;
    c.set_output(0, epilogue::after(c, product, 2, 1)?)
}
