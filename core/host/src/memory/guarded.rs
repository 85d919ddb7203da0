//! Host memory that detects misuse, for a process that checks kernels, at the cost of speed.
//!
//! Each buffer is a mapping of its own between inaccessible pages. Its end, or its start, is as
//! close to one of them as the alignment of 64 bytes allows, or adjacent to it ([`Side::Exact`]);
//! the remaining bytes contain a canary, which is checked when the buffer is freed and on demand.
//! New bytes contain a poison value that can be changed: results that change with it depend on
//! uninitialised memory. Inputs can be made read-only. A freed buffer stays inaccessible for a
//! while.
//!
//! States of a block: *writable* ↔ *read-only* → *freed* → gone. [`find`] returns the block that an
//! address belongs to, even in a signal handler.
//!
//! # Invariants
//! - A process guards its memory before the first allocation, or never: [`HostMemory::guard`] fails
//!   later.
//! - A violation is reported once: an overwritten canary is restored.
//!
//! [`HostMemory::guard`]: super::HostMemory::guard

mod mapping;
mod place;
mod table;

pub use place::{BlockState, Place, Role, Violation};
pub use table::find;

use mapping::{Access, Mapping, pointer};
use std::{
    collections::{HashMap, VecDeque},
    ffi::c_void,
    ptr::NonNull,
    slice,
    sync::atomic::{AtomicU8, Ordering},
};
use table::{ROWS, Table};
use tenon_framework::{
    KernelError,
    sync::{Mutex, rank},
};

/// The initial settings of guarded memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardOptions {
    /// Value of new bytes.
    pub poison: u8,
    /// Value of bytes beside buffers.
    pub canary: u8,
    /// Number of freed buffers that are kept inaccessible.
    pub kept_blocks: usize,
    /// Bytes of address space of these buffers.
    pub kept_bytes: usize,
}

impl Default for GuardOptions {
    fn default() -> GuardOptions {
        GuardOptions { poison: 0xa5, canary: 0xcb, kept_blocks: 2048, kept_bytes: 8 << 30 }
    }
}

/// The side of new buffers that is adjacent to an inaccessible page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Side {
    /// The end: the first byte after it that is a multiple of 64 faults.
    #[default]
    End,
    /// The start: every byte before it faults.
    Start,
    /// The end, exactly: every byte after it faults. The buffer is aligned to the largest power of
    /// two that divides its size, instead of 64 bytes. For inputs of calls whose results are not
    /// used.
    Exact,
}

impl Side {
    fn of_word(word: u8) -> Side {
        [Side::End, Side::Start, Side::Exact]
            .into_iter()
            .find(|&side| side as u8 == word)
            .unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
struct Live {
    row: usize,
    mapping: Mapping,
    bytes: usize,
    canary: u8,
}

#[derive(Default)]
struct Blocks {
    /// Live blocks by the address of their first byte.
    live: HashMap<usize, Live>,
    /// Rows and mappings of freed blocks, oldest first.
    freed: VecDeque<(usize, Mapping)>,
    freed_bytes: usize,
    /// Rows of the table that are empty again, and the number of rows ever used.
    empty: Vec<usize>,
    next: usize,
    violations: Vec<Violation>,
}

/// Guarded memory of a process.
pub struct Guard {
    table: &'static Table,
    kept_blocks: usize,
    kept_bytes: usize,
    poison: AtomicU8,
    canary: AtomicU8,
    side: AtomicU8,
    blocks: Mutex<Blocks>,
}

impl Guard {
    pub(super) fn new(options: &GuardOptions) -> Guard {
        Guard {
            table: Table::publish(),
            kept_blocks: options.kept_blocks.min(ROWS / 2),
            kept_bytes: options.kept_bytes,
            poison: AtomicU8::new(options.poison),
            canary: AtomicU8::new(options.canary),
            side: AtomicU8::new(Side::default() as u8),
            blocks: Mutex::ranked(rank::MEMORY, Blocks::default()),
        }
    }

    /// Sets the value of new bytes.
    pub fn set_poison(&self, byte: u8) {
        self.poison.store(byte, Ordering::Relaxed);
    }

    /// Sets the value of bytes beside new buffers.
    pub fn set_canary(&self, byte: u8) {
        self.canary.store(byte, Ordering::Relaxed);
    }

    /// Sets which side of new buffers is adjacent to an inaccessible page.
    pub fn set_side(&self, side: Side) {
        self.side.store(side as u8, Ordering::Relaxed);
    }

    /// Makes a buffer read-only, and sets its role.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if no buffer begins at the address; `RESOURCE_EXHAUSTED` when the system
    /// has no more mappings.
    pub fn protect(&self, data: *const c_void, role: Role) -> Result<(), KernelError> {
        self.set(data, Access::Read, BlockState::ReadOnly, role)
    }

    /// Makes a buffer writable again.
    ///
    /// # Errors
    /// As [`Guard::protect`].
    pub fn release(&self, data: *const c_void) -> Result<(), KernelError> {
        self.set(data, Access::ReadWrite, BlockState::Writable, Role::Unnamed)
    }

    /// Sets the role of a buffer; does nothing if no buffer begins at the address.
    pub fn name(&self, data: *const c_void, role: Role) {
        if let Some(block) = self.blocks.lock().live.get(&data.addr()) {
            self.table.set_role(block.row, role);
        }
    }

    fn set(
        &self,
        data: *const c_void,
        access: Access,
        state: BlockState,
        role: Role,
    ) -> Result<(), KernelError> {
        let blocks = self.blocks.lock();
        let block = blocks.live.get(&data.addr()).ok_or_else(|| {
            KernelError::invalid_argument(
                "guarded memory: no guarded buffer begins at this address",
            )
        })?;
        if !block.mapping.set(access) {
            return Err(no_mappings());
        }
        self.table.set_state(block.row, state);
        self.table.set_role(block.row, role);
        Ok(())
    }

    /// Checks the canaries of all live buffers.
    pub fn verify(&self) {
        let mut blocks = self.blocks.lock();
        let found: Vec<Violation> =
            blocks.live.iter().flat_map(|(&data, block)| self.check(data, block)).collect();
        blocks.violations.extend(found);
    }

    /// Takes the violations found since the last call, in live and in freed buffers.
    pub fn violations(&self) -> Vec<Violation> {
        self.verify();
        std::mem::take(&mut self.blocks.lock().violations)
    }

    /// Allocates at least `bytes` bytes; `None` when the system has no more.
    pub(super) fn allocate(&self, bytes: usize, align: usize) -> Option<NonNull<c_void>> {
        let body = bytes.checked_next_multiple_of(align)?;
        let mapping = Mapping::new(body, align).or_else(|| {
            // The mappings of freed buffers may be what is missing.
            self.forget();
            Mapping::new(body, align)
        })?;
        let data = match Side::of_word(self.side.load(Ordering::Relaxed)) {
            Side::End => mapping.end() - body,
            Side::Start => mapping.first,
            Side::Exact => mapping.end() - bytes,
        };
        let (poison, canary) =
            (self.poison.load(Ordering::Relaxed), self.canary.load(Ordering::Relaxed));
        fill(mapping.first, data, canary);
        fill(data, data + bytes, poison);
        fill(data + bytes, mapping.end(), canary);
        if self.enter(data, mapping, bytes, canary) {
            return pointer(data);
        }
        mapping.free();
        None
    }

    fn enter(&self, data: usize, mapping: Mapping, bytes: usize, canary: u8) -> bool {
        let mut blocks = self.blocks.lock();
        if blocks.empty.is_empty() && blocks.next == ROWS {
            self.evict(&mut blocks, 0);
        }
        let row = match blocks.empty.pop() {
            Some(row) => row,
            None if blocks.next < ROWS => {
                blocks.next += 1;
                blocks.next - 1
            }
            None => return false,
        };
        self.table.fill(row, &mapping, data, bytes);
        blocks.live.insert(data, Live { row, mapping, bytes, canary });
        true
    }

    /// Frees memory: checks its canaries, and makes it inaccessible.
    pub(super) fn deallocate(&self, data: NonNull<c_void>) {
        let data = data.as_ptr().addr();
        let mut blocks = self.blocks.lock();
        let Some(block) = blocks.live.remove(&data) else {
            drop(blocks);
            tracing::error!(
                "guarded memory: no guarded buffer begins at the address that is freed"
            );
            return;
        };
        let found = self.check(data, &block);
        blocks.violations.extend(found);
        self.table.set_state(block.row, BlockState::Freed);
        if !block.mapping.retire() {
            self.table.clear(block.row);
            blocks.empty.push(block.row);
            block.mapping.free();
            return;
        }
        blocks.freed_bytes += block.mapping.len;
        blocks.freed.push_back((block.row, block.mapping));
        self.evict(&mut blocks, self.kept_blocks);
    }

    /// Unmaps freed buffers, oldest first, until at most `keep` are left.
    fn evict(&self, blocks: &mut Blocks, keep: usize) {
        while blocks.freed.len() > keep || blocks.freed_bytes > self.kept_bytes {
            let Some((row, mapping)) = blocks.freed.pop_front() else { return };
            blocks.freed_bytes -= mapping.len;
            self.table.clear(row);
            blocks.empty.push(row);
            mapping.free();
        }
    }

    /// Unmaps all freed buffers.
    pub fn forget(&self) {
        self.evict(&mut self.blocks.lock(), 0);
    }

    /// Violations before and after a buffer.
    fn check(&self, data: usize, block: &Live) -> Vec<Violation> {
        let before = (block.mapping.first, data);
        let beyond = (data + block.bytes, block.mapping.end());
        [before, beyond].into_iter().filter_map(|side| self.check_side(block, side)).collect()
    }

    fn check_side(&self, block: &Live, (begin, end): (usize, usize)) -> Option<Violation> {
        let canary = block.canary;
        let bytes = bytes(begin, end);
        let first = bytes.iter().position(|&byte| byte != canary)?;
        let count = bytes.iter().filter(|&&byte| byte != canary).count() as u64;
        let place = self.table.place(block.row, begin + first)?;
        let violation = Violation { place, count, found: bytes[first], expected: canary };
        // Reported once. A read-only block cannot have been written since, and cannot be written
        // now.
        if place.state == BlockState::Writable {
            fill(begin, end, canary);
        }
        Some(violation)
    }
}

fn no_mappings() -> KernelError {
    KernelError::new(
        tenon_framework::Code::RESOURCE_EXHAUSTED,
        "guarded memory: the system has no more mappings: raise vm.max_map_count, or hold fewer buffers",
    )
}

/// Fills a range of a writable block with `byte`.
fn fill(begin: usize, end: usize, byte: u8) {
    if let Some(first) = pointer(begin).filter(|_| begin < end) {
        // SAFETY: usable bytes of a mapping of this module that is not retired.
        unsafe { first.as_ptr().cast::<u8>().write_bytes(byte, end - begin) }
    }
}

/// The bytes of a block beside its buffer.
fn bytes<'a>(begin: usize, end: usize) -> &'a [u8] {
    match pointer(begin).filter(|_| begin < end) {
        // SAFETY: usable bytes of a mapping that is not retired while the caller holds the lock; a
        // kernel that writes there violates its contract, which is what this detects.
        Some(first) => unsafe { slice::from_raw_parts(first.as_ptr().cast::<u8>(), end - begin) },
        None => &[],
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
