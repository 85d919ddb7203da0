//! Variables: values that outlive a step.
//!
//! A resource variable is reached by a handle, which has the element type and shape of the value; a
//! reference variable of older graphs is an output that is a reference.

use crate::shape::scalar_output;
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{DType, PartialShape};

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
    "Variable",
    outputs = &["ref: Ref(dtype)"],
    attrs = &["shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"],
    stateful = true,
    // In older graphs a shape of no dimensions says nothing.
    shape = |c: &ShapeContext<'_>| {
        let shape: PartialShape = c.attr("shape")?;
        match shape.dims() {
            Some(dims) if !dims.is_empty() => c.set_output(0, c.shape_of(dims)),
            _ => c.set_output(0, c.unknown()),
        }
    },
    summary = "A reference to a variable.",
);

register_op!(
    "VariableV2",
    outputs = &["ref: Ref(dtype)"],
    attrs = &["shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, attr_shape(c)?),
    summary = "A reference to a variable.",
);

register_op!(
    "IsVariableInitialized",
    inputs = &["ref: Ref(dtype)"],
    outputs = &["is_initialized: bool"],
    attrs = &["dtype: type"],
    allows_uninitialized_input = true,
    shape = scalar_output,
    summary = "Whether the variable behind a reference has a value.",
);

register_op!(
    "Assign",
    inputs = &["ref: Ref(T)", "value: T"],
    outputs = &["output_ref: Ref(T)"],
    attrs = &["T: type", "validate_shape: bool = true", "use_locking: bool = true"],
    allows_uninitialized_input = true,
    shape = |c: &ShapeContext<'_>| match c.attr("validate_shape")? {
        true => merged(c),
        false => c.set_output(0, c.input(1)),
    },
    summary = "Gives the variable behind a reference a value, and passes the reference on.",
);

register_op!(
    "AssignAdd",
    inputs = &["ref: Ref(T)", "value: T"],
    outputs = &["output_ref: Ref(T)"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "use_locking: bool = false",
    ],
    shape = merged,
    summary = "Adds to the variable behind a reference, in place.",
);

register_op!(
    "AssignSub",
    inputs = &["ref: Ref(T)", "value: T"],
    outputs = &["output_ref: Ref(T)"],
    attrs = &[
        "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}",
        "use_locking: bool = false",
    ],
    shape = merged,
    summary = "Subtracts from the variable behind a reference, in place.",
);

register_op!(
    "CountUpTo",
    inputs = &["ref: Ref(T)"],
    outputs = &["output: T"],
    attrs = &["limit: int", "T: {int32, int64}"],
    shape = scalar_output,
    summary = "The value of a counter before it goes up by one; an error at the limit.",
);

/// Attribute `shape`.
fn attr_shape(c: &ShapeContext<'_>) -> Result<ShapeHandle, tenon_framework::KernelError> {
    let shape: PartialShape = c.attr("shape")?;
    Ok(shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
}

/// The shape of the value behind the handle that is input 0, as far as it is known.
fn value_of_handle(c: &ShapeContext<'_>) -> ShapeHandle {
    let parts: Vec<(DType, ShapeHandle)> = c.input_handle(0);
    parts.first().map_or_else(|| c.unknown(), |&(_, shape)| shape)
}

/// Input 1 has the shape of the value behind the handle.
fn same_as_handle(c: &ShapeContext<'_>) -> ShapeResult {
    c.merge(value_of_handle(c), c.input(1)).map(drop)
}

/// The output is the reference that is input 0, whose value has the shape of input 1.
fn merged(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.merge(c.input(0), c.input(1))?)
}
