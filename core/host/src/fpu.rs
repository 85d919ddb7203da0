//! The floating-point state that kernels run with: round to nearest, denormals flushed to zero.
//!
//! Kernels run as in TensorFlow, with subnormal operands and results treated as zero. Dropping the
//! guard restores the caller's state. The state is MXCSR on x86-64 (bit 15 flushes results, bit 6
//! treats operands as zero; Intel SDM volume 1, 10.2.3), and FPCR on AArch64 (bit 24 does both, bit
//! 19 for half precision; Arm ARM, FPCR). On other architectures the state is left unchanged.

use std::marker::PhantomData;

/// The control state of one thread's floating-point unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FpState(u64);

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;

    /// Flush results (15), treat operands as zero (6).
    pub const FLUSH: u64 = 1 << 15 | 1 << 6;
    /// Rounding mode (13 and 14); zero is to nearest.
    pub const ROUNDING: u64 = 3 << 13;
    /// Sticky exception flags, which are not part of the state.
    pub const STATUS: u64 = 0x3f;

    pub fn get() -> u64 {
        let mut word = 0u32;
        // SAFETY: writes four bytes at `word`.
        unsafe { asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack, preserves_flags)) };
        u64::from(word)
    }

    pub fn set(state: u64) {
        let word = state as u32;
        // SAFETY: reads four bytes at `word`, which came from `get` except for bits that may be
        // set; the exception masks are unchanged.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, readonly, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use std::arch::asm;

    /// Flush single and double (24), half precision (19).
    pub const FLUSH: u64 = 1 << 24 | 1 << 19;
    /// Rounding mode (22 and 23); zero is to nearest.
    pub const ROUNDING: u64 = 3 << 22;
    /// The exception flags are in another register.
    pub const STATUS: u64 = 0;

    pub fn get() -> u64 {
        let state: u64;
        // SAFETY: reads a register that user code may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) state, options(nomem, nostack, preserves_flags)) };
        state
    }

    pub fn set(state: u64) {
        // SAFETY: writes back what `get` returned, except for bits that may be set.
        unsafe { asm!("msr fpcr, {}", in(reg) state, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    pub const FLUSH: u64 = 0;
    pub const ROUNDING: u64 = 0;
    pub const STATUS: u64 = 0;

    pub fn get() -> u64 {
        0
    }

    pub fn set(_state: u64) {}
}

impl FpState {
    /// The state of this thread.
    #[inline]
    pub fn current() -> FpState {
        FpState(arch::get() & !arch::STATUS)
    }

    /// This state with round to nearest and denormals flushed.
    #[inline]
    pub fn flushing(self) -> FpState {
        FpState(self.0 & !arch::ROUNDING | arch::FLUSH)
    }

    /// This state with round to nearest and denormals kept.
    #[inline]
    pub fn keeping(self) -> FpState {
        FpState(self.0 & !(arch::ROUNDING | arch::FLUSH))
    }

    /// Whether denormals are flushed.
    pub fn flushes(self) -> bool {
        arch::FLUSH != 0 && self.0 & arch::FLUSH == arch::FLUSH
    }
}

/// Restores the thread's state when dropped; it stays on its thread.
#[must_use = "the state is restored when the guard is dropped"]
pub struct FpGuard {
    before: FpState,
    changed: bool,
    thread_bound: PhantomData<*const ()>,
}

impl FpGuard {
    /// Sets this thread's state.
    #[inline]
    pub fn set(state: FpState) -> FpGuard {
        let before = FpState::current();
        // Writing the register costs more than reading it, and in a loop of calls the state is
        // usually right already.
        let changed = before != state;
        if changed {
            arch::set(state.0);
        }
        FpGuard { before, changed, thread_bound: PhantomData }
    }

    /// Sets the state for kernels: denormals flushed, or kept when the session asks for that.
    #[inline]
    pub fn for_kernels(keep_denormals: bool) -> FpGuard {
        let now = FpState::current();
        FpGuard::set(if keep_denormals { now.keeping() } else { now.flushing() })
    }
}

impl Drop for FpGuard {
    #[inline]
    fn drop(&mut self) {
        if self.changed {
            arch::set(self.before.0);
        }
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn half_of_smallest_normal() -> f32 {
        black_box(f32::MIN_POSITIVE) * black_box(0.5)
    }

    #[test]
    fn denormals_are_flushed_inside_the_guard_and_come_back_after_it() {
        let before = FpState::current();
        assert!(half_of_smallest_normal() > 0.0);
        {
            let _flush = FpGuard::for_kernels(false);
            assert!(FpState::current().flushes());
            assert_eq!(half_of_smallest_normal(), 0.0);
            assert_eq!(black_box(f32::from_bits(1)) * black_box(2.0), 0.0);
            {
                let _keep = FpGuard::for_kernels(true);
                assert!(half_of_smallest_normal() > 0.0);
            }
            assert_eq!(half_of_smallest_normal(), 0.0);
        }
        assert_eq!(FpState::current(), before);
        assert!(half_of_smallest_normal() > 0.0);
    }
}
