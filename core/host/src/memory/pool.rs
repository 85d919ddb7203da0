//! Free lists by size class, for any source of memory.
//!
//! A request is rounded up to its class, so that the class of a block follows from the size with
//! which it is freed: nothing is stored beside it. Up to [`SMALL_MAX`] each class has its own list,
//! of limited length; larger blocks share one list of limited total size, which evicts the oldest
//! first.
//!
//! States of a block: *live* (in use) ↔ *cached* (in a list) → *freed* (returned to the source).

use std::{collections::VecDeque, ffi::c_void, ptr::NonNull};
use tenon_framework::sync::{Mutex, rank};

/// Blocks up to this size have a list per class.
pub const SMALL_MAX: usize = 1 << 20;
/// The smallest class.
const MIN_BLOCK: usize = 64;
/// Classes per doubling: up to `SMALL_MAX` a block is at most a quarter larger than requested,
/// above it an eighth.
const SMALL_STEPS: usize = 4;
const LARGE_STEPS: usize = 8;
const SMALL_CLASSES: usize = (SMALL_MAX.ilog2() - MIN_BLOCK.ilog2()) as usize * SMALL_STEPS + 1;
/// Bytes of blocks that one class of small blocks keeps for reuse, and limits on their number.
const CLASS_BYTES: usize = 1 << 20;
const CLASS_BLOCKS: (usize, usize) = (4, 512);

/// Size of the block for a request.
pub fn block_size(bytes: usize) -> usize {
    if bytes <= MIN_BLOCK {
        return MIN_BLOCK;
    }
    let last = bytes - 1;
    let base = 1usize << last.ilog2();
    let steps = if bytes <= SMALL_MAX { SMALL_STEPS } else { LARGE_STEPS };
    let step = (base / steps).max(MIN_BLOCK);
    // Requests near the end of the address space fail at the source.
    base.saturating_add(((last - base) / step + 1).saturating_mul(step))
}

fn class_of(block: usize) -> usize {
    if block <= MIN_BLOCK {
        return 0;
    }
    let base = 1usize << (block - 1).ilog2();
    let step = (base / SMALL_STEPS).max(1);
    (base.ilog2() - MIN_BLOCK.ilog2()) as usize * SMALL_STEPS + (block - 1 - base) / step + 1
}

fn class_cap(block: usize) -> usize {
    (CLASS_BYTES / block).clamp(CLASS_BLOCKS.0, CLASS_BLOCKS.1)
}

/// A block of memory, by address or by a device's handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its address.
    pub data: NonNull<c_void>,
    /// Its size in bytes.
    pub size: usize,
}

// SAFETY: a block in a list belongs to the list; the sources allocate and free on any thread.
unsafe impl Send for Block {}

#[derive(Default)]
struct Large {
    blocks: VecDeque<Block>,
    bytes: usize,
}

/// The lists. Their owner frees what [`FreeLists::drain`] yields before they are dropped.
pub struct FreeLists {
    small: Vec<Mutex<Vec<Block>>>,
    large: Mutex<Large>,
    large_cap: usize,
}

impl FreeLists {
    /// Lists that keep at most `large_cap` bytes of large blocks.
    pub fn new(large_cap: usize) -> FreeLists {
        FreeLists {
            small: (0..SMALL_CLASSES).map(|_| Mutex::ranked(rank::MEMORY, Vec::new())).collect(),
            large: Mutex::ranked(rank::MEMORY, Large::default()),
            large_cap,
        }
    }

    /// A cached block of this size, which must come from [`block_size`].
    pub fn take(&self, size: usize) -> Option<Block> {
        if size <= SMALL_MAX {
            return self.small[class_of(size)].lock().pop();
        }
        let mut large = self.large.lock();
        // The most recent one is most likely in the processor's caches.
        let at = large.blocks.iter().rposition(|block| block.size == size)?;
        let block = large.blocks.remove(at)?;
        large.bytes -= block.size;
        Some(block)
    }

    /// Caches a block; passes to `free` blocks for which there is no room.
    pub fn give(&self, block: Block, mut free: impl FnMut(Block)) {
        if block.size <= SMALL_MAX {
            let mut list = self.small[class_of(block.size)].lock();
            if list.len() < class_cap(block.size) {
                return list.push(block);
            }
            drop(list);
            return free(block);
        }
        if block.size > self.large_cap {
            return free(block);
        }
        let mut large = self.large.lock();
        large.bytes += block.size;
        large.blocks.push_back(block);
        while large.bytes > self.large_cap {
            let Some(oldest) = large.blocks.pop_front() else { break };
            large.bytes -= oldest.size;
            drop(large);
            free(oldest);
            large = self.large.lock();
        }
    }

    /// Passes all cached blocks to `free`.
    pub fn drain(&self, mut free: impl FnMut(Block)) {
        for list in &self.small {
            let blocks = std::mem::take(&mut *list.lock());
            blocks.into_iter().for_each(&mut free);
        }
        let large = std::mem::take(&mut *self.large.lock());
        large.blocks.into_iter().for_each(free);
    }

    /// Bytes of cached blocks.
    pub fn cached_bytes(&self) -> u64 {
        let small = |list: &Mutex<Vec<Block>>| list.lock().iter().map(|b| b.size).sum::<usize>();
        (self.small.iter().map(small).sum::<usize>() + self.large.lock().bytes) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn block(address: usize, size: usize) -> Block {
        Block { data: NonNull::new(address as *mut c_void).unwrap(), size }
    }

    #[test]
    fn classes_are_few_cover_the_request_and_waste_little() {
        let mut sizes = std::collections::BTreeSet::new();
        for bytes in 0..=SMALL_MAX {
            let size = block_size(bytes);
            assert!(size >= bytes, "{bytes} -> {size}");
            assert!((MIN_BLOCK..=SMALL_MAX).contains(&size), "{bytes} -> {size}");
            assert!(size <= bytes + bytes / 4 + MIN_BLOCK, "{bytes} -> {size}");
            assert_eq!(block_size(size), size, "a class holds its own size");
            assert!(class_of(size) < SMALL_CLASSES);
            sizes.insert(size);
        }
        let classes: std::collections::BTreeSet<usize> =
            sizes.iter().map(|&size| class_of(size)).collect();
        assert_eq!(classes.len(), sizes.len(), "no two sizes share a list");
        for bytes in [SMALL_MAX + 1, 3 << 20, (5 << 20) + 7, 1 << 40] {
            let size = block_size(bytes);
            assert!(size >= bytes && size <= bytes + bytes / 8 + 64);
            assert_eq!(block_size(size), size);
        }
        assert!(block_size(usize::MAX) >= usize::MAX - 1);
    }

    #[test]
    fn a_block_comes_back_for_its_own_size_only() {
        let lists = FreeLists::new(1 << 30);
        lists.give(block(64, 128), |_| panic!("there is room"));
        assert_eq!(lists.take(192), None);
        assert_eq!(lists.take(128), Some(block(64, 128)));
        assert_eq!(lists.take(128), None);
    }

    #[test]
    fn large_blocks_are_bounded_and_the_oldest_go_first() {
        let lists = FreeLists::new(5 << 20);
        let mut freed = Vec::new();
        for at in 1..=3 {
            lists.give(block(at * 64, 2 << 20), |block| freed.push(block.data.as_ptr() as usize));
        }
        assert_eq!(freed, [64]);
        assert_eq!(lists.cached_bytes(), 4 << 20);
        lists.give(block(6400, 6 << 20), |block| freed.push(block.data.as_ptr() as usize));
        assert_eq!(freed, [64, 6400]);
        assert_eq!(lists.take(2 << 20), Some(block(192, 2 << 20)));
        lists.drain(|block| freed.push(block.data.as_ptr() as usize));
        assert_eq!(freed, [64, 6400, 128]);
        assert_eq!(lists.cached_bytes(), 0);
    }

    #[test]
    fn small_lists_are_bounded() {
        let lists = FreeLists::new(0);
        let mut freed = 0;
        for at in 1..=1000 {
            lists.give(block(at * 64, 64), |_| freed += 1);
        }
        assert_eq!(freed, 1000 - CLASS_BLOCKS.1);
        let mut drained = 0;
        lists.drain(|_| drained += 1);
        assert_eq!(drained, CLASS_BLOCKS.1);
    }
}
