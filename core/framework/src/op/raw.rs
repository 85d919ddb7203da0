//! Reads what a plugin handed over: sizes, null pointers and UTF-8 are checked before anything is used.

use crate::text::cut_text;
use std::mem::size_of;
use tenon_abi::{ExtHeader, Str, Strs, find_ext, layout};
use thiserror::Error;

/// What is malformed in a struct that a plugin handed over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RawError {
    /// The pointer to the whole struct is null.
    #[error("a plugin handed over a null pointer instead of {what}")]
    NullStruct {
        /// The struct.
        what: &'static str,
    },
    /// The struct is smaller than this host needs.
    #[error(
        "struct_size of {what} is {found}, expected at least {expected}: build the plugin for this host's ABI"
    )]
    StructSize {
        /// The struct.
        what: &'static str,
        /// Bytes needed.
        expected: usize,
        /// What it says.
        found: u32,
    },
    /// A null pointer where the boundary allows none.
    #[error("field '{field}' of {what} is null, expected a value")]
    Null {
        /// The struct.
        what: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A count that no array in memory can have.
    #[error("field '{field}' of {what} counts {found} elements, which no array in memory has")]
    Count {
        /// The struct.
        what: &'static str,
        /// The field.
        field: &'static str,
        /// What it says.
        found: usize,
    },
    /// Text that is not UTF-8.
    #[error("field '{field}' of {what} is not UTF-8: {found:?}", found = cut_text(.found))]
    Utf8 {
        /// The struct.
        what: &'static str,
        /// The field.
        field: &'static str,
        /// The bytes, as far as they can be shown.
        found: String,
    },
}

/// A link whose layout is not that of its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "link '{link}' of version {version} has layout {found:#x}, expected {expected:#x}: build the plugin for this host's ABI"
)]
pub struct LinkError {
    /// The link.
    pub link: &'static str,
    /// Its version.
    pub version: u32,
    /// Hash of this host's layout.
    pub expected: u64,
    /// Hash that was found.
    pub found: u64,
}

/// Borrows the link of a chain with this tag; `None` when there is none. `layout` is that of version 1, and
/// of `T`.
///
/// # Safety
/// `chain` is null or the head of a chain of links that live for `'a`.
pub(crate) unsafe fn link<'a, T>(
    chain: *const ExtHeader,
    tag: u32,
    link: &'static str,
    layout: &layout::StructLayout,
) -> Result<Option<&'a T>, LinkError> {
    // SAFETY: `chain` is null or the head of a chain of live links, as the caller guarantees.
    let found = unsafe { find_ext(chain, tag, size_of::<T>()) };
    if found.is_null() {
        return Ok(None);
    }
    // SAFETY: it is a link of the chain, whose links live for `'a`, as the caller guarantees.
    let ExtHeader { version, layout_hash, .. } = unsafe { *found };
    let expected = layout::ext_hash(layout);
    // A later version appends fields, which changes its hash: what it begins with is the same.
    if version == 0 || (version == 1 && layout_hash != expected) {
        return Err(LinkError { link, version, expected, found: layout_hash });
    }
    // SAFETY: a live link with this tag, as long as `T` at least.
    Ok(Some(unsafe { &*found.cast::<T>() }))
}

/// Borrows a struct that begins with its `struct_size`.
///
/// # Safety
/// `pointer` is null or points to a `u32` and, when that says so, to a whole `T` that lives for `'a`.
pub(crate) unsafe fn sized<'a, T>(
    pointer: *const T,
    what: &'static str,
) -> Result<&'a T, RawError> {
    if pointer.is_null() {
        return Err(RawError::NullStruct { what });
    }
    // SAFETY: every struct of the boundary begins with its size.
    let found = unsafe { pointer.cast::<u32>().read() };
    if (found as usize) < size_of::<T>() {
        return Err(RawError::StructSize { what, expected: size_of::<T>(), found });
    }
    // SAFETY: it is as long as `T`, by its own word.
    Ok(unsafe { &*pointer })
}

/// Borrows an array.
///
/// # Safety
/// `pointer` is null or points to `len` elements that live for `'a`.
pub(crate) unsafe fn array<'a, T>(
    pointer: *const T,
    len: usize,
    what: &'static str,
    field: &'static str,
) -> Result<&'a [T], RawError> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(RawError::Null { what, field });
    }
    if len > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(RawError::Count { what, field, found: len });
    }
    // SAFETY: `pointer` is not null, and the caller gives `len` elements that live for `'a`; the size fits.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// Copies text.
///
/// # Safety
/// `text` points to as many bytes as it says.
pub(crate) unsafe fn text(
    text: Str,
    what: &'static str,
    field: &'static str,
) -> Result<String, RawError> {
    // SAFETY: `text` points to as many bytes as it says, as the caller guarantees.
    let bytes = unsafe { array(text.ptr, text.len, what, field)? };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => {
            let found = String::from_utf8_lossy(bytes).chars().take(40).collect();
            Err(RawError::Utf8 { what, field, found })
        }
    }
}

/// Copies texts.
///
/// # Safety
/// `texts` and each of its elements point to as much as they say.
pub(crate) unsafe fn texts(
    texts: Strs,
    what: &'static str,
    field: &'static str,
) -> Result<Vec<String>, RawError> {
    // SAFETY: `texts` and each of its elements point to as much as they say, as the caller guarantees.
    let items = unsafe { array(texts.ptr, texts.len, what, field)? };
    // SAFETY: as above.
    items.iter().map(|&item| unsafe { text(item, what, field) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn null_and_short_structs_are_refused() {
        // SAFETY: null is allowed.
        let null = unsafe { sized::<tenon_abi::OpDef>(ptr::null(), "op definition") };
        assert!(matches!(null, Err(RawError::NullStruct { .. })));
        let short = 8u32;
        // SAFETY: points to the size, which says that no more is there.
        let error =
            unsafe { sized((&raw const short).cast::<tenon_abi::OpDef>(), "op definition") };
        let message = error.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(message.starts_with("struct_size of op definition is 8, expected at least"));
    }

    #[test]
    fn a_null_array_with_elements_and_bad_text_are_refused() {
        // SAFETY: null is never read.
        let null = unsafe { text(Str { ptr: ptr::null(), len: 3 }, "op", "name") };
        assert_eq!(null, Err(RawError::Null { what: "op", field: "name" }));
        // SAFETY: one readable byte.
        let bytes = unsafe { text(Str::from_bytes(&[0xff]), "op", "name") };
        assert!(matches!(bytes, Err(RawError::Utf8 { .. })));
        let far = Str { ptr: ptr::dangling(), len: usize::MAX };
        // SAFETY: refused before it is read.
        let count = unsafe { text(far, "op", "name") };
        assert!(matches!(count, Err(RawError::Count { found: usize::MAX, .. })));
    }
}
