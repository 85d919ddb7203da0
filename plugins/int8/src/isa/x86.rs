//! AVX2, AVX-VNNI and AVX-512 VNNI.
//!
//! | | instructions for a group of each lane | exact because |
//! |---|---|---|
//! | `avx2` | `vpmaddwd`, `vpaddd` on values widened to words | a sum of two products of 9 bits has 19 |
//! | `avx_vnni` | `vpdpbusd`, 256 bits | it adds four products in 32 bits |
//! | `avx512_vnni` | `vpdpbusd`, 512 bits | the same |

use super::{
    Isa, compiled,
    x86_vectors::{I32x8, I32x16},
};
use crate::{accumulate::Dot, vector::Vector};
use std::arch::{asm, x86_64::*};

/// Implements sums of products for an instruction set, from its vector and instructions.
macro_rules! dot {
    ($(#[$meta:meta])* $name:ident($sums:ident of $right:ty), rows = $rows:literal, words = $words:literal,
        load = $load:ident, spread = $spread:ident, dot = $dot:expr, pack_line = $pack_line:ident,
        widen = [$load_bytes:ident, $unsigned:ident, $signed:ident], multiply = $multiply:ident) => {
        $(#[$meta])*
        struct $name;

        // SAFETY: it only uses instructions of the set, which the caller guarantees.
        unsafe impl Dot for $name {
            type Sums = $sums;
            type Right = $right;
            const ROWS: usize = $rows;
            const WORDS: bool = $words;
            const LEFT_SIGNED: bool = false;

            #[inline(always)]
            unsafe fn right(from: *const u8) -> $right {
                // SAFETY: the caller guarantees that a group for each lane is readable, and that
                // the CPU has the instruction.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn dot(sums: $sums, left: *const u8, right: $right) -> $sums {
                // SAFETY: the caller guarantees that `left` holds a group, and that the CPU has the
                // instructions.
                unsafe {
                    let left = $spread(left.cast::<i32>().read_unaligned());
                    $sums($dot(sums.0, left, right))
                }
            }

            #[inline(always)]
            unsafe fn multiply<const SIGNED: bool>(sums: $sums, bytes: *const u8, right: $right) -> $sums {
                // SAFETY: the caller guarantees that `bytes` holds a byte for each lane, and that
                // the CPU has the instructions.
                unsafe {
                    let bytes = $load_bytes(bytes.cast());
                    let values = if SIGNED { $signed(bytes) } else { $unsigned(bytes) };
                    sums.plus($sums($multiply(values, right)))
                }
            }

            #[inline(always)]
            unsafe fn pack_line(from: *const u8, flip: u8, to: *mut u8, sums: $sums) -> $sums {
                // SAFETY: the caller guarantees that `from` holds the values of a line, that `to`
                // has room for the line, and that the CPU has the instructions.
                $sums(unsafe { $pack_line(from, flip.cast_signed(), to, sums.0) })
            }

            #[inline(always)]
            unsafe fn prefetch(from: *const u8) {
                // SAFETY: a prefetch reads nothing.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
            }
        }
    };
}

dot! {
    /// Products of words in pairs.
    Words(I32x8 of __m256i), rows = 6, words = true, load = _mm256_loadu_si256, spread = _mm256_set1_epi32,
    dot = add_products,
    pack_line = words_256,
    widen = [_mm_loadl_epi64, _mm256_cvtepu8_epi32, _mm256_cvtepi8_epi32], multiply = _mm256_madd_epi16
}

dot! {
    /// Products of bytes in groups of four.
    Vnni256(I32x8 of __m256i), rows = 6, words = false, load = _mm256_loadu_si256, spread = _mm256_set1_epi32,
    dot = _mm256_dpbusd_avx_epi32, pack_line = bytes_256,
    widen = [_mm_loadl_epi64, _mm256_cvtepu8_epi32, _mm256_cvtepi8_epi32], multiply = _mm256_madd_epi16
}

dot! {
    /// [`Vnni256`] by the instruction of AVX-512: the same with another encoding.
    Twin256(I32x8 of __m256i), rows = 6, words = false, load = _mm256_loadu_si256, spread = _mm256_set1_epi32,
    dot = _mm256_dpbusd_epi32, pack_line = bytes_256,
    widen = [_mm_loadl_epi64, _mm256_cvtepu8_epi32, _mm256_cvtepi8_epi32], multiply = _mm256_madd_epi16
}

dot! {
    /// Products of bytes in groups of four.
    Vnni512(I32x16 of __m512i), rows = 14, words = false, load = _mm512_loadu_si512, spread = _mm512_set1_epi32,
    dot = _mm512_dpbusd_epi32, pack_line = bytes_512,
    widen = [_mm_loadu_si128, _mm512_cvtepu8_epi32, _mm512_cvtepi8_epi32], multiply = _mm512_madd_epi16
}

/// `vpmaddwd` and `vpaddd` in assembly, so that the compiler does not reorder them: it would add
/// the products of several groups before adding them to the sums, and run out of registers.
#[inline]
#[target_feature(enable = "avx2")]
fn add_products(mut sums: __m256i, left: __m256i, right: __m256i) -> __m256i {
    // SAFETY: the instructions only read and write these registers.
    unsafe {
        asm!(
            "vpmaddwd {products}, {left}, {right}",
            "vpaddd {sums}, {sums}, {products}",
            products = out(ymm_reg) _,
            left = in(ymm_reg) left,
            right = in(ymm_reg) right,
            sums = inout(ymm_reg) sums,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sums
}

/// Widens half a line of bytes to words. `vpsadbw` sums eight bytes.
///
/// # Safety
/// - `from` is readable for half a line, and `to` writable for a line.
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn words_256(from: *const u8, flip: i8, to: *mut u8, sums: __m256i) -> __m256i {
    // SAFETY: the caller guarantees that `from` holds half a line, that `to` has room for a line,
    // and that the CPU has the instructions.
    unsafe {
        let x = _mm256_xor_si256(_mm256_loadu_si256(from.cast()), _mm256_set1_epi8(flip));
        let halves = [_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x)];
        for (at, half) in halves.into_iter().enumerate() {
            _mm256_storeu_si256(to.cast::<__m256i>().add(at), _mm256_cvtepu8_epi16(half));
        }
        _mm256_add_epi32(sums, _mm256_sad_epu8(x, _mm256_setzero_si256()))
    }
}

/// Packs a line in two halves.
///
/// # Safety
/// - `from` is readable for a line, and `to` writable for one.
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn bytes_256(from: *const u8, flip: i8, to: *mut u8, mut sums: __m256i) -> __m256i {
    // SAFETY: the caller guarantees that `from` holds a line, that `to` has room for one, and that
    // the CPU has the instructions.
    unsafe {
        for at in 0..2 {
            let x = _mm256_loadu_si256(from.cast::<__m256i>().add(at));
            let x = _mm256_xor_si256(x, _mm256_set1_epi8(flip));
            _mm256_storeu_si256(to.cast::<__m256i>().add(at), x);
            sums = _mm256_add_epi32(sums, _mm256_sad_epu8(x, _mm256_setzero_si256()));
        }
        sums
    }
}

/// Packs a line. Here the dot product with ones takes one instruction less than `vpsadbw` and an
/// addition.
///
/// # Safety
/// - `from` is readable for a line, and `to` writable for one.
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn bytes_512(from: *const u8, flip: i8, to: *mut u8, sums: __m512i) -> __m512i {
    // SAFETY: the caller guarantees that `from` holds a line, that `to` has room for one, and that
    // the CPU has the instructions.
    unsafe {
        let x = _mm512_xor_si512(_mm512_loadu_si512(from.cast()), _mm512_set1_epi8(flip));
        _mm512_storeu_si512(to.cast(), x);
        _mm512_dpbusd_epi32(sums, x, _mm512_set1_epi8(1))
    }
}

/// Whether the CPU has AVX2 and the features that came with it: a virtual machine may hide some of
/// them.
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Whether the CPU has AVX-512 VNNI and the subsets of AVX-512 used here.
fn has_avx512_vnni() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

compiled!(Words, "avx2,fma,bmi1,bmi2,lzcnt,popcnt");
compiled!(Vnni256, "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avxvnni");
compiled!(Twin256, "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512vl,avx512vnni");
compiled!(Vnni512, "avx2,fma,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");

/// `vpmaddwd`.
pub static AVX2: Isa = Isa::of::<Words>("avx2", 60.0, has_avx2);

/// `vpdpbusd` on 256 bits, for CPUs without AVX-512.
pub static AVX_VNNI: Isa =
    Isa::of::<Vnni256>("avx_vnni", 120.0, || has_avx2() && is_x86_feature_detected!("avxvnni"));

/// [`AVX_VNNI`] by the instruction of AVX-512.
pub static AVX_VNNI_TWIN: Isa = Isa::of::<Twin256>("avx_vnni_twin", 120.0, has_avx512_vnni);

/// `vpdpbusd` on 512 bits.
pub static AVX512_VNNI: Isa = Isa::of::<Vnni512>("avx512_vnni", 240.0, has_avx512_vnni);
