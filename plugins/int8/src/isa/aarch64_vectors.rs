//! Pairs of NEON registers: a left group that is broadcast to a register serves four registers of
//! sums in a row.

use crate::vector::{VECTORS, Vector};
use std::arch::aarch64::*;

/// Eight sums.
#[derive(Clone, Copy)]
pub struct I32x8(pub [int32x4_t; 2]);

impl I32x8 {
    #[inline(always)]
    fn with(self, other: I32x8, f: impl Fn(int32x4_t, int32x4_t) -> int32x4_t) -> I32x8 {
        let ([a, b], [c, d]) = (self.0, other.0);
        I32x8([f(a, c), f(b, d)])
    }

    /// Converts to 16 bits with saturation: negative numbers become 0.
    #[inline(always)]
    fn words(self) -> uint16x8_t {
        let [a, b] = self.0;
        // SAFETY: instructions that every AArch64 has.
        unsafe { vqmovun_high_s32(vqmovun_s32(a), b) }
    }
}

/// Applies a function register by register.
#[inline(always)]
fn zip<T: Copy>([a, b]: [T; 2], [c, d]: [T; 2], f: impl Fn(T, T) -> T) -> [T; 2] {
    [f(a, c), f(b, d)]
}

// SAFETY: instructions that every AArch64 has.
#[expect(clippy::undocumented_unsafe_blocks, reason = "each is the caller's promise")]
unsafe impl Vector for I32x8 {
    const LANES: usize = 8;
    type Floats = [float32x4_t; 2];
    type Mantissas = I32x8;

    #[inline(always)]
    unsafe fn load(from: *const i32) -> Self {
        I32x8(unsafe { [vld1q_s32(from), vld1q_s32(from.add(4))] })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut i32) {
        unsafe {
            vst1q_s32(to, self.0[0]);
            vst1q_s32(to.add(4), self.0[1]);
        }
    }
    #[inline(always)]
    unsafe fn splat(value: i32) -> Self {
        I32x8([unsafe { vdupq_n_s32(value) }; 2])
    }
    #[inline(always)]
    unsafe fn totals(vectors: [Self; 4]) -> [i32; 4] {
        unsafe {
            let [a, b, c, d] = vectors.map(|x| vaddq_s32(x.0[0], x.0[1]));
            let mut totals = [0; 4];
            vst1q_s32(totals.as_mut_ptr(), vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d)));
            totals
        }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        self.with(other, |a, b| unsafe { vaddq_s32(a, b) })
    }
    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        self.with(other, |a, b| unsafe { vmulq_s32(a, b) })
    }
    #[inline(always)]
    unsafe fn at_least(self, low: Self) -> Self {
        self.with(low, |a, b| unsafe { vmaxq_s32(a, b) })
    }
    #[inline(always)]
    unsafe fn at_most(self, high: Self) -> Self {
        self.with(high, |a, b| unsafe { vminq_s32(a, b) })
    }
    #[inline(always)]
    unsafe fn shift_right(self, by: Self) -> Self {
        self.with(by, |a, by| unsafe { vshlq_s32(a, vnegq_s32(by)) })
    }

    #[inline(always)]
    unsafe fn mantissas(from: *const i32) -> Self {
        unsafe { Self::load(from) }
    }
    /// `sqrdmulh` is the definition; a positive mantissa does not saturate it.
    #[inline(always)]
    unsafe fn high_mul(self, by: Self) -> Self {
        self.with(by, |a, by| unsafe { vqrdmulhq_s32(a, by) })
    }

    #[inline(always)]
    unsafe fn load_floats(from: *const f32) -> Self::Floats {
        unsafe { [vld1q_f32(from), vld1q_f32(from.add(4))] }
    }
    #[inline(always)]
    unsafe fn store_floats(floats: Self::Floats, to: *mut f32) {
        unsafe {
            vst1q_f32(to, floats[0]);
            vst1q_f32(to.add(4), floats[1]);
        }
    }
    #[inline(always)]
    unsafe fn splat_float(value: f32) -> Self::Floats {
        [unsafe { vdupq_n_f32(value) }; 2]
    }
    #[inline(always)]
    unsafe fn to_floats(self) -> Self::Floats {
        self.0.map(|x| unsafe { vcvtq_f32_s32(x) })
    }
    #[inline(always)]
    unsafe fn from_bits(floats: Self::Floats) -> Self {
        I32x8(floats.map(|x| unsafe { vreinterpretq_s32_f32(x) }))
    }
    #[inline(always)]
    unsafe fn times_float(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        zip(a, b, |a, b| unsafe { vmulq_f32(a, b) })
    }
    #[inline(always)]
    unsafe fn mul_add(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        unsafe { [vfmaq_f32(c[0], a[0], b[0]), vfmaq_f32(c[1], a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn at_least_float(a: Self::Floats, low: Self::Floats) -> Self::Floats {
        zip(a, low, |a, low| unsafe { vmaxq_f32(a, low) })
    }
    #[inline(always)]
    unsafe fn at_most_float(a: Self::Floats, high: Self::Floats) -> Self::Floats {
        zip(a, high, |a, high| unsafe { vminq_f32(a, high) })
    }

    #[inline(always)]
    unsafe fn narrow<const BOUNDED: bool>(
        rows: [[Self; VECTORS]; 2],
        most: u8,
        base: u8,
        to: [*mut u8; 2],
    ) {
        for ([a, b], to) in rows.into_iter().zip(to) {
            unsafe {
                let mut bytes = vqmovn_high_u16(vqmovn_u16(a.words()), b.words());
                if BOUNDED {
                    bytes = vaddq_u8(vminq_u8(bytes, vdupq_n_u8(most)), vdupq_n_u8(base));
                }
                vst1q_u8(to, bytes);
            }
        }
    }
    #[inline(always)]
    unsafe fn narrow_words(row: [Self; VECTORS], most: u16, base: u16, to: *mut u8) {
        for (at, words) in row.into_iter().enumerate() {
            unsafe {
                let words = vminq_u16(words.words(), vdupq_n_u16(most));
                let words = vaddq_u16(words, vdupq_n_u16(base));
                vst1q_u8(to.add(16 * at), vreinterpretq_u8_u16(words));
            }
        }
    }
}
