//! Arrays of tensors, which go with the step. Every op takes and gives a *flow*, a number that says
//! nothing and orders the ops of one array.
//!
//! The ops of version 2 know an array by its name, those of version 3 by a handle.

use crate::shape::{
    input_of_rank, input_of_rank_at_least, nothing_known, pass_on, same_size, scalar_output,
};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{KernelError, PartialShape, op::GradientRule};

register_op!(
    "TensorArrayV3",
    inputs = &["size: int32"],
    outputs = &["handle: resource", "flow: float"],
    attrs = &[
        "dtype: type",
        "element_shape: shape = ?",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "identical_element_shapes: bool = false",
        "tensor_array_name: string = ''"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 0, "size", 0)?;
        let element = attr_shape(c, "element_shape")?;
        if c.attr("identical_element_shapes")? || is_full(c, element) {
            c.add_output_handle(0, c.attr("dtype")?, element)?;
        }
        c.set_output(1, c.scalar())?;
        scalar_output(c)
    },
    gradient = GradientRule::None,
    summary = "The handle of a new array of tensors, which goes with the step.",
);

register_op!(
    "TensorArrayGradV3",
    inputs = &["handle: resource", "flow_in: float"],
    outputs = &["grad_handle: resource", "flow_out: float"],
    attrs = &["source: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        pass_on(c, 0, 0)?;
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    gradient = GradientRule::None,
    summary = "The array of the gradients of an array, under the name of a source.",
);

register_op!(
    "TensorArrayGradWithShape",
    inputs = &["handle: resource", "flow_in: float", "shape_to_prepend: int32"],
    outputs = &["grad_handle: resource", "flow_out: float"],
    attrs = &["source: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        for (dtype, shape) in c.input_handle(0) {
            c.add_output_handle(0, dtype, joined(c, c.constant_as_shape(2)?, shape))?;
        }
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    gradient = GradientRule::None,
    summary = "The array of the gradients of an array, whose elements have more dimensions before their own.",
);

register_op!(
    "TensorArrayWriteV3",
    inputs = &["handle: resource", "index: int32", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    stateful = true,
    shape = write,
    summary = "Writes an element of an array.",
);

register_op!(
    "TensorArrayReadV3",
    inputs = &["handle: resource", "index: int32", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type"],
    stateful = true,
    shape = read,
    summary = "Reads an element of an array.",
);

register_op!(
    "TensorArrayGatherV3",
    inputs = &["handle: resource", "indices: int32", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type", "element_shape: shape = ?"],
    stateful = true,
    shape = gather,
    summary = "Some elements of an array as the rows of a tensor.",
);

register_op!(
    "TensorArrayScatterV3",
    inputs = &["handle: resource", "indices: int32", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    stateful = true,
    shape = scatter,
    summary = "Writes the rows of a tensor as elements of an array.",
);

register_op!(
    "TensorArrayConcatV3",
    inputs = &["handle: resource", "flow_in: float"],
    outputs = &["value: dtype", "lengths: int64"],
    attrs = &["dtype: type", "element_shape_except0: shape = ?"],
    stateful = true,
    shape = concat,
    summary = "The elements of an array one after the other along their first dimension, and their lengths.",
);

register_op!(
    "TensorArraySplitV3",
    inputs = &["handle: resource", "value: T", "lengths: int64", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    stateful = true,
    shape = split,
    summary = "Writes parts of a tensor, of given lengths along its first dimension, as the elements of an array.",
);

register_op!(
    "TensorArraySizeV3",
    inputs = &["handle: resource", "flow_in: float"],
    outputs = &["size: int32"],
    stateful = true,
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "How many elements an array has.",
);

register_op!(
    "TensorArrayCloseV3",
    inputs = &["handle: resource"],
    stateful = true,
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Drops what an array holds, and refuses what comes.",
);

register_op!(
    "TensorArrayV2",
    inputs = &["size: int32"],
    outputs = &["handle: string"],
    attrs = &[
        "dtype: type",
        "element_shape: shape = ?",
        "dynamic_size: bool = false",
        "clear_after_read: bool = true",
        "tensor_array_name: string = ''"
    ],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 0, "size", 0)?;
        c.set_output(0, c.shape_of(&[2]))
    },
    gradient = GradientRule::None,
    summary = "The name of a new array of tensors, which goes with the step.",
);

register_op!(
    "TensorArrayGradV2",
    inputs = &["handle: string", "flow_in: float"],
    outputs = &["grad_handle: string"],
    attrs = &["source: string"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 1, "flow_in", 0)?;
        c.set_output(0, c.shape_of(&[2]))
    },
    gradient = GradientRule::None,
    summary = "The name of the array of the gradients of an array, under the name of a source.",
);

register_op!(
    "TensorArrayWriteV2",
    inputs = &["handle: string", "index: int32", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = write,
    summary = "Writes an element of an array.",
);

register_op!(
    "TensorArrayReadV2",
    inputs = &["handle: string", "index: int32", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type"],
    shape = read,
    summary = "Reads an element of an array.",
);

register_op!(
    "TensorArrayGatherV2",
    inputs = &["handle: string", "indices: int32", "flow_in: float"],
    outputs = &["value: dtype"],
    attrs = &["dtype: type", "element_shape: shape = ?"],
    shape = gather,
    summary = "Some elements of an array as the rows of a tensor.",
);

register_op!(
    "TensorArrayScatterV2",
    inputs = &["handle: string", "indices: int32", "value: T", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = scatter,
    summary = "Writes the rows of a tensor as elements of an array.",
);

register_op!(
    "TensorArrayConcatV2",
    inputs = &["handle: string", "flow_in: float"],
    outputs = &["value: dtype", "lengths: int64"],
    attrs = &["dtype: type", "element_shape_except0: shape = ?"],
    shape = concat,
    summary = "The elements of an array one after the other along their first dimension, and their lengths.",
);

register_op!(
    "TensorArraySplitV2",
    inputs = &["handle: string", "value: T", "lengths: int64", "flow_in: float"],
    outputs = &["flow_out: float"],
    attrs = &["T: type"],
    shape = split,
    summary = "Writes parts of a tensor, of given lengths along its first dimension, as the elements of an array.",
);

register_op!(
    "TensorArraySizeV2",
    inputs = &["handle: string", "flow_in: float"],
    outputs = &["size: int32"],
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "How many elements an array has.",
);

register_op!(
    "TensorArrayCloseV2",
    inputs = &["handle: string"],
    shape = nothing_known,
    gradient = GradientRule::None,
    summary = "Drops what an array holds, and refuses what comes.",
);

/// A shape that is an attribute.
pub(super) fn attr_shape(c: &ShapeContext<'_>, name: &str) -> Result<ShapeHandle, KernelError> {
    let shape: PartialShape = c.attr(name)?;
    Ok(shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
}

fn is_full(c: &ShapeContext<'_>, shape: ShapeHandle) -> bool {
    c.dims(shape).is_some_and(|dims| !dims.contains(&-1))
}

/// The shape of the elements of the array that is input 0, as far as it is known.
fn element_of(c: &ShapeContext<'_>) -> ShapeHandle {
    c.input_handle(0).first().map_or_else(|| c.unknown(), |&(_, shape)| shape)
}

/// Checks what is written to the array that is input 0.
fn same_as_elements(c: &ShapeContext<'_>, value: ShapeHandle) -> ShapeResult {
    c.merge(element_of(c), value).map(drop)
}

/// The output is the flow, a scalar that is an input.
fn flow(c: &ShapeContext<'_>, input: usize) -> ShapeResult {
    input_of_rank(c, input, "flow_in", 0)?;
    scalar_output(c)
}

/// An element is written at an index; the output is the flow.
pub(super) fn write(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "index", 0)?;
    same_as_elements(c, c.input(2))?;
    flow(c, 3)
}

/// The output is an element.
pub(super) fn read(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "index", 0)?;
    input_of_rank(c, 2, "flow_in", 0)?;
    c.set_output(0, element_of(c))
}

/// The output has a row for each index.
pub(super) fn gather(c: &ShapeContext<'_>) -> ShapeResult {
    let indices = input_of_rank(c, 1, "indices", 1)?;
    input_of_rank(c, 2, "flow_in", 0)?;
    let element = c.merge(element_of(c), attr_shape(c, "element_shape")?)?;
    c.set_output(0, joined(c, indices, element))
}

/// The rows of a tensor are written at indices; the output is the flow.
pub(super) fn scatter(c: &ShapeContext<'_>) -> ShapeResult {
    let indices = input_of_rank(c, 1, "indices", 1)?;
    if c.rank(c.input(2)).is_some() {
        let value = input_of_rank_at_least(c, 2, "value", 1)?;
        same_size(c, "value", c.dim(indices, 0), c.dim(value, 0))?;
        same_as_elements(c, rest(c, value))?;
    }
    flow(c, 3)
}

/// The outputs are rows of a number that the run decides, and their lengths.
pub(super) fn concat(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 1, "flow_in", 0)?;
    c.set_output(1, c.shape_of(&[-1]))
}

/// A tensor is written in parts of given lengths; the output is the flow.
pub(super) fn split(c: &ShapeContext<'_>) -> ShapeResult {
    input_of_rank(c, 2, "lengths", 1)?;
    flow(c, 3)
}

/// The dimensions of one shape, and then those of another.
pub(super) fn joined(c: &ShapeContext<'_>, first: ShapeHandle, then: ShapeHandle) -> ShapeHandle {
    let (Some(a), Some(b)) = (c.rank(first), c.rank(then)) else { return c.unknown() };
    let dims = (0..a).map(|at| c.dim(first, at)).chain((0..b).map(|at| c.dim(then, at)));
    c.make_shape(&dims.collect::<Vec<_>>())
}

/// A shape without its first dimension.
pub(super) fn rest(c: &ShapeContext<'_>, shape: ShapeHandle) -> ShapeHandle {
    let Some(rank) = c.rank(shape) else { return c.unknown() };
    let dims: Vec<_> = (1..rank).map(|at| c.dim(shape, at)).collect();
    c.make_shape(&dims)
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use tenon_framework::attr::AttrValue;

    #[test]
    fn elements_are_known_behind_the_handle() {
        let mut bench = Bench::new();
        let shape = tenon_framework::PartialShape::new(&[2, 3]).unwrap();
        let attrs = [("element_shape", AttrValue::Shape(shape))];
        let (size, flow) = (bench.value("=4"), bench.value("[]"));
        let made = bench.run("TensorArrayV3", &attrs, &[&size]).unwrap();
        let indices = bench.value("[n]");
        let rows = bench.run("TensorArrayGatherV3", &[], &[&made[0], &indices, &flow]).unwrap();
        assert_eq!(bench.show(&rows[0].shape), "[n,2,3]");
        let value = bench.value("[2,4]");
        let inputs = [&made[0], &size, &value, &flow];
        assert!(bench.run("TensorArrayWriteV3", &[], &inputs).is_err());
        let value = bench.value("[m,2,3]");
        let inputs = [&made[0], &indices, &value, &flow];
        assert_eq!(bench.run("TensorArrayScatterV3", &[], &inputs).unwrap().len(), 1);
    }
}
