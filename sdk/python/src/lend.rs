//! Memory of Python objects, as memory of tensors.

use pyo3::prelude::*;
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_framework::{
    DType, KernelError, Shape, Tensor,
    abi::{HOST_ALIGNMENT, MemoryKind},
    tensor::{Buffer, Memory},
};

use crate::fail::Fail;

/// Memory that a Python object owns, for one buffer. The object is released when the buffer is dropped; on a thread without
/// Python's lock, the release is deferred until a thread next takes it.
struct Lent {
    data: NonNull<c_void>,
    _owner: Py<PyAny>,
}

// SAFETY: the memory is plain bytes, which the owner keeps in place; the reference to the owner may be dropped on any thread.
unsafe impl Send for Lent {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Lent {}

// SAFETY: `lend` makes one buffer of it, which is not longer than the memory; the owner is dropped after the buffer.
unsafe impl Memory for Lent {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, _: usize) -> Result<NonNull<c_void>, KernelError> {
        Ok(self.data)
    }

    unsafe fn deallocate(&self, _: NonNull<c_void>, _: usize) {}
}

/// Whether kernels may read memory at this address: they expect host memory to be aligned.
pub(crate) fn is_aligned(data: *const c_void) -> bool {
    !data.is_null() && (data as usize).is_multiple_of(HOST_ALIGNMENT)
}

/// A tensor in the memory of an object.
///
/// # Errors
/// A type without kernels, or a bool that is neither 0 nor 1.
///
/// # Safety
/// `data` is aligned as [`is_aligned`] says, and holds `shape.elements()` elements of `dtype`, a type of plain bytes. It stays
/// valid while `owner` lives.
pub(crate) unsafe fn lend(
    data: NonNull<c_void>,
    dtype: DType,
    shape: Shape,
    owner: Py<PyAny>,
) -> Result<Tensor, Fail> {
    let bytes = shape.elements().saturating_mul(dtype.size().unwrap_or(0));
    let memory: Arc<dyn Memory> = Arc::new(Lent { data, _owner: owner });
    let buffer = Buffer::allocate(&memory, dtype, shape.elements(), bytes)?;
    // SAFETY: the caller gives as many elements; every bit pattern is one, and bools are checked below.
    let tensor = unsafe { Tensor::from_parts(buffer, dtype, shape) }?;
    tensor.validate()?;
    Ok(tensor)
}
