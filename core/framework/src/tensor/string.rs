//! Elements of string tensors. Only the host calls these; a plugin goes through the host's string table.
//!
//! Bytes of values are counted if a [`StringMeter`] was set: each thread sums up what it takes and gives back,
//! and reports 64 KiB at a time to the meter, so that threads share no counter for a value.

use std::{
    alloc::{Layout, alloc, dealloc, realloc},
    cell::Cell,
    sync::OnceLock,
};
use tenon_abi::{Code, StringElement};

/// Receives the number of bytes by which the values of strings have grown, or shrunk. Returns false if growing by that
/// number is not allowed; shrinking always is.
pub type StringMeter = fn(bytes: i64) -> bool;

/// A thread reports to the meter once its sum is as large, and when it ends.
const BATCH: i64 = 64 << 10;

static METER: OnceLock<StringMeter> = OnceLock::new();

/// Has the values of strings counted from here on; the first meter stays.
pub fn set_string_meter(meter: StringMeter) {
    let _ = METER.set(meter);
}

/// The bytes that a thread has not reported yet.
struct Untold(Cell<i64>);

impl Drop for Untold {
    fn drop(&mut self) {
        if let Some(meter) = METER.get() {
            // What is there already cannot be refused.
            let _ = meter(self.0.get());
        }
    }
}

thread_local! {
    static UNTOLD: Untold = const { Untold(Cell::new(0)) };
}

/// Counts bytes that a value takes, or gives back. False if they are not allowed: then they are not counted.
fn count(bytes: i64) -> bool {
    let Some(meter) = METER.get() else { return true };
    let told = UNTOLD.try_with(|untold| {
        let sum = untold.0.get() + bytes;
        if sum.abs() < BATCH {
            untold.0.set(sum);
            return true;
        }
        let allowed = meter(sum);
        if allowed {
            untold.0.set(0);
        }
        allowed
    });
    // A thread that ends has no sum any more.
    told.unwrap_or_else(|_| meter(bytes))
}

/// Allocation of string elements, as functions, so that the host's table and tensors share it.
pub struct StringStorage;

impl StringStorage {
    /// Makes room for `capacity` bytes and keeps the value.
    ///
    /// # Safety
    /// `element` is an initialised element that the caller may write.
    pub unsafe fn reserve(element: *mut StringElement, capacity: u64) -> Code {
        // SAFETY: `element` is initialised, and the caller may write it.
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
        let more = (new.size() - old.size()) as i64;
        if !count(more) {
            return Code::RESOURCE_EXHAUSTED;
        }
        let data = if current.data.is_null() {
            // SAFETY: `capacity` is above 0.
            unsafe { alloc(new) }
        } else {
            // SAFETY: allocated with `old` by this function; `new` is larger.
            unsafe { realloc(current.data, old, new.size()) }
        };
        if data.is_null() {
            count(-more);
            return Code::RESOURCE_EXHAUSTED;
        }
        // SAFETY: as above, the caller may write `element`.
        unsafe { *element = StringElement { data, len: current.len, capacity } };
        Code::OK
    }

    /// Frees the value and leaves the empty string.
    ///
    /// # Safety
    /// As [`StringStorage::reserve`].
    pub unsafe fn destroy(element: *mut StringElement) {
        // SAFETY: `element` is initialised, and the caller may write it; the memory came from `reserve`.
        unsafe {
            let current = *element;
            *element = StringElement { data: std::ptr::null_mut(), len: 0, capacity: 0 };
            if !current.data.is_null() {
                count(-(current.capacity as i64));
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
/// As [`StringStorage::reserve`]; `value` is not within the element.
pub unsafe fn set_string(element: *mut StringElement, value: &[u8]) -> Code {
    // SAFETY: `element` is initialised, and the caller may write it.
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
        // SAFETY: `first` points to `count` initialised elements, which the caller owns.
        unsafe { StringStorage::destroy(first.add(at)) };
    }
}
