//! Arenas: host memory that a worker sees too.
//!
//! The host has one arena, which every worker can read; each worker has one that it can write beside the host. So the
//! inputs of an isolated kernel are read where they are, its outputs are written where they stay, and it can spoil
//! nothing but what it computed itself. Which parts are in use is known to the host alone, in memory of its own.

use super::{
    extents::Extents,
    shared::{Mapping, SharedFile},
};
use crate::memory::{Account, Block, FreeLists, HOST_CACHE_BYTES, MemoryStats, block_size};
use rustix::fs::{FallocateFlags, fallocate};
use std::{
    ffi::c_void,
    io,
    os::fd::OwnedFd,
    ptr::NonNull,
    sync::{Arc, OnceLock},
};
use tenon_abi::MemoryKind;
use tenon_framework::{
    KernelError,
    sync::{Mutex, Rank},
    tensor::Memory,
};

/// Under the lists of free blocks, which the memory pools have.
const EXTENTS: Rank = Rank(81);
const PAGE: u64 = 4096;
/// Blocks from this size on begin at a page, and their pages go back to the system when they are freed.
const PAGED: usize = 64 << 10;

/// Memory in which blocks are handed out.
pub(crate) struct Arena {
    name: String,
    file: SharedFile,
    mapping: Mapping,
    extents: Mutex<Extents>,
}

impl Arena {
    /// An arena with as many bytes as the machine has memory: no page exists before it is used.
    pub fn new(name: &str) -> io::Result<Arena> {
        let (page, pages) = (rustix::param::page_size(), total_pages()?);
        let bytes = pages.saturating_mul(page as u64).next_multiple_of(PAGE) as usize;
        let file = SharedFile::new(name, bytes)?;
        let mapping = file.map()?;
        let extents = Mutex::ranked(EXTENTS, Extents::new(bytes as u64));
        Ok(Arena { name: name.to_owned(), file, mapping, extents })
    }

    /// The arena of the process, once there is one.
    pub fn of_host() -> Option<&'static Arc<Arena>> {
        HOST.get()
    }

    /// The arena of the process, from now on: large tensors are put there.
    pub fn start_host() -> io::Result<&'static Arc<Arena>> {
        if let Some(arena) = HOST.get() {
            return Ok(arena);
        }
        let arena = Arc::new(Arena::new("tenon-host")?);
        Ok(HOST.get_or_init(|| arena))
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// A descriptor for a process that may write it.
    pub fn writable(&self) -> io::Result<OwnedFd> {
        use std::os::fd::AsFd;
        self.file.as_fd().try_clone_to_owned()
    }

    /// A descriptor for a process that may only read it.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        self.file.read_only()
    }

    /// Where in it an address lies; `None` for one that does not.
    pub fn offset_of(&self, address: *const c_void) -> Option<u64> {
        self.mapping.offset_of(address)
    }

    /// The address of bytes that lie in it.
    pub fn at(&self, offset: u64, bytes: u64) -> Option<NonNull<c_void>> {
        self.mapping.at(offset, bytes)
    }

    /// Takes a block.
    pub fn take(&self, bytes: usize) -> Option<NonNull<c_void>> {
        let align = if bytes >= PAGED { PAGE } else { super::extents::GRAIN };
        let offset = self.extents.lock().take(bytes as u64, align)?;
        self.at(offset, bytes as u64)
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It came from [`Arena::take`] with this size, and nobody uses it any more.
    pub unsafe fn give(&self, data: NonNull<c_void>, bytes: usize) {
        let Some(offset) = self.offset_of(data.as_ptr()) else { return };
        if bytes >= PAGED {
            // Whole pages of the block; the system gives zeros when they are used again. Where it refuses, they stay.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&self.file, flags, offset, bytes as u64 / PAGE * PAGE);
        }
        self.extents.lock().give(offset, bytes as u64);
    }
}

static HOST: OnceLock<Arc<Arena>> = OnceLock::new();

/// Pages of memory that this machine has.
fn total_pages() -> io::Result<u64> {
    // SAFETY: it reads a figure of the system.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).map_err(|_| io::Error::other("the machine's memory is not known"))
}

/// The memory that a worker's outputs lie in: pooled and accounted, host memory for everyone else.
pub(crate) struct ArenaMemory {
    lists: FreeLists,
    account: Account,
    arena: Arena,
}

impl ArenaMemory {
    /// A pool over an arena of its own, which gives at most `limit` bytes; 0 is no limit.
    pub fn new(name: &str, limit: u64) -> io::Result<ArenaMemory> {
        let lists = FreeLists::new(HOST_CACHE_BYTES);
        Ok(ArenaMemory { lists, account: Account::new(limit), arena: Arena::new(name)? })
    }

    /// The arena.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The figures.
    pub fn stats(&self) -> MemoryStats {
        self.account.stats(self.lists.cached_bytes())
    }

    fn block(&self, size: usize) -> Option<NonNull<c_void>> {
        let cached = self.lists.take(size).map(|block| block.data);
        cached.or_else(|| self.arena.take(size)).or_else(|| {
            self.trim();
            self.arena.take(size)
        })
    }

    fn trim(&self) {
        // SAFETY: cached blocks came from the arena with their size, and belong to nobody else.
        self.lists.drain(|block| unsafe { self.arena.give(block.data, block.size) });
    }
}

// SAFETY: blocks are at least as large as asked for, aligned to 64 bytes, never null, and handed out to one owner at
// a time.
unsafe impl Memory for ArenaMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        let name = &self.arena.name;
        self.account.take(name, bytes as u64)?;
        match self.block(block_size(bytes)) {
            Some(data) => {
                self.account.taken();
                Ok(data)
            }
            None => {
                self.account.untake(bytes as u64);
                Err(self.account.exhausted(name, bytes as u64, "the machine has no more"))
            }
        }
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        self.account.give(bytes as u64);
        let block = Block { data, size: block_size(bytes) };
        // SAFETY: the caller's promise: the block came from `allocate`.
        self.lists.give(block, |block| unsafe { self.arena.give(block.data, block.size) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_lie_in_the_arena_and_go_back_to_it() {
        let memory = ArenaMemory::new("tenon-test", 0).unwrap();
        let sizes = [0usize, 1, 100, 70_000, 3 << 20];
        let blocks: Vec<_> =
            sizes.iter().map(|&bytes| (memory.allocate(bytes).unwrap(), bytes)).collect();
        for &(data, bytes) in &blocks {
            let offset = memory.arena().offset_of(data.as_ptr()).unwrap();
            assert_eq!(offset % 64, 0);
            assert_eq!(memory.arena().at(offset, bytes as u64), Some(data));
            // SAFETY: allocated with this size, seen by nobody else.
            unsafe { data.cast::<u8>().as_ptr().write_bytes(3, bytes) };
        }
        for (data, bytes) in blocks {
            // SAFETY: allocated with the same size.
            unsafe { memory.deallocate(data, bytes) };
        }
        memory.trim();
        let stats = memory.stats();
        assert_eq!((stats.live_bytes, stats.cached_bytes, stats.total_count), (0, 0, 5));
        let all = memory.arena.extents.lock().take(memory.arena.bytes() as u64, 64);
        assert_eq!(all, Some(0), "nothing is left in use");
    }

    #[test]
    fn beyond_the_limit_is_an_error_and_an_address_from_elsewhere_has_no_place() {
        let memory = ArenaMemory::new("tenon-test", 1000).unwrap();
        let error = memory.allocate(2000).unwrap_err();
        assert!(error.message.contains("asked for 2000 bytes"), "{}", error.message);
        assert_eq!(memory.arena().offset_of((&raw const memory).cast()), None);
        assert!(memory.arena().at(memory.arena().bytes() as u64, 1).is_none());
    }
}
