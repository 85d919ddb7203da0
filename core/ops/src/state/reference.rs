//! Reference variables, whose outputs are references.

use super::{attr_shape, merged};
use crate::shape::{input_of_rank, scalar_output, unchanged};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::{PartialShape, op::GradientRule};

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
    gradient = GradientRule::None,
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
    gradient = GradientRule::None,
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
    gradient = GradientRule::None,
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

register_op!(
    "RefIdentity",
    inputs = &["input: Ref(T)"],
    outputs = &["output: Ref(T)"],
    attrs = &["T: type"],
    allows_uninitialized_input = true,
    shape = unchanged,
    summary = "The reference, passed on.",
);

register_op!(
    "RefSelect",
    inputs = &["index: int32", "inputs: Ref(N * T)"],
    outputs = &["output: Ref(T)"],
    attrs = &["T: type", "N: int >= 1"],
    shape = selected,
    summary = "The reference that an index selects.",
);

register_op!(
    "TemporaryVariable",
    outputs = &["ref: Ref(dtype)"],
    attrs = &["shape: shape", "dtype: type", "var_name: string = ''"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, attr_shape(c)?),
    summary = "A reference to a variable of this step.",
);

register_op!(
    "DestroyTemporaryVariable",
    inputs = &["ref: Ref(T)"],
    outputs = &["value: T"],
    attrs = &["T: type", "var_name: string"],
    shape = unchanged,
    summary = "The last value of a variable of this step, which then is gone.",
);

/// The output has the shape of the inputs where they all have the same.
fn selected(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 0, "index", 0)?;
    let first = c.dims(c.input(1));
    let known = first.as_ref().is_some_and(|dims| !dims.contains(&-1));
    let same = known && (2..c.input_count()).all(|at| c.dims(c.input(at)) == first);
    c.set_output(0, if same { c.input(1) } else { c.unknown() })
}
