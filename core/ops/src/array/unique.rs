//! Ops that search: nonzero elements, unique elements, positions, and places among bounds.

use crate::shape::{constant_integer, input_of_rank, scalar_or_vector, unchanged, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, op::GradientRule};
use tenon_geometry::normalize_axis;

register_op!(
    "Where",
    inputs = &["input: T"],
    outputs = &["index: int64"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, \
               bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = DT_BOOL"
    ],
    shape = place,
    gradient = GradientRule::None,
    summary = "The indices of the elements that are not zero, in order, a row for each.",
);

/// Registers the ops that find unique elements.
macro_rules! unique {
    ($($name:literal: $inputs:expr, $outputs:expr, $attrs:expr, $summary:literal, $cases:expr;)*) => {$(
        register_op!(
            $name,
            inputs = $inputs,
            outputs = $outputs,
            attrs = $attrs,
            shape = unique,
            summary = $summary,
            cases = $cases,
        );
    )*};
}

const VECTOR: &[&str] = &["any; x: [n]", "few; x: [n] integers(0..5)"];
const ALONG: &[&str] = &[
    "vector; x: [n]; axis: [0]",
    "few; x: [n] integers(0..5); axis: [1] values(0)",
    "rows; x: [n, 2] integers(0..2); axis: [1] values(0)",
    "columns; x: [2, n] integers(0..2); axis: [1] values(-1)",
];
const ON_VECTOR: &[&str] = &["T: type", "out_idx: {int32, int64} = DT_INT32"];
const ON_AXIS: &[&str] =
    &["T: type", "Taxis: {int32, int64} = DT_INT64", "out_idx: {int32, int64} = DT_INT32"];
const WITH_COUNTS: &[&str] = &["y: T", "idx: out_idx", "count: out_idx"];

unique! {
    "Unique": &["x: T"], &["y: T", "idx: out_idx"], ON_VECTOR,
        "Each value of a vector once, in the order of its first place, and which one each element is.", VECTOR;
    "UniqueV2": &["x: T", "axis: Taxis"], &["y: T", "idx: out_idx"], ON_AXIS,
        "Each slice along an axis once, in the order of its first place, and which one each slice is.", ALONG;
    "UniqueWithCounts": &["x: T"], WITH_COUNTS, ON_VECTOR,
        "As Unique, and how often each value is there.", VECTOR;
    "UniqueWithCountsV2": &["x: T", "axis: Taxis"], WITH_COUNTS, ON_AXIS,
        "As UniqueV2, and how often each slice is there.", ALONG;
}

register_op!(
    "ListDiff",
    inputs = &["x: T", "y: T"],
    outputs = &["out: T", "idx: out_idx"],
    attrs = &["T: type", "out_idx: {int32, int64} = DT_INT32"],
    shape = list_diff,
    summary = "The values of x that are not in y, in order and as often as they are there, and their places.",
    cases = &["any; x: [n]; y: [m]", "few; x: [n] integers(0..9); y: [4] integers(0..9)"],
);

register_op!(
    "InvertPermutation",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = &["T: {int32, int64} = DT_INT32"],
    shape = invert,
    gradient = GradientRule::None,
    summary = "The permutation that undoes one.",
    cases = &["any; x: [n] permutation"],
);

/// Registers the ops that search in sorted rows.
macro_rules! bound {
    ($($name:literal: $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["sorted_inputs: T", "values: T"],
            outputs = &["output: out_type"],
            attrs = &["T: type", "out_type: {int32, int64} = DT_INT32"],
            shape = bound,
            summary = $summary,
            cases = &[
                "row; sorted_inputs: [1, 6] values(0, 1, 1, 3, 5, 8); values: [1, n] integers(0..9)",
                "rows; sorted_inputs: [2, 3] values(0, 2, 2, 1, 1, 4); values: [2, n] integers(0..5)",
                "nothing; sorted_inputs: [n, 0]; values: [n, 3]",
            ],
        );
    )*};
}

bound! {
    "LowerBound": "Per value the place of the first element of its sorted row that is not below it.";
    "UpperBound": "Per value the place of the first element of its sorted row that is above it.";
}

register_op!(
    "Bucketize",
    inputs = &["input: T"],
    outputs = &["output: int32"],
    attrs = &["T: {int32, int64, float, double}", "boundaries: list(float)"],
    shape = unchanged,
    summary = "Per element the number of sorted boundaries that are not above it.",
    cases = &["few; boundaries in {[], [0.5], [-1.0, 0.0, 0.0, 2.5]}; input: [n, m]"],
);

register_op!(
    "UnravelIndex",
    inputs = &["indices: Tidx", "dims: Tidx"],
    outputs = &["output: Tidx"],
    attrs = &["Tidx: {int32, int64} = DT_INT32"],
    shape = unravel,
    summary = "The coordinates of elements in a tensor of these dimensions, a column for each.",
    cases = &[
        "some; indices: [n] integers(0..24); dims: [3] values(2, 3, 4)",
        "one; indices: [] integers(0..6); dims: [2] values(3, 2)",
    ],
);

fn place(c: &ShapeContext<'_>) -> ShapeResult {
    let rank = c.rank(c.input(0)).map(|rank| rank as i64);
    c.set_output(0, c.make_shape(&[c.make_dim(None), c.make_dim(rank)]))
}

/// A vector of unknown length.
fn some(c: &ShapeContext<'_>) -> ShapeHandle {
    c.unknown_of_rank(1)
}

fn unique(c: &ShapeContext<'_>) -> ShapeResult {
    let along = unique_axis(c)?;
    let x = c.input(0);
    let (y, idx) = match (c.dims(x), along) {
        (Some(sizes), Along::Axis(axis)) => {
            let axis = normalize_axis("axis", axis, sizes.len())?;
            let mut dims = sizes;
            dims[axis] = -1;
            let y = with_identity(c, &dims, |at| (at != axis).then(|| c.dim(x, at)));
            (y, c.dim(x, axis))
        }
        (None, Along::Axis(_)) => (c.unknown(), c.make_dim(None)),
        (_, Along::Vector) => (some(c), c.dim(input_of_rank(c, 0, "x", 1)?, 0)),
        (Some(sizes), Along::Unknown) => (c.unknown_of_rank(sizes.len()), c.make_dim(None)),
        (None, Along::Unknown) => (c.unknown(), c.make_dim(None)),
    };
    c.set_output(0, y)?;
    c.set_output(1, c.make_shape(&[idx]))?;
    if c.output_count() > 2 { c.set_output(2, some(c)) } else { Ok(()) }
}

/// The items among which duplicates are removed.
enum Along {
    /// Elements of a vector.
    Vector,
    /// Slices.
    Axis(i64),
    /// The axis is not known yet.
    Unknown,
}

fn unique_axis(c: &ShapeContext<'_>) -> Result<Along, KernelError> {
    if c.input_count() == 1 {
        return Ok(Along::Vector);
    }
    input_of_rank(c, 1, "axis", 1)?;
    match c.constant_integers(1).as_deref() {
        None => Ok(Along::Unknown),
        Some([]) => Ok(Along::Vector),
        Some(_) => Ok(constant_integer(c, 1, "axis")?.map_or(Along::Unknown, Along::Axis)),
    }
}

fn list_diff(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "x", 1)?;
    input_of_rank(c, 1, "y", 1)?;
    let length: Dim = c.make_dim(None);
    c.set_output(0, c.make_shape(&[length]))?;
    c.set_output(1, c.make_shape(&[length]))
}

fn invert(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, input_of_rank(c, 0, "x", 1)?)
}

fn bound(c: &ShapeContext<'_>) -> ShapeResult {
    let sorted = input_of_rank(c, 0, "sorted_inputs", 2)?;
    let values = input_of_rank(c, 1, "values", 2)?;
    c.merge_dim(c.dim(sorted, 0), c.dim(values, 0))?;
    c.set_output(0, values)
}

fn unravel(c: &ShapeContext<'_>) -> ShapeResult {
    scalar_or_vector(c, 0, "indices")?;
    let rank = c.dim(input_of_rank(c, 1, "dims", 1)?, 0);
    match c.rank(c.input(0)) {
        None => c.set_output(0, c.unknown()),
        Some(0) => c.set_output(0, c.make_shape(&[rank])),
        Some(_) => c.set_output(0, c.make_shape(&[rank, c.dim(c.input(0), 0)])),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn found_elements() {
        check("Where", &[], &[(&["[n,3]"], "[?,2]"), (&["?"], "[?,?]")]);
        check(
            "Unique",
            &[],
            &[(&["[n]"], "[?]; [n]"), (&["[2,2]"], "! x must have 1 dimensions, got 2")],
        );
        check("UniqueWithCounts", &[], &[(&["[n]"], "[?]; [n]; [?]")]);
        check(
            "UniqueV2",
            &[],
            &[
                (&["[n,3]", "= [1]"], "[n,?]; [3]"),
                (&["[n]", "= []"], "[?]; [n]"),
                (&["[n,3]", "[1]"], "[?,?]; [?]"),
                (&["[n,3]", "= [2]"], "! axis must lie in [-2, 2), got 2"),
            ],
        );
        check("UniqueWithCountsV2", &[], &[(&["?", "= [1]"], "?; [?]; [?]")]);
        check("ListDiff", &[], &[(&["[n]", "[m]"], "[?]; [?]")]);
        check(
            "InvertPermutation",
            &[],
            &[(&["[n]"], "[n]"), (&["[]"], "! x must have 1 dimensions, got 0")],
        );
        check(
            "LowerBound",
            &[],
            &[
                (&["[n,5]", "[?,m]"], "[n,m]"),
                (&["[2,5]", "[?,m]"], "[2,m]"),
                (&["[5]", "[2,3]"], "! sorted_inputs must have 2 dimensions, got 1"),
            ],
        );
        check("UpperBound", &[], &[(&["[2,5]", "[2,3]"], "[2,3]")]);
        check("Bucketize", &[], &[(&["[n,3]"], "[n,3]")]);
        check(
            "UnravelIndex",
            &[],
            &[
                (&["[n]", "[3]"], "[3,n]"),
                (&["[]", "[3]"], "[3]"),
                (&["?", "[3]"], "?"),
                (&["[2,2]", "[3]"], "! indices must have 1 dimensions, got 2"),
                (&["[n]", "[]"], "! dims must have 1 dimensions, got 0"),
            ],
        );
    }
}
