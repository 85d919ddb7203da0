//! Pinned host memory: the GPU copies from and to it without the processor.
//!
//! Pinning costs far more than copying, so freed blocks are kept by size class (powers of two from
//! 4 KiB on) up to a limit. Blocks beyond the limit are returned to the driver: at once, or, if a
//! host function freed them, which must not call the driver, with the next allocation. Blocks serve
//! the host's memory kind `PINNED` and the staging buffers of copies of ordinary memory.

use super::context::Context;
use cudarc::driver::sys;
use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::KernelError;

/// Alignment of pinned memory.
pub(super) const ALIGNMENT: u64 = 256;

/// Bytes of the smallest blocks.
const LEAST: u64 = 4096;
const LEAST_CLASS: u32 = LEAST.trailing_zeros();
const CLASSES: usize = (u64::BITS - LEAST_CLASS) as usize;

/// An address of pinned memory that moves between threads.
#[derive(Clone, Copy)]
pub(super) struct Address(pub NonNull<c_void>);

// SAFETY: only an address; the owner of the value owns the block.
unsafe impl Send for Address {}

impl Address {
    pub fn get(self) -> NonNull<c_void> {
        self.0
    }
}

pub(super) struct PinnedPool {
    context: Arc<Context>,
    limit: u64,
    held: Mutex<Held>,
}

struct Held {
    bytes: u64,
    /// Blocks beyond the limit, to be returned to the driver.
    excess: Vec<Address>,
    classes: [Vec<Address>; CLASSES],
}

/// Size class of a number of bytes, and the bytes of its blocks; `None` if these overflow.
fn class_of(bytes: u64) -> Option<(usize, u64)> {
    let size = bytes.max(LEAST).checked_next_power_of_two()?;
    Some(((size.trailing_zeros() - LEAST_CLASS) as usize, size))
}

impl PinnedPool {
    pub fn new(context: &Arc<Context>, limit: u64) -> PinnedPool {
        let held = Held { bytes: 0, excess: Vec::new(), classes: [const { Vec::new() }; CLASSES] };
        PinnedPool { context: Arc::clone(context), limit, held: Mutex::new(held) }
    }

    /// Bytes that copies may stage at once.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    pub fn allocate(&self, bytes: u64, align: u64) -> Result<NonNull<c_void>, KernelError> {
        if align > ALIGNMENT {
            return Err(KernelError::invalid_argument(format!(
                "CUDA aligns pinned memory to {ALIGNMENT} bytes, asked for {align}"
            )));
        }
        let (class, size) = class_of(bytes)
            .ok_or_else(|| KernelError::invalid_argument("more bytes than there are addresses"))?;
        let excess = {
            let mut held = self.held();
            if let Some(block) = held.classes[class].pop() {
                held.bytes -= size;
                return Ok(block.get());
            }
            std::mem::take(&mut held.excess)
        };
        excess.into_iter().for_each(|block| self.free(block.get()));
        let mut data: *mut c_void = std::ptr::null_mut();
        let size = usize::try_from(size)
            .map_err(|_| KernelError::invalid_argument("more bytes than there are addresses"))?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: the result pointer is valid for writes.
        let allocate = || unsafe { sys::cuMemHostAlloc(&mut data, size, flags) };
        self.context.call("cuMemHostAlloc", allocate)?;
        NonNull::new(data).ok_or_else(|| KernelError::internal("the driver gave address 0"))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees a block that `allocate` returned for `bytes` bytes, and that nothing uses any more.
    pub fn give_back(&self, data: NonNull<c_void>, bytes: u64) {
        self.keep(data, bytes);
        let excess = std::mem::take(&mut self.held().excess);
        excess.into_iter().for_each(|block| self.free(block.get()));
    }

    /// Like [`PinnedPool::give_back`], without calling the driver.
    pub fn keep(&self, data: NonNull<c_void>, bytes: u64) {
        let Some((class, size)) = class_of(bytes) else { return };
        let mut held = self.held();
        if held.bytes.saturating_add(size) <= self.limit {
            held.bytes += size;
            held.classes[class].push(Address(data));
        } else {
            held.excess.push(Address(data));
        }
    }

    fn free(&self, data: NonNull<c_void>) {
        // SAFETY: pinned memory of this pool that nothing uses any more.
        self.context.release(|| unsafe { sys::cuMemFreeHost(data.as_ptr()) });
    }
}

impl Drop for PinnedPool {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut blocks: Vec<Address> = held.classes.iter_mut().flat_map(std::mem::take).collect();
        blocks.append(&mut held.excess);
        blocks.into_iter().for_each(|block| self.free(block.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_holds_what_it_is_asked_for() {
        for bytes in [0, 1, 4096, 4097, 1 << 20, (1 << 20) + 1, 1 << 40] {
            let (class, size) = class_of(bytes).unwrap();
            assert!(size >= bytes && size < 2 * bytes.max(LEAST));
            assert_eq!(size, LEAST << class);
        }
        assert_eq!(class_of(u64::MAX), None);
        assert!(class_of(1 << 63).is_some());
    }
}
