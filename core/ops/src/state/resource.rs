//! Resource variables: handles lead to them.

use super::{attr_shape, same_as_handle, shape_of, value_of_handle};
use crate::shape::scalar_output;
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{DType, KernelError, PartialShape, op::GradientRule};

register_op!(
    "VarHandleOp",
    outputs = &["resource: resource"],
    attrs = &[
        "container: string = ''",
        "shared_name: string = ''",
        "debug_name: string = ''",
        "dtype: type",
        "shape: shape",
        "allowed_devices: list(string) = []",
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        c.add_output_handle(0, c.attr("dtype")?, attr_shape(c)?)?;
        scalar_output(c)
    },
    summary = "The handle of a variable.",
);

register_op!(
    "ReadVariableOp",
    inputs = &["resource: resource"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, value_of_handle(c)),
    summary = "The value of a variable, without a copy.",
);

register_op!(
    "AssignVariableOp",
    inputs = &["resource: resource", "value: dtype"],
    attrs = &["dtype: type", "validate_shape: bool = false"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| match c.attr("validate_shape")? {
        true => same_as_handle(c),
        false => Ok(()),
    },
    summary = "Gives a variable a value.",
);

register_op!(
    "AssignAddVariableOp",
    inputs = &["resource: resource", "value: dtype"],
    attrs = &["dtype: type"],
    stateful = true,
    shape = same_as_handle,
    summary = "Adds to a variable, in place.",
);

register_op!(
    "AssignSubVariableOp",
    inputs = &["resource: resource", "value: dtype"],
    attrs = &["dtype: type"],
    stateful = true,
    shape = same_as_handle,
    summary = "Subtracts from a variable, in place.",
);

register_op!(
    "VarIsInitializedOp",
    inputs = &["resource: resource"],
    outputs = &["is_initialized: bool"],
    stateful = true,
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "Whether a variable has a value.",
);

register_op!(
    "VariableShape",
    inputs = &["input: resource"],
    outputs = &["output: out_type"],
    attrs = &["out_type: {int32, int64} = int32"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        let rank = c.rank(value_of_handle(c));
        c.set_output(0, c.shape_of(&[rank.map_or(-1, |rank| rank as i64)]))
    },
    gradient = GradientRule::None,
    summary = "The shape of the value of a variable.",
);

register_op!(
    "ResourceCountUpTo",
    inputs = &["resource: resource"],
    outputs = &["output: T"],
    attrs = &["limit: int", "T: {int32, int64}"],
    stateful = true,
    shape = scalar_output,
    summary = "The value of a counter before it goes up by one; an error at the limit.",
);

register_op!(
    "_VarHandlesOp",
    outputs = &["resources: N * resource"],
    attrs = &[
        "containers: list(string)",
        "shared_names: list(string)",
        "N: int >= 0",
        "dtypes: list(type)",
        "shapes: list(shape)"
    ],
    stateful = true,
    shape = handles,
    summary = "The handles of several variables.",
);

register_op!(
    "_ReadVariablesOp",
    inputs = &["resources: N * resource"],
    outputs = &["values: dtypes"],
    attrs = &["N: int >= 0", "dtypes: list(type) >= 1"],
    stateful = true,
    shape = values,
    summary = "The values of several variables.",
);

/// Each output is the handle of a variable of one of the types and shapes.
fn handles(c: &ShapeContext<'_>) -> ShapeResult {
    let (dtypes, shapes): (Vec<DType>, Vec<PartialShape>) = (c.attr("dtypes")?, c.attr("shapes")?);
    if dtypes.len() != c.output_count() || shapes.len() != c.output_count() {
        return Err(KernelError::invalid_argument(format!(
            "dtypes and shapes: expected N = {} of each, found {} and {}",
            c.output_count(),
            dtypes.len(),
            shapes.len()
        )));
    }
    dtypes.iter().zip(&shapes).enumerate().try_for_each(|(at, (&dtype, shape))| {
        c.add_output_handle(at, dtype, shape_of(c, shape))?;
        c.set_output(at, c.scalar())
    })
}

/// Each output has the shape of the value behind the handle with the same number.
fn values(c: &ShapeContext<'_>) -> ShapeResult {
    (0..c.output_count()).try_for_each(|at| {
        let parts = c.input_handle(at);
        c.set_output(at, parts.first().map_or_else(|| c.unknown(), |&(_, shape)| shape))
    })
}
