//! Tensors and attributes in messages, on the host's side.

use super::{
    arena::{Arena, ArenaMemory},
    plugin::Isolated,
    wire::{ArenaName, Attr, Data, NamedAttr, Place, SENT_BYTES, Value},
};
use std::slice;
use tenon_abi::{DType, Slot, StringElement, slot_flags};
use tenon_framework::{
    KernelError, PartialShape, Tensor,
    attr::{AttrList, AttrValue},
    attr_view::AttrTable,
    tensor::{Buffer, Memory},
};

/// Copies of values that no worker can read in place. They live as long as a worker may read them.
pub(super) type Copies = Vec<Buffer>;

/// The place of a tensor, if the worker can read it there.
pub(super) fn place_of(memory: &ArenaMemory, slot: &Slot) -> Option<Place> {
    if let Some(offset) = Arena::of_host().and_then(|arena| arena.offset_of(slot.data)) {
        return Some(Place { arena: ArenaName::Host, offset });
    }
    let offset = memory.arena().offset_of(slot.data)?;
    Some(Place { arena: ArenaName::Worker, offset })
}

/// Copies bytes to memory that the worker can read.
fn copied(plugin: &Isolated, bytes: &[u8], copies: &mut Copies) -> Result<Place, KernelError> {
    let memory = plugin.memory_of_host();
    let buffer = Buffer::allocate(memory, DType::UINT8, bytes.len(), bytes.len())?;
    // SAFETY: newly allocated memory of this size.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.data().cast::<u8>(), bytes.len());
    }
    let slot = Slot { data: buffer.data(), ..Slot::EMPTY };
    let place = place_of(plugin.memory(), &slot)
        .ok_or_else(|| KernelError::internal("a shared block lies in no arena"))?;
    copies.push(buffer);
    Ok(place)
}

/// A tensor for a message: a few elements are sent with it, more stay in place; elements that the
/// worker cannot read in place are copied.
///
/// # Safety
/// - `slot` is a set slot of host memory that lives for `'a`.
pub(super) unsafe fn value<'a>(
    plugin: &Isolated,
    slot: &Slot,
    copies: &mut Copies,
) -> Result<Value<'a>, KernelError> {
    if slot.flags & slot_flags::REF != 0 || !slot.memory.is_host_address() {
        return Err(cannot_cross("a reference, or a tensor of a device"));
    }
    // SAFETY: the caller gives a set slot that lives for `'a`, and so do its dimensions.
    let dims = unsafe { slot.shape() }.to_vec();
    let dtype = slot.dtype.base();
    let data = match dtype {
        // SAFETY: the caller gives a set slot that lives for `'a`; it shows strings.
        DType::STRING => Data::Strings(unsafe { strings(slot) }),
        DType::RESOURCE | DType::VARIANT => return Err(cannot_cross(dtype.name())),
        _ => {
            // SAFETY: the caller gives a set slot that lives for `'a`; it shows `bytes` bytes of
            // host memory.
            let bytes =
                unsafe { slice::from_raw_parts(slot.data.cast::<u8>(), slot.bytes as usize) };
            if bytes.len() <= SENT_BYTES {
                Data::Sent(bytes)
            } else if let Some(place) = place_of(plugin.memory(), slot) {
                Data::At(place)
            } else {
                Data::At(copied(plugin, bytes, copies)?)
            }
        }
    };
    Ok(Value { dtype: dtype.0, dims, data })
}

/// # Safety
/// - `slot` is a set slot of strings that lives for `'a`.
unsafe fn strings<'a>(slot: &Slot) -> Vec<&'a [u8]> {
    let first = slot.data.cast::<StringElement>();
    let item = |at| {
        // SAFETY: the slot shows `elements` initialised strings, which live for `'a`, as the caller
        // guarantees.
        unsafe {
            let element = &*first.add(at);
            let len = element.len as usize;
            if element.data.is_null() { &[][..] } else { slice::from_raw_parts(element.data, len) }
        }
    };
    (0..slot.elements as usize).map(item).collect()
}

/// The error of a value that another process cannot use.
pub(super) fn cannot_cross(what: &str) -> KernelError {
    KernelError::unimplemented(format!(
        "{what} cannot be given to a plugin that runs in a process of its own: load the plugin without isolation"
    ))
}

fn partial(shape: &PartialShape) -> Option<Vec<i64>> {
    shape.dims().map(<[i64]>::to_vec)
}

/// Attributes for a message.
pub(super) fn attrs<'a>(
    plugin: &Isolated,
    table: &'a AttrTable,
    copies: &mut Copies,
) -> Result<Vec<NamedAttr<'a>>, KernelError> {
    let mut all = Vec::with_capacity(table.attrs().len());
    for (name, value) in table.attrs() {
        let (is_list, attr) = match value {
            AttrValue::List(list) => (true, list_attr(plugin, list, copies)?),
            one => (false, one_attr(plugin, one, copies)?),
        };
        all.push((name.as_str(), is_list, attr));
    }
    Ok(all)
}

fn tensor<'a>(
    plugin: &Isolated,
    tensor: &'a Tensor,
    copies: &mut Copies,
) -> Result<Value<'a>, KernelError> {
    // SAFETY: the slot shows a tensor in host memory, which attributes and constants are.
    unsafe { value(plugin, &tensor.slot(), copies) }
}

fn one_attr<'a>(
    plugin: &Isolated,
    value: &'a AttrValue,
    copies: &mut Copies,
) -> Result<Attr<'a>, KernelError> {
    Ok(match value {
        AttrValue::Int(item) => Attr::Int(vec![*item]),
        AttrValue::Float(item) => Attr::Float(vec![*item]),
        AttrValue::Bool(item) => Attr::Bool(vec![*item]),
        AttrValue::String(item) => Attr::String(vec![item]),
        AttrValue::Type(item) => Attr::Type(vec![item.0]),
        AttrValue::Shape(item) => Attr::Shape(vec![partial(item)]),
        AttrValue::Tensor(item) => Attr::Tensor(vec![tensor(plugin, item, copies)?]),
        AttrValue::Func(item) => Attr::Func(vec![(&item.name, &item.call, &item.definition)]),
        AttrValue::List(list) => list_attr(plugin, list, copies)?,
    })
}

fn list_attr<'a>(
    plugin: &Isolated,
    list: &'a AttrList,
    copies: &mut Copies,
) -> Result<Attr<'a>, KernelError> {
    Ok(match list {
        AttrList::Int(items) => Attr::Int(items.clone()),
        AttrList::Float(items) => Attr::Float(items.clone()),
        AttrList::Bool(items) => Attr::Bool(items.clone()),
        AttrList::String(items) => Attr::String(items.iter().map(Vec::as_slice).collect()),
        AttrList::Type(items) => Attr::Type(items.iter().map(|item| item.0).collect()),
        AttrList::Shape(items) => Attr::Shape(items.iter().map(partial).collect()),
        AttrList::Tensor(items) => {
            let items = items.iter().map(|item| tensor(plugin, item, copies));
            Attr::Tensor(items.collect::<Result<_, _>>()?)
        }
        AttrList::Func(items) => {
            let item = |func: &'a tenon_framework::attr::FuncValue| {
                (func.name.as_str(), func.call.as_slice(), func.definition.as_slice())
            };
            Attr::Func(items.iter().map(item).collect())
        }
    })
}

/// A constant for a message.
pub(super) fn constant<'a>(
    plugin: &Isolated,
    constant: Option<&'a Tensor>,
    copies: &mut Copies,
) -> Result<Option<Value<'a>>, KernelError> {
    constant.map(|constant| tensor(plugin, constant, copies)).transpose()
}

/// The memory for copies: the host's arena, for every size.
pub(super) struct HostArenaMemory(pub &'static std::sync::Arc<Arena>);

// SAFETY: the arena hands out blocks of at least the size asked for, aligned to 64 bytes, to one
// owner at a time.
unsafe impl Memory for HostArenaMemory {
    fn kind(&self) -> tenon_abi::MemoryKind {
        tenon_abi::MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<std::ptr::NonNull<std::ffi::c_void>, KernelError> {
        self.0.take(bytes).ok_or_else(|| {
            let message = format!("no {bytes} bytes of shared host memory");
            KernelError::new(tenon_abi::Code::RESOURCE_EXHAUSTED, message)
        })
    }

    unsafe fn deallocate(&self, data: std::ptr::NonNull<std::ffi::c_void>, bytes: usize) {
        // SAFETY: `data` came from `allocate`, and so from `Arena::take`, with this size; the
        // caller is its last user.
        unsafe { self.0.give(data, bytes) }
    }
}
