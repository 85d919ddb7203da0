//! Tensors and attributes in messages, on the worker's side.

use crate::{
    arena_view::Arenas,
    wire::{ArenaName, Attr, Data, NamedAttr, Value, checked_dims},
};
use std::slice;
use tenon_abi::{DType, MemoryKind, Slot, slot_flags};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FuncValue},
    attr_view::AttrTable,
    tensor::TensorError,
};

/// A slot that shows a value, with everything that it points to.
pub(super) struct Held {
    pub slot: Slot,
    /// The arena of its elements, if they are in one.
    pub arena: Option<ArenaName>,
    /// The slot's dimensions, which must not move.
    _dims: Vec<i64>,
    _tensor: Option<Tensor>,
}

fn tensor_error(error: TensorError) -> KernelError {
    KernelError::new(error.code(), error.to_string())
}

/// Elements and bytes of a tensor.
fn extent(dtype: DType, dims: &[i64]) -> Result<(u64, u64), KernelError> {
    let size = dtype.size().ok_or_else(|| {
        KernelError::internal(format!("a message has a tensor of type number {}", dtype.0))
    })?;
    let elements = dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim as u64));
    let bytes = elements.and_then(|elements| elements.checked_mul(size as u64));
    elements.zip(bytes).ok_or_else(|| {
        KernelError::internal(format!("a message has a tensor of dimensions {dims:?}"))
    })
}

/// A tensor of the value's elements, if the message contains them.
fn tensor_of(value: &Value<'_>) -> Result<Option<Tensor>, KernelError> {
    let dtype = DType(value.dtype);
    let tensor = match &value.data {
        Data::Sent(bytes) => Tensor::from_bytes(dtype, &value.dims, bytes),
        Data::Strings(items) => Tensor::from_strings(&value.dims, items),
        Data::At(_) => return Ok(None),
    };
    tensor.map(Some).map_err(tensor_error)
}

/// A value as a kernel sees it: in place, or a copy of elements that were sent.
pub(super) fn held(
    arenas: &Arenas,
    value: &Value<'_>,
    alias: u32,
    flags: u32,
) -> Result<Held, KernelError> {
    let dims = checked_dims(&value.dims)?.to_vec();
    let tensor = tensor_of(value)?;
    let mut slot = match (&tensor, &value.data) {
        (Some(tensor), _) => tensor.slot(),
        (None, Data::At(place)) => {
            let dtype = DType(value.dtype);
            let (elements, bytes) = extent(dtype, &dims)?;
            let data = arenas.at(*place, bytes)?.as_ptr();
            Slot { data, elements, bytes, dtype, memory: MemoryKind::HOST, ..Slot::EMPTY }
        }
        (None, _) => return Err(KernelError::internal("a value without elements")),
    };
    (slot.dims, slot.rank) = (dims.as_ptr(), dims.len() as u32);
    (slot.alias, slot.flags) = (alias, flags & !slot_flags::REF | slot_flags::SET);
    let arena = match &value.data {
        Data::At(place) => Some(place.arena),
        _ => None,
    };
    Ok(Held { slot, arena, _dims: dims, _tensor: tensor })
}

/// A value as a tensor of its own.
pub(super) fn tensor(arenas: &Arenas, value: &Value<'_>) -> Result<Tensor, KernelError> {
    if let Some(tensor) = tensor_of(value)? {
        return Ok(tensor);
    }
    let held = held(arenas, value, 0, 0)?;
    // SAFETY: the place was checked, and the host does not change a value that a message refers to.
    let bytes =
        unsafe { slice::from_raw_parts(held.slot.data.cast::<u8>(), held.slot.bytes as usize) };
    Tensor::from_bytes(DType(value.dtype), &value.dims, bytes).map_err(tensor_error)
}

/// A shape that may be partly unknown.
pub(super) fn shape(dims: Option<&Vec<i64>>) -> Result<PartialShape, KernelError> {
    let Some(dims) = dims else { return Ok(PartialShape::UNKNOWN) };
    PartialShape::new(dims).map_err(|error| KernelError::new(error.code(), error.to_string()))
}

/// A node's attributes.
pub(super) fn attrs(arenas: &Arenas, sent: &[NamedAttr<'_>]) -> Result<AttrTable, KernelError> {
    let mut map = AttrMap::new();
    for (name, is_list, attr) in sent {
        let list = list(arenas, attr)?;
        let value = if *is_list { AttrValue::List(list) } else { single(list, name)? };
        map.insert((*name).to_owned(), value);
    }
    Ok(AttrTable::new(map))
}

fn list(arenas: &Arenas, attr: &Attr<'_>) -> Result<AttrList, KernelError> {
    Ok(match attr {
        Attr::Int(items) => AttrList::Int(items.clone()),
        Attr::Float(items) => AttrList::Float(items.clone()),
        Attr::Bool(items) => AttrList::Bool(items.clone()),
        Attr::String(items) => AttrList::String(items.iter().map(|item| item.to_vec()).collect()),
        Attr::Type(items) => AttrList::Type(items.iter().map(|&item| DType(item)).collect()),
        Attr::Shape(items) => AttrList::Shape(
            items.iter().map(|dims| shape(dims.as_ref())).collect::<Result<_, _>>()?,
        ),
        Attr::Tensor(items) => AttrList::Tensor(
            items.iter().map(|item| tensor(arenas, item)).collect::<Result<_, _>>()?,
        ),
        Attr::Func(items) => {
            let func = |&(name, call, definition): &(&str, &[u8], &[u8])| FuncValue {
                name: name.to_owned(),
                call: call.to_vec(),
                definition: definition.to_vec(),
            };
            AttrList::Func(items.iter().map(func).collect())
        }
    })
}

/// The only item of a list.
fn single(list: AttrList, name: &str) -> Result<AttrValue, KernelError> {
    fn only<T>(items: Vec<T>) -> Option<T> {
        let [item] = <[T; 1]>::try_from(items).ok()?;
        Some(item)
    }
    let value = match list {
        AttrList::Int(items) => only(items).map(AttrValue::Int),
        AttrList::Float(items) => only(items).map(AttrValue::Float),
        AttrList::Bool(items) => only(items).map(AttrValue::Bool),
        AttrList::String(items) => only(items).map(AttrValue::String),
        AttrList::Type(items) => only(items).map(AttrValue::Type),
        AttrList::Shape(items) => only(items).map(AttrValue::Shape),
        AttrList::Tensor(items) => only(items).map(AttrValue::Tensor),
        AttrList::Func(items) => only(items).map(AttrValue::Func),
    };
    value.ok_or_else(|| KernelError::internal(format!("attribute '{name}' has not one value")))
}
