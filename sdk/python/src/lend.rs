//! Memory that others own, as memory of tensors.

use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_author::Kept;
use tenon_framework::{
    DType, KernelError, Shape, Tensor,
    abi::{HOST_ALIGNMENT, MemoryKind},
    tensor::{Buffer, Memory},
};

use crate::fail::Fail;

/// Memory that an owner keeps, for one buffer. The owner is dropped with the buffer. A Python object that is dropped on a thread
/// without Python's lock is released when a thread next takes the lock.
struct Lent<O> {
    data: NonNull<c_void>,
    _owner: O,
}

// SAFETY: the memory is plain bytes, which the owner keeps in place; the owner may be dropped on any thread.
unsafe impl<O: Send> Send for Lent<O> {}
// SAFETY: as above; nothing of it changes.
unsafe impl<O: Sync> Sync for Lent<O> {}

// SAFETY: `lend` makes one buffer of it, which is not longer than the memory; the owner is dropped after the buffer.
unsafe impl<O: Send + Sync> Memory for Lent<O> {
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

/// A tensor in memory that an owner keeps.
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
    owner: impl Send + Sync + 'static,
) -> Result<Tensor, Fail> {
    let bytes = shape.elements().saturating_mul(dtype.size().unwrap_or(0));
    let memory: Arc<dyn Memory> = Arc::new(Lent { data, _owner: owner });
    let buffer = Buffer::allocate(&memory, dtype, shape.elements(), bytes)?;
    // SAFETY: the caller gives as many elements; every bit pattern is one, and bools are checked below.
    let tensor = unsafe { Tensor::from_parts(buffer, dtype, shape) }?;
    tensor.validate()?;
    Ok(tensor)
}

/// A tensor in the memory of one that a kernel keeps, whose elements are plain bytes in host memory.
///
/// # Errors
/// Elements that own memory, or memory of a device.
pub(crate) fn of_kept(kept: Kept) -> Result<Tensor, Fail> {
    let shape = Shape::new(kept.dims())?;
    let data = kept.slot().data.cast::<c_void>();
    match NonNull::new(data) {
        Some(found) if shape.elements() > 0 && is_aligned(data) && kept.bytes().is_ok() => {
            let dtype = kept.dtype();
            // SAFETY: the memory is aligned and has as many elements of this type of plain bytes, which nobody writes while the
            // tensor is kept.
            unsafe { lend(found, dtype, shape, kept) }
        }
        _ => Ok(Tensor::from_bytes(kept.dtype(), kept.dims(), kept.bytes()?)?),
    }
}
