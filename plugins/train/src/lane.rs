//! The numbers that rules compute with.

use num_complex::Complex;
use std::{
    cmp::Ordering,
    marker::PhantomData,
    ops::{Add, Div, Mul, Neg, Sub},
};
use tenon_sdk::{bf16, element::Element, f16};
use tenon_vectors::narrow::{bf16_down, bf16_up, f16_down, f16_up};

/// A number; each operation rounds to the element type that it stands for.
pub trait Lane:
    Copy
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// The elements that TensorFlow computes together where its formulas round otherwise for them
    /// than for those left over at the end, and 1 where they do not.
    const PACKET: usize = 1;

    /// The number, rounded.
    fn of(value: f64) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The reciprocal of the square root, rounded once.
    fn rsqrt(self) -> Self;

    /// The reciprocal of the rounded square root.
    #[inline(always)]
    fn rsqrt_of_rounded(self) -> Self {
        Self::of(1.0) / self.sqrt()
    }

    /// The square.
    #[inline(always)]
    fn square(self) -> Self {
        self * self
    }
}

/// A real number.
pub trait Real: Lane + PartialOrd + Neg<Output = Self> {
    /// The absolute value.
    fn abs(self) -> Self;
    /// `e^self`.
    fn exp(self) -> Self;
    /// `self^power`.
    fn pow(self, power: Self) -> Self;
    /// As a double.
    fn to_f64(self) -> f64;

    /// 1, -1, or 0 for zeros and NaN.
    #[inline(always)]
    fn sign(self) -> Self {
        let zero = Self::of(0.0);
        let below = if self < zero { Self::of(-1.0) } else { zero };
        if self > zero { Self::of(1.0) } else { below }
    }

    /// The larger one.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self < other { other } else { self }
    }

    /// The smaller one.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

/// An element type of variables that are trained.
pub trait Trained: Element {
    /// The numbers that its elements are computed with.
    type Lane: Lane;
    /// Converts without loss.
    fn up(self) -> Self::Lane;
    /// Converts a number, which is rounded already.
    fn down(value: Self::Lane) -> Self;
}

macro_rules! floats {
    ($($ty:ident),*) => {$(
        impl Lane for $ty {
            #[inline(always)]
            fn of(value: f64) -> $ty {
                value as $ty
            }

            #[inline(always)]
            fn sqrt(self) -> $ty {
                <$ty>::sqrt(self)
            }

            #[inline(always)]
            fn rsqrt(self) -> $ty {
                1.0 / <$ty>::sqrt(self)
            }
        }

        impl Real for $ty {
            #[inline(always)]
            fn abs(self) -> $ty {
                <$ty>::abs(self)
            }

            #[inline(always)]
            fn exp(self) -> $ty {
                <$ty>::exp(self)
            }

            #[inline(always)]
            fn pow(self, power: $ty) -> $ty {
                <$ty>::powf(self, power)
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
        }

        impl Trained for $ty {
            type Lane = $ty;
            #[inline(always)]
            fn up(self) -> $ty {
                self
            }

            #[inline(always)]
            fn down(value: $ty) -> $ty {
                value
            }
        }

        impl Lane for Complex<$ty> {
            #[inline(always)]
            fn of(value: f64) -> Self {
                Complex::new(value as $ty, 0.0)
            }

            /// The root with a real part that is not negative.
            #[inline(always)]
            fn sqrt(self) -> Self {
                let size = ((self.re.abs() + self.re.hypot(self.im)) * 0.5).sqrt();
                if size == 0.0 {
                    return Complex::new(0.0, self.im);
                }
                let other = self.im / (size + size);
                if self.re >= 0.0 {
                    return Complex::new(size, other);
                }
                Complex::new(other.abs(), size.copysign(self.im))
            }

            #[inline(always)]
            fn rsqrt(self) -> Self {
                Complex::new(1.0, 0.0) / Lane::sqrt(self)
            }
        }

        impl Trained for Complex<$ty> {
            type Lane = Self;
            #[inline(always)]
            fn up(self) -> Self {
                self
            }

            #[inline(always)]
            fn down(value: Self) -> Self {
                value
            }
        }
    )*};
}

floats!(f32, f64);

/// A 16-bit float that is kept as a float: each operation rounds to the 16-bit type.
pub struct Narrow<T> {
    value: f32,
    of: PhantomData<T>,
}

/// A type of 16-bit floats.
pub trait Half: Element {
    /// Converts without loss.
    fn widen(self) -> f32;
    /// Rounds to nearest, ties to even.
    fn narrow(value: f32) -> Self;
}

impl Half for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f16_up(self)
    }

    #[inline(always)]
    fn narrow(value: f32) -> f16 {
        f16_down(value)
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        bf16_up(self)
    }

    #[inline(always)]
    fn narrow(value: f32) -> bf16 {
        bf16_down(value)
    }
}

impl<T: Half> Narrow<T> {
    #[inline(always)]
    fn rounded(value: f32) -> Self {
        Narrow { value: T::narrow(value).widen(), of: PhantomData }
    }
}

impl<T> Clone for Narrow<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Narrow<T> {}

impl<T> PartialEq for Narrow<T> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> PartialOrd for Narrow<T> {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value.partial_cmp(&other.value)
    }

    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.value < other.value
    }

    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        self.value > other.value
    }
}

macro_rules! narrow_operations {
    ($($operation:ident $function:ident;)*) => {$(
        impl<T: Half> $operation for Narrow<T> {
            type Output = Self;
            #[inline(always)]
            fn $function(self, other: Self) -> Self {
                Self::rounded(self.value.$function(other.value))
            }
        }
    )*};
}

narrow_operations! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl<T: Half> Neg for Narrow<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Narrow { value: -self.value, of: PhantomData }
    }
}

impl<T: Half> Lane for Narrow<T> {
    // Eigen's packets of 16-bit floats on x86-64, whatever the processor is: TensorFlow's binaries
    // are compiled for AVX.
    const PACKET: usize = 8;

    #[inline(always)]
    fn of(value: f64) -> Self {
        Self::rounded(value as f32)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::rounded(self.value.sqrt())
    }

    #[inline(always)]
    fn rsqrt(self) -> Self {
        Self::rounded(1.0 / self.value.sqrt())
    }
}

impl<T: Half> Real for Narrow<T> {
    #[inline(always)]
    fn abs(self) -> Self {
        Narrow { value: self.value.abs(), of: PhantomData }
    }

    #[inline(always)]
    fn exp(self) -> Self {
        Self::rounded(self.value.exp())
    }

    #[inline(always)]
    fn pow(self, power: Self) -> Self {
        Self::rounded(self.value.powf(power.value))
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.value.into()
    }
}

macro_rules! narrow_elements {
    ($($ty:ty),*) => {$(
        impl Trained for $ty {
            type Lane = Narrow<$ty>;
            #[inline(always)]
            fn up(self) -> Narrow<$ty> {
                Narrow { value: self.widen(), of: PhantomData }
            }

            #[inline(always)]
            fn down(value: Narrow<$ty>) -> $ty {
                <$ty>::narrow(value.value)
            }
        }
    )*};
}

narrow_elements!(f16, bf16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_rounded_after_each_operation() {
        let half = |x: f32| f16::from_f32(x).up();
        // 2049 is between two halves; the sum of three in float would be 2050.
        let sum = half(2048.0) + half(1.0) + half(1.0);
        assert_eq!(f16::down(sum), f16::from_f32(2048.0));
        let third = bf16::from_f32(1.0).up() / bf16::from_f32(3.0).up();
        assert_eq!(bf16::down(third), bf16::from_f32(1.0 / 3.0));
    }

    #[test]
    fn a_reciprocal_root_is_rounded_once_or_twice() {
        // The root of 5.5 is 2.3452, and 2.3457 as a half.
        let number = f16::from_f32(5.5).up();
        assert_eq!(f16::down(number.rsqrt()).to_f32(), 0.426_513_67);
        assert_eq!(f16::down(number.rsqrt_of_rounded()).to_f32(), 0.426_269_53);
    }

    #[test]
    fn the_complex_root_is_in_the_right_half_plane() {
        for (x, y) in [(3.0f64, 4.0), (-3.0, 4.0), (-3.0, -4.0), (0.0, 2.0), (-1.0, 0.0)] {
            let root = Lane::sqrt(Complex::new(x, y));
            let square = root * root;
            assert!(root.re >= 0.0 && (square - Complex::new(x, y)).norm() < 1e-12, "{x} {y}");
        }
        assert_eq!(Lane::sqrt(Complex::new(0.0f32, 0.0)), Complex::new(0.0, 0.0));
    }

    #[test]
    fn signs_and_extremes_are_selections() {
        assert_eq!([2.0f32, -3.0, 0.0, f32::NAN].map(Real::sign), [1.0, -1.0, 0.0, 0.0]);
        assert_eq!((Real::max(1.0f32, 2.0), Real::min(1.0f32, 2.0)), (2.0, 1.0));
    }
}
