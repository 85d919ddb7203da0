//! Arenas: host memory that a worker sees too.
//!
//! The host has one arena, which every worker can read; each worker has one that it can write beside the host. So the
//! inputs of an isolated kernel are read where they are, its outputs are written where they stay, and it can spoil
//! nothing but what it computed itself. Which parts are in use is known to the host alone, in memory of its own.

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

/// Under the lists of free blocks, which the memory pools have.
const EXTENTS: Rank = Rank(81);
const PAGE: u64 = 4096;
/// Blocks from this size on begin at a page, and their pages go back to the system when they are freed.
const PAGED: usize = 64 << 10;
const ADVICE: &str = "free tensors, or raise host.isolate_tensors_mb";

/// Memory in which blocks are handed out.
pub(crate) struct Arena {
    name: String,
    file: SharedFile,
    mapping: Mapping,
    extents: Mutex<Extents>,
}

impl Arena {
    /// An arena with as many bytes as the machine has memory, or fewer: no page exists before it is used, and none
    /// beyond the end is ever there. 0 is no limit.
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

    /// The arena of the process, once there is one.
    pub fn of_host() -> Option<&'static Arc<Arena>> {
        HOST.get()
    }

    /// The arena of the process, from now on: large tensors are put there.
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

    /// Whether somebody has written to each page of a part: promised bytes have none.
    pub fn is_written(&self, offset: u64, bytes: u64) -> bool {
        // Where there is no part of the file without pages behind the offset, its end is told.
        let hole = seek(&self.file, SeekFrom::Hole(offset));
        bytes == 0 || hole.is_ok_and(|hole| hole >= offset.saturating_add(bytes))
    }

    /// Gives the pages of everything that is not handed out back to the system: whoever wrote there, in error, is gone.
    pub fn reclaim(&self) {
        let extents = self.extents.lock();
        for (begin, length) in extents.free() {
            let (first, end) = (begin.next_multiple_of(PAGE), (begin + length) / PAGE * PAGE);
            if end > first {
                self.punch(first, end - first);
            }
        }
    }

    /// Where the system refuses, the pages stay. What is punched reads as zeros.
    fn punch(&self, offset: u64, bytes: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&self.file, flags, offset, bytes);
    }

    /// Bytes of pages that there are, whoever wrote to them.
    #[cfg(test)]
    fn resident(&self) -> u64 {
        rustix::fs::fstat(&self.file).unwrap().st_blocks as u64 * 512
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// It came from [`Arena::take`] with this size, and nobody uses it any more.
    pub unsafe fn give(&self, data: NonNull<c_void>, bytes: usize) {
        let Some(offset) = self.offset_of(data.as_ptr()) else { return };
        if bytes >= PAGED {
            // Whole pages of the block.
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
        // SAFETY: the caller of the source keeps to the same condition.
        unsafe { Arena::give(self, data, bytes) }
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
    /// A pool over an arena of its own of at most `limit` bytes; 0 is as many as the machine has memory.
    pub fn new(name: &str, limit: u64) -> io::Result<ArenaMemory> {
        let lists = FreeLists::new(HOST_CACHE_BYTES);
        let arena = Arena::new(name, limit)?;
        Ok(ArenaMemory { lists, account: Account::new(arena.bytes() as u64), arena })
    }

    /// The arena.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Bytes that are in use; nobody is waited for.
    pub fn live_bytes(&self) -> u64 {
        self.account.stats(0).live_bytes
    }

    /// The figures.
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

    /// Gives everything that is not in use back to the system.
    pub fn reclaim(&self) {
        self.trim();
        self.arena.reclaim();
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
        // SAFETY: `data` came from `allocate`, which rounds this size alike, and the caller is its last user.
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
    fn what_was_written_where_nothing_is_handed_out_goes_back_to_the_system() {
        let memory = ArenaMemory::new("tenon-test", 64 << 20).unwrap();
        let arena = memory.arena();
        assert_eq!(arena.bytes(), 64 << 20, "no page is there beyond the limit");
        let kept = memory.allocate(100_000).unwrap();
        // SAFETY: allocated with this size, and the rest of the arena is nobody's: as a wild loop writes.
        unsafe {
            kept.cast::<u8>().as_ptr().write_bytes(7, 100_000);
            arena.at(1 << 20, 32 << 20).unwrap().cast::<u8>().as_ptr().write_bytes(1, 32 << 20);
        }
        assert!(arena.resident() > 32 << 20);
        memory.reclaim();
        assert!(arena.resident() < 1 << 20, "{} bytes are left", arena.resident());
        // SAFETY: as above.
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
        // SAFETY: allocated with this size, seen by nobody else.
        unsafe { at.cast::<u8>().as_ptr().write_bytes(1, 4 << 20) };
        assert!(arena.is_written(offset, 4 << 20) && !arena.is_written(offset, 8 << 20));
        // SAFETY: as above.
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
