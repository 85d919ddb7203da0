//! Pointers with lengths.

use abi_stable::StableAbi;
use core::{ptr, slice};

/// Borrowed UTF-8 or raw bytes. Filled by the side that lends them. `ptr` may be null only when `len` is 0.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Str {
    /// First byte.
    pub ptr: *const u8,
    /// Number of bytes.
    pub len: usize,
}

// SAFETY: a `Str` is a plain pair; code that dereferences it upholds the lifetime of what it points to.
unsafe impl Sync for Str {}
// SAFETY: as above.
unsafe impl Send for Str {}

impl Str {
    /// The empty string.
    pub const EMPTY: Str = Str { ptr: ptr::null(), len: 0 };

    /// Borrows `text`; the caller keeps it alive for as long as the receiver may read it.
    pub const fn new(text: &str) -> Str {
        Str { ptr: text.as_ptr(), len: text.len() }
    }

    /// Borrows `bytes`; the caller keeps them alive for as long as the receiver may read them.
    pub const fn from_bytes(bytes: &[u8]) -> Str {
        Str { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    /// `ptr` points to `len` readable bytes that live and do not change for `'a`.
    pub const unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller gives `len` readable bytes at `ptr`, which live and do not change for `'a`.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }

    /// The text, or `None` when the bytes are not UTF-8.
    ///
    /// # Safety
    /// As [`Str::bytes`].
    pub unsafe fn text<'a>(self) -> Option<&'a str> {
        // SAFETY: the bytes are readable, live and do not change for `'a`, as the caller guarantees.
        core::str::from_utf8(unsafe { self.bytes() }).ok()
    }
}

/// Borrowed array of strings. Filled by the side that lends it. `ptr` may be null only when `len` is 0.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Strs {
    /// First string.
    pub ptr: *const Str,
    /// Number of strings.
    pub len: usize,
}

// SAFETY: a plain pair, as `Str`.
unsafe impl Sync for Strs {}
// SAFETY: a plain pair, as `Str`.
unsafe impl Send for Strs {}

impl Strs {
    /// Borrows `items`; the caller keeps them alive for as long as the receiver may read them.
    pub const fn new(items: &[Str]) -> Strs {
        Strs { ptr: items.as_ptr(), len: items.len() }
    }

    /// The strings.
    ///
    /// # Safety
    /// `ptr` points to `len` readable elements that live and do not change for `'a`.
    pub const unsafe fn slice<'a>(self) -> &'a [Str] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller gives `len` readable elements at `ptr`, which live and do not change for `'a`.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// Borrowed dimensions. Filled by the side that lends them. `ptr` may be null only when `len` is 0.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Dims {
    /// First dimension.
    pub ptr: *const i64,
    /// Number of dimensions.
    pub len: usize,
}

impl Dims {
    /// Borrows `dims`; the caller keeps them alive for as long as the receiver may read them.
    pub const fn new(dims: &[i64]) -> Dims {
        Dims { ptr: dims.as_ptr(), len: dims.len() }
    }

    /// The dimensions.
    ///
    /// # Safety
    /// `ptr` points to `len` readable numbers that live and do not change for `'a`.
    pub const unsafe fn slice<'a>(self) -> &'a [i64] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller gives `len` readable numbers at `ptr`, which live and do not change for `'a`.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// The flat positions that belong to one named argument. Filled by the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First position.
    pub start: u32,
    /// Number of positions.
    pub len: u32,
}

/// The place of a registration in its author's source. Filled by the registering side.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Source {
    /// Crate, or project of a C plugin.
    pub krate: Str,
    /// File.
    pub file: Str,
    /// Line, from 1.
    pub line: u32,
}
