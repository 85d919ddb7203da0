//! Early ends of loops.

use crate::clock::monotonic_ns;
use std::sync::atomic::{AtomicU32, Ordering};
use tenon_abi::NO_DEADLINE;

/// Ends loops early: once a flag is set, or a deadline has passed. A check costs one relaxed load,
/// plus a clock reading if there is a deadline.
#[derive(Debug, Clone, Copy)]
pub struct Stop<'a> {
    flag: &'a AtomicU32,
    deadline_ns: u64,
}

impl<'a> Stop<'a> {
    /// Due once `flag` is not zero, or [`monotonic_ns`] has reached `deadline_ns`; [`NO_DEADLINE`]
    /// is none.
    pub fn new(flag: &'a AtomicU32, deadline_ns: u64) -> Stop<'a> {
        Stop { flag, deadline_ns }
    }

    /// Whether no further block is to begin.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.flag.load(Ordering::Relaxed) != 0
            || (self.deadline_ns != NO_DEADLINE && monotonic_ns() >= self.deadline_ns)
    }
}
