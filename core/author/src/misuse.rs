//! Errors for kernels that use their calls wrongly. The functions are out of line, because every kernel's body calls
//! them and has to stay small enough to be inlined into the entry that the host calls.

use tenon_abi::{DType, Slot};
use tenon_framework::KernelError;

#[cold]
#[inline(never)]
pub(super) fn no_such(what: &str, index: usize, count: u32) -> KernelError {
    KernelError::internal(format!("{what} {index} does not exist: the node has {count}"))
}

#[cold]
#[inline(never)]
pub(super) fn mismatch(what: &str, index: usize, expected: DType, slot: &Slot) -> KernelError {
    KernelError::internal(format!(
        "{what} {index}: the kernel takes {expected} in host memory, found {} in memory kind {}",
        slot.dtype, slot.memory.0
    ))
}

#[cold]
#[inline(never)]
pub(super) fn read_late(input: usize) -> KernelError {
    KernelError::internal(format!("input {input} is read after an output took its buffer over"))
}

#[cold]
#[inline(never)]
pub(super) fn taken_twice(output: usize) -> KernelError {
    KernelError::internal(format!("output {output} is handed out twice"))
}
