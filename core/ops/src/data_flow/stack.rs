//! Stacks of tensors, which go with the step. The gradients of loops keep values in them.

use crate::shape::{input_of_rank, nothing_known, scalar_output};
use tenon_author::{ShapeContext, register_op};

register_op!(
    "StackV2",
    inputs = &["max_size: int32"],
    outputs = &["handle: resource"],
    attrs = &["elem_type: type", "stack_name: string = ''"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 0, "max_size", 0)?;
        scalar_output(c)
    },
    summary = "The handle of a new stack, which goes with the step.",
);

register_op!(
    "StackPushV2",
    inputs = &["handle: resource", "elem: T"],
    outputs = &["output: T"],
    attrs = &["T: type", "swap_memory: bool = false"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(1)),
    summary = "Puts a tensor on a stack, and passes it on.",
);

register_op!(
    "StackPopV2",
    inputs = &["handle: resource"],
    outputs = &["elem: elem_type"],
    attrs = &["elem_type: type"],
    stateful = true,
    shape = nothing_known,
    summary = "Takes the tensor that was put on a stack last.",
);

register_op!(
    "StackCloseV2",
    inputs = &["handle: resource"],
    stateful = true,
    shape = nothing_known,
    summary = "Drops what a stack holds, and refuses what comes.",
);
