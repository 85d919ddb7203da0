//! Gradients of slices in other forms.

use crate::{TrainError, Variable, nodes::Scope};
use tenon_framework::{DType, Tensor};
use tenon_graph::Output;

/// Slices of which none has the index of another: slices of the same index are added up. Returns values and indices.
pub(crate) fn deduplicated(
    scope: &mut Scope<'_, '_>,
    values: Output,
    indices: Output,
) -> Result<(Output, Output), TrainError> {
    let unique = scope.node("Unique").input(indices).build()?;
    let count = scope.unary("Size", unique.into())?;
    let sum = scope.node("UnsortedSegmentSum").input(values).input(Output::new(unique, 1));
    Ok((sum.input(count).build()?.into(), unique.into()))
}

/// The tensor that slices of a variable's gradient stand for.
///
/// # Errors
/// The variable is a scalar.
pub(crate) fn dense(
    scope: &mut Scope<'_, '_>,
    variable: &Variable,
    values: Output,
    indices: Output,
) -> Result<Output, TrainError> {
    let Some(&rows) = variable.shape.dims().first() else {
        let what = format!("the gradient of variable '{}'", variable.name);
        return Err(TrainError::argument(what, "a tensor, as for any scalar", "slices"));
    };
    let rows = scope.constant("num_segments", Tensor::scalar(rows)?)?;
    let sum = scope.node("UnsortedSegmentSum").input(values).input(indices).input(rows);
    Ok(sum.attr("Tnumsegments", DType::INT64).build()?.into())
}
