//! Numbers of dimensions, and vectors with an element for each dimension, in another data format.

use crate::shape::unchanged;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

const ATTRS: &[&str] =
    &["T: {int32, int64} = DT_INT32", "src_format: string = 'NHWC'", "dst_format: string = 'NCHW'"];

register_op!(
    "DataFormatDimMap",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = ATTRS,
    shape = unchanged,
    summary = "The numbers that dimensions of one data format have in another; negative ones count from the end.",
    cases = &["any; x: [n] integers(-4..4)"],
);

register_op!(
    "DataFormatVecPermute",
    inputs = &["x: T"],
    outputs = &["y: T"],
    attrs = ATTRS,
    shape = permute,
    summary = "Elements, or pairs of them, one for each dimension of a data format or for each dimension of its images, in the order of another format.",
    cases = &["all; x: [4]", "pairs; x: [4, 2]", "images; x: [2]"],
);

fn permute(c: &ShapeContext<'_>) -> ShapeResult {
    let x = c.input(0);
    match c.rank(x) {
        Some(0) => Err(GeometryError::RankTooSmall { what: "x", expected: 1, found: 0 }.into()),
        Some(3..) => crate::shape::input_of_rank(c, 0, "x", 2).map(drop),
        _ => c.set_output(0, x),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn formats_change_no_shape() {
        check("DataFormatDimMap", &[], &[(&["[2,n]"], "[2,n]"), (&["[]"], "[]")]);
        check(
            "DataFormatVecPermute",
            &[],
            &[
                (&["[4]"], "[4]"),
                (&["[?,2]"], "[?,2]"),
                (&["?"], "?"),
                (&["[]"], "! x must have at least 1 dimensions, got 0"),
                (&["[4,2,1]"], "! x must have 2 dimensions, got 3"),
            ],
        );
    }
}
