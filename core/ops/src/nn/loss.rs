//! Losses.

use crate::shape::{broadcast_dims, dims_of, input_of_rank, same_size, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_geometry::GeometryError;

register_op!(
    "SoftmaxCrossEntropyWithLogits",
    inputs = &["features: T", "labels: T"],
    outputs = &["loss: T", "backprop: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = cross_entropy,
    summary = "The cross entropy of each row of labels with the softmax of the logits, and its gradient by the logits.",
    cases = &[
        "matrices; features: [n, k]; labels: [n, k] uniform(0, 1)",
        "shared; features: [n, k]; labels: [k] uniform(0, 1)",
    ],
);

register_op!(
    "SparseSoftmaxCrossEntropyWithLogits",
    inputs = &["features: T", "labels: Tlabels"],
    outputs = &["loss: T", "backprop: T"],
    attrs = &["T: {half, bfloat16, float, double}", "Tlabels: {int32, int64} = DT_INT64"],
    shape = sparse_cross_entropy,
    summary = "The same, with class numbers as labels.",
    cases = &[
        "few; features: [n, 7]; labels: [n] integers(0..7)",
        "many; n in 0..9; features: [n, 1009]; labels: [n] integers(0..1009)",
    ],
);

register_op!(
    "L2Loss",
    inputs = &["t: T"],
    outputs = &["output: T"],
    attrs = &["T: {half, bfloat16, float, double}"],
    shape = scalar_output,
    summary = "Half the sum of squares.",
);

/// Checks that features and labels broadcast to a matrix with a row per example.
fn cross_entropy(c: &ShapeContext<'_>) -> ShapeResult {
    let (features, labels) = (c.input(0), c.input(1));
    if c.rank(features).is_none() || c.rank(labels).is_none() {
        c.set_output(0, c.unknown_of_rank(1))?;
        return c.set_output(1, c.unknown_of_rank(2));
    }
    let both = broadcast_dims(c, &dims_of(c, features), &dims_of(c, labels))?;
    if c.rank(both) != Some(2) {
        let found = c.rank(both).unwrap_or(0);
        return Err(GeometryError::Rank { what: "features and labels", expected: 2, found }.into());
    }
    c.set_output(0, c.make_shape(&[c.dim(both, 0)]))?;
    c.set_output(1, both)
}

fn sparse_cross_entropy(c: &ShapeContext<'_>) -> ShapeResult {
    let features = input_of_rank(c, 0, "features", 2)?;
    let labels = input_of_rank(c, 1, "labels", 1)?;
    let rows = same_size(c, "the length of labels", c.dim(features, 0), c.dim(labels, 0))?;
    c.set_output(0, c.make_shape(&[rows]))?;
    c.set_output(1, c.make_shape(&[rows, c.dim(features, 1)]))
}
