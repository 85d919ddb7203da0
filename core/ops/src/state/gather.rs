//! Ops that read rows or elements of a variable, which indices name, without a copy of all of it.

use super::value_of_handle;
use crate::shape::input_of_rank_at_least;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::{gather_dims, gather_nd_dims};

register_op!(
    "ResourceGather",
    inputs = &["resource: resource", "indices: Tindices"],
    outputs = &["output: dtype"],
    attrs = &[
        "batch_dims: int = 0",
        "validate_indices: bool = true",
        "dtype: type",
        "Tindices: {int32, int64}"
    ],
    stateful = true,
    shape = rows,
    summary = "The rows of a variable that indices name, in batches that share leading dimensions.",
);

register_op!(
    "ResourceGatherNd",
    inputs = &["resource: resource", "indices: Tindices"],
    outputs = &["output: dtype"],
    attrs = &["dtype: type", "Tindices: {int32, int64}"],
    stateful = true,
    shape = slices,
    summary = "The slices of a variable that index vectors name.",
);

fn rows(c: &ShapeContext<'_>) -> ShapeResult {
    let batch: i64 = c.attr("batch_dims")?;
    if batch < 0 {
        return Err(KernelError::invalid_argument(format!(
            "batch_dims: expected at least 0, found {batch}"
        )));
    }
    let (Some(value), Some(indices)) = (c.dims(value_of_handle(c)), c.dims(c.input(1))) else {
        return c.set_output(0, c.unknown());
    };
    c.set_output(0, c.shape_of(&gather_dims(&value, &indices, batch, batch)?))
}

fn slices(c: &ShapeContext<'_>) -> ShapeResult {
    let indices = input_of_rank_at_least(c, 1, "indices", 1)?;
    let (Some(value), Some(indices)) = (c.dims(value_of_handle(c)), c.dims(indices)) else {
        return c.set_output(0, c.unknown());
    };
    let output = gather_nd_dims(&value, &indices)?;
    c.set_output(0, output.map_or_else(|| c.unknown(), |dims| c.shape_of(&dims)))
}
