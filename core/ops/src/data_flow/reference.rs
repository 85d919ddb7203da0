//! Arrays and stacks of tensors of graphs before the third version: a handle is a reference to two
//! strings, under which the ops find the array or the stack of the step.

use super::tensor_array::{concat, gather, joined, read, scatter, split, write};
use crate::shape::{input_of_rank, input_of_rank_at_least, nothing_known, scalar_output};
use tenon_author::{ShapeContext, ShapeResult, register_op};
use tenon_framework::op::GradientRule;

/// The output is a handle.
fn handle(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.shape_of(&[2]))
}

register_op!(
    "Stack",
    outputs = &["handle: Ref(string)"],
    attrs = &["elem_type: type", "stack_name: string = ''"],
    stateful = true,
    shape = handle,
    gradient = GradientRule::None,
    summary = "A new stack, which goes with the step, by reference.",
);

register_op!(
    "StackPush",
    inputs = &["handle: Ref(string)", "elem: T"],
    outputs = &["output: T"],
    attrs = &["T: type", "swap_memory: bool = false"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, c.input(1)),
    summary = "Puts a tensor on a stack, and passes it on.",
);

register_op!(
    "StackPop",
    inputs = &["handle: Ref(string)"],
    outputs = &["elem: elem_type"],
    attrs = &["elem_type: type"],
    shape = nothing_known,
    summary = "Takes the tensor that was put on a stack last.",
);

register_op!(
    "StackClose",
    inputs = &["handle: Ref(string)"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Drops what a stack holds, and refuses what comes.",
);

register_op!(
    "TensorArray",
    inputs = &["size: int32"],
    outputs = &["handle: Ref(string)"],
    attrs = &[
        "dtype: type",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "tensor_array_name: string = ''",
        "element_shape: shape = ?"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 0, "size", 0)?;
        handle(c)
    },
    gradient = GradientRule::None,
    summary = "A new array of tensors, which goes with the step, by reference.",
);

register_op!(
    "TensorArrayGrad",
    inputs = &["handle: string", "flow_in: float"],
    outputs = &["grad_handle: Ref(string)"],
    attrs = &["source: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 1, "flow_in", 0)?;
        handle(c)
    },
    gradient = GradientRule::None,
    summary = "The array of the gradients of an array, under the name of a source, by reference.",
);

register_op!(
    "TensorArrayWrite",
    inputs = &["handle: Ref(string)", "index: int32", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = write,
    summary = "Writes an element of an array.",
);

register_op!(
    "TensorArrayRead",
    inputs = &["handle: Ref(string)", "index: int32", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type"],
    shape = read,
    summary = "Reads an element of an array.",
);

register_op!(
    "TensorArrayGather",
    inputs = &["handle: Ref(string)", "indices: int32", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type", "element_shape: shape = ?"],
    shape = gather,
    summary = "Some elements of an array as the rows of a tensor.",
);

register_op!(
    "TensorArrayPack",
    inputs = &["handle: Ref(string)", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type", "element_shape: shape = ?"],
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 1, "flow_in", 0)?;
        let element = super::tensor_array::attr_shape(c, "element_shape")?;
        c.set_output(0, joined(c, c.shape_of(&[-1]), element))
    },
    summary = "The elements of an array as the rows of a tensor.",
);

register_op!(
    "TensorArrayScatter",
    inputs = &["handle: Ref(string)", "indices: int32", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = scatter,
    summary = "Writes the rows of a tensor as elements of an array.",
);

register_op!(
    "TensorArrayUnpack",
    inputs = &["handle: Ref(string)", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = |c: &ShapeContext<'_>| {
        if c.rank(c.input(1)).is_some() {
            input_of_rank_at_least(c, 1, "value", 1)?;
        }
        input_of_rank(c, 2, "flow_in", 0)?;
        scalar_output(c)
    },
    summary = "Writes the rows of a tensor as the elements of an array.",
);

register_op!(
    "TensorArrayConcat",
    inputs = &["handle: Ref(string)", "flow_in: float"],
    outputs = &["value: dtype", "lengths: int64"],
    attrs = &["dtype: type", "element_shape_except0: shape = ?"],
    shape = concat,
    summary = "The elements of an array one after the other along their first dimension, and their lengths.",
);

register_op!(
    "TensorArraySplit",
    inputs = &["handle: Ref(string)", "value: T", "lengths: int64", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = split,
    summary = "Writes parts of a tensor, of given lengths along its first dimension, as the elements of an array.",
);

register_op!(
    "TensorArraySize",
    inputs = &["handle: Ref(string)", "flow_in: float"],
    outputs = &["size: int32"],
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "How many elements an array has.",
);

register_op!(
    "TensorArrayClose",
    inputs = &["handle: Ref(string)"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Drops what an array holds, and refuses what comes.",
);
