//! NEON, which every AArch64 CPU has: 8 rows of 3 vectors, 3 vectors of `B` and a factor of `A` fit
//! in 32 registers.

use super::{super::vector::Vector, compiled};
use std::arch::aarch64::*;

/// Implements a vector type from its register and instructions.
macro_rules! vector {
    ($(#[$meta:meta])* $name:ident($register:ty) of $scalar:ty, lanes = $lanes:literal,
        $spread:ident, $load:ident, $store:ident, $plus:ident, $minus:ident, $times:ident, $max:ident, $min:ident,
        $mul_add:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub struct $name($register);

        // SAFETY: every CPU of the target has the instructions.
        unsafe impl Vector for $name {
            type Scalar = $scalar;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: every CPU of the target has the instruction; the caller guarantees, here
                // and below, that pointers are valid for the numbers that are read or written.
                unsafe { $name($spread(0.0)) }
            }
            #[inline(always)]
            unsafe fn spread(from: *const $scalar) -> Self {
                // SAFETY: as above.
                unsafe { $name($spread(*from)) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $scalar) -> Self {
                // SAFETY: as above.
                unsafe { $name($load(from)) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $scalar) {
                // SAFETY: as above.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn load_part(from: *const $scalar, count: usize) -> Self {
                let mut lanes = [0.0; $lanes];
                // SAFETY: as above.
                unsafe {
                    std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), count);
                    Self::load(lanes.as_ptr())
                }
            }
            #[inline(always)]
            unsafe fn store_part(self, to: *mut $scalar, count: usize) {
                let mut lanes = [0.0; $lanes];
                // SAFETY: as above.
                unsafe {
                    self.store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, count);
                }
            }
            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($plus(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn minus(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($minus(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn times(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($times(self.0, other.0)) }
            }
            #[inline(always)]
            unsafe fn at_least(self, low: Self) -> Self {
                // SAFETY: as above; NaN yields NaN.
                unsafe { $name($max(low.0, self.0)) }
            }
            #[inline(always)]
            unsafe fn at_most(self, high: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($min(high.0, self.0)) }
            }
            #[inline(always)]
            unsafe fn mul_add(self, by: Self, to: Self) -> Self {
                // SAFETY: as above.
                unsafe { $name($mul_add(to.0, self.0, by.0)) }
            }
        }
    };
}

vector! {
    /// 128 bits of floats.
    F32x4(float32x4_t) of f32, lanes = 4, vdupq_n_f32, vld1q_f32, vst1q_f32, vaddq_f32,
    vsubq_f32, vmulq_f32, vmaxq_f32, vminq_f32, vfmaq_f32
}
vector! {
    /// 128 bits of doubles.
    F64x2(float64x2_t) of f64, lanes = 2, vdupq_n_f64, vld1q_f64, vst1q_f64, vaddq_f64,
    vsubq_f64, vmulq_f64, vmaxq_f64, vminq_f64, vfmaq_f64
}

compiled! {
    /// Tiles of floats.
    NeonF32 of F32x4, rows = 8, vectors = 3
}
compiled! {
    /// Tiles of doubles.
    NeonF64 of F64x2, rows = 8, vectors = 3
}
