//! Slots as views.

use std::slice;
use tenon_abi::{Slot, Str, StringElement};
use tenon_framework::{KernelError, View, element::Element, growth};

/// The elements of a slot.
///
/// # Safety
/// The slot is in host memory, holds elements of this type, and is not written for `'a`.
#[inline(always)]
pub(super) unsafe fn view<'a, T: Element>(slot: &Slot) -> View<'a, T> {
    // SAFETY: the caller gives a slot of host memory with elements of this type, which no code writes for `'a`.
    unsafe {
        let data = slice::from_raw_parts(slot.data.cast_const().cast(), slot.elements as usize);
        View { dims: slot.shape(), data }
    }
}

/// The values of a string slot.
///
/// # Errors
/// `RESOURCE_EXHAUSTED` when there is no memory for the list.
///
/// # Safety
/// The slot is in host memory, holds strings, and is not written for `'a`.
pub(super) unsafe fn strings<'a>(slot: &Slot) -> Result<Vec<&'a [u8]>, KernelError> {
    let first = slot.data.cast::<StringElement>();
    // SAFETY: the caller gives a slot of `elements` initialised strings in host memory, which no code writes for `'a`.
    let element = |at| unsafe { *first.add(at) };
    let elements = (0..slot.elements as usize).map(element);
    // SAFETY: as above.
    growth::collected(elements.map(|e| unsafe { Str { ptr: e.data, len: e.len as usize }.bytes() }))
}
