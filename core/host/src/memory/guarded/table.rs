//! The table of guarded blocks, which a signal handler can read.
//!
//! The table has a fixed place and size and no lock: only the allocator changes rows, under its own
//! lock; a signal handler on any thread may read at any time. A row is valid while its state is not
//! 0; the state is written last when a row is filled, and first when it is emptied. A reader during
//! a change may mistake one block for another or miss it; it never follows a pointer.

use super::{
    mapping::Mapping,
    place::{BlockState, Place, Role},
};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Most blocks, live and recently freed together.
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
    /// Number of rows ever used: the others need not be searched.
    used: AtomicUsize,
}

impl Table {
    /// Creates an empty table that lives as long as the process, and makes it visible to [`find`].
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

    /// Sets the permitted use of a row's block.
    pub fn set_state(&self, at: usize, state: BlockState) {
        self.rows[at].state.store(state.to_word(), Ordering::Release);
    }

    /// Sets the role of a row's block.
    pub fn set_role(&self, at: usize, role: Role) {
        self.rows[at].role.store(role.to_word(), Ordering::Relaxed);
    }

    /// Empties a row.
    pub fn clear(&self, at: usize) {
        self.rows[at].state.store(0, Ordering::Release);
    }

    /// An address with respect to a row's block; `None` for an empty row.
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

    /// The block whose mapping contains an address.
    pub fn find(&self, address: usize) -> Option<Place> {
        let used = self.used.load(Ordering::Acquire).min(self.rows.len());
        (0..used).find_map(|at| {
            let row = &self.rows[at];
            let mapped = row.begin.load(Ordering::Relaxed)..row.end.load(Ordering::Relaxed);
            self.place(at, address).filter(|_| mapped.contains(&address))
        })
    }
}

/// The guarded buffer that contains an address or is beside it. It takes no lock, allocates nothing
/// and follows no pointer but that of the table, so that a signal handler may call it.
pub fn find(address: usize) -> Option<Place> {
    // SAFETY: null, or a table that lives as long as the process.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }?.find(address)
}
