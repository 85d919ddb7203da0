//! The clock of steps: deadlines, spans of traces and timings are readings of it.

use std::{sync::OnceLock, time::Instant};

/// Nanoseconds since the process first asked.
pub fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
