//! What passes and gradients of a library give to the host, and what the host lends them.

use crate::{
    KernelError, PartialShape, Tensor,
    attr::{AttrList, AttrMap, AttrValue, FromAttr},
};
use std::{ptr, slice};
use tenon_abi::{AttrKind, AttrView, Code, DType, PassAttr, Slot, UNKNOWN_RANK};

/// Keeps the error of an entry for [`reason`]; returns its code.
pub(crate) fn code_of(outcome: Result<(), KernelError>, kept: &mut Option<KernelError>) -> Code {
    match outcome {
        Ok(()) => Code::OK,
        Err(error) => {
            let code = error.code;
            *kept = Some(error);
            code
        }
    }
}

/// The result of a run that ended with this code: the error that was kept for it, or `unsaid`.
pub(crate) fn reason(
    code: Code,
    kept: Option<KernelError>,
    unsaid: &str,
) -> Result<(), KernelError> {
    if code.is_ok() {
        return Ok(());
    }
    let own = kept.filter(|error| error.code == code);
    Err(own.unwrap_or_else(|| KernelError::new(code, unsaid)))
}

/// Writes as many dimensions as there is room for; returns their number, or [`UNKNOWN_RANK`].
///
/// # Safety
/// `room` is null, or has room for `capacity` dimensions.
pub(crate) unsafe fn write_dims(known: Option<&[i64]>, room: *mut i64, capacity: u32) -> i32 {
    let Some(known) = known else { return UNKNOWN_RANK };
    if !room.is_null() {
        // SAFETY: the caller has room for `capacity` dimensions.
        unsafe {
            ptr::copy_nonoverlapping(known.as_ptr(), room, known.len().min(capacity as usize));
        }
    }
    known.len() as i32
}

/// The description of a node, of which the whole size was given.
///
/// # Safety
/// `node` is null or begins with its size, and a node of the whole size is readable for `'a`.
pub(crate) unsafe fn node<'a, T>(node: *const T) -> Result<&'a T, KernelError> {
    if node.is_null() {
        return Err(KernelError::invalid_argument("expected a node, found null"));
    }
    // SAFETY: the caller gives a node that begins with its size. Nothing else is read before the check.
    let (expected, found) = unsafe { (size_of::<T>(), node.cast::<u32>().read()) };
    if (found as usize) < expected {
        return Err(KernelError::invalid_argument(format!(
            "struct_size of a node is {found}, expected {expected}"
        )));
    }
    // SAFETY: a node of the whole size is readable, as the caller guarantees.
    Ok(unsafe { &*node })
}

/// Adds the attributes of a new node of this op; `givers` names who gives them.
///
/// # Safety
/// The names, and the items of the views, are readable.
pub(crate) unsafe fn add_attrs(
    attrs: &mut AttrMap,
    given: &[PassAttr],
    op: &str,
    givers: &str,
) -> Result<(), KernelError> {
    for PassAttr { name, value } in given {
        // SAFETY: the name and the view's items are readable, as the caller guarantees.
        let (name, value) = unsafe { (name.text().unwrap_or_default().to_owned(), attr(value)) };
        let value = value.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "attribute '{name}' of op '{op}': expected a value that {givers} can give"
            ))
        })?;
        attrs.insert(name, value);
    }
    Ok(())
}

/// What a plugin gives as a list.
///
/// # Safety
/// `items` is null, or there are `count` of them.
pub(crate) unsafe fn list<'a, T>(items: *const T, count: usize) -> &'a [T] {
    if items.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: `items` is not null, and the caller gives `count` of them, which are readable for `'a`.
    unsafe { slice::from_raw_parts(items, count) }
}

/// What a plugin gives as an attribute; `None` for a kind that it cannot give.
///
/// # Safety
/// The view's items are readable.
unsafe fn attr(view: &AttrView) -> Option<AttrValue> {
    // SAFETY: the view's items are readable, as the caller guarantees; each type is that of the kind.
    unsafe {
        if view.is_list != 0 {
            return Some(AttrValue::List(match view.kind {
                AttrKind::INT => AttrList::Int(Vec::from_view(view)?),
                AttrKind::FLOAT => AttrList::Float(Vec::from_view(view)?),
                AttrKind::BOOL => AttrList::Bool(Vec::from_view(view)?),
                AttrKind::TYPE => AttrList::Type(Vec::from_view(view)?),
                AttrKind::SHAPE => AttrList::Shape(Vec::from_view(view)?),
                AttrKind::STRING => {
                    let items: Vec<&[u8]> = Vec::from_view(view)?;
                    AttrList::String(items.into_iter().map(<[u8]>::to_vec).collect())
                }
                _ => return None,
            }));
        }
        Some(match view.kind {
            AttrKind::INT => AttrValue::Int(i64::from_view(view)?),
            AttrKind::FLOAT => AttrValue::Float(f32::from_view(view)?),
            AttrKind::BOOL => AttrValue::Bool(bool::from_view(view)?),
            AttrKind::TYPE => AttrValue::Type(DType::from_view(view)?),
            AttrKind::SHAPE => AttrValue::Shape(PartialShape::from_view(view)?),
            AttrKind::STRING => AttrValue::String(<&[u8]>::from_view(view)?.to_vec()),
            AttrKind::TENSOR => AttrValue::Tensor(copied(&Slot::from_view(view)?)?),
            _ => return None,
        })
    }
}

/// A copy of a tensor of plain elements in host memory.
///
/// # Safety
/// The slot's data and dimensions are readable.
unsafe fn copied(slot: &Slot) -> Option<Tensor> {
    // SAFETY: the slot's data and dimensions are readable, as the caller guarantees.
    unsafe {
        let dims = list(slot.dims, slot.rank as usize);
        let bytes = list(slot.data.cast::<u8>().cast_const(), slot.bytes as usize);
        Tensor::from_bytes(slot.dtype, dims, bytes).ok()
    }
}
