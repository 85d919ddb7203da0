//! AVX-512, and AVX2 with FMA.
//!
//! | | registers | sums | vectors of `B` | factor of `A` |
//! |---|---|---|---|---|
//! | `avx512` | 32 | 8 x 3 | 3 | 1 |
//! | `avx2` | 16 | 6 x 2 | 2 | 1 |

use super::{super::vector::Vector, compiled};
use std::arch::x86_64::*;

/// Masks that select the first `count` of 8 or 4 lanes, by the highest bit of each.
///
/// # Safety
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn first_of_eight(count: usize) -> __m256i {
    // SAFETY: the caller guarantees that the CPU has the instructions.
    unsafe {
        let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), lanes)
    }
}

#[inline(always)]
unsafe fn first_of_four(count: usize) -> __m256i {
    // SAFETY: the caller guarantees that the CPU has the instructions.
    unsafe {
        let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
        _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), lanes)
    }
}

#[inline(always)]
fn bits(count: usize) -> u16 {
    ((1u32 << count) - 1) as u16
}

/// Implements a vector type from its register and instructions.
macro_rules! vector {
    ($(#[$meta:meta])* $name:ident($register:ty) of $scalar:ty, lanes = $lanes:literal,
        $zero:ident, $spread:ident, $load:ident, $store:ident, $plus:ident, $minus:ident, $times:ident,
        $max:ident, $min:ident, $mul_add:ident,
        load_part = |$from:ident, $load_count:ident| $load_part:expr,
        store_part = |$to:ident, $store_count:ident, $value:ident| $store_part:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub struct $name($register);

        // SAFETY: it only uses instructions of the set, which the caller guarantees.
        unsafe impl Vector for $name {
            type Scalar = $scalar;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: the caller guarantees, here and below, that the CPU has the instruction,
                // and that pointers are valid for the numbers that are read or written.
                unsafe { $name($zero()) }
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
            unsafe fn load_part($from: *const $scalar, $load_count: usize) -> Self {
                // SAFETY: as above.
                unsafe { $name($load_part) }
            }
            #[inline(always)]
            unsafe fn store_part(self, $to: *mut $scalar, $store_count: usize) {
                let $value = self.0;
                // SAFETY: as above.
                unsafe { $store_part }
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
                // SAFETY: as above, here and below; for NaN the result is the second operand.
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
                unsafe { $name($mul_add(self.0, by.0, to.0)) }
            }
            #[inline(always)]
            unsafe fn prefetch(from: *const $scalar) {
                // SAFETY: a prefetch is a hint, with any address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
            }
            #[inline(always)]
            unsafe fn prefetch_far(from: *const $scalar) {
                // SAFETY: as above.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
            }
        }
    };
}

vector! {
    /// 512 bits of floats.
    F32x16(__m512) of f32, lanes = 16, _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps,
    _mm512_storeu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
    _mm512_max_ps, _mm512_min_ps, _mm512_fmadd_ps,
    load_part = |from, count| _mm512_maskz_loadu_ps(bits(count), from),
    store_part = |to, count, value| _mm512_mask_storeu_ps(to, bits(count), value)
}

vector! {
    /// 512 bits of sums of floats, whose factors are pairs of bfloat16.
    Bf16Pairs(__m512) of f32, lanes = 16, _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps,
    _mm512_storeu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
    _mm512_max_ps, _mm512_min_ps, add_pairs,
    load_part = |from, count| _mm512_maskz_loadu_ps(bits(count), from),
    store_part = |to, count, value| _mm512_mask_storeu_ps(to, bits(count), value)
}

/// Adds the products of both factors of each lane.
///
/// # Safety
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn add_pairs(left: __m512, right: __m512, sums: __m512) -> __m512 {
    // SAFETY: the caller guarantees that the CPU has the instructions; both types have 512 bits.
    unsafe {
        let left = std::mem::transmute::<__m512, __m512bh>(left);
        _mm512_dpbf16_ps(sums, left, std::mem::transmute::<__m512, __m512bh>(right))
    }
}

vector! {
    /// 512 bits of doubles.
    F64x8(__m512d) of f64, lanes = 8, _mm512_setzero_pd, _mm512_set1_pd, _mm512_loadu_pd,
    _mm512_storeu_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd,
    _mm512_max_pd, _mm512_min_pd, _mm512_fmadd_pd,
    load_part = |from, count| _mm512_maskz_loadu_pd(bits(count) as u8, from),
    store_part = |to, count, value| _mm512_mask_storeu_pd(to, bits(count) as u8, value)
}

vector! {
    /// 256 bits of floats.
    F32x8(__m256) of f32, lanes = 8, _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps,
    _mm256_storeu_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps,
    _mm256_max_ps, _mm256_min_ps, _mm256_fmadd_ps,
    load_part = |from, count| _mm256_maskload_ps(from, first_of_eight(count)),
    store_part = |to, count, value| _mm256_maskstore_ps(to, first_of_eight(count), value)
}

vector! {
    /// 256 bits of doubles.
    F64x4(__m256d) of f64, lanes = 4, _mm256_setzero_pd, _mm256_set1_pd, _mm256_loadu_pd,
    _mm256_storeu_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd,
    _mm256_max_pd, _mm256_min_pd, _mm256_fmadd_pd,
    load_part = |from, count| _mm256_maskload_pd(from, first_of_four(count)),
    store_part = |to, count, value| _mm256_maskstore_pd(to, first_of_four(count), value)
}

compiled! {
    /// Tiles of floats by AVX-512.
    Avx512F32 of F32x16, rows = 8, vectors = 3,
    features = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl"
}
compiled! {
    /// Tiles of pairs by AVX-512 BF16.
    Avx512Bf16 of Bf16Pairs, rows = 8, vectors = 3,
    features = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"
}
compiled! {
    /// Tiles of doubles by AVX-512.
    Avx512F64 of F64x8, rows = 8, vectors = 3,
    features = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl"
}
compiled! {
    /// Tiles of floats by AVX2 and FMA.
    Avx2F32 of F32x8, rows = 6, vectors = 2, features = "avx2,fma,bmi1,bmi2,lzcnt,popcnt"
}
compiled! {
    /// Tiles of doubles by AVX2 and FMA.
    Avx2F64 of F64x4, rows = 6, vectors = 2, features = "avx2,fma,bmi1,bmi2,lzcnt,popcnt"
}
