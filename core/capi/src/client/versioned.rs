//! Structs that begin with their size, so that programs and libraries of different versions understand each other.

use crate::fail::Failure;
use std::{marker::PhantomData, mem::MaybeUninit, ptr, slice};

/// The largest size that a struct of a later version may have, in bytes.
const MOST: usize = 4096;

/// A truth value that C wrote: 0 is false, every other byte is true.
pub type Flag = u8;

/// A struct of options or of results.
///
/// # Safety
/// It is `repr(C)`, its first field is a `usize` with its size in bytes, and all bytes zero are a value of it: the defaults. It does
/// not end in padding, so that the bytes of fields which a later version adds are all that a longer struct has.
pub unsafe trait Versioned: Copy {
    /// The name in C.
    const NAME: &'static str;

    /// The defaults, with the size set.
    fn defaults() -> Self {
        let mut made = MaybeUninit::<Self>::zeroed();
        // SAFETY: the first field is the size; all bytes zero are a value, as whoever implements the trait promises.
        unsafe {
            made.as_mut_ptr().cast::<usize>().write(size_of::<Self>());
            made.assume_init()
        }
    }
}

/// Options: null for the defaults, or a struct of any version.
#[repr(transparent)]
pub struct Options<'a, T>(*const T, PhantomData<&'a T>);

/// A place for results: a struct of any version, of which the caller set the size.
#[repr(transparent)]
pub struct Filled<'a, T>(*mut T, PhantomData<&'a mut T>);

/// The size that the caller wrote into a struct.
///
/// # Safety
/// `start` is readable for a `usize`.
unsafe fn size<T: Versioned>(start: *const T) -> Result<usize, Failure> {
    // SAFETY: as the caller says.
    let size = unsafe { start.cast::<usize>().read_unaligned() };
    if size < size_of::<usize>() || size > MOST {
        return Err(Failure::invalid(format!(
            "{}.size: expected sizeof({}), which is {} here, found {size}",
            T::NAME,
            T::NAME,
            size_of::<T>()
        )));
    }
    Ok(size)
}

impl<T: Versioned> Options<'_, T> {
    /// The options. What a shorter struct of an older version lacks is its default.
    ///
    /// # Errors
    /// A size that no version has; fields of a later version that are not zero.
    pub fn read(&self) -> Result<T, Failure> {
        let mut made = T::defaults();
        if self.0.is_null() {
            return Ok(made);
        }
        // SAFETY: the caller in C gave a struct that begins with its size, and as many bytes as that says.
        let given = unsafe { slice::from_raw_parts(self.0.cast::<u8>(), size(self.0)?) };
        let known = given.len().min(size_of::<T>());
        if let Some(at) = given[known..].iter().position(|&byte| byte != 0) {
            return Err(Failure::invalid(format!(
                "{}: byte {} of {} is not zero, and this library knows {known}: leave out fields of later versions, or \
                 use a later library",
                T::NAME,
                known + at,
                given.len()
            )));
        }
        // SAFETY: both are as long; the bytes were a struct of this kind, or an older version of it. The size stays ours.
        unsafe {
            let skip = size_of::<usize>();
            let to = ptr::from_mut(&mut made).cast::<u8>().add(skip);
            ptr::copy_nonoverlapping(given.as_ptr().add(skip), to, known - skip);
        }
        Ok(made)
    }
}

impl<T: Versioned> Filled<'_, T> {
    /// Writes as much of the results as the caller's struct has room for. Further bytes of a later version become zero, and the
    /// size stays.
    ///
    /// # Errors
    /// Null, or a size that no version has.
    pub fn set(&self, value: &T) -> Result<(), Failure> {
        if self.0.is_null() {
            return Err(Failure::null(T::NAME));
        }
        // SAFETY: the caller in C gave a struct that begins with its size, writable for as many bytes as that says.
        unsafe {
            let (size, skip) = (size(self.0)?, size_of::<usize>());
            let known = size.min(size_of::<T>());
            let to = self.0.cast::<u8>();
            ptr::copy_nonoverlapping(
                ptr::from_ref(value).cast::<u8>().add(skip),
                to.add(skip),
                known - skip,
            );
            to.add(known).write_bytes(0, size - known);
        }
        Ok(())
    }
}
