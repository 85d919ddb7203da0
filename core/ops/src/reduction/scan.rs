//! Cumulative sums and products along one dimension.

use crate::shape::{constant_integer, input_of_rank, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::normalize_axis;

const EXCLUSIVE: &str = "exclusive: bool = false";
const REVERSE: &str = "reverse: bool = false";
const AXIS: &str = "Tidx: {int32, int64} = DT_INT32";

register_op!(
    "Cumsum",
    inputs = &["x: T", "axis: Tidx"],
    outputs = &["out: T"],
    attrs = &[EXCLUSIVE, REVERSE, "T: numbertype", AXIS],
    shape = scan,
    summary = "The sum of the elements so far along a dimension.",
);

register_op!(
    "Cumprod",
    inputs = &["x: T", "axis: Tidx"],
    outputs = &["out: T"],
    attrs = &[EXCLUSIVE, REVERSE, "T: numbertype", AXIS],
    shape = scan,
    summary = "The product of the elements so far along a dimension.",
);

register_op!(
    "CumulativeLogsumexp",
    inputs = &["x: T", "axis: Tidx"],
    outputs = &["out: T"],
    attrs = &[EXCLUSIVE, REVERSE, "T: {bfloat16, half, float, double}", AXIS],
    shape = scan,
    summary = "The logarithm of the sum of exponentials of the elements so far along a dimension.",
);

fn scan(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "axis", 0)?;
    if let (Some(rank), Some(axis)) = (c.rank(c.input(0)), constant_integer(c, 1, "axis")?) {
        normalize_axis("axis", axis, rank)?;
    }
    unchanged(c)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn the_shape_stays_and_the_axis_is_checked() {
        for op in ["Cumsum", "Cumprod", "CumulativeLogsumexp"] {
            check(
                op,
                &[],
                &[
                    (&["[n,3]", "= -1"], "[n,3]"),
                    (&["[n,3]", "[]"], "[n,3]"),
                    (&["?", "= 4"], "?"),
                    (&["[2,3]", "= 2"], "! axis must lie in [-2, 2), got 2"),
                    (&["[]", "= 0"], "! axis must lie in [0, 0), got 0"),
                    (&["[2]", "[1]"], "! axis must have 0 dimensions, got 1"),
                ],
            );
        }
    }
}
