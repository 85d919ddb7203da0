//! Elements of string tensors. Only the host calls these; a plugin goes through the host's string table.

use std::alloc::{Layout, alloc, dealloc, realloc};
use tenon_abi::{Code, StringElement};

/// Allocation of string elements, as functions, so that the host's table and tensors share it.
pub struct StringStorage;

impl StringStorage {
    /// Makes room for `capacity` bytes and keeps the value.
    ///
    /// # Safety
    /// `element` is an initialised element that the caller may write.
    pub unsafe fn reserve(element: *mut StringElement, capacity: u64) -> Code {
        // SAFETY: the caller's promise.
        let current = unsafe { *element };
        if capacity <= current.capacity {
            return Code::OK;
        }
        let (Ok(old), Ok(new)) = (
            Layout::array::<u8>(current.capacity as usize),
            Layout::array::<u8>(capacity as usize),
        ) else {
            return Code::RESOURCE_EXHAUSTED;
        };
        let data = if current.data.is_null() {
            // SAFETY: `capacity` is above 0.
            unsafe { alloc(new) }
        } else {
            // SAFETY: allocated with `old` by this function; `new` is larger.
            unsafe { realloc(current.data, old, new.size()) }
        };
        if data.is_null() {
            return Code::RESOURCE_EXHAUSTED;
        }
        // SAFETY: the caller's promise.
        unsafe { *element = StringElement { data, len: current.len, capacity } };
        Code::OK
    }

    /// Frees the value and leaves the empty string.
    ///
    /// # Safety
    /// As [`StringStorage::reserve`].
    pub unsafe fn destroy(element: *mut StringElement) {
        // SAFETY: the caller's promise; the memory came from `reserve`.
        unsafe {
            let current = *element;
            *element = StringElement { data: std::ptr::null_mut(), len: 0, capacity: 0 };
            if !current.data.is_null() {
                dealloc(
                    current.data,
                    Layout::from_size_align_unchecked(current.capacity as usize, 1),
                );
            }
        }
    }
}

/// Replaces the value of an element.
///
/// # Safety
/// As [`StringStorage::reserve`]; `value` does not lie in the element.
pub unsafe fn set_string(element: *mut StringElement, value: &[u8]) -> Code {
    // SAFETY: the caller's promise.
    let code = unsafe { StringStorage::reserve(element, value.len() as u64) };
    if !code.is_ok() {
        return code;
    }
    // SAFETY: there is room for `value.len()` bytes.
    unsafe {
        if !value.is_empty() {
            std::ptr::copy_nonoverlapping(value.as_ptr(), (*element).data, value.len());
        }
        (*element).len = value.len() as u64;
    }
    Code::OK
}

/// Destroys `count` elements.
///
/// # Safety
/// `first` points to `count` initialised elements that the caller owns.
pub unsafe fn destroy_strings(first: *mut StringElement, count: usize) {
    for at in 0..count {
        // SAFETY: the caller's promise.
        unsafe { StringStorage::destroy(first.add(at)) };
    }
}
