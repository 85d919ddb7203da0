//! Ops that read and write slices by indices.
//!
//! An index outside its dimension is an error that names the index, its place and the bound. If the
//! op has the attribute `bad_indices_policy` and it is `IGNORE`, such an index reads zeros and
//! writes nothing.

use crate::shape::{constant_integer, input_of_rank, input_of_rank_at_least, with_identity};
use tenon_author::{Dim, ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::KernelError;
use tenon_geometry::{GeometryError, gather_dims, gather_nd_dims, normalize_axis};

register_op!(
    "Gather",
    inputs = &["params: Tparams", "indices: Tindices"],
    outputs = &["output: Tparams"],
    attrs = &["validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"],
    shape = gather,
    summary = "The slices along the first dimension that indices name.",
    cases = &[
        "vector; n in 1..200000; params: [n]; indices: [k] integers(0..n)",
        "rows; n in 1..50; params: [n, m]; indices: [k, 2] integers(0..n)",
        "row; n in 1..50; params: [n, m]; indices: [] integers(0..n)",
    ],
);

register_op!(
    "GatherV2",
    inputs = &["params: Tparams", "indices: Tindices", "axis: Taxis"],
    outputs = &["output: Tparams"],
    attrs = &[
        "batch_dims: int = 0",
        "Tparams: type",
        "Tindices: {int16, int32, int64}",
        "Taxis: {int32, int64}",
    ],
    shape = gather_v2,
    summary =
        "The slices along a dimension that indices name, in batches that share leading dimensions.",
    cases = &[
        "vector; params: [7]; indices: [k] integers(0..7); axis: [] values(0)",
        "rows; n in 1..50; params: [n, m]; indices: [k, 2] integers(0..n); axis: [] values(0)",
        "columns; params: [m, 5]; indices: [k] integers(0..5); axis: [] values(-1)",
        "batches; batch_dims in {1, -1}; params: [b, m, 5]; indices: [b, k] integers(0..5); axis: [] values(2)",
    ],
    bench = &[
        "rows; k in {64, 16384}; params: [50000, 64]; indices: [k] integers(0..50000); axis: [] values(0)",
    ],
    bytes = "2 * bytes(output) + bytes(indices)",
);

register_op!(
    "GatherNd",
    inputs = &["params: Tparams", "indices: Tindices"],
    outputs = &["output: Tparams"],
    attrs =
        &["Tparams: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"],
    shape = gather_nd,
    summary = "The slices that index vectors name, the last dimension of the indices.",
    cases = &[
        "elements; params: [5, 5]; indices: [k, 2] integers(0..5)",
        "rows; bad_indices_policy in {'', 'ERROR', 'IGNORE'}; n in 1..50; params: [n, m]; \
         indices: [k, 1] integers(0..n)",
        "whole; params: [n, m]; indices: [k, 0]",
    ],
);

register_op!(
    "ScatterNd",
    inputs = &["indices: Tindices", "updates: T", "shape: Tindices"],
    outputs = &["output: T"],
    attrs = &["T: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"],
    shape = scatter_nd,
    summary = "Zeros of a shape, with the updates added to the slices that index vectors name.",
    cases = &[
        "elements; n in 1..2000; indices: [k, 1] integers(0..n); updates: [k]; shape: [1] values(n)",
        "rows; indices: [k, 1] distinct(0..9); k in 0..9; updates: [k, m]; shape: [2] values(9, m)",
        "pairs; bad_indices_policy in {'', 'IGNORE'}; indices: [k, 2] integers(0..5); updates: [k]; \
         shape: [2] values(5, 5)",
    ],
);

/// Registers an op that writes updates into a copy of a tensor.
macro_rules! tensor_scatter {
    ($($name:literal: $types:literal, $summary:literal;)*) => {$(
        register_op!(
            $name,
            inputs = &["tensor: T", "indices: Tindices", "updates: T"],
            outputs = &["output: T"],
            attrs = &["T: type", $types, "bad_indices_policy: string = ''"],
            shape = tensor_scatter,
            summary = $summary,
            cases = &[
                "elements; n in 1..2000; tensor: [n]; indices: [k, 1] integers(0..n); updates: [k]",
                "rows; k in 0..9; tensor: [9, m]; indices: [k, 1] distinct(0..9); updates: [k, m]",
                "pairs; bad_indices_policy in {'', 'IGNORE'}; tensor: [5, 5]; \
                 indices: [k, 2] integers(0..5); updates: [k]",
            ],
        );
    )*};
}

tensor_scatter! {
    "TensorScatterUpdate": "Tindices: {int16, int32, int64, uint16}",
        "The tensor with updates in place of the slices that index vectors name; the last one wins.";
    "TensorScatterAdd": "Tindices: {int32, int64}",
        "The tensor with updates added to the slices that index vectors name.";
    "TensorScatterSub": "Tindices: {int32, int64}",
        "The tensor with updates subtracted from the slices that index vectors name.";
    "TensorScatterMax": "Tindices: {int32, int64}",
        "The tensor with the larger of it and the updates in the slices that index vectors name.";
    "TensorScatterMin": "Tindices: {int32, int64}",
        "The tensor with the smaller of it and the updates in the slices that index vectors name.";
}

fn gather(c: &ShapeContext<'_>) -> ShapeResult {
    let params = input_of_rank_at_least(c, 0, "params", 1)?;
    let (Some(sizes), Some(indices)) = (c.dims(params), c.dims(c.input(1))) else {
        return c.set_output(0, c.unknown());
    };
    c.set_output(0, gathered(c, (&sizes, &indices), 0, 0)?)
}

fn gather_v2(c: &ShapeContext<'_>) -> ShapeResult {
    let params = input_of_rank_at_least(c, 0, "params", 1)?;
    input_of_rank(c, 2, "axis", 0)?;
    let axis = constant_integer(c, 2, "axis")?;
    let batch_dims: i64 = c.attr("batch_dims")?;
    let (Some(sizes), Some(indices)) = (c.dims(params), c.dims(c.input(1))) else {
        return c.set_output(0, c.unknown());
    };
    match axis {
        Some(axis) => c.set_output(0, gathered(c, (&sizes, &indices), axis, batch_dims)?),
        None => {
            let high = indices.len() as i64;
            if !(-high..=high).contains(&batch_dims) {
                return Err(KernelError::invalid_argument(format!(
                    "batch_dims must lie in [{}, {}), got {batch_dims}",
                    -high,
                    high + 1
                )));
            }
            let batch = if batch_dims < 0 { batch_dims + high } else { batch_dims };
            let rank = sizes.len() as i64 - 1 + indices.len() as i64 - batch;
            let rank = usize::try_from(rank).ok();
            c.set_output(0, rank.map_or_else(|| c.unknown(), |rank| c.unknown_of_rank(rank)))
        }
    }
}

/// The output of a gather of inputs 0 and 1, with these sizes.
fn gathered(
    c: &ShapeContext<'_>,
    (params, indices): (&[i64], &[i64]),
    axis: i64,
    batch_dims: i64,
) -> Result<ShapeHandle, KernelError> {
    let output = gather_dims(params, indices, axis, batch_dims)?;
    let axis = normalize_axis("axis", axis, params.len())?;
    let batch =
        if batch_dims < 0 { batch_dims + indices.len() as i64 } else { batch_dims } as usize;
    let from = |input: usize, at: usize| c.dim(c.input(input), at);
    let mut dims: Vec<Dim> = (0..axis).map(|at| from(0, at)).collect();
    dims.extend((batch..indices.len()).map(|at| from(1, at)));
    dims.extend((axis + 1..params.len()).map(|at| from(0, at)));
    Ok(with_identity(c, &output, |at| dims.get(at).copied()))
}

fn gather_nd(c: &ShapeContext<'_>) -> ShapeResult {
    let params = input_of_rank_at_least(c, 0, "params", 1)?;
    let indices = input_of_rank_at_least(c, 1, "indices", 1)?;
    let (Some(sizes), Some(places)) = (c.dims(params), c.dims(indices)) else {
        return c.set_output(0, c.unknown());
    };
    let Some(output) = gather_nd_dims(&sizes, &places)? else {
        return c.set_output(0, c.unknown());
    };
    let outer = places.len() - 1;
    // The dimensions that do not come from the indices are the last ones of the parameters.
    let skipped = sizes.len() + outer - output.len();
    let identity = |at: usize| match at.checked_sub(outer) {
        None => c.dim(indices, at),
        Some(at) => c.dim(params, skipped + at),
    };
    c.set_output(0, with_identity(c, &output, |at| Some(identity(at))))
}

/// Checks updates against the tensor that they are written to, as far as the shapes are known.
pub(crate) fn check_updates(
    c: &ShapeContext<'_>,
    tensor: ShapeHandle,
    inputs: [usize; 2],
) -> ShapeResult {
    let indices = input_of_rank_at_least(c, inputs[0], "indices", 1)?;
    let (Some(tensor), Some(indices), Some(found)) =
        (c.dims(tensor), c.dims(indices), c.dims(c.input(inputs[1])))
    else {
        return Ok(());
    };
    let Some(expected) = gather_nd_dims(&tensor, &indices)? else { return Ok(()) };
    let fits = |(&a, &b): (&i64, &i64)| a == b || a == -1 || b == -1;
    if expected.len() == found.len() && expected.iter().zip(&found).all(fits) {
        return Ok(());
    }
    Err(GeometryError::UpdateShape { expected: expected.to_vec(), found }.into())
}

fn scatter_nd(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 2, "shape", 1)?;
    let output = c.constant_as_shape(2)?;
    check_updates(c, output, [0, 1])?;
    c.set_output(0, output)
}

fn tensor_scatter(c: &ShapeContext<'_>) -> ShapeResult {
    let tensor = input_of_rank_at_least(c, 0, "tensor", 1)?;
    check_updates(c, tensor, [1, 2])?;
    c.set_output(0, tensor)
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn slices_are_gathered() {
        check(
            "Gather",
            &[],
            &[
                (&["[n,3]", "[2,m]"], "[2,m,3]"),
                (&["[]", "[1]"], "! params must have at least 1 dimensions, got 0"),
            ],
        );
        check(
            "GatherV2",
            &[],
            &[
                (&["[n,3]", "[2,m]", "= 1"], "[n,2,m]"),
                (&["[n,3]", "[]", "= 0"], "[3]"),
                (&["[n,3]", "[2]", "[]"], "[?,?]"),
                (&["?", "[2]", "= 0"], "?"),
                (&["[n,3]", "[2]", "= 2"], "! axis must lie in [-2, 2), got 2"),
            ],
        );
        check(
            "GatherV2",
            &[("batch_dims", 1i64.into())],
            &[
                (&["[n,m,3]", "[n,k]", "= 2"], "[n,m,k]"),
                (&["[n,m,3]", "[n,k]", "= 0"], "! batch_dims must be at most 0, got 1"),
                (&["[n,m,3]", "[]", "[]"], "! batch_dims must lie in [0, 1), got 1"),
            ],
        );
        check(
            "GatherNd",
            &[],
            &[
                (&["[n,3,m]", "[k,2]"], "[k,m]"),
                (&["[n,3]", "[k,0]"], "[k,n,3]"),
                (&["[n,3]", "[k,?]"], "?"),
                (&["[n,3]", "[k,3]"], "! the last dimension of indices must be at most 2, got 3"),
            ],
        );
    }

    #[test]
    fn updates_fit_the_slices() {
        check(
            "ScatterNd",
            &[],
            &[
                (&["[k,1]", "[k,3]", "= [8,3]"], "[8,3]"),
                (&["[k,1]", "?", "[2]"], "[?,?]"),
                (&["[2,1]", "[2,4]", "= [8,3]"], "! updates must have shape [2, 3], got [2, 4]"),
            ],
        );
        check(
            "TensorScatterAdd",
            &[],
            &[
                (&["[n,3]", "[k,1]", "[k,3]"], "[n,3]"),
                (&["[n,3]", "[2,1]", "[2]"], "! updates must have shape [2, 3], got [2]"),
                (&["[]", "[2,1]", "[2]"], "! tensor must have at least 1 dimensions, got 0"),
            ],
        );
    }
}
