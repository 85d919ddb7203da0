//! A product that gradient descent subtracts from a variable.

use crate::linalg::matmul_shape_of;
use crate::shape::input_of_rank;
use tenon_author::{ShapeContext, ShapeResult, register_fusion, register_op};

register_op!(
    "_FusedMatMulDescent",
    inputs = &["var: resource", "alpha: T", "a: T", "b: T"],
    attrs = &["transpose_a: bool = false", "transpose_b: bool = false", "T: {float, double}"],
    stateful = true,
    shape = fused_descent,
    summary = "ResourceApplyGradientDescent of var and alpha by MatMul of a and b: var -= alpha * a b. The product is \
               not stored.",
);

fn fused_descent(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "a scalar input", 0)?;
    let product = matmul_shape_of(c, [2, 3])?;
    let variable = c.input_handle(0);
    let variable = variable.first().map_or_else(|| c.unknown(), |&(_, shape)| shape);
    c.merge(variable, product).map(drop)
}

register_fusion!(
    "matmul_descent": "ResourceApplyGradientDescent(v, alpha, MatMul(a, b; transpose_a = $ta, transpose_b = $tb))"
        => "_FusedMatMulDescent(v, alpha, a, b; transpose_a = $ta, transpose_b = $tb)",
);
