//! Attribute values.

use prost::Message;
use tenon_framework::DType;
use tenon_framework::abi::AttrKind;
use tenon_framework::attr::{AttrList, AttrMap, AttrType, AttrValue, FuncValue};

use super::shape::{dtype_from_proto, dtype_to_proto, shape_from_proto, shape_to_proto};
use super::tensor::tensor_to_proto;
use super::{ConvertError, Decoder};
use crate::{AttrValue as AttrProto, AttrValueKind, ListValue, NameAttrList, decode};

impl Decoder<'_> {
    /// Reads an attribute that its op declares as `expected`. The declaration is needed because an
    /// empty list does not say the kind of its items. `None` for a message without a value, which
    /// counts as an absent message: the attribute has its default.
    ///
    /// # Errors
    /// A value of another kind, a placeholder; errors of tensors, shapes and types.
    pub fn attr(
        &mut self,
        proto: &AttrProto,
        expected: AttrType,
    ) -> Result<Option<AttrValue>, ConvertError> {
        let Some(value) = &proto.value else { return Ok(None) };
        let value = self.any_attr(value, Some(expected.kind), expected)?;
        if value.attr_type() == expected {
            return Ok(Some(value));
        }
        Err(ConvertError::AttrKind { expected, found: value.attr_type().to_string() })
    }

    /// Reads an attribute that no op declares, such as `_class`. `None` for an empty list, whose
    /// kind is unknown, and for an attribute without a value.
    ///
    /// # Errors
    /// As [`Decoder::attr`].
    pub fn undeclared_attr(
        &mut self,
        proto: &AttrProto,
    ) -> Result<Option<AttrValue>, ConvertError> {
        match &proto.value {
            None => Ok(None),
            Some(AttrValueKind::List(list)) if list_kinds(list).is_empty() => Ok(None),
            Some(value) => {
                // Used only to name the kind in errors, which an undeclared attribute cannot cause.
                let expected = AttrType::one(AttrKind::STRING);
                self.any_attr(value, None, expected).map(Some)
            }
        }
    }

    fn any_attr(
        &mut self,
        value: &AttrValueKind,
        list_kind: Option<AttrKind>,
        expected: AttrType,
    ) -> Result<AttrValue, ConvertError> {
        Ok(match value {
            AttrValueKind::S(value) => AttrValue::String(value.clone()),
            AttrValueKind::I(value) => AttrValue::Int(*value),
            AttrValueKind::F(value) => AttrValue::Float(*value),
            AttrValueKind::B(value) => AttrValue::Bool(*value),
            AttrValueKind::Type(value) => AttrValue::Type(dtype_from_proto(*value)?),
            AttrValueKind::Shape(value) => AttrValue::Shape(shape_from_proto(value)?),
            AttrValueKind::Tensor(value) => AttrValue::Tensor(self.tensor(value)?),
            AttrValueKind::Func(value) => AttrValue::Func(self.function(value)?),
            AttrValueKind::List(list) => AttrValue::List(self.list(list, list_kind, expected)?),
            AttrValueKind::Placeholder(name) => {
                return Err(ConvertError::Placeholder { expected, name: name.clone() });
            }
        })
    }

    fn list(
        &mut self,
        list: &ListValue,
        empty: Option<AttrKind>,
        expected: AttrType,
    ) -> Result<AttrList, ConvertError> {
        let wrong = |found: String| ConvertError::AttrKind { expected, found };
        let kind = match (list_kinds(list).as_slice(), empty) {
            ([], Some(kind)) => {
                return AttrList::empty(kind).ok_or_else(|| wrong("an empty list".to_owned()));
            }
            ([kind], _) => *kind,
            ([], None) => return Err(wrong("an empty list".to_owned())),
            _ => return Err(wrong("a list of several kinds".to_owned())),
        };
        Ok(match kind {
            AttrKind::STRING => AttrList::String(list.s.clone()),
            AttrKind::INT => AttrList::Int(list.i.clone()),
            AttrKind::FLOAT => AttrList::Float(list.f.clone()),
            AttrKind::BOOL => AttrList::Bool(list.b.clone()),
            AttrKind::TYPE => {
                AttrList::Type(collect(&list.r#type, |&number| dtype_from_proto(number))?)
            }
            AttrKind::SHAPE => AttrList::Shape(collect(&list.shape, shape_from_proto)?),
            AttrKind::TENSOR => {
                AttrList::Tensor(collect(&list.tensor, |proto| self.tensor(proto))?)
            }
            _ => AttrList::Func(collect(&list.func, |call| self.function(call))?),
        })
    }
}

fn collect<P, T>(
    items: &[P],
    convert: impl FnMut(&P) -> Result<T, ConvertError>,
) -> Result<Vec<T>, ConvertError> {
    items.iter().map(convert).collect()
}

/// The kinds of items in a list.
fn list_kinds(list: &ListValue) -> Vec<AttrKind> {
    [
        (!list.s.is_empty(), AttrKind::STRING),
        (!list.i.is_empty(), AttrKind::INT),
        (!list.f.is_empty(), AttrKind::FLOAT),
        (!list.b.is_empty(), AttrKind::BOOL),
        (!list.r#type.is_empty(), AttrKind::TYPE),
        (!list.shape.is_empty(), AttrKind::SHAPE),
        (!list.tensor.is_empty(), AttrKind::TENSOR),
        (!list.func.is_empty(), AttrKind::FUNC),
    ]
    .into_iter()
    .filter_map(|(there, kind)| there.then_some(kind))
    .collect()
}

/// The message of an attribute value.
///
/// # Errors
/// A tensor that is on a device or has no message; a function whose call is malformed.
pub fn attr_to_proto(value: &AttrValue) -> Result<AttrProto, ConvertError> {
    let kind = match value {
        AttrValue::Int(value) => AttrValueKind::I(*value),
        AttrValue::Float(value) => AttrValueKind::F(*value),
        AttrValue::Bool(value) => AttrValueKind::B(*value),
        AttrValue::String(value) => AttrValueKind::S(value.clone()),
        AttrValue::Type(value) => AttrValueKind::Type(dtype_to_proto(*value)),
        AttrValue::Shape(value) => AttrValueKind::Shape(shape_to_proto(value)),
        AttrValue::Tensor(value) => AttrValueKind::Tensor(Box::new(tensor_to_proto(value)?)),
        AttrValue::Func(value) => AttrValueKind::Func(call_to_proto(value)?),
        AttrValue::List(list) => AttrValueKind::List(Box::new(list_to_proto(list)?)),
    };
    Ok(AttrProto { value: Some(kind) })
}

fn list_to_proto(list: &AttrList) -> Result<ListValue, ConvertError> {
    let mut proto = ListValue::default();
    match list {
        AttrList::Int(items) => proto.i = items.clone(),
        AttrList::Float(items) => proto.f = items.clone(),
        AttrList::Bool(items) => proto.b = items.clone(),
        AttrList::String(items) => proto.s = items.clone(),
        AttrList::Type(items) => {
            proto.r#type = items.iter().map(|&dtype: &DType| dtype_to_proto(dtype)).collect();
        }
        AttrList::Shape(items) => proto.shape = items.iter().map(shape_to_proto).collect(),
        AttrList::Tensor(items) => proto.tensor = collect(items, tensor_to_proto)?,
        AttrList::Func(items) => proto.func = collect(items, call_to_proto)?,
    }
    Ok(proto)
}

/// The value of an attribute that names a function, for a call with these attributes. Without the
/// function's definition.
///
/// # Errors
/// As [`attr_to_proto`].
pub fn call_of_function(name: &str, attrs: &AttrMap) -> Result<FuncValue, ConvertError> {
    let attr = |(name, value): (&String, &AttrValue)| Ok((name.clone(), attr_to_proto(value)?));
    let attr = attrs.iter().map(attr).collect::<Result<_, ConvertError>>()?;
    let call = NameAttrList { name: name.to_owned(), attr };
    Ok(FuncValue { name: name.to_owned(), call: call.encode_to_vec(), definition: Vec::new() })
}

fn call_to_proto(value: &FuncValue) -> Result<NameAttrList, ConvertError> {
    if value.call.is_empty() {
        return Ok(NameAttrList { name: value.name.clone(), ..NameAttrList::default() });
    }
    Ok(decode(&value.call)?)
}
