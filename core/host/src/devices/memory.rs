//! Memory of devices.

use super::DeviceCore;
use crate::memory::{Account, Block, FreeLists, MemoryStats, block_size};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_abi::{MemoryInfo, MemoryKind};
use tenon_framework::{Code, KernelError, device::base::StreamId, tensor::Memory};

/// Bytes of large blocks of a device that are kept for reuse, where nothing else limits them.
const DEVICE_CACHE_BYTES: usize = 1 << 30;

/// One kind of memory of a device, with accounting. Blocks are pooled here unless the device has
/// its own pool. It keeps the device open, so that buffers are freed before the device is closed.
pub struct DeviceMemory {
    core: Arc<DeviceCore>,
    kind: MemoryKind,
    alignment: u64,
    account: Account,
    /// `None` where the device has a pool of its own.
    lists: Option<FreeLists>,
    name: String,
}

impl DeviceMemory {
    pub(crate) fn new(core: Arc<DeviceCore>, info: &MemoryInfo) -> DeviceMemory {
        let kind = match info.kind {
            MemoryKind::DEVICE => "device",
            MemoryKind::PINNED => "pinned",
            MemoryKind::SHARED => "shared",
            _ => "other",
        };
        // A cache larger than a quarter of the memory would be a hindrance.
        let cache = match info.limit {
            0 => DEVICE_CACHE_BYTES,
            limit => usize::try_from(limit / 4).unwrap_or(usize::MAX).min(DEVICE_CACHE_BYTES),
        };
        DeviceMemory {
            kind: info.kind,
            alignment: u64::from(info.alignment).max(tenon_abi::HOST_ALIGNMENT as u64),
            account: Account::new(info.limit),
            lists: (!core.info().own_pool).then(|| FreeLists::new(cache)),
            name: format!("{} memory of {}", kind, core.full_name()),
            core,
        }
    }

    /// The memory's statistics.
    pub fn stats(&self) -> MemoryStats {
        self.account.stats(self.lists.as_ref().map_or(0, FreeLists::cached_bytes))
    }

    /// Resets the peak to what is in use now.
    pub fn reset_peak(&self) {
        self.account.reset_peak();
    }

    /// Frees the blocks that are kept for reuse.
    pub fn trim(&self) {
        if let Some(lists) = &self.lists {
            lists.drain(|block| self.free(block));
        }
    }

    fn free(&self, block: Block) {
        // SAFETY: a block of this memory that nothing uses any more.
        unsafe { self.core.deallocate(block.data, block.size as u64, self.kind, None) }
    }

    fn raw(&self, bytes: usize, stream: Option<StreamId>) -> Result<NonNull<c_void>, KernelError> {
        self.core.allocate(bytes as u64, self.alignment, self.kind, stream)
    }

    fn block(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        let Some(lists) = &self.lists else { return self.raw(bytes, None) };
        let size = block_size(bytes);
        if let Some(block) = lists.take(size) {
            return Ok(block.data);
        }
        match self.raw(size, None) {
            Err(error) if error.code == Code::RESOURCE_EXHAUSTED => {
                // The cached blocks may be what is missing.
                self.trim();
                self.raw(size, None)
            }
            result => result,
        }
    }

    /// Reserves bytes in the account, then calls `take`; adds statistics to an out-of-memory error.
    fn counted(
        &self,
        bytes: usize,
        take: impl FnOnce() -> Result<NonNull<c_void>, KernelError>,
    ) -> Result<NonNull<c_void>, KernelError> {
        self.core.check()?;
        self.account.take(&self.name, bytes as u64)?;
        take().inspect(|_| self.account.taken()).map_err(|error| {
            self.account.untake(bytes as u64);
            if error.code != Code::RESOURCE_EXHAUSTED {
                return error;
            }
            self.account.exhausted(&self.name, bytes as u64, &error.message)
        })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.trim();
    }
}

// SAFETY: the device's `allocate` upholds the contract; nothing else uses blocks in the lists.
unsafe impl Memory for DeviceMemory {
    fn kind(&self) -> MemoryKind {
        self.kind
    }

    fn device(&self) -> u64 {
        self.core.number()
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        self.counted(bytes, || self.block(bytes))
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        self.account.give(bytes as u64);
        match &self.lists {
            Some(lists) if self.core.lost().is_none() => {
                lists.give(Block { data, size: block_size(bytes) }, |block| self.free(block));
            }
            Some(_) => self.free(Block { data, size: block_size(bytes) }),
            None => self.free(Block { data, size: bytes }),
        }
    }
}

/// A kind of memory in stream order: counted with the device's, but not pooled here, since enqueued
/// work may still use a block.
pub(crate) struct StreamMemory {
    memory: Arc<DeviceMemory>,
    stream: StreamId,
}

impl StreamMemory {
    pub fn new(memory: Arc<DeviceMemory>, stream: StreamId) -> StreamMemory {
        StreamMemory { memory, stream }
    }
}

// SAFETY: as for `DeviceMemory`.
unsafe impl Memory for StreamMemory {
    fn kind(&self) -> MemoryKind {
        self.memory.kind
    }

    fn device(&self) -> u64 {
        self.memory.device()
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        self.memory.counted(bytes, || self.memory.raw(bytes, Some(self.stream)))
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        self.memory.account.give(bytes as u64);
        let (core, kind) = (&self.memory.core, self.memory.kind);
        // SAFETY: `data` came from `allocate` with the same size; nothing uses it any more, except
        // what is enqueued on the stream, whose owner keeps it alive.
        unsafe { core.deallocate(data, bytes as u64, kind, Some(self.stream)) }
    }
}
