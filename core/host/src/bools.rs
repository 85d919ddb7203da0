//! Normalises bools that foreign code wrote.
//!
//! A kernel in C may write any byte for true; `x & mask` is a common way. In Rust a `bool` that is
//! neither 0 nor 1 is undefined behaviour: a comparison with true and one with false may both fail,
//! and an index into a table of two may be out of bounds. So a byte from outside is converted to 0
//! or 1 before it becomes a value; every byte but 0 is true, as in C.
//! core/docs/decisions/foreign-bools.md lists what is normalised, and where.

use std::slice;
use tenon_abi::{Call, DType, MemoryKind, slot_flags};
use tenon_framework::Tensor;

/// Bytes examined before any of them is changed, so that they stay in the first-level cache.
const BLOCK: usize = 4096;

/// Sets every byte other than 0 to 1.
pub fn normalise(bytes: &mut [u8]) {
    for block in bytes.chunks_mut(BLOCK) {
        // Without an early exit, so that the loop is vectorised.
        if block.iter().fold(0, |all, &byte| all | byte) > 1 {
            block.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }
}

/// Like [`normalise`], in place.
///
/// # Safety
/// - If `count` is not 0 and `first` not null, `first` points to `count` initialised bytes that the
///   caller may write.
pub unsafe fn normalise_raw(first: *mut u8, count: usize) {
    if count > 0 && !first.is_null() {
        // SAFETY: `first` is not null, and the caller guarantees `count` initialised, writable
        // bytes there.
        normalise(unsafe { slice::from_raw_parts_mut(first, count) });
    }
}

/// Like [`normalise`], for a tensor of bools in memory that the host addresses; does nothing for
/// any other tensor.
///
/// # Safety
/// - The elements are initialised bytes.
/// - Nothing reads them as bools or writes them during the call.
pub unsafe fn normalise_tensor(tensor: &Tensor) {
    if tensor.dtype() == DType::BOOL && tensor.is_on_host() {
        // SAFETY: the tensor has as many bytes as elements; the caller guarantees that they are
        // initialised and that nothing else uses them.
        unsafe { normalise_raw(tensor.buffer().data().cast(), tensor.elements()) }
    }
}

/// Normalises the bool outputs of a call that has returned or completed. Outputs in a device's
/// memory, and outputs of enqueued work, are normalised when they are copied to the host.
///
/// # Safety
/// - `call` is a filled call.
/// - Its outputs belong to the caller.
pub unsafe fn normalise_outputs(call: &Call) {
    for at in 0..call.output_count as usize {
        // SAFETY: the call has as many slots as it says; a set slot shows as many bytes as it says,
        // which the kernel has written. An output that shares an input's buffer contains valid
        // bools already, so nothing is written there.
        unsafe {
            let slot = &*call.outputs.add(at);
            let is_here = slot.memory == MemoryKind::HOST
                || (call.stream.is_null() && slot.memory.is_host_address());
            if slot.dtype == DType::BOOL && slot.flags & slot_flags::REF == 0 && is_here {
                normalise_raw(slot.data.cast(), slot.elements as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_0_is_1_wherever_it_stands() {
        for length in [0, 1, 7, BLOCK - 1, BLOCK, 2 * BLOCK + 5] {
            for (at, byte) in [(0, 2), (length / 2, 255), (length.saturating_sub(1), 128)] {
                let mut bytes: Vec<u8> = (0..length).map(|at| u8::from(at % 3 == 0)).collect();
                let mut expected = bytes.clone();
                if length > 0 {
                    (bytes[at], expected[at]) = (byte, 1);
                }
                normalise(&mut bytes);
                assert_eq!(bytes, expected, "{length}, {at}");
            }
        }
    }
}
