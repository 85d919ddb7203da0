//! Bools that somebody else wrote.
//!
//! A kernel in C may write any byte for true, and does: `x & mask` is a usual way to say so. In Rust a `bool` that is
//! neither 0 nor 1 is undefined behaviour: a byte of 40 is told neither from true nor from false, and indexes a table
//! of two texts beyond its end. So a byte from outside is made 0 or 1 before it becomes a value; whatever is not 0 is
//! true, as in C. See core/docs/decisions/foreign-bools.md for who is looked at, and where.

use std::slice;
use tenon_abi::{Call, DType, MemoryKind, slot_flags};
use tenon_framework::Tensor;

/// Bytes that are looked at before any of them is changed: they stay in the first cache meanwhile.
const BLOCK: usize = 4096;

/// Makes every byte that is not 0 a 1.
pub fn normalise(bytes: &mut [u8]) {
    for block in bytes.chunks_mut(BLOCK) {
        // Without an early end, so that the loop is one of vectors.
        if block.iter().fold(0, |all, &byte| all | byte) > 1 {
            block.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }
}

/// As [`normalise`], where they lie.
///
/// # Safety
/// `count` initialised bytes that the caller may write, if there are any.
pub unsafe fn settle(first: *mut u8, count: usize) {
    if count > 0 && !first.is_null() {
        // SAFETY: `first` is not null, and the caller may write the `count` initialised bytes there.
        normalise(unsafe { slice::from_raw_parts_mut(first, count) });
    }
}

/// As [`normalise`], for a tensor of bools in memory that the host addresses; no other is looked at.
///
/// # Safety
/// The elements are initialised bytes, which nobody reads as bools or writes meanwhile.
pub unsafe fn settle_tensor(tensor: &Tensor) {
    if tensor.dtype() == DType::BOOL && tensor.is_on_host() {
        // SAFETY: the tensor has as many bytes as elements, which are initialised and which nobody else uses meanwhile,
        // as the caller guarantees.
        unsafe { settle(tensor.buffer().data().cast(), tensor.elements()) }
    }
}

/// Normalises the bool outputs of a call that has returned or completed. What lies in a device's memory, and what is
/// only enqueued, is looked at where it is copied to the host.
///
/// # Safety
/// A filled call whose outputs belong to the caller.
pub unsafe fn settle_outputs(call: &Call) {
    for at in 0..call.output_count as usize {
        // SAFETY: as many slots; a set one shows as many bytes, which the kernel has written. An output that is an
        // input's buffer holds bools already, so that nothing is written there.
        unsafe {
            let slot = &*call.outputs.add(at);
            let is_here = slot.memory == MemoryKind::HOST
                || (call.stream.is_null() && slot.memory.is_host_address());
            if slot.dtype == DType::BOOL && slot.flags & slot_flags::REF == 0 && is_here {
                settle(slot.data.cast(), slot.elements as usize);
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
