//! Sobol's sequence.

use crate::shape::{constant_integer, input_of_rank};
use tenon_author::{Dim, ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::GeometryError;

register_op!(
    "SobolSample",
    inputs = &["dim: int32", "num_results: int32", "skip: int32"],
    outputs = &["samples: dtype"],
    attrs = &["dtype: {float, double} = DT_FLOAT"],
    cases = &[
        "points; dim: [] integers(1..40); num_results: [] integers(1..50); skip: [] integers(0..1000)",
    ],
    shape = samples,
    summary = "Points of Sobol's sequence, which fill the unit cube evenly, after the first ones.",
);

fn samples(c: &ShapeContext<'_>) -> ShapeResult {
    for (at, what) in ["dim", "num_results", "skip"].into_iter().enumerate() {
        input_of_rank(c, at, what, 0)?;
    }
    let size = |at: usize, what: &'static str| -> Result<Dim, KernelError> {
        match constant_integer(c, at, what)? {
            Some(found) if found < 1 => {
                Err(GeometryError::TooSmall { what, least: 1, found }.into())
            }
            size => Ok(c.make_dim(size)),
        }
    };
    let (columns, rows) = (size(0, "dim")?, size(1, "num_results")?);
    c.set_output(0, c.make_shape(&[rows, columns]))
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn points_are_rows() {
        check(
            "SobolSample",
            &[],
            &[
                (&["= 3", "= 5", "[]"], "[5,3]"),
                (&["[]", "= 5", "[]"], "[5,?]"),
                (&["= 0", "= 5", "[]"], "! dim must be at least 1, got 0"),
                (&["= 3", "[1]", "[]"], "! num_results must have 0 dimensions, got 1"),
            ],
        );
    }
}
