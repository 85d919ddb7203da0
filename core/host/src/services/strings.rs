//! Operations on elements of string tensors, for plugins.

use tenon_abi::{Code, Str, StringElement, StringTable};
use tenon_framework::tensor::{StringStorage, set_string};

/// The table that `Host::strings` points to.
pub static STRING_TABLE: StringTable = StringTable {
    struct_size: size_of::<StringTable>() as u32,
    reserved: 0,
    set: Some(set),
    reserve: Some(reserve),
    destroy: Some(destroy),
};

/// Sets the value of an element.
///
/// # Safety
/// - `element` is null, or an initialised element that the caller may write.
/// - `value` is readable.
unsafe extern "C" fn set(element: *mut StringElement, value: Str) -> Code {
    if element.is_null() {
        return Code::INVALID_ARGUMENT;
    }
    // SAFETY: the plugin passes an initialised element that it may write, and readable bytes.
    unsafe {
        let value = value.bytes();
        let (first, len) = ((*element).data.cast_const(), (*element).capacity as usize);
        // The source is part of the element's own value, which would move during the copy.
        if !first.is_null() && (first..first.wrapping_add(len)).contains(&value.as_ptr()) {
            let copy = value.to_vec();
            return set_string(element, &copy);
        }
        set_string(element, value)
    }
}

/// Makes room for a value of `capacity` bytes.
///
/// # Safety
/// - `element` is null, or an initialised element that the caller may write.
unsafe extern "C" fn reserve(element: *mut StringElement, capacity: u64) -> Code {
    if element.is_null() {
        return Code::INVALID_ARGUMENT;
    }
    // SAFETY: the plugin passes an initialised element that it may write.
    unsafe { StringStorage::reserve(element, capacity) }
}

/// Frees the value of an element.
///
/// # Safety
/// - `element` is null, or an initialised element that the caller may write.
unsafe extern "C" fn destroy(element: *mut StringElement) {
    if !element.is_null() {
        // SAFETY: the plugin passes an initialised element that it may write.
        unsafe { StringStorage::destroy(element) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    const EMPTY: StringElement = StringElement { data: ptr::null_mut(), len: 0, capacity: 0 };

    fn text(element: &StringElement) -> &[u8] {
        // SAFETY: the host's own element.
        unsafe { Str { ptr: element.data, len: element.len as usize }.bytes() }
    }

    #[test]
    fn a_value_is_set_kept_while_it_grows_and_destroyed() {
        let mut element = EMPTY;
        // SAFETY: an initialised element and readable bytes.
        unsafe {
            assert_eq!(set(&mut element, Str::new("hello")), Code::OK);
            assert_eq!(reserve(&mut element, 100), Code::OK);
            assert_eq!(text(&element), b"hello");
            assert!(element.capacity >= 100);
            element.data.add(5).write(b'!');
            element.len = 6;
            assert_eq!(text(&element), b"hello!");
            destroy(&mut element);
        }
        assert!(element.data.is_null() && element.len == 0 && element.capacity == 0);
    }

    #[test]
    fn a_part_of_its_own_value_may_be_set() {
        let mut element = EMPTY;
        // SAFETY: as above; the part is read before it is overwritten.
        unsafe {
            assert_eq!(set(&mut element, Str::new("abcdef")), Code::OK);
            let part = Str { ptr: element.data.add(2), len: 3 };
            assert_eq!(set(&mut element, part), Code::OK);
            assert_eq!(text(&element), b"cde");
            destroy(&mut element);
        }
    }

    #[test]
    fn what_cannot_be_reserved_leaves_the_element_as_it_was() {
        let mut element = EMPTY;
        // SAFETY: an initialised element and readable bytes.
        unsafe {
            assert_eq!(set(&mut element, Str::new("x")), Code::OK);
            assert_eq!(reserve(&mut element, u64::MAX), Code::RESOURCE_EXHAUSTED);
            assert_eq!(text(&element), b"x");
            destroy(&mut element);
            assert_eq!(set(ptr::null_mut(), Str::new("x")), Code::INVALID_ARGUMENT);
        }
    }
}
