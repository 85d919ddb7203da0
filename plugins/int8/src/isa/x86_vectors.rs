//! Vectors of 256 and 512 bits.

use crate::vector::{VECTORS, Vector};
use std::arch::x86_64::*;

/// Eight sums: AVX2 and FMA.
#[derive(Clone, Copy)]
pub struct I32x8(pub __m256i);

/// Sixteen sums: AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub struct I32x16(pub __m512i);

/// Mantissas unchanged, and those of odd lanes moved to even ones.
#[derive(Clone, Copy)]
pub struct Mantissas<V>([V; 2]);

/// Implements a vector from the names of its instructions.
macro_rules! vector {
    ($name:ident($ints:ty, $floats:ty), lanes = $lanes:literal,
        load = $load:ident, store = $store:ident, load_ps = $load_ps:ident, store_ps = $store_ps:ident,
        splat = $splat:ident, splat_ps = $splat_ps:ident, totals = $totals:ident, convert = $convert:ident, bits = $bits:ident,
        fmadd = $fmadd:ident,
        ints { $($int:ident = $int_op:ident),* $(,)? }
        floats { $($float:ident = $float_op:ident),* $(,)? }
        high_mul { odd = $odd:ident, mul = $mul:ident, add = $add64:ident, splat = $splat64:ident,
            merge = $merge:expr }
        narrow { words = $words:ident, unsigned_words = $unsigned:ident, bytes = $bytes:ident, least = $least:ident,
            add = $add8:ident, splat = $splat8:ident, order = $order:expr, halves = $halves:expr }
        narrow_words { least = $least16:ident, add = $add16:ident, splat = $splat16:ident, order = $order16:expr }
    ) => {
        // SAFETY: it only uses instructions of the set, which the caller guarantees.
        #[expect(clippy::undocumented_unsafe_blocks, reason = "each is the caller's promise")]
        unsafe impl Vector for $name {
            const LANES: usize = $lanes;
            type Floats = $floats;
            type Mantissas = Mantissas<$ints>;

            #[inline(always)]
            unsafe fn load(from: *const i32) -> Self {
                $name(unsafe { $load(from.cast()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut i32) {
                unsafe { $store(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn splat(value: i32) -> Self {
                $name(unsafe { $splat(value) })
            }
            #[inline(always)]
            unsafe fn totals(vectors: [Self; 4]) -> [i32; 4] {
                unsafe { $totals(vectors) }
            }
            $(
                #[inline(always)]
                unsafe fn $int(self, other: Self) -> Self {
                    $name(unsafe { $int_op(self.0, other.0) })
                }
            )*

            #[inline(always)]
            unsafe fn mantissas(from: *const i32) -> Self::Mantissas {
                unsafe {
                    let all = $load(from.cast());
                    Mantissas([all, $odd(all)])
                }
            }
            /// Products of even and of odd lanes, doubled: the high half is the result.
            #[inline(always)]
            unsafe fn high_mul(self, Mantissas([even, odd]): Self::Mantissas) -> Self {
                unsafe {
                    let half = $splat64(1 << 30);
                    let mut lanes = [self.0, $odd(self.0)];
                    for (x, by) in lanes.iter_mut().zip([even, odd]) {
                        let product = $add64($mul(*x, by), half);
                        *x = $add64(product, product);
                    }
                    $name($merge($odd(lanes[0]), lanes[1]))
                }
            }

            #[inline(always)]
            unsafe fn load_floats(from: *const f32) -> $floats {
                unsafe { $load_ps(from) }
            }
            #[inline(always)]
            unsafe fn store_floats(floats: $floats, to: *mut f32) {
                unsafe { $store_ps(to, floats) }
            }
            #[inline(always)]
            unsafe fn splat_float(value: f32) -> $floats {
                unsafe { $splat_ps(value) }
            }
            #[inline(always)]
            unsafe fn to_floats(self) -> $floats {
                unsafe { $convert(self.0) }
            }
            #[inline(always)]
            unsafe fn from_bits(floats: $floats) -> Self {
                $name(unsafe { $bits(floats) })
            }
            #[inline(always)]
            unsafe fn mul_add(a: $floats, b: $floats, c: $floats) -> $floats {
                unsafe { $fmadd(a, b, c) }
            }
            $(
                #[inline(always)]
                unsafe fn $float(a: $floats, b: $floats) -> $floats {
                    unsafe { $float_op(a, b) }
                }
            )*

            /// In each 128 bits, packing leaves four bytes of each vector: those of a row are
            /// gathered in one half.
            #[inline(always)]
            unsafe fn narrow<const BOUNDED: bool>(rows: [[Self; VECTORS]; 2], most: u8, base: u8, to: [*mut u8; 2]) {
                unsafe {
                    let [[a, b], [c, d]] = rows;
                    let (a, b) = ($words(a.0, b.0), $words(c.0, d.0));
                    let mut bytes = $bytes(a, b);
                    if BOUNDED {
                        bytes = $least(bytes, $splat8(most.cast_signed()));
                        bytes = $add8(bytes, $splat8(base.cast_signed()));
                    }
                    $halves($order(bytes), to)
                }
            }
            #[inline(always)]
            unsafe fn narrow_words([first, second]: [Self; VECTORS], most: u16, base: u16, to: *mut u8) {
                unsafe {
                    let words = $least16($unsigned(first.0, second.0), $splat16(most.cast_signed()));
                    let words = $add16(words, $splat16(base.cast_signed()));
                    $store(to.cast(), $order16(words))
                }
            }
        }
    };
}

vector! {
    I32x8(__m256i, __m256), lanes = 8,
    load = _mm256_loadu_si256, store = _mm256_storeu_si256, load_ps = _mm256_loadu_ps, store_ps = _mm256_storeu_ps,
    splat = _mm256_set1_epi32, splat_ps = _mm256_set1_ps, totals = totals_256, convert = _mm256_cvtepi32_ps, bits = _mm256_castps_si256,
    fmadd = _mm256_fmadd_ps,
    ints {
        plus = _mm256_add_epi32, times = _mm256_mullo_epi32, shift_right = _mm256_srav_epi32,
        at_least = _mm256_max_epi32, at_most = _mm256_min_epi32,
    }
    floats { times_float = _mm256_mul_ps, at_least_float = _mm256_max_ps, at_most_float = _mm256_min_ps }
    high_mul {
        odd = odd_256, mul = _mm256_mul_epi32, add = _mm256_add_epi64, splat = _mm256_set1_epi64x,
        merge = |even, odd| _mm256_blend_epi32::<0b1010_1010>(even, odd)
    }
    narrow {
        words = _mm256_packs_epi32, unsigned_words = _mm256_packus_epi32, bytes = _mm256_packus_epi16,
        least = _mm256_min_epu8, add = _mm256_add_epi8, splat = _mm256_set1_epi8,
        order = |x| _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)),
        halves = |x, to: [*mut u8; 2]| {
            _mm_storeu_si128(to[0].cast(), _mm256_castsi256_si128(x));
            _mm_storeu_si128(to[1].cast(), _mm256_extracti128_si256::<1>(x));
        }
    }
    narrow_words {
        least = _mm256_min_epu16, add = _mm256_add_epi16, splat = _mm256_set1_epi16,
        order = |x| _mm256_permute4x64_epi64::<0b11_01_10_00>(x)
    }
}

vector! {
    I32x16(__m512i, __m512), lanes = 16,
    load = _mm512_loadu_si512, store = _mm512_storeu_si512, load_ps = _mm512_loadu_ps, store_ps = _mm512_storeu_ps,
    splat = _mm512_set1_epi32, splat_ps = _mm512_set1_ps, totals = totals_512, convert = _mm512_cvtepi32_ps, bits = _mm512_castps_si512,
    fmadd = _mm512_fmadd_ps,
    ints {
        plus = _mm512_add_epi32, times = _mm512_mullo_epi32, shift_right = _mm512_srav_epi32,
        at_least = _mm512_max_epi32, at_most = _mm512_min_epi32,
    }
    floats { times_float = _mm512_mul_ps, at_least_float = _mm512_max_ps, at_most_float = _mm512_min_ps }
    high_mul {
        odd = odd_512, mul = _mm512_mul_epi32, add = _mm512_add_epi64, splat = _mm512_set1_epi64,
        merge = |even, odd| _mm512_mask_blend_epi32(0xAAAA, even, odd)
    }
    narrow {
        words = _mm512_packs_epi32, unsigned_words = _mm512_packus_epi32, bytes = _mm512_packus_epi16,
        least = _mm512_min_epu8, add = _mm512_add_epi8, splat = _mm512_set1_epi8,
        order = |x| _mm512_permutexvar_epi32(
            _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x),
        halves = |x, to: [*mut u8; 2]| {
            _mm256_storeu_si256(to[0].cast(), _mm512_castsi512_si256(x));
            _mm256_storeu_si256(to[1].cast(), _mm512_extracti64x4_epi64::<1>(x));
        }
    }
    narrow_words {
        least = _mm512_min_epu16, add = _mm512_add_epi16, splat = _mm512_set1_epi16,
        order = |x| _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), x)
    }
}

/// Adds adjacent lanes until each half has a lane for each vector.
///
/// # Safety
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn totals_256([a, b, c, d]: [I32x8; 4]) -> [i32; 4] {
    let mut totals = [0; 4];
    // SAFETY: the caller guarantees that the CPU has the instructions.
    unsafe {
        let x = _mm256_hadd_epi32(_mm256_hadd_epi32(a.0, b.0), _mm256_hadd_epi32(c.0, d.0));
        let x = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        _mm_storeu_si128(totals.as_mut_ptr().cast(), x);
    }
    totals
}

/// Adds the halves of each vector first.
///
/// # Safety
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn totals_512([a, b, c, d]: [I32x16; 4]) -> [i32; 4] {
    /// The sum of the halves.
    #[inline(always)]
    unsafe fn folded(x: I32x16) -> I32x8 {
        // SAFETY: the caller guarantees that the CPU has the instructions.
        let halves = unsafe { [_mm512_castsi512_si256(x.0), _mm512_extracti64x4_epi64::<1>(x.0)] };
        // SAFETY: the caller guarantees that the CPU has the instructions.
        I32x8(unsafe { _mm256_add_epi32(halves[0], halves[1]) })
    }
    // SAFETY: the caller guarantees that the CPU has the instructions.
    unsafe { totals_256([folded(a), folded(b), folded(c), folded(d)]) }
}

/// Moves odd lanes to even ones.
///
/// # Safety
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn odd_256(x: __m256i) -> __m256i {
    // SAFETY: the caller guarantees that the CPU has the instructions.
    unsafe { _mm256_castps_si256(_mm256_movehdup_ps(_mm256_castsi256_ps(x))) }
}

/// Moves odd lanes to even ones.
///
/// # Safety
/// - The CPU has the instructions.
#[inline(always)]
unsafe fn odd_512(x: __m512i) -> __m512i {
    // SAFETY: the caller guarantees that the CPU has the instructions.
    unsafe { _mm512_castps_si512(_mm512_movehdup_ps(_mm512_castsi512_ps(x))) }
}
