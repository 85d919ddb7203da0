//! The device's memory: a table from handles to blocks.
//!
//! A handle is an address in an address space of the device's own, not of the process. An offset
//! within a block may be added to it, as the host does when it divides a block:
//!
//! ```text
//! bits 63..48   0xACCE, so that no handle is an address that a processor would follow
//! bits 47..44   number of the device
//! bits 43..0    address
//! ```
//!
//! # Invariants
//! - A handle outside every live block, and a range that leaves its block, are refused.
//! - Addresses are reused only after all others have been used, so that a stale handle is noticed.
//! - New memory is filled with the byte `0xff`, which is NaN for floats, so that reads of
//!   uninitialised memory show.
//! - Values are copied out before a command computes and copied in afterwards: a command may read
//!   and write the same block, whatever the host asks for.

use crate::faults::Health;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tenon_sdk::{Code, KernelError, element::Number};

/// Least alignment of every block, in bytes.
pub const ALIGNMENT: u64 = 256;

const TAG: u64 = 0xACCE << 48;
const ADDRESS_BITS: u32 = 44;
const ADDRESS_END: u64 = 1 << ADDRESS_BITS;

/// An address in a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// Memory of one device; any thread may use it.
pub struct Memory {
    base: u64,
    limit: u64,
    fail_after_bytes: u64,
    health: Arc<Health>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// Live blocks by address.
    blocks: BTreeMap<u64, Block>,
    /// Bytes in live blocks.
    used: u64,
    /// Bytes in all blocks ever allocated.
    ever: u64,
    /// Address at which the search for a free one begins.
    next: u64,
}

struct Block {
    bytes: Vec<u8>,
    /// Number of addresses taken: at least 1, so that empty blocks differ.
    span: u64,
}

impl Memory {
    /// Memory of device `ordinal` with `limit` bytes; `fail_after_bytes` as in
    /// [`crate::faults::Faults::fail_alloc_after_bytes`].
    pub fn new(ordinal: u32, limit: u64, fail_after_bytes: u64, health: Arc<Health>) -> Memory {
        let base = TAG | u64::from(ordinal) << ADDRESS_BITS;
        let table = Table { next: ALIGNMENT, ..Table::default() };
        Memory { base, limit, fail_after_bytes, health, table: Mutex::new(table) }
    }

    /// Total bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in live blocks.
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates a block of `bytes` bytes at a multiple of `align`, which must be a power of two.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when out of memory, `UNAVAILABLE` when the device is lost.
    pub fn allocate(&self, bytes: u64, align: u64) -> Result<Handle, KernelError> {
        self.health.check()?;
        let mut table = self.lock();
        if bytes > self.limit - table.used {
            return Err(exhausted(format!(
                "cannot allocate {bytes} bytes: {} of {} are in use; free some or raise the knob memory_limit",
                table.used, self.limit
            )));
        }
        let ever = table.ever.saturating_add(bytes);
        if self.fail_after_bytes != 0 && ever > self.fail_after_bytes {
            return Err(exhausted(format!(
                "cannot allocate {bytes} bytes: the knob fail_alloc_after_bytes is {}",
                self.fail_after_bytes
            )));
        }
        let span = bytes.max(1);
        let address = table.find(span, align.max(ALIGNMENT)).ok_or_else(|| {
            exhausted(format!("cannot allocate {bytes} bytes: no addresses are left"))
        })?;
        let storage = undefined(bytes)?;
        table.blocks.insert(address, Block { bytes: storage, span });
        (table.used, table.ever, table.next) = (table.used + bytes, ever, address + span);
        Ok(Handle(self.base | address))
    }

    /// Frees a block.
    ///
    /// # Errors
    /// `INTERNAL` when no live block begins there.
    pub fn deallocate(&self, handle: Handle) -> Result<(), KernelError> {
        let mut table = self.lock();
        let address = self.address(handle)?;
        let block = table.blocks.remove(&address).ok_or_else(|| stray(handle))?;
        table.used -= block.bytes.len() as u64;
        Ok(())
    }

    /// Copies bytes out of device memory.
    ///
    /// # Errors
    /// `INTERNAL` for a range outside every live block, `UNAVAILABLE` when the device is lost.
    pub fn read(&self, handle: Handle, to: &mut [u8]) -> Result<(), KernelError> {
        self.with(handle, to.len(), |bytes| to.copy_from_slice(bytes))
    }

    /// Copies bytes into device memory.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn write(&self, handle: Handle, from: &[u8]) -> Result<(), KernelError> {
        self.with(handle, from.len(), |bytes| bytes.copy_from_slice(from))
    }

    /// Copies bytes to an address of the host, whose memory may be uninitialised.
    ///
    /// # Errors
    /// As [`Memory::read`].
    ///
    /// # Safety
    /// - `to` is valid for writes of `len` bytes.
    /// - Nothing else uses these bytes during the call.
    pub unsafe fn read_to(
        &self,
        handle: Handle,
        to: *mut u8,
        len: usize,
    ) -> Result<(), KernelError> {
        // SAFETY: both have `len` bytes: the caller guarantees that of `to`, and `with` checks the
        // block.
        self.with(handle, len, |bytes| unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), len) })
    }

    /// Copies bytes from an address of the host.
    ///
    /// # Errors
    /// As [`Memory::read`].
    ///
    /// # Safety
    /// - `from` is valid for reads of `len` bytes.
    /// - Nothing writes these bytes during the call.
    pub unsafe fn write_from(
        &self,
        handle: Handle,
        from: *const u8,
        len: usize,
    ) -> Result<(), KernelError> {
        // SAFETY: as in `read_to`.
        self.with(handle, len, |bytes| unsafe {
            bytes.as_mut_ptr().copy_from_nonoverlapping(from, len);
        })
    }

    /// Copies elements out of device memory.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn read_elements<T: Number>(
        &self,
        handle: Handle,
        count: usize,
    ) -> Result<Vec<T>, KernelError> {
        let mut elements = vec![T::default(); count];
        // SAFETY: numbers have no padding and every bit pattern is valid; nothing else uses them
        // meanwhile.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(&*elements))
        };
        self.read(handle, bytes)?;
        Ok(elements)
    }

    /// Copies elements into device memory.
    ///
    /// # Errors
    /// As [`Memory::read`].
    pub fn write_elements<T: Number>(
        &self,
        handle: Handle,
        elements: &[T],
    ) -> Result<(), KernelError> {
        // SAFETY: numbers have no padding, so that all their bytes are readable.
        let bytes =
            unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) };
        self.write(handle, bytes)
    }

    fn with(
        &self,
        handle: Handle,
        len: usize,
        body: impl FnOnce(&mut [u8]),
    ) -> Result<(), KernelError> {
        self.health.check()?;
        let mut table = self.lock();
        let address = self.address(handle)?;
        let (start, block) =
            table.blocks.range_mut(..=address).next_back().ok_or_else(|| stray(handle))?;
        let offset = address - start;
        if offset >= block.span {
            return Err(stray(handle));
        }
        let size = block.bytes.len();
        let first = offset as usize;
        let range = first.checked_add(len).and_then(|end| block.bytes.get_mut(first..end));
        body(range.ok_or_else(|| {
            KernelError::internal(format!(
                "{len} bytes at handle {:#x}: they leave the block of {size} bytes, in which the handle is at {first}",
                handle.0
            ))
        })?);
        Ok(())
    }

    fn address(&self, handle: Handle) -> Result<u64, KernelError> {
        let address = handle.0 & (ADDRESS_END - 1);
        if handle.0 != self.base | address { Err(stray(handle)) } else { Ok(address) }
    }
}

impl Table {
    /// A free address: the first after the last block taken, else the lowest.
    fn find(&self, span: u64, align: u64) -> Option<u64> {
        let up = |address: u64| address.checked_next_multiple_of(align);
        let fits = |address: u64, end: u64| address.checked_add(span).is_some_and(|e| e <= end);
        let fresh = up(self.next)?;
        let last = self.blocks.last_key_value().map_or(0, |(start, block)| start + block.span);
        if fresh >= last && fits(fresh, ADDRESS_END) {
            return Some(fresh);
        }
        let mut free = up(ALIGNMENT)?;
        for (start, block) in &self.blocks {
            if fits(free, *start) {
                return Some(free);
            }
            free = up(start + block.span)?;
        }
        fits(free, ADDRESS_END).then_some(free)
    }
}

fn undefined(bytes: u64) -> Result<Vec<u8>, KernelError> {
    let refused = || exhausted(format!("the simulator has no {bytes} bytes of host memory"));
    let len = usize::try_from(bytes).map_err(|_| refused())?;
    let mut storage = Vec::new();
    storage.try_reserve_exact(len).map_err(|_| refused())?;
    storage.resize(len, 0xff);
    Ok(storage)
}

fn exhausted(message: String) -> KernelError {
    KernelError::new(Code::RESOURCE_EXHAUSTED, message)
}

fn stray(handle: Handle) -> KernelError {
    KernelError::internal(format!(
        "handle {:#x} lies in no live block of this device: it was freed, or never allocated here",
        handle.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::device::author::DeviceHandle;

    fn memory(limit: u64, fail_after: u64) -> Memory {
        Memory::new(1, limit, fail_after, Arc::new(Health::new(DeviceHandle::NONE)))
    }

    #[test]
    fn values_go_round_at_offsets_within_a_block() {
        let memory = memory(1 << 20, 0);
        let block = memory.allocate(16, 64).unwrap();
        memory.write_elements(block, &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(memory.read_elements::<f32>(Handle(block.0 + 8), 2).unwrap(), [3.0, 4.0]);
        assert_eq!(memory.used(), 16);
    }

    #[test]
    fn handles_are_aligned_and_no_addresses() {
        let memory = memory(1 << 20, 0);
        for align in [1, 64, 4096] {
            let handle = memory.allocate(10, align).unwrap();
            assert_eq!(handle.0 % align.max(ALIGNMENT), 0);
            // Bits 63..47 of a canonical address are all equal.
            assert!(![0, u64::MAX >> 47].contains(&(handle.0 >> 47)));
        }
    }

    #[test]
    fn fresh_memory_reads_as_nan() {
        let memory = memory(1 << 20, 0);
        let block = memory.allocate(8, 1).unwrap();
        assert!(memory.read_elements::<f32>(block, 2).unwrap().iter().all(|x| x.is_nan()));
    }

    #[test]
    fn empty_blocks_differ_and_hold_nothing() {
        let memory = memory(0, 0);
        let (a, b) = (memory.allocate(0, 1).unwrap(), memory.allocate(0, 1).unwrap());
        assert_ne!(a, b);
        assert_eq!(memory.read_elements::<f32>(a, 0).unwrap(), []);
        assert!(memory.read_elements::<u8>(a, 1).is_err());
        memory.deallocate(a).unwrap();
    }

    #[test]
    fn what_is_stale_foreign_or_too_long_is_refused() {
        let memory = memory(1 << 20, 0);
        let (a, b) = (memory.allocate(8, 1).unwrap(), memory.allocate(8, 1).unwrap());
        let read = |handle: u64, len| memory.read(Handle(handle), &mut vec![0; len]);
        memory.deallocate(a).unwrap();
        for (handle, len) in [(a.0, 1), (b.0 - 1, 1), (b.0 + 9, 1), (b.0 ^ 1 << 44, 1), (1, 1)] {
            let error = read(handle, len).unwrap_err();
            assert_eq!(error.code, Code::INTERNAL);
            assert!(error.message.contains("lies in no live block"), "{error}");
        }
        for (offset, len) in [(0, 9), (7, 2), (4, usize::MAX)] {
            let len = if len == usize::MAX { 1 << 20 } else { len };
            let error = read(b.0 + offset, len).unwrap_err();
            assert!(error.message.contains("they leave the block of 8 bytes"), "{error}");
        }
        assert!(memory.deallocate(a).is_err(), "freed twice");
        assert!(memory.deallocate(Handle(b.0 + 4)).is_err(), "no block begins there");
    }

    #[test]
    fn the_limit_holds_and_freed_memory_comes_back() {
        let memory = memory(100, 0);
        let a = memory.allocate(60, 1).unwrap();
        let error = memory.allocate(41, 1).unwrap_err();
        assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
        assert!(error.message.contains("60 of 100 are in use"), "{error}");
        memory.deallocate(a).unwrap();
        memory.allocate(100, 1).unwrap();
        assert_eq!(memory.allocate(u64::MAX, 1).unwrap_err().code, Code::RESOURCE_EXHAUSTED);
    }

    #[test]
    fn allocations_fail_when_ordered_to() {
        let memory = memory(1 << 20, 100);
        let a = memory.allocate(60, 1).unwrap();
        memory.deallocate(a).unwrap();
        memory.allocate(40, 1).unwrap();
        let error = memory.allocate(1, 1).unwrap_err();
        assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
        assert!(error.message.contains("fail_alloc_after_bytes is 100"), "{error}");
    }

    #[test]
    fn addresses_are_used_again_when_all_were_used() {
        let memory = memory(1 << 20, 0);
        let a = memory.allocate(300, 1).unwrap();
        let b = memory.allocate(300, 1).unwrap();
        memory.deallocate(a).unwrap();
        memory.lock().next = ADDRESS_END - 1;
        assert_eq!(memory.allocate(300, 1).unwrap(), a);
        let c = memory.allocate(300, 1).unwrap();
        assert!(c.0 > b.0);
    }
}
