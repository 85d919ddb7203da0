//! The clock of steps: deadlines, trace spans and timings use it.

use std::{sync::OnceLock, time::Instant};

/// Nanoseconds since the first call in the process.
pub fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
