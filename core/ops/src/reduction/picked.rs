//! Reduction of the rows of each segment to one row, where the rows are picked by index.

use super::segment::{segment_count, with_rows};
use crate::shape::{constant_integer, input_of_rank, input_of_rank_at_least, same_size};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

/// Registers reductions of picked rows, and their forms whose number of segments is an input.
macro_rules! picked {
    ($($op:literal or $counted:literal of $types:literal: $what:literal;)*) => {$(
        register_op!(
            $op,
            inputs = &["data: T", "indices: Tidx", "segment_ids: Tsegmentids"],
            outputs = &["output: T"],
            attrs = &[
                $types,
                "Tidx: {int32, int64} = DT_INT32",
                "Tsegmentids: {int32, int64} = DT_INT32",
                "sparse_gradient: bool = false"
            ],
            cases = &[
                "rows; n in 1..30; data: [n, k]; indices: [4] integers(0..n); \
                 segment_ids: [4] values(0, 0, 1, 2)",
            ],
            shape = sparse_segment,
            summary = concat!($what, "; segment ids are sorted."),
        );
        register_op!(
            $counted,
            inputs = &[
                "data: T",
                "indices: Tidx",
                "segment_ids: Tsegmentids",
                "num_segments: Tnumsegments"
            ],
            outputs = &["output: T"],
            attrs = &[
                $types,
                "Tidx: {int32, int64} = DT_INT32",
                "Tnumsegments: {int32, int64} = DT_INT32",
                "Tsegmentids: {int32, int64} = DT_INT32",
                "sparse_gradient: bool = false"
            ],
            cases = &[
                "rows; n in 1..30; data: [n, k]; indices: [4] integers(0..n); \
                 segment_ids: [4] values(0, 0, 1, 3); num_segments: [] values(5)",
            ],
            shape = counted_segment,
            summary = concat!($what, "; segment ids are sorted, and segments without rows are 0."),
        );
    )*};
}

picked! {
    "SparseSegmentSum" or "SparseSegmentSumWithNumSegments" of "T: realnumbertype":
        "The sum of the picked rows of each segment";
    "SparseSegmentMean" or "SparseSegmentMeanWithNumSegments"
        of "T: {bfloat16, half, float, double}": "The mean of the picked rows of each segment";
    "SparseSegmentSqrtN" or "SparseSegmentSqrtNWithNumSegments"
        of "T: {bfloat16, half, float, double}":
        "The sum of the picked rows of each segment, divided by the square root of their number";
}

/// Registers gradients of picked rows, and their forms of the picked rows alone.
macro_rules! picked_gradients {
    ($($op:literal or $sparse:literal: $what:literal;)*) => {$(
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
            summary = concat!($what, "."),
        );
        register_op!(
            $sparse,
            inputs = &[
                "grad: T",
                "indices: Tidx",
                "segment_ids: Tsegmentids",
                "dense_output_dim0: int32"
            ],
            outputs = &["output: T", "sorted_unique_indices: Tidx"],
            attrs = &[
                "T: {bfloat16, half, float, double}",
                "Tidx: {int32, int64} = DT_INT32",
                "Tsegmentids: {int32, int64} = DT_INT32",
            ],
            cases = &[
                "rows; n in 1..30; grad: [3, k]; indices: [4] integers(0..n); \
                 segment_ids: [4] values(0, 0, 1, 2); dense_output_dim0: [] values(n)",
            ],
            shape = sparse_segment_grad_rows,
            summary = concat!($what, "; only the rows that were picked, and their numbers."),
        );
    )*};
}

picked_gradients! {
    "SparseSegmentSumGrad" or "SparseSegmentSumGradV2":
        "The gradient of SparseSegmentSum: the rows of `grad` are added where their segments' rows were picked";
    "SparseSegmentMeanGrad" or "SparseSegmentMeanGradV2":
        "The gradient of SparseSegmentMean: as that of SparseSegmentSum, divided by the size of the segment";
    "SparseSegmentSqrtNGrad" or "SparseSegmentSqrtNGradV2":
        "The gradient of SparseSegmentSqrtN: as that of SparseSegmentSum, divided by the square root of the segment's size";
}

/// The shape of the data, which has at least one dimension, once indices and ids are checked.
fn checked_data(c: &ShapeContext<'_>, what: &'static str) -> Result<ShapeHandle, KernelError> {
    let data = input_of_rank_at_least(c, 0, what, 1)?;
    let indices = input_of_rank(c, 1, "indices", 1)?;
    let ids = input_of_rank(c, 2, "segment_ids", 1)?;
    same_size(c, "the length of segment_ids", c.dim(indices, 0), c.dim(ids, 0))?;
    Ok(data)
}

/// Rows shaped as those of the data.
fn set_rows(c: &ShapeContext<'_>, data: ShapeHandle, rows: Dim) -> ShapeResult {
    if c.rank(data).is_none() {
        return c.set_output(0, c.unknown());
    }
    c.set_output(0, with_rows(c, data, 1, rows))
}

fn sparse_segment(c: &ShapeContext<'_>) -> ShapeResult {
    let data = checked_data(c, "data")?;
    set_rows(c, data, c.make_dim(None))
}

fn counted_segment(c: &ShapeContext<'_>) -> ShapeResult {
    let data = checked_data(c, "data")?;
    input_of_rank(c, 3, "num_segments", 0)?;
    let count = segment_count(c, 3)?;
    set_rows(c, data, c.make_dim(count))
}

fn sparse_segment_grad(c: &ShapeContext<'_>) -> ShapeResult {
    let grad = checked_data(c, "grad")?;
    let what = "output_dim0";
    input_of_rank(c, 3, what, 0)?;
    let rows = match constant_integer(c, 3, what)? {
        Some(found) if found < 0 => {
            return Err(GeometryError::TooSmall { what, least: 0, found }.into());
        }
        rows => rows,
    };
    set_rows(c, grad, c.make_dim(rows))
}

fn sparse_segment_grad_rows(c: &ShapeContext<'_>) -> ShapeResult {
    let grad = checked_data(c, "grad")?;
    input_of_rank(c, 3, "dense_output_dim0", 0)?;
    let rows = c.make_dim(None);
    set_rows(c, grad, rows)?;
    c.set_output(1, c.make_shape(&[rows]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn counted_segments_are_as_many_as_an_input_says() {
        for op in ["SparseSegmentSumWithNumSegments", "SparseSegmentSqrtNWithNumSegments"] {
            check(
                op,
                &[],
                &[
                    (&["[4,3]", "[n]", "[n]", "= 7"], "[7,3]"),
                    (&["[4,3]", "[n]", "[n]", "[]"], "[?,3]"),
                    (&["?", "[2]", "[2]", "= 7"], "?"),
                    (&["[4]", "[2]", "[2]", "= -1"], "! num_segments must be at least 0, got -1"),
                ],
            );
        }
    }

    #[test]
    fn gradients_of_picked_rows_alone_have_as_many_rows_as_indices() {
        check(
            "SparseSegmentMeanGradV2",
            &[],
            &[
                (&["[2,3]", "[n]", "[n]", "= 5"], "[?,3]; [?]"),
                (&["?", "[2]", "[2]", "= 5"], "?; [?]"),
            ],
        );
    }

    #[test]
    fn gradients_of_picked_rows_have_the_rows_of_the_data() {
        for op in ["SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"] {
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
        for op in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"] {
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
