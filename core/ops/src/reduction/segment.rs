//! Reduction of the rows of each segment to one row: segments numbered in order, in any order, and
//! picked by index.

use crate::shape::{constant_integer, dims_of, input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

const SORTED: &[&str] = &[
    "sorted; data: [5, k]; segment_ids: [5] values(0, 0, 1, 3, 3)",
    "one; data: [n, 3]; segment_ids: [n] values(0)",
];
const UNSORTED: &[&str] =
    &["rows; data: [r, k]; segment_ids: [r] integers(-1..4); num_segments: [] values(4)"];
const PICKED: &[&str] = &[
    "rows; n in 1..30; data: [n, k]; indices: [4] integers(0..n); segment_ids: [4] values(0, 0, 1, 2)",
];

register_op!(
    "SegmentSum",
    inputs = &["data: T", "segment_ids: Tindices"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", "Tindices: {int32, int64}"],
    cases = SORTED,
    shape = segment,
    summary = "The sum of the rows of each segment; segment ids are sorted.",
);

register_op!(
    "SegmentMean",
    inputs = &["data: T", "segment_ids: Tindices"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", "Tindices: {int32, int64}"],
    cases = SORTED,
    shape = segment,
    summary = "The mean of the rows of each segment; segment ids are sorted.",
);

register_op!(
    "SegmentMax",
    inputs = &["data: T", "segment_ids: Tindices"],
    outputs = &["output: T"],
    attrs = &["T: realnumbertype", "Tindices: {int32, int64}"],
    cases = SORTED,
    shape = segment,
    summary = "The maximum of the rows of each segment; segment ids are sorted.",
);

register_op!(
    "SegmentMin",
    inputs = &["data: T", "segment_ids: Tindices"],
    outputs = &["output: T"],
    attrs = &["T: realnumbertype", "Tindices: {int32, int64}"],
    cases = SORTED,
    shape = segment,
    summary = "The minimum of the rows of each segment; segment ids are sorted.",
);

register_op!(
    "SegmentProd",
    inputs = &["data: T", "segment_ids: Tindices"],
    outputs = &["output: T"],
    attrs = &["T: numbertype", "Tindices: {int32, int64}"],
    cases = SORTED,
    shape = segment,
    summary = "The product of the rows of each segment; segment ids are sorted.",
);

register_op!(
    "UnsortedSegmentSum",
    inputs = &["data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"],
    outputs = &["output: T"],
    attrs = &[
        "T: numbertype",
        "Tindices: {int16, int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32"
    ],
    cases = UNSORTED,
    shape = unsorted_segment,
    summary = "The sum of the rows of each segment; ids in any order, negative ones are left out.",
);

register_op!(
    "UnsortedSegmentMax",
    inputs = &["data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"],
    outputs = &["output: T"],
    attrs = &[
        "T: realnumbertype",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32"
    ],
    cases = UNSORTED,
    shape = unsorted_segment,
    summary =
        "The maximum of the rows of each segment; ids in any order, negative ones are left out.",
);

register_op!(
    "UnsortedSegmentMin",
    inputs = &["data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"],
    outputs = &["output: T"],
    attrs = &[
        "T: realnumbertype",
        "Tindices: {int32, int64}",
        "Tnumsegments: {int32, int64} = DT_INT32"
    ],
    cases = UNSORTED,
    shape = unsorted_segment,
    summary =
        "The minimum of the rows of each segment; ids in any order, negative ones are left out.",
);

register_op!(
    "UnsortedSegmentProd",
    inputs = &["data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"],
    outputs = &["output: T"],
    attrs =
        &["T: numbertype", "Tindices: {int32, int64}", "Tnumsegments: {int32, int64} = DT_INT32"],
    cases = UNSORTED,
    shape = unsorted_segment,
    summary =
        "The product of the rows of each segment; ids in any order, negative ones are left out.",
);

register_op!(
    "SparseSegmentSum",
    inputs = &["data: T", "indices: Tidx", "segment_ids: Tsegmentids"],
    outputs = &["output: T"],
    attrs = &[
        "T: realnumbertype",
        "Tidx: {int32, int64} = DT_INT32",
        "Tsegmentids: {int32, int64} = DT_INT32",
        "sparse_gradient: bool = false"
    ],
    cases = PICKED,
    shape = sparse_segment,
    summary = "The sum of the picked rows of each segment; segment ids are sorted.",
);

register_op!(
    "SparseSegmentMean",
    inputs = &["data: T", "indices: Tidx", "segment_ids: Tsegmentids"],
    outputs = &["output: T"],
    attrs = &[
        "T: {bfloat16, half, float, double}",
        "Tidx: {int32, int64} = DT_INT32",
        "Tsegmentids: {int32, int64} = DT_INT32",
        "sparse_gradient: bool = false"
    ],
    cases = PICKED,
    shape = sparse_segment,
    summary = "The mean of the picked rows of each segment; segment ids are sorted.",
);

macro_rules! picked_gradients {
    ($($op:literal, $summary:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &[
                "grad: T",
                "indices: Tidx",
                "segment_ids: Tsegmentids",
                "output_dim0: int32"
            ],
            outputs = &["output: T"],
            attrs = &[
                "T: {bfloat16, half, float, double}",
                "Tidx: {int32, int64} = DT_INT32",
                "Tsegmentids: {int32, int64} = DT_INT32",
            ],
            cases = &[
                "rows; n in 1..30; grad: [3, k]; indices: [4] integers(0..n); \
                 segment_ids: [4] values(0, 0, 1, 2); output_dim0: [] values(n)",
            ],
            shape = sparse_segment_grad,
            summary = $summary,
        );
    )*};
}

picked_gradients! {
    "SparseSegmentSumGrad", "The gradient of SparseSegmentSum: the rows of `grad` are added where their segments' rows were picked.";
    "SparseSegmentMeanGrad", "The gradient of SparseSegmentMean: as that of SparseSegmentSum, divided by the size of the segment.";
}

/// The data's shape, with these dimensions in place of the first `dropped`.
fn with_rows(c: &ShapeContext<'_>, data: ShapeHandle, dropped: usize, rows: Dim) -> ShapeHandle {
    let mut dims = vec![rows];
    dims.extend(dims_of(c, data).into_iter().skip(dropped));
    c.make_shape(&dims)
}

fn segment(c: &ShapeContext<'_>) -> ShapeResult {
    let data = input_of_rank_at_least(c, 0, "data", 1)?;
    let ids = input_of_rank(c, 1, "segment_ids", 1)?;
    if c.rank(data).is_none() {
        return c.set_output(0, c.unknown());
    }
    same_size(c, "the length of segment_ids", c.dim(data, 0), c.dim(ids, 0))?;
    c.set_output(0, with_rows(c, data, 1, c.make_dim(None)))
}

fn unsorted_segment(c: &ShapeContext<'_>) -> ShapeResult {
    let (data, ids) = (c.input(0), c.input(1));
    input_of_rank(c, 2, "num_segments", 0)?;
    let count = segment_count(c, 2)?;
    let (Some(rank), Some(ids_rank)) = (c.rank(data), c.rank(ids)) else {
        return c.set_output(0, c.unknown());
    };
    if rank < ids_rank {
        let what = "data";
        return Err(GeometryError::RankTooSmall { what, expected: ids_rank, found: rank }.into());
    }
    for at in 0..ids_rank {
        same_size(c, "a dimension of segment_ids", c.dim(data, at), c.dim(ids, at))?;
    }
    c.set_output(0, with_rows(c, data, ids_rank, c.make_dim(count)))
}

/// The number of segments, if it is a constant.
fn segment_count(c: &ShapeContext<'_>, input: usize) -> Result<Option<i64>, KernelError> {
    let what = "num_segments";
    match constant_integer(c, input, what)? {
        Some(found) if found < 0 => Err(GeometryError::TooSmall { what, least: 0, found }.into()),
        count => Ok(count),
    }
}

fn sparse_segment(c: &ShapeContext<'_>) -> ShapeResult {
    let data = input_of_rank_at_least(c, 0, "data", 1)?;
    let indices = input_of_rank(c, 1, "indices", 1)?;
    let ids = input_of_rank(c, 2, "segment_ids", 1)?;
    same_size(c, "the length of segment_ids", c.dim(indices, 0), c.dim(ids, 0))?;
    if c.rank(data).is_none() {
        return c.set_output(0, c.unknown());
    }
    c.set_output(0, with_rows(c, data, 1, c.make_dim(None)))
}

fn sparse_segment_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let grad = input_of_rank_at_least(c, 0, "grad", 1)?;
    let indices = input_of_rank(c, 1, "indices", 1)?;
    let ids = input_of_rank(c, 2, "segment_ids", 1)?;
    input_of_rank(c, 3, "output_dim0", 0)?;
    same_size(c, "the length of segment_ids", c.dim(indices, 0), c.dim(ids, 0))?;
    let what = "output_dim0";
    let rows = match constant_integer(c, 3, what)? {
        Some(found) if found < 0 => {
            return Err(GeometryError::TooSmall { what, least: 0, found }.into());
        }
        rows => rows,
    };
    if c.rank(grad).is_none() {
        return c.set_output(0, c.unknown());
    }
    c.set_output(0, with_rows(c, grad, 1, c.make_dim(rows)))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_number_of_sorted_segments_is_not_known() {
        for op in ["SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"] {
            check(
                op,
                &[],
                &[
                    (&["[4,3]", "[4]"], "[?,3]"),
                    (&["[n,3]", "[?]"], "[?,3]"),
                    (&["?", "[4]"], "?"),
                    (&["[]", "[4]"], "! data must have at least 1 dimensions, got 0"),
                    (&["[4]", "[4,1]"], "! segment_ids must have 1 dimensions, got 2"),
                    (&["[4]", "[3]"], "! the length of segment_ids must be 4, got 3"),
                ],
            );
        }
    }

    #[test]
    fn the_number_of_unsorted_segments_is_an_input() {
        for op in ["UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentProd"] {
            check(
                op,
                &[],
                &[
                    (&["[4,3]", "[4]", "= 7"], "[7,3]"),
                    (&["[4,3,n]", "[4,3]", "= 7"], "[7,n]"),
                    (&["[4,3]", "[4]", "[]"], "[?,3]"),
                    (&["?", "[4]", "= 7"], "?"),
                    (&["[4]", "[4,1]", "= 7"], "! data must have at least 2 dimensions, got 1"),
                    (&["[4]", "[4]", "= -1"], "! num_segments must be at least 0, got -1"),
                ],
            );
        }
    }

    #[test]
    fn gradients_of_picked_rows_have_the_rows_of_the_data() {
        for op in ["SparseSegmentSumGrad", "SparseSegmentMeanGrad"] {
            check(
                op,
                &[],
                &[
                    (&["[2,3]", "[n]", "[n]", "= 5"], "[5,3]"),
                    (&["[2,3]", "[4]", "[4]", "[]"], "[?,3]"),
                    (&["?", "[2]", "[2]", "= 5"], "?"),
                    (
                        &["[2,3]", "[4]", "[3]", "[]"],
                        "! the length of segment_ids must be 4, got 3",
                    ),
                    (&["[2]", "[4]", "[4]", "= -1"], "! output_dim0 must be at least 0, got -1"),
                ],
            );
        }
    }

    #[test]
    fn picked_rows_have_a_segment_each() {
        for op in ["SparseSegmentSum", "SparseSegmentMean"] {
            check(
                op,
                &[],
                &[
                    (&["[4,3]", "[n]", "[n]"], "[?,3]"),
                    (&["?", "[2]", "[2]"], "?"),
                    (&["[4,3]", "[2]", "[3]"], "! the length of segment_ids must be 2, got 3"),
                    (&["[4,3]", "[2,1]", "[2]"], "! indices must have 1 dimensions, got 2"),
                ],
            );
        }
    }
}
