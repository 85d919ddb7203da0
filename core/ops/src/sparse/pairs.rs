//! Extremes of two sparse tensors, reductions whose results are sparse, and products of matrices with many zeros.

use super::{places, reduced_shape, set_places};
use crate::shape::{input_of_rank, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};

macro_rules! extremes {
    ($($op:literal, $of:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &[
                "a_indices: int64",
                "a_values: T",
                "a_shape: int64",
                "b_indices: int64",
                "b_values: T",
                "b_shape: int64"
            ],
            outputs = &["output_indices: int64", "output_values: T"],
            attrs = &[$of],
            cases = &[
                "values; a_indices: [2, 2] values(0, 1, 2, 3); a_values: [2]; a_shape: [2] values(3, 4); \
                 b_indices: [2, 2] values(0, 1, 1, 3); b_values: [2]; b_shape: [2] values(3, 4)"
            ],
            shape = extreme,
            summary = $summary,
        );
    )*};
}

extremes! {
    "SparseSparseMaximum", "T: realnumbertype",
        "The greater of the values of two sparse tensors at each place that one of them names, where the other has 0.";
    "SparseSparseMinimum", "T: numbertype",
        "The smaller of the values of two sparse tensors at each place that one of them names, where the other has 0.";
}

macro_rules! reductions {
    ($($op:literal, $of:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &[
                "input_indices: int64",
                "input_values: T",
                "input_shape: int64",
                "reduction_axes: int32"
            ],
            outputs = &["output_indices: int64", "output_values: T", "output_shape: int64"],
            attrs = &["keep_dims: bool = false", $of],
            cases = &[
                "values; keep_dims in {false, true}; input_indices: [3, 2] values(0, 1, 1, 0, 2, 3); input_values: [3]; \
                 input_shape: [2] values(3, 4); reduction_axes: [1] values(1)"
            ],
            shape = reduce,
            summary = $summary,
        );
    )*};
}

reductions! {
    "SparseReduceSumSparse", "T: numbertype", "`SparseReduceSum` at the places that have values.";
    "SparseReduceMaxSparse", "T: realnumbertype", "`SparseReduceMax` at the places that have values.";
}

register_op!(
    "SparseMatMul",
    inputs = &["a: Ta", "b: Tb"],
    outputs = &["product: float"],
    attrs = &[
        "transpose_a: bool = false",
        "transpose_b: bool = false",
        "a_is_sparse: bool = false",
        "b_is_sparse: bool = false",
        "Ta: {float, bfloat16} = DT_FLOAT",
        "Tb: {float, bfloat16} = DT_FLOAT",
    ],
    cases = &[
        "plain; a: [m, k]; b: [k, n]",
        "turned; transpose_a = true; transpose_b = true; a: [k, m]; b: [n, k]",
    ],
    shape = product,
    summary = "The product of two matrices, of which the attributes say that most elements are 0.",
);

fn product(c: &ShapeContext<'_>) -> ShapeResult {
    let (a, b) = (input_of_rank(c, 0, "a", 2)?, input_of_rank(c, 1, "b", 2)?);
    let pair = |of, is_turned: bool| match is_turned {
        true => (c.dim(of, 1), c.dim(of, 0)),
        false => (c.dim(of, 0), c.dim(of, 1)),
    };
    let (rows, inner) = pair(a, c.attr("transpose_a")?);
    let (found, columns) = pair(b, c.attr("transpose_b")?);
    same_size(c, "the inner dimension of b", inner, found)?;
    c.set_output(0, c.make_shape(&[rows, columns]))
}

fn extreme(c: &ShapeContext<'_>) -> ShapeResult {
    let ([_, a], [_, b]) = (places(c, [0, 1, 2])?, places(c, [3, 4, 5])?);
    let rank = same_size(c, "the rank of b_shape", a, b)?;
    let count = c.make_dim(None);
    c.set_output(0, c.make_shape(&[count, rank]))?;
    c.set_output(1, c.make_shape(&[count]))
}

fn reduce(c: &ShapeContext<'_>) -> ShapeResult {
    let rank = c.rank(reduced_shape(c)?).map(|rank| rank as i64);
    set_places(c, 0, c.make_dim(None), c.make_dim(rank))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn ranks_are_those_of_the_inputs_or_less() {
        let inputs = ["[n,2]", "[n]", "[2]", "[m,2]", "[m]", "[2]"];
        check("SparseSparseMaximum", &[], &[(&inputs, "[?,2]; [?]")]);
        let cases: [(&[&str], &str); 2] = [
            (&["[n,2]", "[n]", "= [3,4]", "= [-1]"], "[?,1]; [?]; [1]"),
            (&["[n,2]", "[n]", "= [3,4]", "[1]"], "[?,?]; [?]; [?]"),
        ];
        check("SparseReduceSumSparse", &[], &cases);
        let products: [(&[&str], &str); 2] = [
            (&["[m,3]", "[3,n]"], "[m,n]"),
            (&["[m,3]", "[4,n]"], "! the inner dimension of b must be 3, got 4"),
        ];
        check("SparseMatMul", &[], &products);
    }
}
