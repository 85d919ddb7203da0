//! A product of matrices and what follows it.

use super::epilogue;
use crate::shape::{dims_of, input_of_rank};
use tenon_framework::{
    author::{Dim, ShapeContext, ShapeResult},
    geometry::matmul_dims,
    register_op,
};

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
               vector of one value per column), Add (a tensor of the product's shape), activations.",
    cases = &[
        "bias; fused_ops = ['BiasAdd']; a: [m, k]; b: [k, n]; args: [n]",
        "bias_relu; fused_ops = ['BiasAdd', 'Relu']; a: [m, k]; b: [k, n]; args: [n]",
        "transposed; transpose_a = true; transpose_b = true; fused_ops = ['BiasAdd', 'Relu6']; a: [k, m]; b: [n, k]; \
         args: [n]",
        "gelu; fused_ops in {['BiasAdd', 'GeluApproximate'], ['BiasAdd', 'GeluExact'], ['BiasAdd', 'Tanh'], \
         ['BiasAdd', 'Sigmoid'], ['BiasAdd', 'Elu'], ['BiasAdd', 'LeakyRelu']}; a: [m, k]; b: [k, n]; args: [n]",
        "residual; fused_ops = ['BiasAdd', 'Add']; a: [m, k]; b: [k, n]; args: [n], [m, n]",
        "plain; fused_ops = ['Relu']; num_args = 0; a: [m, k]; b: [k, n]",
    ],
);

fn fused_matmul(c: &ShapeContext<'_>) -> ShapeResult {
    let (a, b) = (input_of_rank(c, 0, "a", 2)?, input_of_rank(c, 1, "b", 2)?);
    let (transpose_a, transpose_b) = (c.attr("transpose_a")?, c.attr("transpose_b")?);
    let (a, b) = (dims_of(c, a), dims_of(c, b));
    let sizes =
        |dims: &[Dim]| -> Vec<i64> { dims.iter().map(|&dim| c.value(dim).unwrap_or(-1)).collect() };
    matmul_dims(&sizes(&a), &sizes(&b), transpose_a, transpose_b)?;
    c.merge_dim(a[usize::from(!transpose_a)], b[usize::from(transpose_b)])?;
    let product = c.make_shape(&[a[usize::from(transpose_a)], b[usize::from(!transpose_b)]]);
    c.set_output(0, epilogue::after(c, product, 2, 1)?)
}
