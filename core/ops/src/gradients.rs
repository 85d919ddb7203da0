//! Gradients of the standard ops, in files by family.
//!
//! The formulas are TensorFlow's, so that results agree to the last bits of rounding, also where a derivative does not
//! exist: at the corner of `Abs`, at equal operands of `Maximum`.

mod array;
mod control_flow;
mod decompose;
mod einsum;
mod fft;
mod image;
mod linalg;
mod math_binary;
mod math_unary;
mod nn;
mod nn_grad;
mod nn_norm;
mod part;
mod quantization;
mod ragged;
mod random;
mod recurrent;
mod reduction;
mod segment;
mod solvers;
mod speech;
mod state;
mod tensor_array;
mod tensor_list;

use tenon_author::GradientContext;
use tenon_framework::{DType, KernelError, abi::GraphValue};

/// The result of a gradient.
type Outcome = Result<(), KernelError>;
/// A value that is added.
type Made = Result<GraphValue, KernelError>;

/// Sets the gradient of the only input to that of the only output times `slope`.
fn times(c: &GradientContext<'_>, slope: GraphValue) -> Outcome {
    c.set(0, c.mul(c.gradient(0)?, slope)?)
}

/// The shape of a value, a vector of type int32 or int64.
fn shape_as(c: &GradientContext<'_>, x: GraphValue, dtype: DType) -> Made {
    match dtype {
        DType::INT32 => c.shape_of(x),
        _ => c.op("Shape").input(x).attr("out_type", dtype).done(),
    }
}

/// The items of a shape from `from` to before `to`.
fn part_of_shape(
    c: &GradientContext<'_>,
    shape: GraphValue,
    from: Option<i64>,
    to: Option<i64>,
) -> Made {
    let node = c.op("StridedSlice").input(shape);
    let node = node.input(c.ints(&[from.unwrap_or(0)])?).input(c.ints(&[to.unwrap_or(0)])?);
    let mask = |absent: bool| i64::from(absent);
    let node = node.attr("begin_mask", mask(from.is_none())).attr("end_mask", mask(to.is_none()));
    node.input(c.ints(&[1])?).done()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use tenon_author::{reg::gradients, testing::registered_ops};

    #[test]
    fn each_gradient_is_of_an_op_and_each_op_has_one_at_most() {
        let ops = registered_ops();
        let mut seen = BTreeSet::new();
        for gradient in gradients() {
            let op = ops.get(gradient.op);
            let op = op.unwrap_or_else(|| panic!("{}: expected an op of this crate", gradient.op));
            assert!(op.gradient().is_some(), "{}: the definition carries it", gradient.op);
            assert!(seen.insert(gradient.op), "{}: expected one gradient, found two", gradient.op);
        }
        assert!(seen.len() >= 120, "found {}", seen.len());
    }
}
