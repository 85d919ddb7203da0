//! How often numbers occur in the rows of dense, sparse and ragged matrices.

use crate::shape::{constant_integer, input_of_rank, same_size};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "DenseBincount",
    inputs = &["input: Tidx", "size: Tidx", "weights: T"],
    outputs = &["output: T"],
    attrs = &[
        "Tidx: {int32, int64}",
        "T: {int32, int64, float, double}",
        "binary_output: bool = false"
    ],
    cases = &[
        "counted; input: [n, 2] integers(0..9); size: [] values(9); weights: [0]",
        "weighted; input: [n] integers(0..12); size: [] values(9); weights: [n]"
    ],
    shape = dense,
    summary = "How often each number below size occurs in a vector, or in each row of a matrix, or the sum of its weights.",
);

register_op!(
    "SparseBincount",
    inputs = &["indices: int64", "values: Tidx", "dense_shape: int64", "size: Tidx", "weights: T"],
    outputs = &["output: T"],
    attrs = &[
        "Tidx: {int32, int64}",
        "T: {int32, int64, float, double}",
        "binary_output: bool = false"
    ],
    cases = &[
        "counted; indices: [3, 2] values(0, 1, 1, 0, 2, 3); values: [3] integers(0..9); dense_shape: [2] values(3, 4); size: [] values(9); weights: [0]"
    ],
    shape = sparse,
    summary = "How often each number below size occurs among the values of a sparse vector, or of each row of a sparse matrix, or the sum of its weights.",
);

register_op!(
    "RaggedBincount",
    inputs = &["splits: int64", "values: Tidx", "size: Tidx", "weights: T"],
    outputs = &["output: T"],
    attrs = &[
        "Tidx: {int32, int64}",
        "T: {int32, int64, float, double}",
        "binary_output: bool = false"
    ],
    cases = &[
        "counted; splits: [4] values(0, 2, 2, 5); values: [5] integers(0..12); size: [] values(9); weights: [5]"
    ],
    shape = ragged,
    summary = "How often each number below size occurs in each row of a ragged matrix, or the sum of its weights.",
);

/// The dimension of the numbers that are counted.
fn bins(c: &ShapeContext<'_>, input: usize) -> Result<Dim, KernelError> {
    input_of_rank(c, input, "size", 0)?;
    let size = constant_integer(c, input, "size")?;
    match size.filter(|&size| size < 0) {
        Some(found) => Err(GeometryError::TooSmall { what: "size", least: 0, found }.into()),
        None => Ok(c.make_dim(size)),
    }
}

fn dense(c: &ShapeContext<'_>) -> ShapeResult {
    let bins = bins(c, 1)?;
    match c.rank(c.input(0)) {
        None => c.set_output(0, c.unknown()),
        Some(0 | 1) => c.set_output(0, c.make_shape(&[bins])),
        Some(2) => c.set_output(0, c.make_shape(&[c.dim(c.input(0), 0), bins])),
        Some(found) => Err(GeometryError::Rank { what: "input", expected: 2, found }.into()),
    }
}

fn sparse(c: &ShapeContext<'_>) -> ShapeResult {
    let shape = input_of_rank(c, 2, "dense_shape", 1)?;
    let bins = bins(c, 3)?;
    match c.value(c.dim(shape, 0)) {
        None => c.set_output(0, c.unknown()),
        Some(1) => c.set_output(0, c.make_shape(&[bins])),
        Some(2) => {
            let sizes = c.constant_integers(2);
            let rows = sizes.and_then(|sizes| sizes.first().copied()).filter(|&rows| rows >= 0);
            c.set_output(0, c.make_shape(&[c.make_dim(rows), bins]))
        }
        Some(found) => {
            let (what, expected, found) = ("dense_shape", 2, found as usize);
            Err(GeometryError::Length { what, expected, found }.into())
        }
    }
}

fn ragged(c: &ShapeContext<'_>) -> ShapeResult {
    let splits = input_of_rank(c, 0, "splits", 1)?;
    let values = input_of_rank(c, 1, "values", 1)?;
    let bins = bins(c, 2)?;
    if let (Some([weights]), [number]) = (c.dims(c.input(3)).as_deref(), [c.dim(values, 0)])
        && *weights > 0
    {
        same_size(c, "the number of weights", number, c.make_dim(Some(*weights)))?;
    }
    let rows = c.value(c.dim(splits, 0)).map(|count| (count - 1).max(0));
    c.set_output(0, c.make_shape(&[c.make_dim(rows), bins]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn rows_have_a_count_for_each_number() {
        check(
            "DenseBincount",
            &[],
            &[
                (&["[7]", "= 5", "[0]"], "[5]"),
                (&["[n,7]", "= 5", "[0]"], "[n,5]"),
                (&["[n,7]", "[]", "[0]"], "[n,?]"),
                (&["?", "= 5", "[0]"], "?"),
                (&["[1,2,3]", "= 5", "[0]"], "! input must have 2 dimensions, got 3"),
                (&["[7]", "= -5", "[0]"], "! size must be at least 0, got -5"),
            ],
        );
        check("SparseBincount", &[], &[(&["[n,2]", "[n]", "= [3,4]", "= 5", "[0]"], "[3,5]")]);
        check("SparseBincount", &[], &[(&["[n,1]", "[n]", "[1]", "= 5", "[0]"], "[5]")]);
        check("RaggedBincount", &[], &[(&["[4]", "[n]", "= 5", "[0]"], "[3,5]")]);
    }
}
