//! Host memory as it comes from the global allocator: what tensors outside any runtime live in.

use super::buffer::Memory;
use crate::KernelError;
use std::{
    alloc::{Layout, alloc, dealloc},
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, OnceLock},
};
use tenon_abi::{Code, HOST_ALIGNMENT, MemoryKind};

struct GlobalMemory;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), HOST_ALIGNMENT).ok()
}

// SAFETY: the global allocator upholds it; sizes of zero are rounded up to one byte.
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
        let layout = layout(bytes).ok_or_else(exhausted)?;
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc(layout) }.cast()).ok_or_else(exhausted)
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: allocated with the same layout.
            unsafe { dealloc(data.as_ptr().cast(), layout) }
        }
    }
}

/// Host memory of the global allocator, aligned to 64 bytes, without accounting.
pub fn host_memory() -> &'static Arc<dyn Memory> {
    static MEMORY: OnceLock<Arc<dyn Memory>> = OnceLock::new();
    MEMORY.get_or_init(|| Arc::new(GlobalMemory))
}
