//! Accounting of one kind of memory of one device.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};
use tenon_framework::{Code, KernelError};

/// Figures of one kind of memory at one moment; each is exact, all together only while nobody allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Bytes asked for and not given back.
    pub live_bytes: u64,
    /// Highest `live_bytes` so far, or since it was last reset.
    pub peak_bytes: u64,
    /// Allocations not given back.
    pub live_count: u64,
    /// Allocations so far.
    pub total_count: u64,
    /// Bytes held for reuse.
    pub cached_bytes: u64,
    /// Bytes there are; 0 is not known.
    pub limit_bytes: u64,
}

impl fmt::Display for MemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes in {} allocations, peak {}, {} held for reuse",
            self.live_bytes, self.live_count, self.peak_bytes, self.cached_bytes
        )
    }
}

/// The counters behind [`MemoryStats`].
#[derive(Default)]
pub(crate) struct Account {
    live_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    live_count: AtomicU64,
    total_count: AtomicU64,
    limit: AtomicU64,
}

impl Account {
    pub fn new(limit: u64) -> Account {
        Account { limit: AtomicU64::new(limit), ..Account::default() }
    }

    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Reserves bytes, unless that goes beyond the limit. [`Account::taken`] or [`Account::untake`] follows.
    pub fn take(&self, name: &str, bytes: u64) -> Result<(), KernelError> {
        if bytes > isize::MAX as u64 {
            return Err(self.exhausted(name, bytes, "no memory is that large"));
        }
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limit = self.limit.load(Ordering::Relaxed);
        if limit != 0 && live > limit {
            self.untake(bytes);
            return Err(self.exhausted(name, bytes, "free tensors, or raise the limit"));
        }
        Ok(())
    }

    /// Counts what was reserved as an allocation.
    pub fn taken(&self) {
        let live = self.live_bytes.load(Ordering::Relaxed);
        // The peak moves seldom: a look is cheaper than an update.
        if live > self.peak_bytes.load(Ordering::Relaxed) {
            self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        }
        self.live_count.fetch_add(1, Ordering::Relaxed);
        self.total_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives a reservation back for which there was no memory.
    pub fn untake(&self, bytes: u64) {
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts an allocation out.
    pub fn give(&self, bytes: u64) {
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.live_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Begins a new peak: what is in use now.
    pub fn reset_peak(&self) {
        self.peak_bytes.store(self.live_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The error of an allocation that is not to be had.
    pub fn exhausted(&self, name: &str, bytes: u64, advice: &str) -> KernelError {
        let in_use = self.live_bytes.load(Ordering::Relaxed);
        let limit = match self.limit.load(Ordering::Relaxed) {
            0 => "the limit is not known".to_owned(),
            limit => format!("the limit is {limit}"),
        };
        KernelError::new(
            Code::RESOURCE_EXHAUSTED,
            format!(
                "{name}: out of memory: asked for {bytes} bytes, {in_use} are in use, {limit}: {advice}"
            ),
        )
    }

    pub fn stats(&self, cached_bytes: u64) -> MemoryStats {
        MemoryStats {
            live_bytes: self.live_bytes.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
            live_count: self.live_count.load(Ordering::Relaxed),
            total_count: self.total_count.load(Ordering::Relaxed),
            cached_bytes,
            limit_bytes: self.limit.load(Ordering::Relaxed),
        }
    }
}
