//! Variants as bytes and tensors: the link [`VARIANTS`] of the host's table.

use super::{conclude, text};
use crate::{
    call::{CallFrame, OVER},
    variants::{decode_value, encode_value},
};
use std::{ffi::c_void, ptr, slice};
use tenon_abi::{
    CallRecord, Code, ExtHeader, ExtVariants, Slot, Str, VariantElement, VariantTake, ext_tags,
    layout::EXT_VARIANTS,
};
use tenon_framework::{KernelError, Tensor};

/// The link of the host's table.
pub const VARIANTS: ExtVariants = ExtVariants {
    header: ExtHeader::new(ext_tags::VARIANTS, 1, &EXT_VARIANTS),
    encode: Some(encode),
    decode: Some(decode),
};

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `element` is an element of a variant tensor that lives during the call.
/// - `take` may be called with `data`.
unsafe extern "C" fn encode(
    record: *mut CallRecord,
    element: *const VariantElement,
    take: VariantTake,
    data: *mut c_void,
) -> Code {
    // SAFETY: the kernel passes its call's record, and a live element.
    let (frame, element) = unsafe { (CallFrame::from_raw(record), element.as_ref()) };
    let Some(frame) = frame else { return OVER };
    let (Some(element), Some(run)) = (element, take.run) else { return Code::INVALID_ARGUMENT };
    // SAFETY: the kernel passes an element whose value is live and of its table.
    let encoded = unsafe { encode_value(*element) };
    conclude(frame, encoded, |encoded| {
        let slots: Vec<Slot> = encoded.tensors.iter().map(Tensor::slot).collect();
        let (name, bytes) = (Str::new(&encoded.type_name), Str::from_bytes(&encoded.metadata));
        // SAFETY: the kernel's own function and data; texts and slots live until it returns.
        unsafe { run(data, name, bytes, slots.as_ptr(), slots.len()) };
    })
}

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - Name and bytes are readable; `tensors` has `tensor_count` filled slots of tensors in host memory.
/// - `result` is null or valid for writes.
unsafe extern "C" fn decode(
    record: *mut CallRecord,
    type_name: Str,
    bytes: Str,
    tensors: *const Slot,
    tensor_count: usize,
    result: *mut VariantElement,
) -> Code {
    // SAFETY: the kernel passes its call's record.
    let Some(frame) = (unsafe { CallFrame::from_raw(record) }) else { return OVER };
    if result.is_null() || tensors.is_null() && tensor_count > 0 {
        return Code::INVALID_ARGUMENT;
    }
    // SAFETY: the kernel passes a readable name and bytes, and as many filled slots.
    let made = unsafe {
        let tensors = match tensor_count {
            0 => &[],
            count => slice::from_raw_parts(tensors, count),
        };
        text("the name of a type of variants", type_name)
            .and_then(|name| decoded(frame, name, bytes.bytes(), tensors))
    };
    const NONE: VariantElement = VariantElement { value: ptr::null_mut(), table: ptr::null() };
    // SAFETY: `result` is not null, so that the kernel passes a place for an element.
    conclude(frame, made, |made| unsafe { result.write(made.unwrap_or(NONE)) })
}

/// # Safety
/// - As [`decode_value`].
unsafe fn decoded(
    frame: &CallFrame,
    type_name: &str,
    metadata: &[u8],
    tensors: &[Slot],
) -> Result<Option<VariantElement>, KernelError> {
    let registry = frame.env().resources.registry().ok_or_else(|| {
        KernelError::unimplemented(
            "this step has no registry of types of variants: run the node in a session",
        )
    })?;
    // SAFETY: the caller passes filled slots of live tensors.
    unsafe { decode_value(&registry, type_name, metadata, tensors) }
}
