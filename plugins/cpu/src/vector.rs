//! Vectors of floats, for loops whose values the compiler would not keep together: a transformation of some
//! vectors into others is straight-line code, which it cuts up by element.
//!
//! A vector's type goes with an [`Isa`](crate::arch::Isa); its functions are for loops that `vectorised!` compiles
//! for that one.

/// Floats that are computed with at once.
pub trait Vector: Copy {
    /// How many.
    const LEN: usize;
    /// Zeros.
    const ZERO: Self;

    /// # Safety
    /// There are `LEN` floats to read.
    unsafe fn load(from: *const f32) -> Self;

    /// # Safety
    /// `LEN` floats may be written.
    unsafe fn store(self, to: *mut f32);

    /// The sum.
    fn plus(self, other: Self) -> Self;

    /// The difference.
    fn minus(self, other: Self) -> Self;

    /// `self * factor + other`, rounded once where there is an instruction for it.
    fn times_plus(self, factor: f32, other: Self) -> Self;
}

/// Floats without instructions of their own.
pub type Plain = [f32; 4];

impl Vector for Plain {
    const LEN: usize = 4;
    const ZERO: Plain = [0.0; 4];

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Plain {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Plain>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's promise.
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
}

#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($($ty:ident: $len:literal, $load:ident, $store:ident, $add:ident, $sub:ident, $fma:ident, $set:ident;)*) => {$(
        impl Vector for std::arch::x86_64::$ty {
            const LEN: usize = $len;
            // SAFETY: every bit pattern is a vector.
            const ZERO: Self = unsafe { std::mem::zeroed() };

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: the caller's promise; the loop is compiled for CPUs that have the instruction.
                unsafe { std::arch::x86_64::$load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$store(to, self) }
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                // SAFETY: the loop is compiled for CPUs that have the instruction.
                unsafe { std::arch::x86_64::$add(self, other) }
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$sub(self, other) }
            }

            #[inline(always)]
            fn times_plus(self, factor: f32, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { std::arch::x86_64::$fma(self, std::arch::x86_64::$set(factor), other) }
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
registers! {
    __m256: 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_fmadd_ps, _mm256_set1_ps;
    __m512: 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_fmadd_ps, _mm512_set1_ps;
}
