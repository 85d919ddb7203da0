//! Attributes of operations to be added.

use crate::{
    buffer,
    describe::TF_OperationDescription as Description,
    fail::Failure,
    raw::{Array, Text},
    status::TF_Status,
    tensor::TF_Tensor,
};
use std::ffi::c_int;
use tenon_framework::{
    DType, PartialShape,
    attr::{AttrList, AttrValue},
    op::OpDef,
};
use tenon_proto::{
    AttrValue as AttrProto, TensorShapeProto,
    convert::{Decoder, shape_from_proto},
};

/// Sets an attribute to what `value` gives. Errors are noted in the description.
fn set(
    description: Option<&mut Description>,
    name: Text<'_>,
    value: impl FnOnce() -> Result<AttrValue, Failure>,
) {
    let Some(description) = description else { return };
    let set = name.required("the name of an attribute").and_then(|name| Ok((name, value()?)));
    match set {
        Ok((name, value)) => description.set(name, value),
        Err(failure) => description.note(Err(failure)),
    }
}

/// As [`set`], for a setter with a status.
fn try_set(
    description: Option<&mut Description>,
    name: Text<'_>,
    value: impl FnOnce(&Description, &str) -> Result<Option<AttrValue>, Failure>,
) -> Result<(), Failure> {
    let description = description.ok_or_else(|| Failure::null("the description"))?;
    let name = name.required("the name of an attribute")?;
    match value(description, name)? {
        Some(value) => description.set(name, value),
        None => description.clear(name),
    }
    Ok(())
}

fn bytes(value: Array<'_, u8>, length: usize) -> Vec<u8> {
    value.of_size(length).to_vec()
}

fn dtype(number: c_int) -> Result<DType, Failure> {
    let dtype = DType(u32::try_from(number).unwrap_or(0));
    match dtype.is_valid() {
        true => Ok(dtype),
        false => Err(Failure::invalid(format!("{number} is no element type"))),
    }
}

/// A shape; a negative rank means that the rank is unknown.
pub(crate) fn shape(dims: Array<'_, i64>, rank: c_int) -> Result<PartialShape, Failure> {
    if rank < 0 {
        return Ok(PartialShape::UNKNOWN);
    }
    let dims: Vec<i64> = dims.checked(rank, "the dimensions")?.iter().map(|&d| d.max(-1)).collect();
    Ok(PartialShape::new(&dims)?)
}

fn list<T, V>(
    values: Array<'_, T>,
    count: c_int,
    convert: impl FnMut(&T) -> Result<V, Failure>,
) -> Result<Vec<V>, Failure> {
    values.checked(count, "the values of an attribute")?.iter().map(convert).collect()
}

/// What a node of a graph has where a function would have an attribute of its own: an error.
fn placeholder_of(name: Text<'_>, placeholder: Text<'_>) -> Result<AttrValue, Failure> {
    let (name, of) =
        (name.required("the name of an attribute")?, placeholder.required("a placeholder")?);
    Err(Failure::invalid(format!(
        "attribute '{name}': expected a value, found placeholder '{of}', which only nodes in the body of a function have: \
         write the function as a FunctionDef"
    )))
}

fn shape_of_message(bytes: &[u8]) -> Result<PartialShape, Failure> {
    Ok(shape_from_proto(&buffer::message::<TensorShapeProto>(bytes)?)?)
}

fn tensor(value: Option<&TF_Tensor>) -> Result<tenon_framework::Tensor, Failure> {
    value.ok_or_else(|| Failure::null("the tensor of an attribute"))?.copied_value()
}

/// The value of a message, of the type that the op declares.
pub(crate) fn value_of_message(
    op: &OpDef,
    name: &str,
    bytes: &[u8],
) -> Result<Option<AttrValue>, Failure> {
    let message: AttrProto = buffer::message(bytes)?;
    let mut decoder = Decoder::new();
    Ok(match op.attr(name) {
        Some(attr) => decoder.attr(&message, attr.ty)?,
        None => decoder.undeclared_attr(&message)?,
    })
}

api! {
    /// Sets an attribute to bytes.
    fn TF_SetAttrString(description: Option<&mut Description>, name: Text<'_>, value: Array<'_, u8>, length: usize) {
        set(description, name, || Ok(AttrValue::String(bytes(value, length))));
    }

    /// Sets an attribute to a list of bytes.
    fn TF_SetAttrStringList(
        description: Option<&mut Description>,
        name: Text<'_>,
        values: Array<'_, Array<'_, u8>>,
        lengths: Array<'_, usize>,
        count: c_int,
    ) {
        set(description, name, || {
            let values = values.checked(count, "the values of an attribute")?;
            let lengths = lengths.checked(count, "the lengths of an attribute's values")?;
            let values = values.iter().zip(lengths).map(|(&value, &length)| bytes(value, length));
            Ok(AttrValue::List(AttrList::String(values.collect())))
        });
    }

    /// Sets an attribute to an integer.
    fn TF_SetAttrInt(description: Option<&mut Description>, name: Text<'_>, value: i64) {
        set(description, name, || Ok(AttrValue::Int(value)));
    }

    /// Sets an attribute to a list of integers.
    fn TF_SetAttrIntList(
        description: Option<&mut Description>, name: Text<'_>, values: Array<'_, i64>, count: c_int,
    ) {
        set(description, name, || {
            Ok(AttrValue::List(AttrList::Int(list(values, count, |&value| Ok(value))?)))
        });
    }

    /// Sets an attribute to a number.
    fn TF_SetAttrFloat(description: Option<&mut Description>, name: Text<'_>, value: f32) {
        set(description, name, || Ok(AttrValue::Float(value)));
    }

    /// Sets an attribute to a list of numbers.
    fn TF_SetAttrFloatList(
        description: Option<&mut Description>, name: Text<'_>, values: Array<'_, f32>, count: c_int,
    ) {
        set(description, name, || {
            Ok(AttrValue::List(AttrList::Float(list(values, count, |&value| Ok(value))?)))
        });
    }

    /// Sets an attribute to a truth value.
    fn TF_SetAttrBool(description: Option<&mut Description>, name: Text<'_>, value: u8) {
        set(description, name, || Ok(AttrValue::Bool(value != 0)));
    }

    /// Sets an attribute to a list of truth values.
    fn TF_SetAttrBoolList(
        description: Option<&mut Description>, name: Text<'_>, values: Array<'_, u8>, count: c_int,
    ) {
        set(description, name, || {
            Ok(AttrValue::List(AttrList::Bool(list(values, count, |&value| Ok(value != 0))?)))
        });
    }

    /// Sets an attribute to an element type.
    fn TF_SetAttrType(description: Option<&mut Description>, name: Text<'_>, value: c_int) {
        set(description, name, || Ok(AttrValue::Type(dtype(value)?)));
    }

    /// Sets an attribute to a list of element types.
    fn TF_SetAttrTypeList(
        description: Option<&mut Description>, name: Text<'_>, values: Array<'_, c_int>, count: c_int,
    ) {
        set(description, name, || {
            Ok(AttrValue::List(AttrList::Type(list(values, count, |&value| dtype(value))?)))
        });
    }

    /// Sets an attribute to a function of this name.
    fn TF_SetAttrFuncName(
        description: Option<&mut Description>, name: Text<'_>, value: Array<'_, u8>, length: usize,
    ) {
        set(description, name, || {
            let text = String::from_utf8(bytes(value, length));
            let text = text.map_err(|_| Failure::invalid("the name of a function is not UTF-8"))?;
            Ok(AttrValue::function(&text))
        });
    }

    /// Sets an attribute to a placeholder, which stands for an attribute of the function that the node is a part of. A node of a graph
    /// cannot have one: `TF_FinishOperation` refuses it. (TensorFlow adds the node, whose outputs then have no type.)
    fn TF_SetAttrPlaceholder(
        description: Option<&mut Description>, name: Text<'_>, placeholder: Text<'_>,
    ) {
        set(description, name, || placeholder_of(name, placeholder));
    }

    /// Sets an attribute to a shape. A dimension of -1 is unknown; a rank of -1 means that the rank is.
    fn TF_SetAttrShape(
        description: Option<&mut Description>, name: Text<'_>, dims: Array<'_, i64>, rank: c_int,
    ) {
        set(description, name, || Ok(AttrValue::Shape(shape(dims, rank)?)));
    }

    /// Sets an attribute to a list of shapes.
    fn TF_SetAttrShapeList(
        description: Option<&mut Description>,
        name: Text<'_>,
        dims: Array<'_, Array<'_, i64>>,
        ranks: Array<'_, c_int>,
        count: c_int,
    ) {
        set(description, name, || {
            let dims = dims.checked(count, "the shapes of an attribute")?;
            let ranks = ranks.checked(count, "the ranks of an attribute's shapes")?;
            let shapes = dims.iter().zip(ranks).map(|(&dims, &rank)| shape(dims, rank));
            Ok(AttrValue::List(AttrList::Shape(shapes.collect::<Result<_, _>>()?)))
        });
    }

    /// Sets an attribute to the shape of a `TensorShapeProto`.
    fn TF_SetAttrTensorShapeProto(
        description: Option<&mut Description>,
        name: Text<'_>,
        message: Array<'_, u8>,
        length: usize,
        status: Option<&mut TF_Status>,
    ) [status] {
        try_set(description, name, |_, _| {
            Ok(Some(AttrValue::Shape(shape_of_message(message.message(length))?)))
        })
    }

    /// Sets an attribute to the shapes of messages.
    fn TF_SetAttrTensorShapeProtoList(
        description: Option<&mut Description>,
        name: Text<'_>,
        messages: Array<'_, Array<'_, u8>>,
        lengths: Array<'_, usize>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        try_set(description, name, |_, _| {
            let messages = messages.checked(count, "the shapes of an attribute")?;
            let lengths = lengths.checked(count, "the lengths of an attribute's shapes")?;
            let read = |(bytes, &length): (&Array<'_, u8>, &usize)| shape_of_message(bytes.message(length));
            let shapes = messages.iter().zip(lengths).map(read).collect::<Result<_, _>>()?;
            Ok(Some(AttrValue::List(AttrList::Shape(shapes))))
        })
    }

    /// Sets an attribute to a copy of a tensor.
    fn TF_SetAttrTensor(
        description: Option<&mut Description>,
        name: Text<'_>,
        value: Option<&TF_Tensor>,
        status: Option<&mut TF_Status>,
    ) [status] {
        try_set(description, name, |_, _| Ok(Some(AttrValue::Tensor(tensor(value)?))))
    }

    /// Sets an attribute to copies of tensors.
    fn TF_SetAttrTensorList(
        description: Option<&mut Description>,
        name: Text<'_>,
        values: Array<'_, Option<&TF_Tensor>>,
        count: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        try_set(description, name, |_, _| {
            let values = list(values, count, |&value| tensor(value))?;
            Ok(Some(AttrValue::List(AttrList::Tensor(values))))
        })
    }

    /// Sets an attribute to the value of an `AttrValue` message.
    fn TF_SetAttrValueProto(
        description: Option<&mut Description>,
        name: Text<'_>,
        message: Array<'_, u8>,
        length: usize,
        status: Option<&mut TF_Status>,
    ) [status] {
        try_set(description, name, |description, name| {
            value_of_message(&*description.op()?, name, message.message(length))
        })
    }
}
