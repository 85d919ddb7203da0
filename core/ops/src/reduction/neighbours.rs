//! The nearest ones of some points.

use crate::shape::{constant_integer, input_of_rank, same_size};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

register_op!(
    "NearestNeighbors",
    inputs = &["points: float", "centers: float", "k: int64"],
    outputs = &["nearest_center_indices: int64", "nearest_center_distances: float"],
    cases = &["some; n in 1..50; points: [n, 3]; centers: [5, 3]; k: [] integers(1..7)"],
    shape = nearest,
    summary = "Per point the numbers of the k nearest centers, the nearest one first, and the squares of their distances.",
);

fn nearest(c: &ShapeContext<'_>) -> ShapeResult {
    let points = input_of_rank(c, 0, "points", 2)?;
    let centers = input_of_rank(c, 1, "centers", 2)?;
    input_of_rank(c, 2, "k", 0)?;
    same_size(c, "the second dimension of centers", c.dim(points, 1), c.dim(centers, 1))?;
    if let Some(found) = c.value(c.dim(points, 0)).filter(|&rows| rows < 1) {
        let what = "the number of points";
        return Err(GeometryError::TooSmall { what, least: 1, found }.into());
    }
    let wanted = constant_integer(c, 2, "k")?;
    if let Some(found) = wanted.filter(|&k| k < 0) {
        return Err(GeometryError::TooSmall { what: "k", least: 0, found }.into());
    }
    let count = c.value(c.dim(centers, 0)).zip(wanted).map(|(centers, k)| k.min(centers));
    let shape = c.make_shape(&[c.dim(points, 0), c.make_dim(count)]);
    c.set_output(0, shape)?;
    c.set_output(1, shape)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn no_more_are_found_than_there_are() {
        check(
            "NearestNeighbors",
            &[],
            &[
                (&["[n,3]", "[5,3]", "= 7"], "[n,5]; [n,5]"),
                (&["[n,3]", "[5,3]", "[]"], "[n,?]; [n,?]"),
                (&["[n,3]", "[5,4]", "= 1"], "! the second dimension of centers must be 3, got 4"),
                (&["[0,3]", "[5,3]", "= 1"], "! the number of points must be at least 1, got 0"),
                (&["[n,3]", "[5,3]", "= -1"], "! k must be at least 0, got -1"),
            ],
        );
    }
}
