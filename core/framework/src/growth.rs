//! Vectors that grow with inputs: missing memory is an error, not the end of the process.
//!
//! The standard library's `vec![x; n]`, `collect`, `to_vec` and `push` end the process when there is no memory.
//! That is right for lists that the rank of a tensor or a signature bounds. Lists that grow with the elements of a
//! tensor are made here, or by `ComputeContext::scratch_slice`, whose memory is counted too.
//!
//! ```
//! use tenon_framework::{Code, growth};
//!
//! let squares = growth::collected((0..4).map(|x| x * x))?;
//! assert_eq!(squares, [0, 1, 4, 9]);
//! assert_eq!(growth::filled(3, 'x')?, ['x'; 3]);
//! let error = growth::filled(usize::MAX, 0u64).unwrap_err();
//! assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
//! # Ok::<(), tenon_framework::KernelError>(())
//! ```

use crate::{Code, KernelError};
use std::{any::Any, collections::HashMap};

/// The beginning of the message of an error for lack of memory.
const LACK: &str = "no memory for what the kernel works with";

/// The payload that unwinds a call for which there is no memory.
struct Lack(String);

/// The value, or the end of the call: for loops that are inlined into others and return nothing. The call, whose
/// `compute` or whose block of a parallel loop this is, ends with the error.
#[inline]
pub fn or_end<T>(result: Result<T, KernelError>) -> T {
    result.unwrap_or_else(|error| end(error))
}

#[cold]
fn end(error: KernelError) -> ! {
    // Without the hook for panics, because this is not a panic.
    std::panic::resume_unwind(Box::new(Lack(error.message)))
}

/// The message of [`or_end`] in a caught payload.
pub(crate) fn lack_of(payload: &(dyn Any + Send)) -> Option<&str> {
    payload.downcast_ref::<Lack>().map(|lack| &*lack.0)
}

/// The error of what was caught where a kernel computed, which `what` names: a panic, or [`or_end`].
pub fn error_of(what: &str, caught: &str) -> KernelError {
    match caught.starts_with(LACK) {
        true => KernelError::new(Code::RESOURCE_EXHAUSTED, caught),
        false => KernelError::internal(format!("{what} panicked: {caught}")),
    }
}

/// The error for lack of memory for `len` values of `size` bytes.
#[cold]
#[inline(never)]
fn exhausted(len: usize, size: usize) -> KernelError {
    let bytes = len as u128 * size as u128;
    let message = format!("{LACK}: asked for {bytes} bytes");
    KernelError::new(Code::RESOURCE_EXHAUSTED, message)
}

/// Makes room for `more` values.
///
/// # Errors
/// `RESOURCE_EXHAUSTED`, as of all functions here.
#[inline]
pub fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), KernelError> {
    let len = vector.len();
    vector.try_reserve(more).map_err(|_| exhausted(len.saturating_add(more), size_of::<T>()))
}

/// An empty vector with room for exactly `len` values.
///
/// # Errors
/// As [`reserve`].
pub fn with_room<T>(len: usize) -> Result<Vec<T>, KernelError> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| exhausted(len, size_of::<T>()))?;
    Ok(vector)
}

/// `len` times the same value.
///
/// # Errors
/// As [`reserve`].
pub fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, KernelError> {
    let mut vector = with_room(len)?;
    vector.resize(len, value);
    Ok(vector)
}

/// A copy.
///
/// # Errors
/// As [`reserve`].
pub fn copied<T: Clone>(values: &[T]) -> Result<Vec<T>, KernelError> {
    let mut vector = with_room(values.len())?;
    vector.extend_from_slice(values);
    Ok(vector)
}

/// Appends a value.
///
/// # Errors
/// As [`reserve`].
#[inline]
pub fn push<T>(vector: &mut Vec<T>, value: T) -> Result<(), KernelError> {
    if vector.len() == vector.capacity() {
        reserve(vector, 1)?;
    }
    vector.push(value);
    Ok(())
}

/// Appends values.
///
/// # Errors
/// As [`reserve`].
#[inline]
pub fn append<T: Clone>(vector: &mut Vec<T>, values: &[T]) -> Result<(), KernelError> {
    reserve(vector, values.len())?;
    vector.extend_from_slice(values);
    Ok(())
}

/// The values of an iterator.
///
/// # Errors
/// As [`reserve`].
pub fn collected<T>(values: impl IntoIterator<Item = T>) -> Result<Vec<T>, KernelError> {
    let values = values.into_iter();
    let mut vector = with_room(values.size_hint().0)?;
    for value in values {
        push(&mut vector, value)?;
    }
    Ok(vector)
}

/// The values of an iterator, up to its first error.
///
/// # Errors
/// The iterator's; as [`reserve`].
pub fn try_collected<T>(
    values: impl IntoIterator<Item = Result<T, KernelError>>,
) -> Result<Vec<T>, KernelError> {
    let values = values.into_iter();
    // A lower bound of 0 says only that the first may be an error.
    let mut vector = with_room(values.size_hint().0)?;
    for value in values {
        push(&mut vector, value?)?;
    }
    Ok(vector)
}

/// Makes room for `more` entries of a map.
///
/// # Errors
/// As [`reserve`].
pub fn reserve_entries<K, V, S>(map: &mut HashMap<K, V, S>, more: usize) -> Result<(), KernelError>
where
    K: Eq + std::hash::Hash,
    S: std::hash::BuildHasher,
{
    let len = map.len().saturating_add(more);
    map.try_reserve(more).map_err(|_| exhausted(len, size_of::<(K, V)>()))
}

/// Whether this number of bytes is available right now: for libraries that allocate memory themselves, and end the
/// process when there is none. The caller bounds their allocations by this number.
///
/// # Errors
/// As [`reserve`].
pub fn foresee(bytes: usize) -> Result<(), KernelError> {
    with_room::<u8>(bytes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_to_be_had_is_an_error_that_says_how_much() {
        let error = with_room::<u64>(1 << 60).unwrap_err();
        assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
        assert_eq!(
            error.message,
            "no memory for what the kernel works with: asked for 9223372036854775808 bytes"
        );
        let mut vector = vec![1u8];
        assert!(reserve(&mut vector, usize::MAX).is_err() && vector == [1]);
        let mut map = HashMap::<u64, u64>::new();
        assert!(reserve_entries(&mut map, usize::MAX / 8).is_err());
        assert!(foresee(usize::MAX / 2).is_err() && foresee(1 << 16).is_ok());
    }

    #[test]
    fn a_loop_that_returns_nothing_ends_the_call_with_the_error() {
        let caught = crate::plugin::guard(|| or_end(filled(usize::MAX, 0u8)).len()).unwrap_err();
        let error = error_of("the kernel", &caught);
        assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
        assert!(error.message.starts_with(LACK), "{error}");
        let error = error_of("the kernel", "at the disco (music.rs:1)");
        assert_eq!(error, KernelError::internal("the kernel panicked: at the disco (music.rs:1)"));
        assert_eq!(or_end(filled(2, 1u8)), [1, 1]);
    }

    #[test]
    fn values_come_in_order_and_errors_end_the_list() {
        let odd = (0..9).filter(|x| x % 2 == 1);
        assert_eq!(collected(odd).unwrap(), [1, 3, 5, 7]);
        let some = [Ok(1), Err(KernelError::internal("no")), Ok(2)];
        assert_eq!(try_collected(some).unwrap_err().message, "no");
        let mut vector = copied(&[1, 2]).unwrap();
        append(&mut vector, &[3]).unwrap();
        push(&mut vector, 4).unwrap();
        assert_eq!(vector, [1, 2, 3, 4]);
    }
}
