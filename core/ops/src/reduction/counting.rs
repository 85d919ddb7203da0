//! Histograms.

use crate::shape::{constant_integer, input_of_rank, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

register_op!(
    "Bincount",
    inputs = &["arr: int32", "size: int32", "weights: T"],
    outputs = &["bins: T"],
    attrs = &["T: {int32, int64, float, double}"],
    cases = &[
        "weighted; arr: [n] integers(0..12); size: [] values(9); weights: [n]",
        "counted; arr: [n, 2] integers(0..9); size: [] values(9); weights: [0]",
    ],
    shape = bincount,
    summary = "How often each number below size occurs, or the sum of its weights.",
);

register_op!(
    "HistogramFixedWidth",
    inputs = &["values: T", "value_range: T", "nbins: int32"],
    outputs = &["out: dtype"],
    attrs = &["T: {int32, int64, float, double}", "dtype: {int32, int64} = DT_INT32"],
    cases = &["parts; values: [n, 3]; value_range: [2] values(-2, 2); nbins: [] values(5)",],
    shape = histogram,
    summary = "How many values lie in each of nbins equal parts of a range; those outside count at its ends.",
);

fn bincount(c: &ShapeContext<'_>) -> ShapeResult {
    counts(c, 1, "size", 0)
}

fn histogram(c: &ShapeContext<'_>) -> ShapeResult {
    let range = input_of_rank(c, 1, "value_range", 1)?;
    same_size(c, "the length of value_range", c.make_dim(Some(2)), c.dim(range, 0))?;
    counts(c, 2, "nbins", 1)
}

/// The output is a vector whose length, at least `least`, is in an input.
fn counts(c: &ShapeContext<'_>, input: usize, what: &'static str, least: i64) -> ShapeResult {
    input_of_rank(c, input, what, 0)?;
    let size = constant_integer(c, input, what)?;
    if let Some(found) = size.filter(|&size| size < least) {
        return Err(GeometryError::TooSmall { what, least, found }.into());
    }
    c.set_output(0, c.make_shape(&[c.make_dim(size)]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn there_are_as_many_counts_as_asked_for() {
        check(
            "Bincount",
            &[],
            &[
                (&["[2,3]", "= 5", "[2,3]"], "[5]"),
                (&["[2]", "[]", "[0]"], "[?]"),
                (&["[2]", "= -1", "[0]"], "! size must be at least 0, got -1"),
                (&["[2]", "[1]", "[0]"], "! size must have 0 dimensions, got 1"),
            ],
        );
        check(
            "HistogramFixedWidth",
            &[],
            &[
                (&["[2,3]", "[2]", "= 5"], "[5]"),
                (&["?", "[?]", "[]"], "[?]"),
                (&["[2]", "[2]", "= 0"], "! nbins must be at least 1, got 0"),
                (&["[2]", "[3]", "= 5"], "! the length of value_range must be 2, got 3"),
            ],
        );
    }
}
