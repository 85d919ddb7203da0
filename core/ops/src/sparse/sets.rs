//! Sets and sequences in the last dimension: sizes, differences, unions, edit distances.

use super::{places, set_places, shape_in};
use crate::shape::{dims_of, input_of_rank_at_least, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::GeometryError;

const T: &str = "T: {int8, int16, int32, int64, uint8, uint16, string}";
const SET_OPERATION: &str = "set_operation: string";
const VALIDATE: &str = "validate_indices: bool = true";
const RESULT: &[&str] = &["result_indices: int64", "result_values: T", "result_shape: int64"];

register_op!(
    "SetSize",
    inputs = &["set_indices: int64", "set_values: T", "set_shape: int64"],
    outputs = &["size: int32"],
    attrs = &[VALIDATE, T],
    cases = &[
        "values; set_indices: [3, 2] values(0, 1, 1, 0, 2, 3); set_values: [3] integers(0..3); set_shape: [2] values(3, 4)"
    ],
    shape = sizes,
    gradient = GradientRule::None,
    summary = "The number of different values in each row of the last dimension.",
);

register_op!(
    "DenseToDenseSetOperation",
    inputs = &["set1: T", "set2: T"],
    outputs = RESULT,
    attrs = &[SET_OPERATION, VALIDATE, T],
    cases = &[
        "rows; set_operation in {'a-b', 'b-a', 'intersection', 'union'}; set1: [n, 3] integers(0..4); set2: [n, 2] integers(0..4)"
    ],
    shape = dense_and_dense,
    summary = "The union, the intersection or a difference of the sets of values in each row of the last dimension.",
);

register_op!(
    "DenseToSparseSetOperation",
    inputs = &["set1: T", "set2_indices: int64", "set2_values: T", "set2_shape: int64"],
    outputs = RESULT,
    attrs = &[SET_OPERATION, VALIDATE, T],
    cases = &[
        "rows; set_operation in {'a-b', 'b-a', 'intersection', 'union'}; set1: [3, m] integers(0..4); \
         set2_indices: [3, 2] values(0, 1, 1, 0, 2, 3); set2_values: [3] integers(0..4); set2_shape: [2] values(3, 4)"
    ],
    shape = dense_and_sparse,
    summary = "`DenseToDenseSetOperation` of a whole tensor and a sparse one.",
);

register_op!(
    "SparseToSparseSetOperation",
    inputs = &[
        "set1_indices: int64",
        "set1_values: T",
        "set1_shape: int64",
        "set2_indices: int64",
        "set2_values: T",
        "set2_shape: int64"
    ],
    outputs = RESULT,
    attrs = &[SET_OPERATION, VALIDATE, T],
    cases = &["rows; set_operation in {'a-b', 'b-a', 'intersection', 'union'}; \
         set1_indices: [3, 2] values(0, 0, 0, 1, 2, 3); set1_values: [3] integers(0..4); set1_shape: [2] values(3, 5); \
         set2_indices: [3, 2] values(0, 1, 1, 0, 2, 3); set2_values: [3] integers(0..4); set2_shape: [2] values(3, 4)"],
    shape = sparse_and_sparse,
    summary = "`DenseToDenseSetOperation` of two sparse tensors.",
);

register_op!(
    "EditDistance",
    inputs = &[
        "hypothesis_indices: int64",
        "hypothesis_values: T",
        "hypothesis_shape: int64",
        "truth_indices: int64",
        "truth_values: T",
        "truth_shape: int64"
    ],
    outputs = &["output: float"],
    attrs = &["normalize: bool = true", "T: type"],
    cases = &["rows; normalize in {false, true}; \
         hypothesis_indices: [3, 2] values(0, 0, 0, 1, 2, 0); hypothesis_values: [3]; hypothesis_shape: [2] values(3, 5); \
         truth_indices: [3, 2] values(0, 0, 1, 0, 2, 0); truth_values: [3]; truth_shape: [2] values(3, 4)"],
    shape = distance,
    gradient = GradientRule::None,
    summary = "The least number of insertions, deletions and replacements that make each row of hypotheses that of truths; normalised, divided by the length of the latter.",
);

/// The dimensions of a shape of rank two or more but for the last.
fn rows(
    c: &ShapeContext<'_>,
    what: &'static str,
    shape: ShapeHandle,
) -> Result<Option<Vec<Dim>>, KernelError> {
    let Some(rank) = c.rank(shape) else { return Ok(None) };
    if rank < 2 {
        return Err(GeometryError::RankTooSmall { what, expected: 2, found: rank }.into());
    }
    let mut dims = dims_of(c, shape);
    dims.pop();
    Ok(Some(dims))
}

fn sizes(c: &ShapeContext<'_>) -> ShapeResult {
    places(c, [0, 1, 2])?;
    match rows(c, "set_shape", shape_in(c, 2, "set_shape")?)? {
        Some(dims) => c.set_output(0, c.make_shape(&dims)),
        None => c.set_output(0, c.unknown()),
    }
}

/// The result of an operation on rows of these shapes, which must agree.
fn combined(c: &ShapeContext<'_>, [a, b]: [Option<Vec<Dim>>; 2]) -> ShapeResult {
    if let (Some(a), Some(b)) = (&a, &b) {
        let (expected, found) = (a.len() as i64, b.len() as i64);
        if expected != found {
            let what = "the number of dimensions of set2, but for the last,";
            return Err(GeometryError::SizeMismatch { what, expected, found }.into());
        }
        for (&expected, &found) in a.iter().zip(b) {
            same_size(c, "a dimension of set2", expected, found)?;
        }
    }
    let rank = a.or(b).map(|dims| dims.len() as i64 + 1);
    set_places(c, 0, c.make_dim(None), c.make_dim(rank))
}

fn dense_and_dense(c: &ShapeContext<'_>) -> ShapeResult {
    let of = |at, what| rows(c, what, input_of_rank_at_least(c, at, what, 2)?);
    combined(c, [of(0, "set1")?, of(1, "set2")?])
}

fn dense_and_sparse(c: &ShapeContext<'_>) -> ShapeResult {
    places(c, [1, 2, 3])?;
    let dense = rows(c, "set1", input_of_rank_at_least(c, 0, "set1", 2)?)?;
    combined(c, [dense, rows(c, "set2_shape", shape_in(c, 3, "set2_shape")?)?])
}

fn sparse_and_sparse(c: &ShapeContext<'_>) -> ShapeResult {
    places(c, [0, 1, 2])?;
    places(c, [3, 4, 5])?;
    let of = |at, what| rows(c, what, shape_in(c, at, what)?);
    combined(c, [of(2, "set1_shape")?, of(5, "set2_shape")?])
}

fn distance(c: &ShapeContext<'_>) -> ShapeResult {
    places(c, [0, 1, 2])?;
    places(c, [3, 4, 5])?;
    let of = |at, what| rows(c, what, shape_in(c, at, what)?);
    let (Some(a), Some(b)) = (of(2, "hypothesis_shape")?, of(5, "truth_shape")?) else {
        return c.set_output(0, c.unknown());
    };
    let (expected, found) = (a.len() as i64 + 1, b.len() as i64 + 1);
    if expected != found {
        let what = "the number of truth_shape";
        return Err(GeometryError::SizeMismatch { what, expected, found }.into());
    }
    let greater = |(&a, &b): (&Dim, &Dim)| match (c.value(a), c.value(b)) {
        (Some(a), Some(b)) => c.make_dim(Some(a.max(b))),
        _ => c.make_dim(None),
    };
    let dims: Vec<Dim> = a.iter().zip(&b).map(greater).collect();
    c.set_output(0, c.make_shape(&dims))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn rows_are_known_where_the_shape_is() {
        let sizes: [(&[&str], &str); 3] = [
            (&["[n,2]", "[n]", "= [3,4]"], "[3]"),
            (&["[n,3]", "[n]", "[3]"], "[?,?]"),
            (&["[n,1]", "[n]", "= [3]"], "! set_shape must have at least 2 dimensions, got 1"),
        ];
        check("SetSize", &[], &sizes);
        let distances: [(&[&str], &str); 2] = [
            (&["[n,2]", "[n]", "= [3,4]", "[m,2]", "[m]", "= [5,1]"], "[5]"),
            (&["[n,2]", "[n]", "= [3,4]", "[m,2]", "[m]", "[2]"], "[?]"),
        ];
        check("EditDistance", &[], &distances);
    }

    #[test]
    fn sets_have_the_same_rows() {
        let dense: [(&[&str], &str); 3] = [
            (&["[n,3,4]", "[n,3,7]"], "[?,3]; [?]; [3]"),
            (&["?", "[n,3]"], "[?,2]; [?]; [2]"),
            (&["[2,3]", "[3,3]"], "! a dimension of set2 must be 2, got 3"),
        ];
        check("DenseToDenseSetOperation", &[], &dense);
        let mixed: [(&[&str], &str); 2] = [
            (&["[3,4]", "[n,2]", "[n]", "= [3,5]"], "[?,2]; [?]; [2]"),
            (&["[4]", "[n,2]", "[n]", "[2]"], "! set1 must have at least 2 dimensions, got 1"),
        ];
        check("DenseToSparseSetOperation", &[], &mixed);
        let inputs = ["[n,2]", "[n]", "= [3,4]", "[m,2]", "[m]", "[2]"];
        check("SparseToSparseSetOperation", &[], &[(&inputs, "[?,2]; [?]; [2]")]);
    }
}
