//! The elements of string tensors as users see them: TensorFlow's 24 bytes.
//!
//! The two lowest bits of the first byte are the kind; the bits above are the size. A *small* value of up to 22 bytes follows in
//! place. A *large* one is behind a pointer that `malloc` gave, with a capacity. An *offset* one is at a distance from the
//! element. A *view* belongs to another owner, which is counted where it is named.

use crate::raw::Array;
use std::{
    ffi::{c_char, c_int, c_void},
    ptr, slice,
};

#[cfg(target_endian = "big")]
compile_error!("the layout of TF_TString is written out for little-endian machines alone");

const SMALL: c_int = 0;
const LARGE: c_int = 1;
const OFFSET: c_int = 2;
const VIEW: c_int = 3;

/// The most bytes of a small value.
const SMALL_CAPACITY: usize = 22;

/// An element of a string tensor. All zero bytes are the empty value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_TString {
    words: [usize; 3],
}

const _: () = assert!(size_of::<TF_TString>() == 24);

/// The owner of a view, as other code counts it.
#[repr(C)]
struct Owner {
    count_up: unsafe extern "C" fn(*mut Owner),
    count_down: unsafe extern "C" fn(*mut Owner) -> bool,
    object: *mut c_void,
}

impl TF_TString {
    /// The empty value.
    pub const EMPTY: TF_TString = TF_TString { words: [0; 3] };

    fn kind(&self) -> c_int {
        (self.words[0] & 3) as c_int
    }

    /// The number of bytes.
    pub fn size(&self) -> usize {
        match self.kind() {
            SMALL => (self.words[0] & 0xff) >> 2,
            OFFSET => (self.words[0] as u32 >> 2) as usize,
            _ => self.words[0] >> 2,
        }
    }

    fn capacity(&self) -> usize {
        match self.kind() {
            SMALL => SMALL_CAPACITY,
            LARGE => self.words[1],
            _ => 0,
        }
    }

    fn data(&self) -> *const u8 {
        let start = ptr::from_ref(self).cast::<u8>();
        match self.kind() {
            SMALL => start.wrapping_add(1),
            LARGE => self.words[2] as *const u8,
            OFFSET => start.wrapping_add((self.words[0] >> 32) & 0xffff_ffff),
            _ => self.words[1] as *const u8,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        let (data, size) = (self.data(), self.size());
        if data.is_null() || size == 0 {
            return &[];
        }
        // SAFETY: an element that was initialised has as many bytes where its kind says, until it changes.
        unsafe { slice::from_raw_parts(data, size) }
    }

    /// Frees what the element owns, and leaves the empty value.
    pub fn clear(&mut self) {
        if self.kind() == LARGE && self.words[2] != 0 {
            // SAFETY: the pointer of a large value came from `malloc`, and the element alone has it.
            unsafe { libc::free(self.words[2] as *mut c_void) };
            *self = TF_TString::EMPTY;
        } else if self.kind() == VIEW && self.words[2] != 0 {
            let owner = self.words[2] as *mut Owner;
            // SAFETY: a view keeps its owner alive by one count, which this call gives back.
            unsafe { ((*owner).count_down)(owner) };
            *self = TF_TString::EMPTY;
        }
    }

    /// Replaces the value by a copy of these bytes, which are not those of the element itself. False if memory ran out; the
    /// value is then empty.
    pub fn assign(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() <= SMALL_CAPACITY {
            self.clear();
            let mut raw = [0u8; 24];
            raw[0] = (bytes.len() << 2) as u8;
            raw[1..=bytes.len()].copy_from_slice(bytes);
            let word = |at: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&raw[at * 8..at * 8 + 8]);
                u64::from_le_bytes(word) as usize
            };
            self.words = [word(0), word(1), word(2)];
            return true;
        }
        let capacity = self.capacity_for(bytes.len());
        let Some(data) = self.storage(capacity) else { return false };
        // SAFETY: there is room for the bytes and a zero behind them.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
            data.add(bytes.len()).write(0);
        }
        self.words = [bytes.len() << 2 | LARGE as usize, capacity, data as usize];
        true
    }

    /// The capacity for a large value of this size: it shrinks only to less than half.
    fn capacity_for(&self, size: usize) -> usize {
        let rounded = |size: usize| ((size + 1 + 15) & !15) - 1;
        let current = self.capacity();
        if size < self.size() && size < current / 2 {
            rounded(current / 2)
        } else if size > current {
            rounded(size)
        } else {
            current
        }
    }

    /// Memory for a large value. The former value is freed, or its memory is used again.
    fn storage(&mut self, capacity: usize) -> Option<*mut u8> {
        if self.kind() == LARGE && self.words[1] == capacity {
            return Some(self.words[2] as *mut u8);
        }
        self.clear();
        *self = TF_TString::EMPTY;
        // SAFETY: any size may be requested.
        let data = unsafe { libc::malloc(capacity.checked_add(1)?) };
        (!data.is_null()).then_some(data.cast())
    }
}

api! {
    /// Initialises an element as the empty value.
    fn TF_StringInit(element: Option<&mut std::mem::MaybeUninit<TF_TString>>) {
        if let Some(element) = element {
            element.write(TF_TString::EMPTY);
        }
    }

    /// Replaces the value of an initialised element by a copy.
    fn TF_StringCopy(element: Option<&mut TF_TString>, bytes: Array<'_, u8>, size: usize) {
        if let Some(element) = element {
            element.assign(bytes.of_size(size));
        }
    }

    /// Makes an initialised element a view of bytes that the caller keeps.
    fn TF_StringAssignView(element: Option<&mut TF_TString>, bytes: *const c_char, size: usize) {
        if let Some(element) = element {
            element.clear();
            element.words = [size << 2 | VIEW as usize, bytes as usize, 0];
        }
    }

    /// The bytes of an element, until it changes.
    fn TF_StringGetDataPointer(element: Option<&TF_TString>) -> *const c_char {
        element.map_or(ptr::null(), |element| element.data().cast())
    }

    /// The kind of an element: 0 small, 1 large, 2 offset, 3 view.
    fn TF_StringGetType(element: Option<&TF_TString>) -> c_int {
        element.map_or(SMALL, TF_TString::kind)
    }

    /// The number of bytes.
    fn TF_StringGetSize(element: Option<&TF_TString>) -> usize { element.map_or(0, TF_TString::size) }

    /// The number of bytes that fit without another allocation; 0 for views and offsets.
    fn TF_StringGetCapacity(element: Option<&TF_TString>) -> usize {
        element.map_or(0, TF_TString::capacity)
    }

    /// Frees what an element owns.
    fn TF_StringDealloc(element: Option<&mut TF_TString>) {
        if let Some(element) = element {
            element.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_size_come_back_and_free_their_memory() {
        let mut element = TF_TString::EMPTY;
        for size in [0, 1, 22, 23, 24, 100, 40, 3, 1000] {
            let bytes: Vec<u8> = (0..size).map(|at| at as u8).collect();
            assert!(element.assign(&bytes));
            assert_eq!(element.bytes(), bytes);
            assert_eq!(element.kind(), if size > 22 { LARGE } else { SMALL });
        }
        element.clear();
        assert_eq!(element.bytes(), b"");
    }

    #[test]
    fn an_offset_value_is_read_where_it_says() {
        let mut block = [TF_TString::EMPTY; 2];
        block[1].words[0] = u64::from_le_bytes(*b"abcdefgh") as usize;
        block[0].words[0] = (24usize << 32) | (5 << 2) | OFFSET as usize;
        // SAFETY: both elements are in one block.
        let element = unsafe { &*block.as_ptr() };
        assert_eq!(element.bytes(), b"abcde");
    }
}
