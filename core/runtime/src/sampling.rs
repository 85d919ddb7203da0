//! Which of many calls, runs or steps are measured.
//!
//! Multiples of the golden ratio reach every remainder equally often (Knuth, The Art of Computer
//! Programming, volume 3, 6.4), so that several things that alternate are all measured.

/// The first `bits` bits of the multiple of the golden ratio with this number.
#[inline]
pub(crate) fn spread(number: u32, bits: u32) -> u64 {
    u64::from(number.wrapping_mul(0x9E37_79B1)) >> (u32::BITS - bits)
}

/// Whether the one after `done` others is measured: one in 2^`every_log2` is.
#[inline]
pub(crate) fn wants(done: u64, every_log2: u32) -> bool {
    spread(done as u32, every_log2) == 0
}
