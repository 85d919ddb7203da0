//! How often numbers occur, as sparse tensors.

use super::{places, set_places};
use crate::shape::{dims_of, input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

const ATTRS: &[&str] = &[
    "T: {int32, int64}",
    "minlength: int >= -1 = -1",
    "maxlength: int >= -1 = -1",
    "binary_output: bool",
    "output_type: {int32, int64, float, double}",
];
const COUNTS: &[&str] =
    &["output_indices: int64", "output_values: output_type", "output_dense_shape: int64"];

register_op!(
    "DenseCountSparseOutput",
    inputs = &["values: T", "weights: output_type"],
    outputs = COUNTS,
    attrs = ATTRS,
    cases = &[
        "counted; binary_output in {false, true}; maxlength in {-1, 5}; values: [3, m] integers(0..9); weights: [0]",
        "weighted; binary_output = false; minlength = 12; values: [n] integers(0..9); weights: [n]",
    ],
    shape = dense,
    summary = "How often each number occurs in a vector, or in each row of a matrix, or the sum of its weights; numbers that do not occur are left out.",
);

register_op!(
    "SparseCountSparseOutput",
    inputs = &["indices: int64", "values: T", "dense_shape: int64", "weights: output_type"],
    outputs = COUNTS,
    attrs = ATTRS,
    cases = &[
        "counted; binary_output in {false, true}; indices: [3, 2] values(0, 1, 1, 0, 2, 3); values: [3] integers(0..9); dense_shape: [2] values(3, 4); weights: [0]"
    ],
    shape = sparse,
    summary = "`DenseCountSparseOutput` of a sparse vector or matrix.",
);

register_op!(
    "RaggedCountSparseOutput",
    inputs = &["splits: int64", "values: T", "weights: output_type"],
    outputs = COUNTS,
    attrs = ATTRS,
    cases = &[
        "counted; binary_output in {false, true}; splits: [4] values(0, 2, 2, 5); values: [5] integers(0..9); weights: [5]"
    ],
    shape = ragged,
    summary = "`DenseCountSparseOutput` of a ragged matrix.",
);

/// Checks the shape of weights, which have that of the numbers or no elements.
fn check_weights(c: &ShapeContext<'_>, input: usize, values: ShapeHandle) -> ShapeResult {
    let weights = c.input(input);
    let (Some(sizes), Some(_)) = (c.dims(weights), c.rank(values)) else { return Ok(()) };
    if sizes.contains(&0) || sizes.contains(&-1) {
        return Ok(());
    }
    let (expected, found) = (dims_of(c, values), dims_of(c, weights));
    if expected.len() != found.len() {
        let (what, expected, found) = ("weights", expected.len(), found.len());
        return Err(GeometryError::Rank { what, expected, found }.into());
    }
    for (expected, found) in expected.into_iter().zip(found) {
        same_size(c, "a dimension of weights", expected, found)?;
    }
    Ok(())
}

/// The rank of a vector or matrix.
fn one_or_two(what: &'static str, rank: Option<i64>) -> Result<Option<i64>, KernelError> {
    match rank {
        Some(found) if !(1..=2).contains(&found) => {
            Err(GeometryError::Rank { what, expected: 2, found: found as usize }.into())
        }
        rank => Ok(rank),
    }
}

fn counts(c: &ShapeContext<'_>, rank: Dim) -> ShapeResult {
    set_places(c, 0, c.make_dim(None), rank)
}

fn dense(c: &ShapeContext<'_>) -> ShapeResult {
    let values = c.input(0);
    let rank = one_or_two("values", c.rank(values).map(|rank| rank as i64))?;
    check_weights(c, 1, values)?;
    counts(c, c.make_dim(rank))
}

fn sparse(c: &ShapeContext<'_>) -> ShapeResult {
    let [_, rank] = places(c, [0, 1, 2])?;
    one_or_two("dense_shape", c.value(rank))?;
    check_weights(c, 3, c.input(1))?;
    counts(c, rank)
}

fn ragged(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "splits", 1)?;
    let values = input_of_rank(c, 1, "values", 1)?;
    check_weights(c, 2, values)?;
    counts(c, c.make_dim(Some(2)))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn counts_have_the_rank_of_what_is_counted() {
        let dense: [(&[&str], &str); 4] = [
            (&["[n]", "[0]"], "[?,1]; [?]; [1]"),
            (&["[n,3]", "[2,3]"], "[?,2]; [?]; [2]"),
            (&["[n,3]", "[2,4]"], "! a dimension of weights must be 3, got 4"),
            (&["[1,2,3]", "[0]"], "! values must have 2 dimensions, got 3"),
        ];
        check("DenseCountSparseOutput", &[], &dense);
        let sparse = ["[n,2]", "[n]", "[2]", "[0]"];
        check("SparseCountSparseOutput", &[], &[(&sparse, "[?,2]; [?]; [2]")]);
        let ragged: [(&[&str], &str); 2] = [
            (&["[4]", "[n]", "[0]"], "[?,2]; [?]; [2]"),
            (&["[4]", "[3]", "[2]"], "! a dimension of weights must be 3, got 2"),
        ];
        check("RaggedCountSparseOutput", &[], &ragged);
    }
}
