//! Arenas: host memory that is shared with a worker.
//!
//! The host has one arena, which every worker can read; each worker has one that it and the host
//! can write. So the inputs of an isolated kernel are read in place, its outputs are written in
//! place, and it can corrupt only what it computed itself. Only the host knows which parts are in
//! use, in private memory.

use super::{
    extents::Extents,
    shared::{Mapping, SharedFile},
};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
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
use tenon_host::memory::{
    Account, Block, BlockSource, FreeLists, HOST_CACHE_BYTES, HostMemory, block_size,
};

/// Below the memory pools' lists of free blocks.
const EXTENTS: Rank = Rank(81);
const PAGE: u64 = 4096;
/// Blocks of at least this size begin at a page, and their pages are returned to the system when
/// they are freed.
const PAGED: usize = 64 << 10;
const ADVICE: &str = "free tensors, or raise host.isolate_tensors_mb";

/// Memory in which blocks are allocated.
pub(crate) struct Arena {
    name: String,
    file: SharedFile,
    mapping: Mapping,
    extents: Mutex<Extents>,
}

impl Arena {
    /// Creates an arena with at most as many bytes as the machine has memory; 0 means no other
    /// limit. Pages exist only once they are used, and none exist beyond the end.
    pub fn new(name: &str, limit: u64) -> io::Result<Arena> {
        let (page, pages) = (rustix::param::page_size(), total_pages()?);
        let most = if limit == 0 { u64::MAX } else { limit };
        let bytes = pages.saturating_mul(page as u64).min(most).max(1).next_multiple_of(PAGE);
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let file = SharedFile::new(name, bytes)?;
        let mapping = file.map()?;
        let extents = Mutex::ranked(EXTENTS, Extents::new(bytes as u64));
        Ok(Arena { name: name.to_owned(), file, mapping, extents })
    }

    /// The arena of the process, if it has been created.
    pub fn of_host() -> Option<&'static Arc<Arena>> {
        HOST.get()
    }

    /// Creates the arena of the process, in which large tensors are allocated from then on.
    pub fn start_host() -> io::Result<&'static Arc<Arena>> {
        if let Some(arena) = HOST.get() {
            return Ok(arena);
        }
        let arena = Arc::new(Arena::new("tenon-host", 0)?);
        Ok(HOST.get_or_init(|| {
            HostMemory::set_block_source(Arc::clone(&arena) as Arc<dyn BlockSource>);
            arena
        }))
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// A descriptor for a process that may write the arena.
    pub fn writable(&self) -> io::Result<OwnedFd> {
        use std::os::fd::AsFd;
        self.file.as_fd().try_clone_to_owned()
    }

    /// A descriptor for a process that may only read the arena.
    pub fn readable(&self) -> io::Result<OwnedFd> {
        self.file.read_only()
    }

    /// Offset of an address in the arena; `None` for an address outside.
    pub fn offset_of(&self, address: *const c_void) -> Option<u64> {
        self.mapping.offset_of(address)
    }

    /// The address of a range of bytes; `None` unless it is in the arena.
    pub fn at(&self, offset: u64, bytes: u64) -> Option<NonNull<c_void>> {
        self.mapping.at(offset, bytes)
    }

    /// Allocates a block.
    pub fn take(&self, bytes: usize) -> Option<NonNull<c_void>> {
        let align = if bytes >= PAGED { PAGE } else { super::extents::GRAIN };
        let offset = self.extents.lock().take(bytes as u64, align)?;
        self.at(offset, bytes as u64)
    }

    /// Whether each page of a range has been written; a page that was only reserved does not exist.
    pub fn is_written(&self, offset: u64, bytes: u64) -> bool {
        // Where no page is missing from the offset on, the result is the end of the file.
        let hole = seek(&self.file, SeekFrom::Hole(offset));
        bytes == 0 || hole.is_ok_and(|hole| hole >= offset.saturating_add(bytes))
    }

    /// Returns the pages of all free blocks to the system: a worker that wrote there, in error, is
    /// gone.
    pub fn reclaim(&self) {
        let extents = self.extents.lock();
        for (begin, length) in extents.free() {
            let (first, end) = (begin.next_multiple_of(PAGE), (begin + length) / PAGE * PAGE);
            if end > first {
                self.punch(first, end - first);
            }
        }
    }

    /// Discards pages; they then read as zeros. Where the system refuses, the pages stay.
    fn punch(&self, offset: u64, bytes: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, flags, offset, bytes);
    }

    /// Bytes of existing pages, whichever process wrote them.
    #[cfg(test)]
    fn resident(&self) -> u64 {
        rustix::fs::fstat(&self.file).unwrap().st_blocks as u64 * 512
    }

    /// Frees a block.
    ///
    /// # Safety
    /// - `data` came from [`Arena::take`] with this size.
    /// - Nothing uses the block any more.
    pub unsafe fn give(&self, data: NonNull<c_void>, bytes: usize) {
        let Some(offset) = self.offset_of(data.as_ptr()) else { return };
        if bytes >= PAGED {
            // Only whole pages of the block.
            self.punch(offset, bytes as u64 / PAGE * PAGE);
        }
        self.extents.lock().give(offset, bytes as u64);
    }
}

impl BlockSource for Arena {
    fn take(&self, bytes: usize) -> Option<NonNull<c_void>> {
        Arena::take(self, bytes)
    }

    fn owns(&self, data: NonNull<c_void>) -> bool {
        self.offset_of(data.as_ptr()).is_some()
    }

    unsafe fn give(&self, data: NonNull<c_void>, bytes: usize) {
        // SAFETY: the caller of the source upholds the same condition.
        unsafe { Arena::give(self, data, bytes) }
    }
}

static HOST: OnceLock<Arc<Arena>> = OnceLock::new();

/// Number of memory pages of this machine.
fn total_pages() -> io::Result<u64> {
    // SAFETY: it reads a value of the system.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).map_err(|_| io::Error::other("the machine's memory is not known"))
}

/// Memory for the outputs of a worker: pooled, with statistics, and host memory to everything else.
pub(crate) struct ArenaMemory {
    lists: FreeLists,
    account: Account,
    arena: Arena,
}

impl ArenaMemory {
    /// A pool over a new arena of at most `limit` bytes; 0 limits it by the machine's memory.
    pub fn new(name: &str, limit: u64) -> io::Result<ArenaMemory> {
        let lists = FreeLists::new(HOST_CACHE_BYTES);
        let arena = Arena::new(name, limit)?;
        Ok(ArenaMemory { lists, account: Account::new(arena.bytes() as u64), arena })
    }

    /// The arena.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Bytes in use; does not wait.
    pub fn live_bytes(&self) -> u64 {
        self.account.stats(0).live_bytes
    }

    /// The pool's statistics.
    #[cfg(test)]
    pub fn stats(&self) -> tenon_host::memory::MemoryStats {
        self.account.stats(self.lists.cached_bytes())
    }

    fn block(&self, size: usize) -> Option<NonNull<c_void>> {
        let cached = self.lists.take(size).map(|block| block.data);
        cached.or_else(|| self.arena.take(size)).or_else(|| {
            self.trim();
            self.arena.take(size)
        })
    }

    /// Returns everything that is not in use to the system.
    pub fn reclaim(&self) {
        self.trim();
        self.arena.reclaim();
    }

    fn trim(&self) {
        // SAFETY: cached blocks came from the arena with their size, and nothing else uses them.
        self.lists.drain(|block| unsafe { self.arena.give(block.data, block.size) });
    }
}

// SAFETY: blocks are at least as large as asked for, aligned to 64 bytes, never null, and handed
// out to one owner at a time.
unsafe impl Memory for ArenaMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        let name = &self.arena.name;
        let exhausted = |_| self.account.exhausted(name, bytes as u64, ADVICE);
        self.account.take(name, bytes as u64).map_err(exhausted)?;
        match self.block(block_size(bytes)) {
            Some(data) => {
                self.account.taken();
                Ok(data)
            }
            None => {
                self.account.untake(bytes as u64);
                Err(self.account.exhausted(name, bytes as u64, ADVICE))
            }
        }
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        self.account.give(bytes as u64);
        let block = Block { data, size: block_size(bytes) };
        // SAFETY: `data` came from `allocate`, which rounds this size the same way, and the caller
        // uses it no more.
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
            // SAFETY: allocated with this size, and used by nothing else.
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
    fn what_was_written_where_nothing_is_handed_out_goes_back_to_the_system() {
        let memory = ArenaMemory::new("tenon-test", 64 << 20).unwrap();
        let arena = memory.arena();
        assert_eq!(arena.bytes(), 64 << 20, "no page is there beyond the limit");
        let kept = memory.allocate(100_000).unwrap();
        // SAFETY: allocated with this size, and nothing uses the rest of the arena: it is written
        // as by a wild loop.
        unsafe {
            kept.cast::<u8>().as_ptr().write_bytes(7, 100_000);
            arena.at(1 << 20, 32 << 20).unwrap().cast::<u8>().as_ptr().write_bytes(1, 32 << 20);
        }
        assert!(arena.resident() > 32 << 20);
        memory.reclaim();
        assert!(arena.resident() < 1 << 20, "{} bytes are left", arena.resident());
        // SAFETY: the allocation has this size, and nothing else uses it.
        let bytes = unsafe { std::slice::from_raw_parts(kept.cast::<u8>().as_ptr(), 100_000) };
        assert!(bytes.iter().all(|&byte| byte == 7), "what is handed out stays");
        // SAFETY: allocated with the same size.
        unsafe { memory.deallocate(kept, 100_000) };
    }

    #[test]
    fn a_promise_is_told_from_what_was_written() {
        let memory = ArenaMemory::new("tenon-test", 64 << 20).unwrap();
        let arena = memory.arena();
        let at = memory.allocate(8 << 20).unwrap();
        let offset = arena.offset_of(at.as_ptr()).unwrap();
        assert!(!arena.is_written(offset, 8 << 20) && arena.is_written(offset, 0));
        // SAFETY: allocated with this size, and used by nothing else.
        unsafe { at.cast::<u8>().as_ptr().write_bytes(1, 4 << 20) };
        assert!(arena.is_written(offset, 4 << 20) && !arena.is_written(offset, 8 << 20));
        // SAFETY: allocated with this size, and used by nothing else.
        unsafe { at.cast::<u8>().as_ptr().write_bytes(1, 8 << 20) };
        assert!(arena.is_written(offset, 8 << 20));
        // SAFETY: allocated with the same size.
        unsafe { memory.deallocate(at, 8 << 20) };
    }

    #[test]
    fn beyond_the_limit_is_an_error_and_an_address_from_elsewhere_has_no_place() {
        let memory = ArenaMemory::new("tenon-test", 4096).unwrap();
        let error = memory.allocate(5000).unwrap_err();
        assert!(error.message.contains("asked for 5000 bytes"), "{}", error.message);
        assert!(error.message.contains("the limit is 4096"), "{}", error.message);
        assert!(error.message.contains("host.isolate_tensors_mb"), "{}", error.message);
        assert_eq!(memory.arena().offset_of((&raw const memory).cast()), None);
        assert!(memory.arena().at(memory.arena().bytes() as u64, 1).is_none());
    }
}
