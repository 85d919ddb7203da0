//! The blocks of guarded memory, where a signal handler can read them.
//!
//! The table has a fixed place and size and no lock: who changes a row is the allocator, under its own lock;
//! who reads may be a signal handler on any thread, at any time. A row is valid while its state is not 0,
//! and the state is written last when a row is filled, first when it is emptied. A reader in the midst of a
//! change may take one block for another or miss it; it never follows a pointer.

use super::{
    mapping::Mapping,
    place::{BlockState, Place, Role},
};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Blocks that there can be, live and recently given back together.
pub(super) const ROWS: usize = 1 << 15;

/// The table of the process; null until memory is guarded.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());

#[derive(Default)]
struct Row {
    state: AtomicU64,
    begin: AtomicUsize,
    end: AtomicUsize,
    data: AtomicUsize,
    bytes: AtomicU64,
    role: AtomicU64,
}

/// The rows.
pub(super) struct Table {
    rows: Vec<Row>,
    /// Rows that were ever used: the others need no look.
    used: AtomicUsize,
}

impl Table {
    /// An empty table that lives as long as the process, where [`find`] sees it.
    pub fn publish() -> &'static Table {
        let rows = (0..ROWS).map(|_| Row::default()).collect();
        let table: &'static Table = Box::leak(Box::new(Table { rows, used: AtomicUsize::new(0) }));
        TABLE.store(std::ptr::from_ref(table).cast_mut(), Ordering::Release);
        table
    }

    /// Fills a row.
    pub fn fill(&self, at: usize, mapping: &Mapping, data: usize, bytes: usize) {
        let row = &self.rows[at];
        row.begin.store(mapping.begin, Ordering::Relaxed);
        row.end.store(mapping.begin + mapping.len, Ordering::Relaxed);
        row.data.store(data, Ordering::Relaxed);
        row.bytes.store(bytes as u64, Ordering::Relaxed);
        row.role.store(Role::Unnamed.to_word(), Ordering::Relaxed);
        row.state.store(BlockState::Writable.to_word(), Ordering::Release);
        self.used.fetch_max(at + 1, Ordering::Release);
    }

    /// Says what may be done with the block of a row.
    pub fn set_state(&self, at: usize, state: BlockState) {
        self.rows[at].state.store(state.to_word(), Ordering::Release);
    }

    /// Says what the block of a row is.
    pub fn set_role(&self, at: usize, role: Role) {
        self.rows[at].role.store(role.to_word(), Ordering::Relaxed);
    }

    /// Empties a row.
    pub fn clear(&self, at: usize) {
        self.rows[at].state.store(0, Ordering::Release);
    }

    /// An address with respect to the block of a row; `None` for an empty one.
    pub fn place(&self, at: usize, address: usize) -> Option<Place> {
        let row = &self.rows[at];
        let state = BlockState::from_word(row.state.load(Ordering::Acquire))?;
        Some(Place {
            offset: address.wrapping_sub(row.data.load(Ordering::Relaxed)) as i64,
            bytes: row.bytes.load(Ordering::Relaxed),
            state,
            role: Role::from_word(row.role.load(Ordering::Relaxed)),
        })
    }

    /// The block in whose mapping an address lies.
    pub fn find(&self, address: usize) -> Option<Place> {
        let used = self.used.load(Ordering::Acquire).min(self.rows.len());
        (0..used).find_map(|at| {
            let row = &self.rows[at];
            let mapped = row.begin.load(Ordering::Relaxed)..row.end.load(Ordering::Relaxed);
            self.place(at, address).filter(|_| mapped.contains(&address))
        })
    }
}

/// The guarded buffer in or beside which an address lies. It takes no lock, allocates nothing and follows no
/// pointer but that of the table, so that a signal handler may ask it.
pub fn find(address: usize) -> Option<Place> {
    // SAFETY: null, or a table that lives as long as the process.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }?.find(address)
}
