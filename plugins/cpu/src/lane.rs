//! 16-bit floats in loops that vectorise.
//!
//! Arithmetic on half and bfloat16 is done in float and rounded once.

use crate::arch::{Isa, vectorised};
use half::{bf16, f16};
use tenon_sdk::element::Number;
use tenon_vectors::narrow::{
    bf16_down, bf16_up, f16_down, f16_up, halves_down, halves_up, rows_of_halves_up,
};

/// A number type with its type of computation: float for 16-bit floats, else the type itself.
pub trait Compute: Number<Accumulator = Self::Wide> {
    /// The type of computation (`Number::Accumulator`), which computes in itself.
    type Wide: Compute<Wide = Self::Wide>;
    /// Converts without loss.
    fn up(self) -> Self::Wide;
    /// Rounds to nearest, ties to even.
    fn down(value: Self::Wide) -> Self;
    /// Converts as many numbers as both slices have.
    fn all_up(x: &[Self], y: &mut [Self::Wide]) {
        each_up(x, y);
    }
    /// Rounds as many numbers as both slices have.
    fn all_down(x: &[Self::Wide], y: &mut [Self]) {
        each_down(x, y);
    }
    /// Converts `columns` numbers of each row, from rows `stride` apart to whole rows `width` apart.
    ///
    /// Panics if `x` has too few rows, or `width` is 0.
    fn rows_up(x: &[Self], stride: usize, columns: usize, y: &mut [Self::Wide], width: usize) {
        each_row_up(x, stride, columns, y, width);
    }
    /// `self * y + z`, rounded once where there is an instruction for it.
    #[inline(always)]
    fn mul_add<I: Isa>(self, y: Self, z: Self) -> Self {
        self.mul(y).add(z)
    }
    /// `min(max(self, 0), high)` for a `high` above zero, exactly. NaN stays, -0 becomes 0, and a
    /// denormal is flushed where the thread's arithmetic flushes denormals.
    fn clamped(self, high: Self) -> Self;
}

/// The value, with a denormal float flushed to zero where the thread's arithmetic flushes
/// denormals, which selecting and comparing do not; -0 may become 0.
#[inline(always)]
pub fn flushed<W: Compute>(x: W) -> W {
    x.add(W::ZERO)
}

vectorised! {
    fn each_up[T: Compute](x: &[T], y: &mut [T::Wide]) {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = x.up());
    }
}

vectorised! {
    fn each_down[T: Compute](x: &[T::Wide], y: &mut [T]) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = T::down(x));
    }
}

vectorised! {
    fn each_row_up[T: Compute](x: &[T], stride: usize, columns: usize, y: &mut [T::Wide], width: usize) {
        /// Number of elements that the compiler turns into whole vectors.
        const PIECE: usize = 16;
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            let x = &x[row * stride..][..columns];
            let (pieces, rest) = x.as_chunks::<PIECE>();
            let (to_pieces, to_rest) = y[..columns].as_chunks_mut::<PIECE>();
            for (y, x) in to_pieces.iter_mut().zip(pieces) {
                for (y, x) in y.iter_mut().zip(x) {
                    *y = x.up();
                }
            }
            for (y, x) in to_rest.iter_mut().zip(rest) {
                *y = x.up();
            }
        }
    }
}

macro_rules! itself {
    ($($ty:ty $(, $fused:ident)?;)*) => {$(
        impl Compute for $ty {
            type Wide = $ty;
            #[inline(always)]
            fn up(self) -> $ty {
                self
            }
            #[inline(always)]
            fn down(value: $ty) -> $ty {
                value
            }
            #[inline(always)]
            fn clamped(self, high: $ty) -> $ty {
                let x = if self < Self::ZERO { Self::ZERO } else { self };
                flushed(if x > high { high } else { x })
            }
            $(#[inline(always)]
            fn mul_add<I: Isa>(self, y: $ty, z: $ty) -> $ty {
                if I::FMA { <$ty>::$fused(self, y, z) } else { self * y + z }
            })?
        }
    )*};
}

itself! {
    i8;
    i16;
    i32;
    i64;
    u8;
    u16;
    u32;
    u64;
    f32, mul_add;
    f64, mul_add;
}

impl Compute for bf16 {
    type Wide = f32;
    #[inline(always)]
    fn up(self) -> f32 {
        bf16_up(self)
    }
    #[inline(always)]
    fn down(value: f32) -> bf16 {
        bf16_down(value)
    }
    #[inline(always)]
    fn clamped(self, high: bf16) -> bf16 {
        // The value is one of three bfloat16 values, or a NaN that was one: there is nothing to
        // round.
        bf16::from_bits((self.up().clamped(high.up()).to_bits() >> 16) as u16)
    }
}

impl Compute for f16 {
    type Wide = f32;
    #[inline(always)]
    fn up(self) -> f32 {
        f16_up(self)
    }
    #[inline(always)]
    fn down(value: f32) -> f16 {
        f16_down(value)
    }
    fn all_up(x: &[f16], y: &mut [f32]) {
        halves_up(x, y);
    }
    fn all_down(x: &[f32], y: &mut [f16]) {
        halves_down(x, y);
    }
    fn rows_up(x: &[f16], stride: usize, columns: usize, y: &mut [f32], width: usize) {
        rows_of_halves_up(x, stride, columns, y, width);
    }
    #[inline(always)]
    fn clamped(self, high: f16) -> f16 {
        // By their bits, which have the order of the values where the sign is not set.
        let (bits, high) = (self.to_bits(), high.to_bits());
        let x = if bits > 0x7fff { 0 } else { bits };
        let x = if x > high { high } else { x };
        f16::from_bits(if bits & 0x7fff > 0x7c00 { bits } else { x })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_and_bfloat16_converts_and_comes_back() {
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            if h.is_nan() {
                assert!(h.up().is_nan() && f16::down(h.up()).is_nan());
            } else {
                assert_eq!((h.up(), f16::down(h.up()).to_bits()), (h.to_f32(), bits));
            }
            if b.is_nan() {
                assert!(b.up().is_nan() && bf16::down(b.up()).is_nan());
            } else {
                assert_eq!((b.up(), bf16::down(b.up()).to_bits()), (b.to_f32(), bits));
            }
        }
    }

    #[test]
    fn clamping_narrow_floats_is_clamping_them_as_float() {
        fn check<T: Compute<Wide = f32>>(x: T, high: T) {
            let (found, expected) = (x.clamped(high).up(), x.up().clamped(high.up()));
            assert_eq!(found.is_nan(), expected.is_nan());
            assert!(found.is_nan() || found.to_bits() == expected.to_bits(), "{x:?}");
        }
        for bits in 0..=u16::MAX {
            let (h, b) = (f16::from_bits(bits), bf16::from_bits(bits));
            check(h, f16::from_f32(6.0));
            check(h, f16::INFINITY);
            check(b, bf16::from_f32(6.0));
            check(b, bf16::INFINITY);
        }
        assert_eq!(((-3i8).clamped(i8::MAX), 9u16.clamped(6)), (0, 6));
    }
}
