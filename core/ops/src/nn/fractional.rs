//! Pooling of windows whose sizes are drawn at random, and its gradients.

use crate::shape::{dims_of, input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::fractional_dims;

const T: &str = "T: {float, double, int32, int64}";
const OVERLAPPING: &str = "overlapping: bool = false";
const ATTRS: &[&str] = &[
    "pooling_ratio: list(float) >= 4",
    "pseudo_random: bool = false",
    OVERLAPPING,
    "deterministic: bool = false",
    "seed: int = 0",
    "seed2: int = 0",
    T,
];
const OUTPUTS: &[&str] =
    &["output: T", "row_pooling_sequence: int64", "col_pooling_sequence: int64"];

macro_rules! pools {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["value: T"],
            outputs = OUTPUTS,
            attrs = ATTRS,
            shape = pool,
            summary = $summary,
            cases = &["drawn; pooling_ratio = [1.0, 1.5, 1.25, 1.0]; pseudo_random in {false, true}; \
                overlapping in {false, true}; deterministic = true; seed = 7; value: [n, 7, 6, c]"],
        );
    )*};
}

pools! {
    "FractionalMaxPool",
        "The greatest element of each window of rows and columns whose numbers are drawn, and where the windows begin.";
    "FractionalAvgPool",
        "The mean of each window of rows and columns whose numbers are drawn, and where the windows begin.";
}

register_op!(
    "FractionalMaxPoolGrad",
    inputs = &[
        "orig_input: T",
        "orig_output: T",
        "out_backprop: T",
        "row_pooling_sequence: int64",
        "col_pooling_sequence: int64"
    ],
    outputs = &["output: T"],
    attrs = &[OVERLAPPING, T],
    shape = max_grad,
    summary = "The gradient of `FractionalMaxPool`: that of each window goes to its first greatest element.",
    cases = &[
        "windows; overlapping in {false, true}; orig_input: [n, 4, 5, c]; orig_output: [n, 2, 3, c]; \
         out_backprop: [n, 2, 3, c]; row_pooling_sequence: [3] values(0, 2, 4); col_pooling_sequence: [4] values(0, 1, 3, 5)"
    ],
);

register_op!(
    "FractionalAvgPoolGrad",
    inputs = &[
        "orig_input_tensor_shape: int64",
        "out_backprop: T",
        "row_pooling_sequence: int64",
        "col_pooling_sequence: int64"
    ],
    outputs = &["output: T"],
    attrs = &[OVERLAPPING, T],
    shape = avg_grad,
    summary = "The gradient of `FractionalAvgPool`: that of each window is divided equally among its elements.",
    cases = &[
        "windows; overlapping in {false, true}; orig_input_tensor_shape: [4] values(n, 4, 5, c); \
         out_backprop: [n, 2, 3, c]; row_pooling_sequence: [3] values(0, 2, 4); col_pooling_sequence: [4] values(0, 1, 3, 5)"
    ],
);

fn pool(c: &ShapeContext<'_>) -> ShapeResult {
    let value = input_of_rank(c, 0, "value", 4)?;
    let ratio: Vec<f32> = c.attr("pooling_ratio")?;
    let sizes = c.dims(value).unwrap_or_else(|| vec![-1; 4]);
    let output = fractional_dims(&sizes, &ratio)?;
    let dim = |at: usize| match at {
        0 | 3 => c.dim(value, at),
        _ => c.make_dim(Some(output[at]).filter(|&size| size >= 0)),
    };
    let dims: Vec<Dim> = (0..4).map(dim).collect();
    c.set_output(0, c.make_shape(&dims))?;
    for (output, at) in [(1, 1), (2, 2)] {
        let ends = c.value(dims[at]).map(|size| size + 1);
        c.set_output(output, c.make_shape(&[c.make_dim(ends)]))?;
    }
    Ok(())
}

/// Checks that there is an end for each window of the output.
fn check_ends(c: &ShapeContext<'_>, output: ShapeHandle, first: usize) -> ShapeResult {
    let ends = [
        ("row_pooling_sequence", "the number of row_pooling_sequence"),
        ("col_pooling_sequence", "the number of col_pooling_sequence"),
    ];
    for (at, (what, number)) in ends.into_iter().enumerate() {
        let ends = input_of_rank(c, first + at, what, 1)?;
        let windows = c.value(c.dim(output, 1 + at)).map(|size| size + 1);
        same_size(c, number, c.make_dim(windows), c.dim(ends, 0))?;
    }
    Ok(())
}

/// Checks that both have the same images and channels.
fn check_outside(c: &ShapeContext<'_>, input: &[Dim], output: &[Dim]) -> Result<(), KernelError> {
    same_size(c, "the batch of out_backprop", input[0], output[0])?;
    same_size(c, "the channels of out_backprop", input[3], output[3])?;
    Ok(())
}

fn max_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let input = input_of_rank(c, 0, "orig_input", 4)?;
    let output = input_of_rank(c, 1, "orig_output", 4)?;
    let grad = input_of_rank(c, 2, "out_backprop", 4)?;
    for (expected, found) in dims_of(c, output).into_iter().zip(dims_of(c, grad)) {
        same_size(c, "a dimension of out_backprop", expected, found)?;
    }
    check_outside(c, &dims_of(c, input), &dims_of(c, grad))?;
    check_ends(c, grad, 3)?;
    c.set_output(0, input)
}

fn avg_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let shape = input_of_rank(c, 0, "orig_input_tensor_shape", 1)?;
    same_size(c, "the number of orig_input_tensor_shape", c.make_dim(Some(4)), c.dim(shape, 0))?;
    let grad = input_of_rank(c, 1, "out_backprop", 4)?;
    check_ends(c, grad, 2)?;
    let input = c.with_rank(c.constant_as_shape(0)?, 4)?;
    check_outside(c, &dims_of(c, input), &dims_of(c, grad))?;
    c.set_output(0, input)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;
    use tenon_framework::attr::{AttrList, AttrValue};

    #[test]
    fn windows_are_as_many_as_the_ratio_says() {
        let ratio =
            |list: [f32; 4]| [("pooling_ratio", AttrValue::List(AttrList::Float(list.to_vec())))];
        let cases: [(&[&str], &str); 3] = [
            (&["[n,7,6,c]"], "[n,4,4,c]; [5]; [5]"),
            (&["?"], "[?,?,?,?]; [?]; [?]"),
            (&["[7,6,3]"], "! value must have 4 dimensions, got 3"),
        ];
        check("FractionalMaxPool", &ratio([1.0, 1.5, 1.25, 1.0]), &cases);
        let few = "! pooling_ratio must be no more than the sizes of value, got [1.0, 1.5, 1.25, 1.0] for [2, 1, 6, 3]";
        check("FractionalAvgPool", &ratio([1.0, 1.5, 1.25, 1.0]), &[(&["[2,1,6,3]"], few)]);
    }

    #[test]
    fn gradients_have_the_shape_of_the_input() {
        let inputs = ["[n,4,5,c]", "[n,2,3,c]", "?", "[3]", "[4]"];
        check("FractionalMaxPoolGrad", &[], &[(&inputs, "[n,4,5,c]")]);
        let wrong = ["[n,4,5,c]", "[n,2,3,c]", "?", "[3]", "[3]"];
        let message = "! the number of col_pooling_sequence must be 4, got 3";
        check("FractionalMaxPoolGrad", &[], &[(&wrong, message)]);
        let inputs = ["= [2,4,5,3]", "[n,2,3,c]", "[3]", "[4]"];
        check("FractionalAvgPoolGrad", &[], &[(&inputs, "[2,4,5,3]")]);
    }
}
