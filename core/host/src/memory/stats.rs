//! Accounting of one kind of memory of one device.

use std::{
    fmt,
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
};
use tenon_framework::{Code, KernelError};

/// Statistics of one kind of memory at one moment; each number is exact, and they are consistent
/// only while nothing allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Highest `live_bytes` so far, or since it was last reset.
    pub peak_bytes: u64,
    /// Number of allocations not freed.
    pub live_count: u64,
    /// Number of allocations so far.
    pub total_count: u64,
    /// Bytes kept for reuse.
    pub cached_bytes: u64,
    /// Total bytes; 0 means unknown, and for host memory unlimited.
    pub limit_bytes: u64,
    /// Bytes of string values, which count towards the limit of host memory in addition to
    /// `live_bytes`. The count of each thread may deviate by up to 64 KiB.
    pub string_bytes: u64,
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

/// Texts of an out-of-memory error besides its numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    /// Used when there is no limit.
    pub unlimited: &'static str,
    /// The advice in the message when a limit is reached.
    pub advice: &'static str,
}

impl Default for Words {
    fn default() -> Words {
        let (unlimited, advice) = ("the limit is not known", "free tensors, or raise the limit");
        Words { unlimited, advice }
    }
}

/// The counters behind [`MemoryStats`].
#[derive(Default)]
pub struct Account {
    words: Words,
    /// Bytes of strings that were counted; negative if strings are freed that were never counted.
    string_bytes: AtomicI64,
    live_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    live_count: AtomicU64,
    total_count: AtomicU64,
    limit: AtomicU64,
}

impl Account {
    /// Counters of memory with at most `limit` bytes; 0 means unlimited.
    pub fn new(limit: u64) -> Account {
        Account { limit: AtomicU64::new(limit), ..Account::default() }
    }

    /// Like [`Account::new`], with specific texts for its errors.
    pub(super) fn with_words(limit: u64, words: Words) -> Account {
        Account { words, ..Account::new(limit) }
    }

    /// Bytes in use, including strings.
    fn in_use(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed).saturating_add(self.string_bytes())
    }

    fn string_bytes(&self) -> u64 {
        self.string_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Counts bytes of strings; false if that exceeds the limit.
    pub fn count_strings(&self, bytes: i64) -> bool {
        self.string_bytes.fetch_add(bytes, Ordering::Relaxed);
        let limit = self.limit.load(Ordering::Relaxed);
        let allowed = bytes <= 0 || limit == 0 || self.in_use() <= limit;
        if !allowed {
            self.string_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        allowed
    }

    /// Sets the limit in bytes; 0 means unlimited.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Reserves bytes; fails if that exceeds the limit. [`Account::taken`] or [`Account::untake`]
    /// must follow.
    pub fn take(&self, name: &str, bytes: u64) -> Result<(), KernelError> {
        if bytes > isize::MAX as u64 {
            return Err(self.exhausted(name, bytes, "no memory is that large"));
        }
        let live = self.live_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limit = self.limit.load(Ordering::Relaxed);
        if limit != 0 && live.saturating_add(self.string_bytes()) > limit {
            self.untake(bytes);
            return Err(self.exhausted(name, bytes, self.words.advice));
        }
        Ok(())
    }

    /// Counts a reservation as an allocation.
    pub fn taken(&self) {
        let live = self.live_bytes.load(Ordering::Relaxed);
        // The peak rarely changes: a read is cheaper than an update.
        if live > self.peak_bytes.load(Ordering::Relaxed) {
            self.peak_bytes.fetch_max(live, Ordering::Relaxed);
        }
        self.live_count.fetch_add(1, Ordering::Relaxed);
        self.total_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Cancels a reservation for which there was no memory.
    pub fn untake(&self, bytes: u64) {
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Subtracts a freed allocation.
    pub fn give(&self, bytes: u64) {
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.live_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Resets the peak to what is in use now.
    pub fn reset_peak(&self) {
        self.peak_bytes.store(self.live_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The error of an allocation that cannot be satisfied.
    pub fn exhausted(&self, name: &str, bytes: u64, advice: &str) -> KernelError {
        let figures = self.figures();
        KernelError::new(
            Code::RESOURCE_EXHAUSTED,
            format!("{name}: out of memory: asked for {bytes} bytes, {figures}: {advice}"),
        )
    }

    /// What is in use, and the limit, for messages.
    fn figures(&self) -> String {
        let in_use = self.in_use();
        match self.limit.load(Ordering::Relaxed) {
            0 => format!("{in_use} are in use, {}", self.words.unlimited),
            limit => format!("{in_use} are in use, the limit is {limit}"),
        }
    }

    /// The bytes in use, the limit and advice, for messages that lack them.
    pub fn exhausted_figures(&self) -> String {
        format!("{}: {}", self.figures(), self.words.advice)
    }

    /// The statistics, with `cached_bytes` kept for reuse.
    pub fn stats(&self, cached_bytes: u64) -> MemoryStats {
        MemoryStats {
            live_bytes: self.live_bytes.load(Ordering::Relaxed),
            peak_bytes: self.peak_bytes.load(Ordering::Relaxed),
            live_count: self.live_count.load(Ordering::Relaxed),
            total_count: self.total_count.load(Ordering::Relaxed),
            cached_bytes,
            limit_bytes: self.limit.load(Ordering::Relaxed),
            string_bytes: self.string_bytes(),
        }
    }
}
