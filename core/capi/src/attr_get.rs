//! Attributes of operations: what they are, and single values. Lists are in `attr_lists`.

use crate::{
    buffer::{TF_Buffer, give},
    fail::{Failure, Fallback},
    operation::OpRef,
    raw::{Out, Text, c_count},
    status::TF_Status,
    tensor::TF_Tensor,
};
use std::ffi::{c_char, c_int};
use tenon_framework::{
    abi::AttrKind,
    attr::{AttrList, AttrValue},
};
use tenon_proto::convert::{attr_to_proto, shape_to_proto};

/// What an attribute is.
#[repr(C)]
pub struct TF_AttrMetadata {
    /// Whether the value is a list.
    pub is_list: u8,
    /// The number of values of a list; -1 for a single one.
    pub list_size: i64,
    /// The kind of the value, or of a list's values.
    pub kind: c_int,
    /// For texts their bytes, for shapes their dimensions, in all; -1 for others, and for a shape of unknown rank.
    pub total_size: i64,
}

impl Fallback for TF_AttrMetadata {
    fn fallback() -> TF_AttrMetadata {
        TF_AttrMetadata { is_list: 0, list_size: 0, kind: 0, total_size: 0 }
    }
}

/// The number of a kind in TensorFlow's enumeration.
fn number(kind: AttrKind) -> c_int {
    match kind {
        AttrKind::STRING => 0,
        AttrKind::INT => 1,
        AttrKind::FLOAT => 2,
        AttrKind::BOOL => 3,
        AttrKind::TYPE => 4,
        AttrKind::SHAPE => 5,
        AttrKind::TENSOR => 6,
        _ => 8,
    }
}

/// Calls `read` with the value of an attribute.
///
/// # Errors
/// The operation has no such attribute; what `read` refuses.
pub(crate) fn with<T>(
    oper: Option<OpRef>,
    name: Text<'_>,
    read: impl FnOnce(&AttrValue) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let oper = oper.ok_or_else(|| Failure::null("the operation"))?;
    let name = name.required("the name of an attribute")?;
    let value = oper.node.attrs.get(name).ok_or_else(|| {
        let known: Vec<&str> = oper.node.attrs.attrs().keys().map(String::as_str).collect();
        Failure::invalid(format!(
            "node '{}' has no attribute '{name}'; it has {}",
            oper.node.name,
            if known.is_empty() { "none".to_owned() } else { known.join(", ") }
        ))
    })?;
    read(value).map_err(|failure| {
        let message = format!("node '{}', attribute '{name}': {}", oper.node.name, failure.message);
        Failure::new(failure.code, message)
    })
}

/// An attribute of another kind than its reader expects.
pub(crate) fn other_kind(expected: &str, found: &AttrValue) -> Failure {
    Failure::invalid(format!("expected {expected}, found {}", found.attr_type()))
}

macro_rules! read_one {
    ($oper:expr, $name:expr, $kind:literal, $variant:ident) => {
        with($oper, $name, |value| match value {
            AttrValue::$variant(value) => Ok(value.clone()),
            other => Err(other_kind($kind, other)),
        })
    };
}

fn size(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn metadata(value: &AttrValue) -> TF_AttrMetadata {
    let kind = number(value.attr_type().kind);
    match value {
        AttrValue::List(list) => {
            let total_size = match list {
                AttrList::String(texts) => size(texts.iter().map(Vec::len).sum()),
                AttrList::Shape(shapes) => size(shapes.iter().filter_map(|s| s.rank()).sum()),
                _ => -1,
            };
            TF_AttrMetadata { is_list: 1, list_size: size(list.len()), kind, total_size }
        }
        single => {
            let total_size = match single {
                AttrValue::String(text) => size(text.len()),
                AttrValue::Shape(shape) => shape.rank().map_or(-1, size),
                _ => -1,
            };
            TF_AttrMetadata { is_list: 0, list_size: -1, kind, total_size }
        }
    }
}

/// The name of attribute number `index`, in the order of names.
fn name_at(oper: Option<OpRef>, index: c_int) -> Result<String, Failure> {
    let oper = oper.ok_or_else(|| Failure::null("the operation"))?;
    let mut names = oper.node.attrs.attrs().keys();
    let name = usize::try_from(index).ok().and_then(|index| names.nth(index));
    name.cloned().ok_or_else(|| {
        Failure::new(
            tenon_framework::Code::OUT_OF_RANGE,
            format!(
                "node '{}' has {} attributes, asked for number {index}",
                oper.node.name,
                oper.node.attrs.attrs().len()
            ),
        )
    })
}

api! {
    /// What an attribute is.
    fn TF_OperationGetAttrMetadata(
        oper: Option<OpRef>,
        name: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> TF_AttrMetadata [status] {
        with(oper, name, |value| Ok(metadata(value)))
    }

    /// Writes the bytes of a text, `room` of them at most.
    fn TF_OperationGetAttrString(
        oper: Option<OpRef>,
        name: Text<'_>,
        value: Out<'_, u8>,
        room: usize,
        status: Option<&mut TF_Status>,
    ) [status] {
        value.copy(room, &read_one!(oper, name, "string", String)?);
        Ok(())
    }

    /// Writes an integer.
    fn TF_OperationGetAttrInt(
        oper: Option<OpRef>,
        name: Text<'_>,
        value: Out<'_, i64>,
        status: Option<&mut TF_Status>,
    ) [status] {
        value.set(read_one!(oper, name, "int", Int)?);
        Ok(())
    }

    /// Writes a number.
    fn TF_OperationGetAttrFloat(
        oper: Option<OpRef>,
        name: Text<'_>,
        value: Out<'_, f32>,
        status: Option<&mut TF_Status>,
    ) [status] {
        value.set(read_one!(oper, name, "float", Float)?);
        Ok(())
    }

    /// Writes a truth value.
    fn TF_OperationGetAttrBool(
        oper: Option<OpRef>,
        name: Text<'_>,
        value: Out<'_, u8>,
        status: Option<&mut TF_Status>,
    ) [status] {
        value.set(u8::from(read_one!(oper, name, "bool", Bool)?));
        Ok(())
    }

    /// Writes an element type.
    fn TF_OperationGetAttrType(
        oper: Option<OpRef>,
        name: Text<'_>,
        value: Out<'_, c_int>,
        status: Option<&mut TF_Status>,
    ) [status] {
        value.set(read_one!(oper, name, "type", Type)?.0 as c_int);
        Ok(())
    }

    /// Writes the dimensions of a shape, `room` of them at most; -1 for unknown ones.
    fn TF_OperationGetAttrShape(
        oper: Option<OpRef>,
        name: Text<'_>,
        dims: Out<'_, i64>,
        room: c_int,
        status: Option<&mut TF_Status>,
    ) [status] {
        let shape = read_one!(oper, name, "shape", Shape)?;
        dims.fill(room, shape.dims().unwrap_or_default().iter().copied());
        Ok(())
    }

    /// Writes a shape as a `TensorShapeProto`.
    fn TF_OperationGetAttrTensorShapeProto(
        oper: Option<OpRef>,
        name: Text<'_>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        give(message, &shape_to_proto(&read_one!(oper, name, "shape", Shape)?))
    }

    /// Writes a new tensor, which the caller deletes.
    fn TF_OperationGetAttrTensor(
        oper: Option<OpRef>,
        name: Text<'_>,
        value: Out<'_, Option<Box<TF_Tensor>>>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let tensor = TF_Tensor::of(&read_one!(oper, name, "tensor", Tensor)?)?;
        value.set(Some(Box::new(tensor)));
        Ok(())
    }

    /// Writes any value as an `AttrValue`.
    fn TF_OperationGetAttrValueProto(
        oper: Option<OpRef>,
        name: Text<'_>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let value = with(oper, name, |value| Ok(attr_to_proto(value)?))?;
        give(message, &value)
    }

    /// The number of attributes.
    fn TF_OperationGetNumAttrs(oper: Option<OpRef>) -> c_int {
        oper.map_or(0, |oper| c_count(oper.node.attrs.attrs().len()))
    }

    /// The number of bytes of an attribute's name; 0 if there is no such attribute.
    fn TF_OperationGetAttrNameLength(oper: Option<OpRef>, index: c_int) -> c_int {
        name_at(oper, index).map_or(0, |name| c_count(name.len()))
    }

    /// Writes the name of an attribute, and a zero behind it.
    fn TF_OperationGetAttrName(
        oper: Option<OpRef>,
        index: c_int,
        name: Out<'_, c_char>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let text = name_at(oper, index)?;
        for (at, &byte) in text.as_bytes().iter().chain(&[0]).enumerate() {
            name.set_at(at, byte as c_char);
        }
        Ok(())
    }
}
