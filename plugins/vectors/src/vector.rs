//! Vectors of floats, for loops whose values the compiler would not keep in vectors: a
//! transformation of some vectors into others is straight-line code, which the compiler splits by
//! element.
//!
//! A vector's type belongs to an [`Isa`](crate::arch::Isa); its functions are for loops that
//! `vectorised!` compiles for that instruction set.
//!
//! # Why computing with vectors is safe
//! A value of a vector's type exists only where the CPU has the type's instructions:
//! - The functions that make a value (`zero`, `load`, `load_part`) are unsafe, and require the
//!   instructions.
//! - All other functions take a value, which proves them.

/// A vector of floats.
pub trait Vector: Copy {
    /// The number of floats.
    const LEN: usize;
    /// Returns zeros.
    ///
    /// # Safety
    /// The CPU has the instructions of the type.
    unsafe fn zero() -> Self;

    /// Returns zeros, given any vector.
    #[inline(always)]
    fn zeros(self) -> Self {
        // SAFETY: `self` exists, so that the CPU has the instructions.
        unsafe { Self::zero() }
    }

    /// Reads `LEN` floats.
    ///
    /// # Safety
    /// - `LEN` floats may be read at `from`.
    /// - The CPU has the instructions of the type.
    unsafe fn load(from: *const f32) -> Self;

    /// Writes the floats.
    ///
    /// # Safety
    /// `LEN` floats may be written at `to`.
    unsafe fn store(self, to: *mut f32);

    /// The sum.
    fn plus(self, other: Self) -> Self;

    /// The difference.
    fn minus(self, other: Self) -> Self;

    /// `self * factor + other`, rounded once where there is an instruction for it.
    fn times_plus(self, factor: f32, other: Self) -> Self;

    /// The product.
    fn times(self, other: Self) -> Self;

    /// `self * factors + other`, with a factor for each float.
    fn each_times_plus(self, factors: Self, other: Self) -> Self;

    /// `min(max(self, 0), high)`. NaN stays, and -0 becomes 0.
    fn clamped(self, high: f32) -> Self;

    /// Reads the first `count` floats; the others are zero.
    ///
    /// # Safety
    /// - `count` floats may be read at `from`, and `count` is at most `LEN`.
    /// - The CPU has the instructions of the type.
    unsafe fn load_part(from: *const f32, count: usize) -> Self;

    /// Stores the first `count` floats.
    ///
    /// # Safety
    /// `count` floats may be written at `to`, and `count` is at most `LEN`.
    unsafe fn store_part(self, to: *mut f32, count: usize);
}

/// Floats without vector instructions.
pub type Plain = [f32; 4];

impl Vector for Plain {
    const LEN: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Plain {
        [0.0; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Plain {
        // SAFETY: the caller guarantees that `LEN` floats may be read.
        unsafe { from.cast::<Plain>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller guarantees that `LEN` floats may be written.
        unsafe { to.cast::<Plain>().write_unaligned(self) }
    }

    #[inline(always)]
    fn plus(mut self, other: Plain) -> Plain {
        self.iter_mut().zip(other).for_each(|(x, y)| *x += y);
        self
    }

    #[inline(always)]
    fn minus(mut self, other: Plain) -> Plain {
        self.iter_mut().zip(other).for_each(|(x, y)| *x -= y);
        self
    }

    #[inline(always)]
    fn times_plus(mut self, factor: f32, other: Plain) -> Plain {
        self.iter_mut().zip(other).for_each(|(x, y)| *x = *x * factor + y);
        self
    }

    #[inline(always)]
    fn times(mut self, other: Plain) -> Plain {
        self.iter_mut().zip(other).for_each(|(x, y)| *x *= y);
        self
    }

    #[inline(always)]
    fn each_times_plus(mut self, factors: Plain, other: Plain) -> Plain {
        let others = factors.into_iter().zip(other);
        self.iter_mut().zip(others).for_each(|(x, (factor, y))| *x = *x * factor + y);
        self
    }

    #[inline(always)]
    fn clamped(self, high: f32) -> Plain {
        // Adding 0 flushes a denormal where the thread's arithmetic does, and makes -0 0.
        self.map(|x| {
            let x = if x < 0.0 { 0.0 } else { x };
            (if x > high { high } else { x }) + 0.0
        })
    }

    #[inline(always)]
    unsafe fn load_part(from: *const f32, count: usize) -> Plain {
        // SAFETY: the caller guarantees that `count` floats may be read.
        let at = |i: usize| if i < count { unsafe { from.add(i).read() } } else { 0.0 };
        [at(0), at(1), at(2), at(3)]
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, count: usize) {
        for (i, x) in self.iter().enumerate() {
            if i < count {
                // SAFETY: the caller guarantees that `count` floats may be written.
                unsafe { to.add(i).write(*x) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($($ty:ident: $len:literal, $load:ident, $store:ident, $add:ident, $sub:ident, $mul:ident, $fma:ident, $set:ident,
        $max:ident, $min:ident, $load_part:ident, $store_part:ident, $mask:ident;)*) => {$(
        impl Vector for std::arch::x86_64::$ty {
            const LEN: usize = $len;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: every bit pattern is a vector, and the caller guarantees that the CPU has
                // the type's instructions.
                unsafe { std::mem::zeroed() }
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: the caller guarantees that the floats are there, and that the CPU has the
                // instruction.
                unsafe { std::arch::x86_64::$load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: the caller guarantees that the floats may be written; `self` shows that
                // the CPU has the instruction.
                unsafe { std::arch::x86_64::$store(to, self) }
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                // SAFETY: `self` shows that the CPU has the instruction.
                unsafe { std::arch::x86_64::$add(self, other) }
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                // SAFETY: `self` shows that the CPU has the instruction.
                unsafe { std::arch::x86_64::$sub(self, other) }
            }

            #[inline(always)]
            fn times_plus(self, factor: f32, other: Self) -> Self {
                // SAFETY: `self` shows that the CPU has the instruction.
                unsafe { std::arch::x86_64::$fma(self, std::arch::x86_64::$set(factor), other) }
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                // SAFETY: `self` shows that the CPU has the instruction.
                unsafe { std::arch::x86_64::$mul(self, other) }
            }

            #[inline(always)]
            fn each_times_plus(self, factors: Self, other: Self) -> Self {
                // SAFETY: `self` shows that the CPU has the instruction.
                unsafe { std::arch::x86_64::$fma(self, factors, other) }
            }

            #[inline(always)]
            fn clamped(self, high: f32) -> Self {
                // For two numbers that do not compare, these instructions return the second.
                // SAFETY: `self` shows that the CPU has the instructions.
                unsafe {
                    let x = std::arch::x86_64::$max(self.zeros(), self);
                    std::arch::x86_64::$min(std::arch::x86_64::$set(high), x).plus(self.zeros())
                }
            }

            #[inline(always)]
            unsafe fn load_part(from: *const f32, count: usize) -> Self {
                // SAFETY: the caller guarantees that the floats are there, and that the CPU has the
                // instruction.
                unsafe { parts::$load_part(parts::$mask(count), from) }
            }

            #[inline(always)]
            unsafe fn store_part(self, to: *mut f32, count: usize) {
                // SAFETY: the caller guarantees that the floats may be written; `self` shows that
                // the CPU has the instruction.
                unsafe { parts::$store_part(to, parts::$mask(count), self) }
            }
        }
    )*};
}

/// Loads and stores of some floats, with the same arguments for every width.
#[cfg(target_arch = "x86_64")]
mod parts {
    use std::arch::x86_64::{__m256, __m256i, __mmask16, _mm256_loadu_si256, _mm256_maskload_ps};
    pub use std::arch::x86_64::{
        _mm256_maskstore_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
    };

    /// The mask of the first `count` of 8 floats.
    ///
    /// # Safety
    /// - `count` is at most 8.
    /// - The CPU has AVX.
    #[inline(always)]
    pub unsafe fn first_of_8(count: usize) -> __m256i {
        const MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        // SAFETY: `count` is at most 8, so that the masks are inside the table; the CPU has the
        // instruction.
        unsafe { _mm256_loadu_si256(MASKS.as_ptr().add(8 - count).cast()) }
    }

    /// The mask of the first `count` of 16 floats.
    ///
    /// # Safety
    /// `count` is at most 16.
    #[inline(always)]
    pub unsafe fn first_of_16(count: usize) -> __mmask16 {
        ((1u32 << count) - 1) as __mmask16
    }

    #[inline(always)]
    pub unsafe fn load_of_8(mask: __m256i, from: *const f32) -> __m256 {
        // SAFETY: the caller guarantees that the selected floats may be read, and that the CPU has
        // the instruction.
        unsafe { _mm256_maskload_ps(from, mask) }
    }
}

#[cfg(target_arch = "x86_64")]
registers! {
    __m256: 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_fmadd_ps, _mm256_set1_ps,
        _mm256_max_ps, _mm256_min_ps, load_of_8, _mm256_maskstore_ps, first_of_8;
    __m512: 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_fmadd_ps, _mm512_set1_ps,
        _mm512_max_ps, _mm512_min_ps, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, first_of_16;
}
