//! Arguments that are pointers to what C owns.
//!
//! A value of these types comes from a caller in C alone, which upholds what the section "Pointers" of the crate's
//! documentation requires. That is what makes their safe methods sound.

use crate::fail::Failure;
use std::{
    ffi::{CStr, c_char, c_int},
    marker::PhantomData,
    ptr, slice,
};

/// A number of things, in the type that C has for it.
pub fn c_count(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// A text: null, or the bytes up to a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// No text.
    pub const NULL: Text<'static> = Text(ptr::null(), PhantomData);

    /// The bytes; `None` for null.
    pub fn get(self) -> Option<&'a CStr> {
        // SAFETY: the caller in C gave a text that ends with a zero, and keeps it during the call.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }

    /// The text, which `what` names in errors.
    ///
    /// # Errors
    /// Null, or not UTF-8.
    pub fn required(self, what: &str) -> Result<&'a str, Failure> {
        let bytes = self.get().ok_or_else(|| Failure::null(what))?;
        bytes.to_str().map_err(|_| {
            Failure::invalid(format!("{what}: expected UTF-8, found {:?}", bytes.to_bytes()))
        })
    }

    /// The text; empty for null.
    ///
    /// # Errors
    /// Not UTF-8.
    pub fn optional(self, what: &str) -> Result<&'a str, Failure> {
        if self.0.is_null() { Ok("") } else { self.required(what) }
    }
}

/// The first element of an array: null, or as many elements as the number beside it says.
#[repr(transparent)]
pub struct Array<'a, T>(*const T, PhantomData<&'a [T]>);

impl<T> Clone for Array<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<'_, T> {}

impl<'a, T> Array<'a, T> {
    /// No array.
    pub const NULL: Array<'a, T> = Array(ptr::null(), PhantomData);

    /// Whether the pointer is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The elements. Null, and a number that is not positive, give none.
    pub fn of(self, count: c_int) -> &'a [T] {
        self.of_size(usize::try_from(count).unwrap_or(0))
    }

    /// As [`Array::of`], with a number of another type.
    pub fn of_size(self, count: usize) -> &'a [T] {
        if self.0.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: the caller in C gave as many elements, and keeps them during the call.
        unsafe { slice::from_raw_parts(self.0, count) }
    }

    /// The elements, where null is allowed for none alone.
    ///
    /// # Errors
    /// A negative number; null with a positive one.
    pub fn checked(self, count: c_int, what: &str) -> Result<&'a [T], Failure> {
        if count < 0 {
            return Err(Failure::invalid(format!(
                "{what}: expected a number of at least 0, found {count}"
            )));
        }
        if count > 0 && self.0.is_null() {
            return Err(Failure::null(what));
        }
        Ok(self.of(count))
    }
}

impl<'a, T> Array<'a, T> {
    /// As [`Array::checked`], with a number of another type.
    ///
    /// # Errors
    /// Null with a number that is not 0.
    pub fn required(self, count: usize, what: &str) -> Result<&'a [T], Failure> {
        if count > 0 && self.0.is_null() {
            return Err(Failure::null(what));
        }
        if count > isize::MAX as usize / size_of::<T>().max(1) {
            return Err(Failure::invalid(format!(
                "{what}: {count} of them do not fit into memory"
            )));
        }
        Ok(self.of_size(count))
    }
}

impl<'a> Array<'a, u8> {
    /// A message of this many bytes.
    pub fn message(self, length: usize) -> &'a [u8] {
        self.of_size(length)
    }
}

/// A place for results: null, or writable for as many values as the number beside it says.
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut [T]>);

impl<T> Clone for Out<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<'_, T> {}

impl<T> Out<'_, T> {
    /// Whether the pointer is null.
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Writes one value. Nothing happens for null.
    pub fn set(&self, value: T) {
        self.set_at(0, value);
    }

    /// Writes value number `at`, which is below the number beside the array. Nothing happens for null.
    pub fn set_at(&self, at: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: the caller in C gave a place for as many values as the number beside it says.
            unsafe { self.0.add(at).write(value) };
        }
    }

    /// Writes the first values, `room` of them at most; returns their number.
    pub fn fill(&self, room: c_int, values: impl IntoIterator<Item = T>) -> c_int {
        let room = usize::try_from(room).unwrap_or(0);
        let mut written = 0;
        for (at, value) in values.into_iter().take(room).enumerate() {
            self.set_at(at, value);
            written = at + 1;
        }
        c_count(written)
    }

    /// The address, for a caller that writes by itself.
    pub fn address(&self) -> *mut T {
        self.0
    }
}

impl Out<'_, u8> {
    /// Writes the first bytes of `bytes`, `room` of them at most.
    pub fn copy(&self, room: usize, bytes: &[u8]) {
        let count = bytes.len().min(room);
        if !self.0.is_null() && count > 0 {
            // SAFETY: the caller in C gave room for as many bytes, which no Rust code refers to.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0, count) };
        }
    }
}
