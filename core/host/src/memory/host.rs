//! Host memory.

use super::{
    guarded::{Guard, GuardOptions},
    limit,
    pool::{Block, FreeLists, block_size},
    stats::{Account, MemoryStats, Words},
};
use std::{
    alloc::{Layout, alloc, dealloc},
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, OnceLock},
};
use tenon_abi::{HOST_ALIGNMENT, MemoryKind};
use tenon_framework::{
    Code, KernelError, pages,
    tensor::{Memory, set_string_meter},
};

/// Most bytes of large blocks that are kept for reuse.
pub const HOST_CACHE_BYTES: usize = 256 << 20;
const NAME: &str = "host memory";
const WORDS: Words =
    Words { unlimited: "there is no limit", advice: "free tensors, or raise host.memory_limit_mb" };

/// Pooled host memory with accounting, aligned to 64 bytes.
pub struct HostMemory {
    lists: FreeLists,
    account: Account,
    /// Source of blocks in place of the system's allocator and the lists.
    guard: Option<Guard>,
}

static SHARED: OnceLock<Arc<HostMemory>> = OnceLock::new();

impl HostMemory {
    /// A pool that keeps at most `cache` bytes of large blocks for reuse and allocates at most
    /// `limit` bytes; 0 is no limit.
    pub fn new(cache: usize, limit: u64) -> HostMemory {
        HostMemory::build(cache, limit, None)
    }

    fn build(cache: usize, limit: u64, guard: Option<Guard>) -> HostMemory {
        HostMemory {
            lists: FreeLists::new(cache),
            account: Account::with_words(limit, WORDS),
            guard,
        }
    }

    /// The pool of the process, for kernels' outputs and scratch buffers.
    pub fn shared() -> &'static Arc<HostMemory> {
        SHARED.get_or_init(|| HostMemory::of_process(HOST_CACHE_BYTES, None))
    }

    /// Creates a pool with the limit that the system suggests, which also counts strings.
    fn of_process(cache: usize, guard: Option<Guard>) -> Arc<HostMemory> {
        set_string_meter(|bytes| {
            SHARED.get().is_none_or(|memory| memory.account.count_strings(bytes))
        });
        Arc::new(HostMemory::build(cache, limit::of_system(), guard))
    }

    /// Makes the pool of the process detect misuse from now on, at the cost of speed: see
    /// [`guarded`](super::guarded). For processes that check kernels; it cannot be undone.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when the pool is in use already; `UNIMPLEMENTED` if the system cannot
    /// protect pages.
    pub fn guard(options: &GuardOptions) -> Result<&'static Guard, KernelError> {
        if !cfg!(unix) {
            return Err(KernelError::unimplemented("host memory cannot be guarded on this system"));
        }
        let mut fresh = false;
        let shared = SHARED.get_or_init(|| {
            fresh = true;
            HostMemory::of_process(0, Some(Guard::new(options)))
        });
        shared.guard.as_ref().filter(|_| fresh).ok_or_else(|| {
            let message = "host memory is in use already: guard it before anything is allocated";
            KernelError::new(Code::FAILED_PRECONDITION, message)
        })
    }

    /// The guard of the process's pool, if [`HostMemory::guard`] was called.
    pub fn guarded() -> Option<&'static Guard> {
        SHARED.get()?.guard.as_ref()
    }

    /// Sets the source of large blocks of all host memory from now on. Blocks that were allocated
    /// before return to the system. Returns whether it was the first source: a process has at most
    /// one.
    pub fn set_block_source(source: Arc<dyn BlockSource>) -> bool {
        SOURCE.set(source).is_ok()
    }

    /// The pool's statistics.
    pub fn stats(&self) -> MemoryStats {
        self.account.stats(self.lists.cached_bytes())
    }

    /// Resets the peak to what is in use now.
    pub fn reset_peak(&self) {
        self.account.reset_peak();
    }

    /// The process's memory in use, the limit, and advice: for errors that lack them.
    pub(crate) fn exhausted_figures() -> String {
        HostMemory::shared().account.exhausted_figures()
    }

    /// Limits the bytes that are allocated, including those of strings; 0 is no limit.
    pub fn set_limit(&self, bytes: u64) {
        self.account.set_limit(bytes);
    }

    /// Frees the blocks that are kept for reuse.
    pub fn trim(&self) {
        // SAFETY: cached blocks came from `system_alloc`, and nothing else uses them.
        self.lists.drain(|block| unsafe { system_free(block) });
    }

    fn block(&self, bytes: usize) -> Option<Block> {
        let size = block_size(bytes);
        if let Some(guard) = &self.guard {
            return Some(Block { data: guard.allocate(bytes, HOST_ALIGNMENT)?, size });
        }
        self.lists.take(size).or_else(|| system_alloc(size)).or_else(|| {
            // The cached blocks may be what is missing.
            self.trim();
            system_alloc(size)
        })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        self.trim();
    }
}

/// A source of large blocks of host memory, such as memory that other processes share, in place of
/// the system's allocator.
pub trait BlockSource: Send + Sync {
    /// Allocates a block of `bytes` bytes, aligned to [`HOST_ALIGNMENT`]; on `None` the system
    /// allocates it.
    fn take(&self, bytes: usize) -> Option<NonNull<c_void>>;

    /// Whether a block came from [`take`](BlockSource::take).
    fn owns(&self, data: NonNull<c_void>) -> bool;

    /// Frees a block.
    ///
    /// # Safety
    /// - `data` came from [`take`](BlockSource::take) with the same size.
    /// - Nothing uses the block any more.
    unsafe fn give(&self, data: NonNull<c_void>, bytes: usize);
}

/// Least size of blocks from the source, if there is one.
const FROM_SOURCE: usize = 4096;

static SOURCE: OnceLock<Arc<dyn BlockSource>> = OnceLock::new();

fn system_alloc(size: usize) -> Option<Block> {
    if size >= FROM_SOURCE
        && let Some(data) = SOURCE.get().and_then(|source| source.take(size))
    {
        return Some(Block { data, size });
    }
    Some(Block { data: pages::allocate(size)?.cast(), size })
}

/// # Safety
/// - `block` came from [`system_alloc`].
/// - Nothing uses it any more.
unsafe fn system_free(block: Block) {
    if let Some(source) = SOURCE.get().filter(|source| source.owns(block.data)) {
        // SAFETY: the block came from `system_alloc`, which took it from the source with this size,
        // and the caller guarantees that nothing uses it any more.
        return unsafe { source.give(block.data, block.size) };
    }
    // SAFETY: the block came from `system_alloc`, not from the source, and the caller guarantees
    // that nothing uses it any more.
    unsafe { pages::deallocate(block.data.cast(), block.size) }
}

// SAFETY: blocks are at least as large as asked for, aligned to 64 bytes, never null, and handed
// out to one owner at a time.
unsafe impl Memory for HostMemory {
    fn kind(&self) -> MemoryKind {
        MemoryKind::HOST
    }

    fn device(&self) -> u64 {
        0
    }

    fn allocate(&self, bytes: usize) -> Result<NonNull<c_void>, KernelError> {
        self.account.take(NAME, bytes as u64)?;
        match self.block(bytes) {
            Some(block) => {
                self.account.taken();
                Ok(block.data)
            }
            None => {
                self.account.untake(bytes as u64);
                Err(self.account.exhausted(NAME, bytes as u64, "the system has no more"))
            }
        }
    }

    unsafe fn deallocate(&self, data: NonNull<c_void>, bytes: usize) {
        self.account.give(bytes as u64);
        if let Some(guard) = &self.guard {
            return guard.deallocate(data);
        }
        let block = Block { data, size: block_size(bytes) };
        // SAFETY: `data` came from `allocate`, and so from `system_alloc`, with this size; the
        // caller guarantees that nothing uses it any more.
        self.lists.give(block, |block| unsafe { system_free(block) });
    }
}

/// `Host::allocate`: accounted host memory; null when out of memory or when `align` is not a power
/// of two.
///
/// # Safety
/// None: `unsafe` only for the type of the table's entry.
pub unsafe extern "C" fn allocate_entry(bytes: u64, align: u64) -> *mut c_void {
    let (Ok(bytes), Ok(align)) = (usize::try_from(bytes), usize::try_from(align)) else {
        return std::ptr::null_mut();
    };
    let memory = HostMemory::shared();
    if align <= HOST_ALIGNMENT && align.is_power_of_two() {
        return memory.allocate(bytes).map_or(std::ptr::null_mut(), NonNull::as_ptr);
    }
    let Ok(layout) = Layout::from_size_align(bytes.max(1), align) else {
        return std::ptr::null_mut();
    };
    if memory.account.take(NAME, bytes as u64).is_err() {
        return std::ptr::null_mut();
    }
    let data: *mut c_void = match &memory.guard {
        Some(guard) => guard.allocate(bytes, align).map_or(std::ptr::null_mut(), NonNull::as_ptr),
        // SAFETY: the size is not zero.
        None => unsafe { alloc(layout) }.cast(),
    };
    if data.is_null() {
        memory.account.untake(bytes as u64);
    } else {
        memory.account.taken();
    }
    data
}

/// `Host::deallocate`: null is allowed.
///
/// # Safety
/// - `data` is null or came from [`allocate_entry`] with the same size and alignment.
/// - Nothing uses it any more.
pub unsafe extern "C" fn deallocate_entry(data: *mut c_void, bytes: u64, align: u64) {
    let Some(data) = NonNull::new(data) else { return };
    let (bytes, align) = (bytes as usize, align as usize);
    let memory = HostMemory::shared();
    if align <= HOST_ALIGNMENT {
        // SAFETY: `data` came from `allocate_entry`, which takes such a block from this pool, with
        // the same size; the plugin does not use it any more.
        return unsafe { memory.deallocate(data, bytes) };
    }
    memory.account.give(bytes as u64);
    if let Some(guard) = &memory.guard {
        return guard.deallocate(data);
    }
    if let Ok(layout) = Layout::from_size_align(bytes.max(1), align) {
        // SAFETY: allocated with the same layout.
        unsafe { dealloc(data.as_ptr().cast(), layout) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use tenon_framework::{DType, Shape, Tensor};

    #[test]
    fn accounts_go_back_to_zero_and_blocks_are_used_again() {
        let pool = Arc::new(HostMemory::new(8 << 20, 0));
        let memory: Arc<dyn Memory> = pool.clone();
        let mut tensors = Vec::new();
        for elements in [0i64, 1, 17, 1000, 300_000, 1_000_000] {
            let shape = Shape::new(&[elements]).unwrap();
            tensors.push(Tensor::allocate(&memory, DType::FLOAT, shape).unwrap());
        }
        for tensor in &tensors {
            assert_eq!(tensor.buffer().data() as usize % HOST_ALIGNMENT, 0);
        }
        let stats = pool.stats();
        assert_eq!(stats.live_count, 6);
        assert_eq!(stats.live_bytes, 4 * 1_301_018);
        drop(tensors);
        let stats = pool.stats();
        assert_eq!((stats.live_bytes, stats.live_count), (0, 0));
        assert_eq!((stats.peak_bytes, stats.total_count), (4 * 1_301_018, 6));
        assert!(stats.cached_bytes >= 4 * 1_301_018);
        let first = pool.allocate(4000).unwrap();
        // SAFETY: allocated with the same size, and used by nothing.
        unsafe { pool.deallocate(first, 4000) };
        assert_eq!(pool.allocate(4001).unwrap(), first, "the same class, the same block");
        // SAFETY: allocated with the same size, and used by nothing.
        unsafe { pool.deallocate(first, 4001) };
        pool.trim();
        assert_eq!(pool.stats().cached_bytes, 0);
    }

    #[test]
    fn beyond_the_limit_the_error_has_the_figures() {
        let pool = HostMemory::new(0, 1000);
        let held = pool.allocate(600).unwrap();
        let error = pool.allocate(500).unwrap_err();
        assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
        assert_eq!(
            error.message,
            "host memory: out of memory: asked for 500 bytes, 600 are in use, the limit is 1000: \
             free tensors, or raise host.memory_limit_mb"
        );
        // SAFETY: allocated with the same size.
        unsafe { pool.deallocate(held, 600) };
        let too_much = pool.allocate(isize::MAX as usize).unwrap_err();
        assert_eq!(too_much.code, Code::RESOURCE_EXHAUSTED);
        assert_eq!(pool.stats().live_bytes, 0);
    }

    #[test]
    fn what_the_system_refuses_is_not_counted() {
        let pool = HostMemory::new(0, 0);
        let reason = |bytes| {
            let error = pool.allocate(bytes).unwrap_err();
            assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
            error.message
        };
        assert!(reason(usize::MAX).ends_with("no memory is that large"));
        assert!(reason(isize::MAX as usize).ends_with("the system has no more"));
        assert_eq!(pool.stats(), MemoryStats::default());
    }

    #[test]
    fn plugins_memory_is_aligned_as_asked() {
        for align in [1u64, 64, 128, 4096] {
            // SAFETY: allocations are freed with the same size and alignment.
            unsafe {
                let data = allocate_entry(100, align);
                assert_eq!(data as u64 % align, 0);
                data.cast::<u8>().write_bytes(7, 100);
                deallocate_entry(data, 100, align);
            }
        }
        // SAFETY: the requests are refused, and return null.
        unsafe {
            assert!(allocate_entry(100, 96).is_null());
            assert!(allocate_entry(u64::MAX, 64).is_null());
            assert!(allocate_entry(8, 0).is_null());
            deallocate_entry(std::ptr::null_mut(), 8, 8);
        }
    }

    #[test]
    fn a_large_block_lies_on_a_huge_page_boundary() {
        let pool = HostMemory::new(0, 0);
        let data = pool.allocate(3 << 20).unwrap();
        assert_eq!(data.as_ptr() as usize % pages::LARGE_PAGE, 0);
        // SAFETY: allocated with the same size, which may be written.
        unsafe {
            data.as_ptr().cast::<u8>().write_bytes(1, 3 << 20);
            pool.deallocate(data, 3 << 20);
        }
    }
}
