//! AVX2, AVX-VNNI and AVX-512 VNNI.
//!
//! | | instructions for a group of each lane | exact because |
//! |---|---|---|
//! | `avx2` | `vpmaddwd`, `vpaddd` on values widened to words | a sum of two products of 9 bits has 19 |
//! | `avx_vnni` | `vpdpbusd`, 256 bits | it adds four products in 32 bits |
//! | `avx512_vnni` | `vpdpbusd`, 512 bits | the same |

use super::{Isa, compiled};
use crate::accumulate::Dot;
use std::arch::x86_64::*;

/// A vector of a CPU: its loads and stores, and how it adds products.
macro_rules! vector {
    ($(#[$meta:meta])* $name:ident($vector:ty), lanes = $lanes:literal, rows = $rows:literal, words = $words:literal,
        load = $load:ident, store = $store:ident, spread = $spread:ident, add = $add:ident, dot = $dot:expr,
        bytes = $bytes:ident, unsigned = $unsigned:ident, signed = $signed:ident, multiply = $multiply:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        struct $name($vector);

        // SAFETY: instructions of the set alone, which the caller has.
        unsafe impl Dot for $name {
            const LANES: usize = $lanes;
            const ROWS: usize = $rows;
            const WORDS: bool = $words;
            const LEFT_SIGNED: bool = false;
            const FMA: bool = true;
            type Right = $vector;

            #[inline(always)]
            unsafe fn load(from: *const i32) -> Self {
                // SAFETY: the caller's promise.
                $name(unsafe { $load(from.cast()) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut i32) {
                // SAFETY: the caller's promise.
                unsafe { $store(to.cast(), self.0) }
            }

            #[inline(always)]
            unsafe fn right(from: *const u8) -> $vector {
                // SAFETY: the caller's promise.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn dot(self, left: *const u8, right: $vector) -> Self {
                // SAFETY: the caller's promise.
                unsafe {
                    let left = $spread(left.cast::<i32>().read_unaligned());
                    $name($dot(self.0, left, right))
                }
            }

            #[inline(always)]
            unsafe fn multiply<const SIGNED: bool>(self, bytes: *const u8, right: $vector) -> Self {
                // SAFETY: the caller's promise.
                unsafe {
                    let bytes = $bytes(bytes.cast());
                    let values = if SIGNED { $signed(bytes) } else { $unsigned(bytes) };
                    $name($add(self.0, $multiply(values, right)))
                }
            }

            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: the caller has the instructions.
                $name(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn prefetch(from: *const u8) {
                // SAFETY: it reads nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
            }
        }
    };
}

vector! {
    /// Eight sums; the products of words in pairs.
    Words(__m256i), lanes = 8, rows = 6, words = true,
    load = _mm256_loadu_si256, store = _mm256_storeu_si256, spread = _mm256_set1_epi32, add = _mm256_add_epi32,
    dot = |sum, left, right| _mm256_add_epi32(sum, _mm256_madd_epi16(left, right)),
    bytes = _mm_loadl_epi64, unsigned = _mm256_cvtepu8_epi32, signed = _mm256_cvtepi8_epi32,
    multiply = _mm256_madd_epi16
}

vector! {
    /// Eight sums; the products of bytes in fours.
    Vnni256(__m256i), lanes = 8, rows = 6, words = false,
    load = _mm256_loadu_si256, store = _mm256_storeu_si256, spread = _mm256_set1_epi32, add = _mm256_add_epi32,
    dot = _mm256_dpbusd_avx_epi32,
    bytes = _mm_loadl_epi64, unsigned = _mm256_cvtepu8_epi32, signed = _mm256_cvtepi8_epi32,
    multiply = _mm256_madd_epi16
}

vector! {
    /// Sixteen sums; the products of bytes in fours.
    Vnni512(__m512i), lanes = 16, rows = 14, words = false,
    load = _mm512_loadu_si512, store = _mm512_storeu_si512, spread = _mm512_set1_epi32, add = _mm512_add_epi32,
    dot = _mm512_dpbusd_epi32,
    bytes = _mm_loadu_si128, unsigned = _mm512_cvtepu8_epi32, signed = _mm512_cvtepi8_epi32,
    multiply = _mm512_madd_epi16
}

/// AVX2 with what came in the same CPUs: a virtual machine may hide parts of it.
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

compiled!(Words, "avx2,fma,bmi1,bmi2,lzcnt,popcnt");
compiled!(Vnni256, "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avxvnni");
compiled!(Vnni512, "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");

/// `vpmaddwd`.
pub static AVX2: Isa = Isa::of::<Words>("avx2", 60.0, has_avx2);

/// `vpdpbusd` on 256 bits, as CPUs without AVX-512 have it.
pub static AVX_VNNI: Isa =
    Isa::of::<Vnni256>("avx_vnni", 120.0, || has_avx2() && is_x86_feature_detected!("avxvnni"));

/// `vpdpbusd` on 512 bits.
pub static AVX512_VNNI: Isa = Isa::of::<Vnni512>("avx512_vnni", 240.0, || {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
});
