//! Reduction of the rows of each segment to one row: segments numbered in order, and in any order.
//! Those of rows picked by index are in `picked`.

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

/// The data's shape, with these dimensions in place of the first `dropped`.
pub(super) fn with_rows(
    c: &ShapeContext<'_>,
    data: ShapeHandle,
    dropped: usize,
    rows: Dim,
) -> ShapeHandle {
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
pub(super) fn segment_count(
    c: &ShapeContext<'_>,
    input: usize,
) -> Result<Option<i64>, KernelError> {
    let what = "num_segments";
    match constant_integer(c, input, what)? {
        Some(found) if found < 0 => Err(GeometryError::TooSmall { what, least: 0, found }.into()),
        count => Ok(count),
    }
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
}
