//! Host memory of the global allocator, which tensors outside any runtime use.

use super::buffer::Memory;
use crate::{KernelError, pages};
use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, OnceLock},
};
use tenon_abi::{Code, MemoryKind};

struct GlobalMemory;

// SAFETY: `pages` upholds it.
unsafe impl Memory for GlobalMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        let exhausted = || {
            KernelError::new(Code::RESOURCE_EXHAUSTED, format!("no {bytes} bytes of host memory"))
        };
        pages::allocate(bytes).map(NonNull::cast).ok_or_else(exhausted)
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        // SAFETY: `data` came from `allocate`, and so from `pages`, with this size; the caller is its last user.
        unsafe { pages::deallocate(data.cast(), bytes) }
    }
}

/// Host memory of the global allocator, aligned to 64 bytes, without accounting.
pub fn host_memory() -> &'static Arc<dyn Memory> {
    static MEMORY: OnceLock<Arc<dyn Memory>> = OnceLock::new();
    MEMORY.get_or_init(|| Arc::new(GlobalMemory))
}
