//! Device memory: a stream-ordered pool of the driver.
//!
//! Memory allocated on a stream may be used by whatever is enqueued there afterwards, and memory
//! freed on a stream becomes free after everything enqueued there; neither waits. Without a stream
//! both use the device's own stream, and the allocation waits, so that any stream may use the
//! memory at once.
//!
//! The pool keeps freed memory, and so does the driver for recorded graphs, whose memory belongs to
//! no pool. When an allocation fails both release what is not in use, and the allocation is retried
//! once.

use super::{ALIGNMENT, context::Context, stream::Stream};
use cudarc::driver::sys::{
    self, CUdeviceptr, CUmemPool_attribute, CUmemoryPool, CUresult, CUstream,
};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_sdk::{Code, KernelError};

pub(super) struct Pool {
    context: Arc<Context>,
    raw: CUmemoryPool,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Pool {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pool {}

impl Pool {
    pub fn new(context: &Arc<Context>) -> Result<Pool, KernelError> {
        // SAFETY: a plain struct of numbers and pointers, for which zero is valid and means none.
        let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = context.device();
        let mut raw: CUmemoryPool = std::ptr::null_mut();
        // SAFETY: the properties are filled; the result pointer is valid for writes.
        let create = || unsafe { sys::cuMemPoolCreate(&mut raw, &properties) };
        context.call("cuMemPoolCreate", create)?;
        context.leave().set_pool(raw);
        let pool = Pool { context: Arc::clone(context), raw };
        // By default the driver releases free memory whenever a stream is synchronised.
        pool.set(CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)?;
        Ok(pool)
    }

    fn set(&self, attribute: CUmemPool_attribute, mut value: u64) -> Result<(), KernelError> {
        let value: *mut u64 = &mut value;
        // SAFETY: a pool of this object, and a value of the attribute's type.
        let set = || unsafe { sys::cuMemPoolSetAttribute(self.raw, attribute, value.cast()) };
        self.context.call("cuMemPoolSetAttribute", set)
    }

    fn used(&self) -> u64 {
        let mut used = 0u64;
        let place: *mut u64 = &mut used;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
        // SAFETY: as in `set`.
        let get = || unsafe { sys::cuMemPoolGetAttribute(self.raw, attribute, place.cast()) };
        // For a message: 0 where the driver does not know.
        let _ = self.context.call("cuMemPoolGetAttribute", get);
        used
    }

    /// Allocates `bytes` bytes, at least one.
    pub fn allocate(
        &self,
        bytes: u64,
        align: u64,
        stream: Option<&Stream>,
    ) -> Result<NonNull<c_void>, KernelError> {
        if align > ALIGNMENT {
            return Err(KernelError::invalid_argument(format!(
                "CUDA aligns memory to {ALIGNMENT} bytes, asked for {align}"
            )));
        }
        let size = usize::try_from(bytes.max(1))
            .map_err(|_| KernelError::invalid_argument("more bytes than there are addresses"))?;
        let raw = stream.map_or(self.context.own_stream(), Stream::raw);
        let address = match self.take(size, raw) {
            Err(error) if error.code == Code::RESOURCE_EXHAUSTED => {
                self.take_after_trim(size, raw)?
            }
            result => result?,
        };
        if stream.is_none() {
            self.context.synchronize_own().inspect_err(|_| self.give(address, raw))?;
        }
        let data = std::ptr::without_provenance_mut::<c_void>(address as usize);
        NonNull::new(data).ok_or_else(|| KernelError::internal("the driver gave address 0"))
    }

    fn take(&self, size: usize, stream: CUstream) -> Result<CUdeviceptr, KernelError> {
        let mut address: CUdeviceptr = 0;
        // SAFETY: a pool and a stream of this context; the result pointer is valid for writes.
        let take = || unsafe { sys::cuMemAllocFromPoolAsync(&mut address, size, self.raw, stream) };
        self.context.call("cuMemAllocFromPoolAsync", take)?;
        Ok(address)
    }

    fn take_after_trim(&self, size: usize, stream: CUstream) -> Result<CUdeviceptr, KernelError> {
        // Memory freed on a stream becomes free only when the stream gets there.
        // SAFETY: a stream of this context.
        let wait = || match unsafe { sys::cuStreamSynchronize(stream) } {
            // The stream is being captured: nothing on it runs now.
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => CUresult::CUDA_SUCCESS,
            result => result,
        };
        self.context.call("cuStreamSynchronize", wait)?;
        // SAFETY: a pool of this object.
        self.context.call("cuMemPoolTrimTo", || unsafe { sys::cuMemPoolTrimTo(self.raw, 0) })?;
        // SAFETY: the device of this context.
        let trim = || unsafe { sys::cuDeviceGraphMemTrim(self.context.device()) };
        self.context.call("cuDeviceGraphMemTrim", trim)?;
        self.take(size, stream).map_err(|error| {
            if error.code != Code::RESOURCE_EXHAUSTED {
                return error;
            }
            let (free, total) = self.context.free_memory().unwrap_or((0, 0));
            let message = format!(
                "asked for {size} bytes; {} bytes are in use by this device's pool, {free} of {total} bytes of the \
                 GPU are free (other processes count too): {}",
                self.used(),
                error.message
            );
            KernelError::new(Code::RESOURCE_EXHAUSTED, message)
        })
    }

    fn give(&self, address: CUdeviceptr, stream: CUstream) {
        // SAFETY: an address of this pool, freed once, after its last use on that stream.
        self.context.release(|| unsafe { sys::cuMemFreeAsync(address, stream) });
    }

    /// Frees memory of `allocate`, after everything enqueued on the stream.
    pub fn deallocate(&self, data: NonNull<c_void>, stream: Option<&Stream>) {
        let raw = stream.map_or(self.context.own_stream(), Stream::raw);
        self.give(data.as_ptr().addr() as CUdeviceptr, raw);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Frees on the device's own stream must precede the end of the pool.
        // SAFETY: a stream of this context.
        self.context.release(|| unsafe { sys::cuStreamSynchronize(self.context.own_stream()) });
        // SAFETY: this object owns the pool, and nothing of it is in use: the host frees every
        // buffer first.
        self.context.release(|| unsafe { sys::cuMemPoolDestroy(self.raw) });
    }
}

/// Allocates blocks of constants, for kernels that store data in a form of their own.
#[derive(Clone)]
pub struct Constants(Arc<Pool>);

impl Constants {
    pub(super) fn new(pool: &Arc<Pool>) -> Constants {
        Constants(Arc::clone(pool))
    }

    /// A block with these bytes. The caller waits until they are copied.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when out of memory; `UNAVAILABLE` when the device is lost; the driver's
    /// error.
    pub fn hold(&self, bytes: &[u8]) -> Result<Constant, KernelError> {
        let data = self.0.allocate(bytes.len() as u64, ALIGNMENT, None)?;
        let block = Constant { pool: Arc::clone(&self.0), data };
        let (context, to) = (&self.0.context, block.address());
        let stream = context.own_stream();
        // SAFETY: the block has the bytes' length, and the bytes stay valid until the copy is done.
        let copy =
            || unsafe { sys::cuMemcpyHtoDAsync_v2(to, bytes.as_ptr().cast(), bytes.len(), stream) };
        if !bytes.is_empty() {
            context.call("cuMemcpyHtoDAsync", copy)?;
            context.synchronize_own()?;
        }
        Ok(block)
    }
}

/// A block of device memory, freed when dropped; its owner drops it only when no command uses it.
pub struct Constant {
    pool: Arc<Pool>,
    data: NonNull<c_void>,
}

// SAFETY: an address on the device, and a pool that any thread may use.
unsafe impl Send for Constant {}
// SAFETY: as for `Send`.
unsafe impl Sync for Constant {}

impl Constant {
    /// The address of the block.
    pub fn address(&self) -> u64 {
        self.data.as_ptr().addr() as u64
    }
}

impl Drop for Constant {
    fn drop(&mut self) {
        self.pool.deallocate(self.data, None);
    }
}
