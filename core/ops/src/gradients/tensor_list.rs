//! Gradients of lists of tensors. The gradient of a list is a list of the gradients of its elements.

use super::{Made, Outcome, part_of_shape};
use tenon_author::{GradientContext, register_gradient};
use tenon_framework::{DType, abi::GraphValue};

register_gradient!("TensorListPushBack", |c| {
    let node = c.op("TensorListPopBack").input(c.gradient(0)?).input(c.shape_of(c.input(1))?);
    let parts = node.copy(&["element_dtype"]).outputs()?;
    c.set(0, parts[0])?;
    c.set(1, parts[1])
});
register_gradient!("TensorListPopBack", |c| {
    c.set(0, c.op("TensorListPushBack").input(c.gradient(0)?).input(c.gradient(1)?).done()?)
});
register_gradient!("TensorListStack", |c| {
    let g = c.gradient(0)?;
    c.set(0, c.op("TensorListFromTensor").input(g).input(shape_of_element(c, g)?).done()?)
});
register_gradient!("TensorListFromTensor", |c| {
    let node = c.op("TensorListStack").input(c.gradient(0)?);
    let node = node.input(shape_of_element(c, c.input(0))?);
    c.set(0, node.copy(&["element_dtype"]).done()?)
});
register_gradient!("TensorListGetItem", |c| {
    let list = reserved_like(c, c.input(0))?;
    let node = c.op("TensorListSetItem").input(list).input(c.input(1)).input(c.gradient(0)?);
    c.set(0, node.done()?)
});
register_gradient!("TensorListSetItem", |c| {
    let (g, index, item) = (c.gradient(0)?, c.input(1), c.input(2));
    let zeros = c.zeros_like(item)?;
    c.set(0, c.op("TensorListSetItem").input(g).input(index).input(zeros).done()?)?;
    let node = c.op("TensorListGetItem").input(g).input(index).input(c.shape_of(item)?);
    c.set(2, node.copy(&["element_dtype"]).done()?)
});
register_gradient!("TensorListResize", |c| {
    let size = c.unary("TensorListLength", c.input(0))?;
    c.set(0, c.binary("TensorListResize", c.gradient(0)?, size)?)
});
register_gradient!("TensorListGather", |c| {
    let list = reserved_like(c, c.input(0))?;
    let node = c.op("TensorListScatterIntoExistingList").input(list);
    c.set(0, node.input(c.gradient(0)?).input(c.input(1)).done()?)
});
register_gradient!("TensorListScatter", |c| c.set(0, gathered(c, 0, 1)?));
register_gradient!("TensorListScatterV2", |c| c.set(0, gathered(c, 0, 1)?));
register_gradient!("TensorListScatterIntoExistingList", |c| {
    let zeros = c.zeros_like(c.input(1))?;
    let node = c.op("TensorListScatterIntoExistingList").input(c.gradient(0)?);
    c.set(0, node.input(zeros).input(c.input(2)).done()?)?;
    c.set(1, gathered(c, 1, 2)?)
});
register_gradient!("TensorListConcat", concat);
register_gradient!("TensorListConcatV2", concat);
register_gradient!("TensorListSplit", |c| {
    let all = c.ints(&[-1])?;
    let rest = shape_of_element(c, c.input(0))?;
    let shape = c.op("ConcatV2").input(all).input(rest).input(c.int(0)?).done()?;
    let node = c.op("TensorListConcatV2").input(c.gradient(0)?).input(shape).input(c.input(2));
    c.set(0, node.copy(&["element_dtype"]).done()?)
});

/// The shape of the elements of a tensor that a list was made of.
fn shape_of_element(c: &GradientContext<'_>, x: GraphValue) -> Made {
    part_of_shape(c, c.shape_of(x)?, Some(1), None)
}

/// A list of the length and element shape of another one, without elements.
fn reserved_like(c: &GradientContext<'_>, list: GraphValue) -> Made {
    let shape =
        c.op("TensorListElementShape").input(list).attr("shape_type", DType::INT32).done()?;
    let length = c.unary("TensorListLength", list)?;
    let node = c.op("TensorListReserve").input(shape).input(length);
    node.copy(&["element_dtype"]).done()
}

/// The elements of the gradient at the places to which a tensor was scattered.
fn gathered(c: &GradientContext<'_>, tensor: usize, indices: usize) -> Made {
    let node = c.op("TensorListGather").input(c.gradient(0)?).input(c.input(indices));
    let node = node.input(shape_of_element(c, c.input(tensor))?);
    node.copy(&["element_dtype"]).done()
}

fn concat(c: &GradientContext<'_>) -> Outcome {
    let list = c.input(0);
    let shape =
        c.op("TensorListElementShape").input(list).attr("shape_type", DType::INT32).done()?;
    let node = c.op("TensorListSplit").input(c.gradient(0)?).input(shape).input(c.output(1));
    c.set(0, node.done()?)
}
