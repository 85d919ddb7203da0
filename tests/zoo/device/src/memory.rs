//! Memory of one device: blocks under handles that are no addresses, and host memory that it can copy from
//! and to directly.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    collections::BTreeMap,
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::{Code, KernelError, abi::MemoryKind};

/// Handles are multiples of this, which is the largest alignment that can be asked for.
pub(crate) const MAX_ALIGN: u64 = 4096;
/// Bytes of device memory there are.
pub(crate) const LIMIT: u64 = 64 << 20;

type Block = Arc<Mutex<Vec<u8>>>;

#[derive(Default)]
struct Blocks {
    live: BTreeMap<usize, Block>,
    /// The pool: freed blocks by their size.
    free: BTreeMap<usize, Vec<(usize, Block)>>,
    last: u64,
    used: u64,
}

/// The memory of one device.
#[derive(Default)]
pub(crate) struct Memory {
    blocks: Mutex<Blocks>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn exhausted(bytes: u64) -> KernelError {
    KernelError::new(
        Code::RESOURCE_EXHAUSTED,
        format!("no {bytes} bytes of device memory: the device has {LIMIT}"),
    )
}

/// Layout of host memory, which is never of size 0.
fn layout(bytes: u64) -> Result<Layout, KernelError> {
    let size = usize::try_from(bytes.max(1)).map_err(|_| exhausted(bytes))?;
    Layout::from_size_align(size, MAX_ALIGN as usize).map_err(|_| exhausted(bytes))
}

impl Memory {
    /// Memory of a kind: a handle for `DEVICE`, an address otherwise.
    pub(crate) fn allocate(
        &self,
        bytes: u64,
        align: u64,
        kind: MemoryKind,
    ) -> Result<NonNull<c_void>, KernelError> {
        if align > MAX_ALIGN {
            return Err(KernelError::invalid_argument(format!(
                "expected an alignment of at most {MAX_ALIGN}, found {align}"
            )));
        }
        let data = match kind {
            MemoryKind::DEVICE => self.take_block(bytes)? as *mut c_void,
            MemoryKind::PINNED | MemoryKind::SHARED => {
                // SAFETY: the layout's size is not 0.
                unsafe { alloc_zeroed(layout(bytes)?) }.cast()
            }
            other => {
                return Err(KernelError::invalid_argument(format!(
                    "device ZOO has no memory of kind {}",
                    other.0
                )));
            }
        };
        NonNull::new(data).ok_or_else(|| exhausted(bytes))
    }

    /// A block of the pool, or a new one.
    fn take_block(&self, bytes: u64) -> Result<usize, KernelError> {
        let mut blocks = lock(&self.blocks);
        let used = blocks.used.checked_add(bytes).filter(|used| *used <= LIMIT);
        blocks.used = used.ok_or_else(|| exhausted(bytes))?;
        let size = bytes as usize;
        let (handle, block) = match blocks.free.get_mut(&size).and_then(Vec::pop) {
            Some(pooled) => pooled,
            None => {
                blocks.last += MAX_ALIGN;
                (blocks.last as usize, Block::new(Mutex::new(vec![0; size])))
            }
        };
        blocks.live.insert(handle, block);
        Ok(handle)
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `allocate` gave it, with these figures, and nothing uses it any more.
    pub(crate) unsafe fn deallocate(&self, data: usize, bytes: u64, kind: MemoryKind) {
        if kind != MemoryKind::DEVICE {
            if let Ok(layout) = layout(bytes) {
                // SAFETY: the caller's promise; `allocate` used the same layout.
                unsafe { dealloc(data as *mut u8, layout) };
            }
            return;
        }
        let mut blocks = lock(&self.blocks);
        if let Some(block) = blocks.live.remove(&data) {
            blocks.used = blocks.used.saturating_sub(bytes);
            blocks.free.entry(bytes as usize).or_default().push((data, block));
        }
    }

    fn block(&self, handle: usize) -> Result<Block, KernelError> {
        lock(&self.blocks).live.get(&handle).cloned().ok_or_else(|| {
            KernelError::internal(format!("device ZOO has no block under handle {handle:#x}"))
        })
    }

    /// The first `bytes` bytes behind a handle.
    pub(crate) fn read(&self, handle: usize, bytes: usize) -> Result<Vec<u8>, KernelError> {
        let block = self.block(handle)?;
        let block = lock(&block);
        block.get(..bytes).map(<[u8]>::to_vec).ok_or_else(|| too_short(block.len(), bytes))
    }

    /// Writes the first bytes behind a handle.
    pub(crate) fn write(&self, handle: usize, bytes: &[u8]) -> Result<(), KernelError> {
        let block = self.block(handle)?;
        let mut block = lock(&block);
        let size = block.len();
        let target = block.get_mut(..bytes.len()).ok_or_else(|| too_short(size, bytes.len()))?;
        target.copy_from_slice(bytes);
        Ok(())
    }
}

fn too_short(found: usize, expected: usize) -> KernelError {
    KernelError::internal(format!("a block of {found} bytes, expected at least {expected}"))
}

/// One end of a copy or a command: an address, or a handle of a device's memory.
#[derive(Clone)]
pub(crate) enum Spot {
    /// Memory that the host addresses.
    Address(usize),
    /// A block of this memory.
    Handle(Arc<Memory>, usize),
}

impl Spot {
    /// Its first `bytes` bytes.
    ///
    /// # Safety
    /// An address is valid for `bytes` bytes that nobody writes.
    pub(crate) unsafe fn read(&self, bytes: usize) -> Result<Vec<u8>, KernelError> {
        match self {
            Spot::Address(data) => {
                // SAFETY: the caller's promise.
                let there = unsafe { std::slice::from_raw_parts(*data as *const u8, bytes) };
                Ok(there.to_vec())
            }
            Spot::Handle(memory, handle) => memory.read(*handle, bytes),
        }
    }

    /// Writes its first bytes.
    ///
    /// # Safety
    /// An address is valid for as many bytes, which nobody else uses.
    pub(crate) unsafe fn write(&self, bytes: &[u8]) -> Result<(), KernelError> {
        match self {
            Spot::Address(data) => {
                // SAFETY: the caller's promise.
                unsafe { (*data as *mut u8).copy_from(bytes.as_ptr(), bytes.len()) };
                Ok(())
            }
            Spot::Handle(memory, handle) => memory.write(*handle, bytes),
        }
    }
}
