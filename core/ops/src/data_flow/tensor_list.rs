//! Lists of tensors: values of variants. An op that changes a list gives a new one.
//!
//! What is known of the elements of a list, their type and the shape that all of them have, is known
//! behind the variant, as it is behind a resource.

use super::tensor_array::{joined, rest};
use crate::shape::{input_of_rank, input_of_rank_at_least, pass_on, same_size, scalar_output};
use tenon_author::{ShapeContext, ShapeHandle, ShapeResult, register_op};
use tenon_framework::{DType, KernelError, PartialShape, op::GradientRule};

register_op!(
    "EmptyTensorList",
    inputs = &["element_shape: shape_type", "max_num_elements: int32"],
    outputs = &["handle: variant"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| list_of(c, shape_in(c, 0)?),
    summary = "A list without elements, of elements of one type and of shapes that agree with one.",
);

register_op!(
    "TensorListReserve",
    inputs = &["element_shape: shape_type", "num_elements: int32"],
    outputs = &["handle: variant"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| list_of(c, shape_in(c, 0)?),
    summary = "A list of elements that are not set.",
);

register_op!(
    "TensorListPushBack",
    inputs = &["input_handle: variant", "tensor: element_dtype"],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type"],
    shape = |c: &ShapeContext<'_>| list_of(c, element_of(c)?),
    summary = "A list with one more element at its end.",
);

register_op!(
    "TensorListPushBackBatch",
    inputs = &["input_handles: variant", "tensor: element_dtype"],
    outputs = &["output_handles: variant"],
    attrs = &["element_dtype: type"],
    shape = |c: &ShapeContext<'_>| {
        let lists = input_of_rank(c, 0, "input_handles", 1)?;
        let tensor = input_of_rank_at_least(c, 1, "tensor", 1)?;
        let count = same_size(c, "tensor", c.dim(lists, 0), c.dim(tensor, 0))?;
        c.add_output_handle(0, c.attr("element_dtype")?, element_of(c)?)?;
        c.set_output(0, c.make_shape(&[count]))
    },
    gradient = GradientRule::None,
    summary = "Lists each with one more element at its end: a row of a tensor.",
);

register_op!(
    "TensorListPopBack",
    inputs = &["input_handle: variant", "element_shape: int32"],
    outputs = &["output_handle: variant", "tensor: element_dtype"],
    attrs = &["element_dtype: type"],
    shape = |c: &ShapeContext<'_>| {
        pass_on(c, 0, 0)?;
        c.set_output(1, element_of(c)?)?;
        scalar_output(c)
    },
    summary = "A list without its last element, and that element.",
);

register_op!(
    "TensorListLength",
    inputs = &["input_handle: variant"],
    outputs = &["length: int32"],
    shape = scalar_output,
    gradient = GradientRule::None,
    summary = "How many elements a list has.",
);

register_op!(
    "TensorListElementShape",
    inputs = &["input_handle: variant"],
    outputs = &["element_shape: shape_type"],
    attrs = &["shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| match known(c, 0, "input_handle")?
        .and_then(|element| c.rank(element))
    {
        Some(rank) => c.set_output(0, c.shape_of(&[rank as i64])),
        None => c.set_output(0, c.unknown()),
    },
    gradient = GradientRule::None,
    summary = "The shape that the elements of a list have, with -1 for what is not known.",
);

register_op!(
    "TensorListResize",
    inputs = &["input_handle: variant", "size: int32"],
    outputs = &["output_handle: variant"],
    shape = |c: &ShapeContext<'_>| {
        input_of_rank(c, 1, "size", 0)?;
        pass_on(c, 0, 0)?;
        scalar_output(c)
    },
    summary = "A list cut, or made longer by elements that are not set.",
);

register_op!(
    "TensorListGetItem",
    inputs = &["input_handle: variant", "index: int32", "element_shape: Tshape"],
    outputs = &["item: element_dtype"],
    attrs = &["element_dtype: type", "Tshape: {int32, int64} = int32"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, element_as(c, 2)?),
    summary = "An element of a list; zeros where it is not set.",
);

register_op!(
    "TensorListSetItem",
    inputs = &["input_handle: variant", "index: int32", "item: element_dtype"],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type", "resize_if_index_out_of_bounds: bool = false"],
    shape = |c: &ShapeContext<'_>| {
        let element = element_of(c)?;
        c.merge(c.input(2), element)?;
        list_of(c, element)
    },
    summary = "A list with another element at an index.",
);

register_op!(
    "TensorListStack",
    inputs = &["input_handle: variant", "element_shape: int32"],
    outputs = &["tensor: element_dtype"],
    attrs = &["element_dtype: type", "num_elements: int = -1"],
    shape = |c: &ShapeContext<'_>| {
        let count = c.shape_of(&[c.attr("num_elements")?]);
        c.set_output(0, joined(c, count, element_as(c, 1)?))
    },
    summary = "The elements of a list as the rows of a tensor.",
);

register_op!(
    "TensorListGather",
    inputs = &["input_handle: variant", "indices: int32", "element_shape: int32"],
    outputs = &["values: element_dtype"],
    attrs = &["element_dtype: type"],
    shape = |c: &ShapeContext<'_>| c.set_output(0, joined(c, c.input(1), element_as(c, 2)?)),
    summary = "Some elements of a list as the rows of a tensor.",
);

register_op!(
    "TensorListConcat",
    inputs = &["input_handle: variant"],
    outputs = &["tensor: element_dtype", "lengths: int64"],
    attrs = &["element_dtype: type", "element_shape: shape = ?"],
    shape = |c: &ShapeContext<'_>| {
        let shape: PartialShape = c.attr("element_shape")?;
        concat(c, shape.dims().map_or_else(|| c.unknown(), |dims| c.shape_of(dims)))
    },
    summary = "The elements of a list one after the other along their first dimension, and their lengths.",
);

register_op!(
    "TensorListConcatV2",
    inputs = &["input_handle: variant", "element_shape: shape_type", "leading_dims: int64"],
    outputs = &["tensor: element_dtype", "lengths: int64"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| concat(c, shape_in(c, 1)?),
    summary = "The elements of a list one after the other along their first dimension, and their lengths.",
);

register_op!(
    "TensorListConcatLists",
    inputs = &["input_a: variant", "input_b: variant"],
    outputs = &["output: variant"],
    attrs = &["element_dtype: type"],
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.merge(c.input(0), c.input(1))?)?;
        let element = c.merge(known_of_type(c, 0, "input_a")?, known_of_type(c, 1, "input_b")?)?;
        c.add_output_handle(0, c.attr("element_dtype")?, element)
    },
    gradient = GradientRule::None,
    summary = "Lists with the elements of two each.",
);

register_op!(
    "TensorListFromTensor",
    inputs = &["tensor: element_dtype", "element_shape: shape_type"],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| {
        let element = shape_in(c, 1)?;
        let tensor = input_of_rank_at_least(c, 0, "tensor", 1)?;
        c.merge(rest(c, tensor), element)?;
        list_of(c, element)
    },
    summary = "A list of the rows of a tensor.",
);

register_op!(
    "TensorListSplit",
    inputs = &["tensor: element_dtype", "element_shape: shape_type", "lengths: int64"],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| {
        let tensor = input_of_rank_at_least(c, 0, "tensor", 1)?;
        input_of_rank(c, 2, "lengths", 1)?;
        let element = shape_in(c, 1)?;
        c.merge(joined(c, c.shape_of(&[-1]), rest(c, tensor)), element)?;
        list_of(c, element)
    },
    summary = "A list of parts of a tensor, of given lengths along its first dimension.",
);

register_op!(
    "TensorListScatter",
    inputs = &["tensor: element_dtype", "indices: int32", "element_shape: shape_type"],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| list_of(c, shape_in(c, 2)?),
    summary = "A list with the rows of a tensor at given indices.",
);

register_op!(
    "TensorListScatterV2",
    inputs = &[
        "tensor: element_dtype",
        "indices: int32",
        "element_shape: shape_type",
        "num_elements: int32"
    ],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type", "shape_type: {int32, int64}"],
    shape = |c: &ShapeContext<'_>| list_of(c, shape_in(c, 2)?),
    summary = "A list with the rows of a tensor at given indices, of a length that is given.",
);

register_op!(
    "TensorListScatterIntoExistingList",
    inputs = &["input_handle: variant", "tensor: element_dtype", "indices: int32"],
    outputs = &["output_handle: variant"],
    attrs = &["element_dtype: type"],
    shape = |c: &ShapeContext<'_>| {
        input_of_rank_at_least(c, 1, "tensor", 1)?;
        input_of_rank(c, 2, "indices", 1)?;
        list_of(c, element_of(c)?)
    },
    summary = "A list with the rows of a tensor at given indices, and its own elements elsewhere.",
);

/// The one output is a list with elements of this shape.
fn list_of(c: &ShapeContext<'_>, element: ShapeHandle) -> ShapeResult {
    c.add_output_handle(0, c.attr("element_dtype")?, element)?;
    scalar_output(c)
}

/// The shape that an input holds; the scalar -1 says nothing.
fn shape_in(c: &ShapeContext<'_>, input: usize) -> Result<ShapeHandle, KernelError> {
    if c.rank(c.input(input)) != Some(0) {
        return match c.rank(c.input(input)) {
            Some(_) => c.constant_as_shape(input),
            None => Ok(c.unknown()),
        };
    }
    match c.constant_integers(input).as_deref() {
        None | Some([-1]) => Ok(c.unknown()),
        Some(found) => Err(KernelError::invalid_argument(format!(
            "element_shape: expected a vector, or the scalar -1 for any shape, found the scalar {found:?}"
        ))),
    }
}

/// The shape of the elements of the list that is an input, where it is known.
fn known(
    c: &ShapeContext<'_>,
    input: usize,
    name: &str,
) -> Result<Option<ShapeHandle>, KernelError> {
    match &c.input_handle(input)[..] {
        [] => Ok(None),
        &[(_, shape)] => Ok(Some(shape)),
        parts => Err(KernelError::invalid_argument(format!(
            "{name}: expected a list, found a variant of {} parts",
            parts.len()
        ))),
    }
}

/// The same, of a list whose elements are of the type that attribute `element_dtype` says.
fn known_of_type(
    c: &ShapeContext<'_>,
    input: usize,
    name: &str,
) -> Result<ShapeHandle, KernelError> {
    let expected: DType = c.attr("element_dtype")?;
    let Some(shape) = known(c, input, name)? else { return Ok(c.unknown()) };
    match c.input_handle(input).first() {
        Some(&(found, _)) if found != expected => Err(KernelError::invalid_argument(format!(
            "{name}: expected a list of {expected}, found a list of {found}"
        ))),
        _ => Ok(shape),
    }
}

/// The shape of the elements of the list that is input 0.
fn element_of(c: &ShapeContext<'_>) -> Result<ShapeHandle, KernelError> {
    known_of_type(c, 0, "input_handle")
}

/// As [`element_of`], with what another input says of the shape.
fn element_as(c: &ShapeContext<'_>, shape: usize) -> Result<ShapeHandle, KernelError> {
    c.merge(element_of(c)?, shape_in(c, shape)?)
}

fn concat(c: &ShapeContext<'_>, element: ShapeHandle) -> ShapeResult {
    let element = c.merge(element, element_of(c)?)?;
    if c.rank(element) == Some(0) {
        return Err(KernelError::invalid_argument(
            "element_shape: expected elements with a first dimension, found scalars",
        ));
    }
    c.set_output(0, joined(c, c.shape_of(&[-1]), rest(c, element)))?;
    c.set_output(1, c.shape_of(&[-1]))
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use tenon_framework::{DType, attr::AttrValue};

    /// What is known of a list goes through the ops that change it, and meets what inputs say.
    #[test]
    fn elements_are_known_behind_the_list() {
        let mut bench = Bench::new();
        let dtype = [("element_dtype", AttrValue::Type(DType::FLOAT))];
        let (shape, any, size) = (bench.value("=[2,-1]"), bench.value("=-1"), bench.value("=3"));
        let empty = bench.run("EmptyTensorList", &dtype, &[&shape, &size]).unwrap().remove(0);
        let item = bench.value("[2,3]");
        let pushed = bench.run("TensorListPushBack", &dtype, &[&empty, &item]).unwrap().remove(0);
        let stacked = bench.run("TensorListStack", &dtype, &[&pushed, &any]).unwrap();
        assert_eq!(bench.show(&stacked[0].shape), "[?,2,?]");
        let whole = bench.run("TensorListConcat", &dtype, &[&pushed]).unwrap();
        assert_eq!(bench.show(&whole[0].shape), "[?,?]");
        let item = bench.value("[3,3]");
        let error = bench.run("TensorListSetItem", &dtype, &[&pushed, &size, &item]).unwrap_err();
        assert!(error.message.contains('3'), "{error}");
        let other = [("element_dtype", AttrValue::Type(DType::INT32))];
        let error = bench.run("TensorListStack", &other, &[&pushed, &any]).unwrap_err();
        assert_eq!(error.message, "input_handle: expected a list of int32, found a list of float");
    }
}
