//! Types in which the reference adds up, and where its searches for a maximum start.

use half::{bf16, f16};
use tenon_framework::element::{Element, Number};

/// A number type with the arithmetic of long sums.
pub trait Accumulate: Number {
    /// Holds sums of products: `f64` for floats, the type itself for integers, which wrap.
    type Total: Number;

    /// Widens one term.
    fn total(self) -> Self::Total;

    /// Rounds a sum.
    fn rounded(total: Self::Total) -> Self;

    /// The mean of some values.
    ///
    /// Integers are added in 64 bits, which wrap, and divided rounding towards 0. The mean of nothing is NaN,
    /// and 0 for integers.
    fn mean(values: impl Iterator<Item = Self>) -> Self;
}

macro_rules! accumulate_floats {
    ($($ty:ty),*) => {$(
        impl Accumulate for $ty {
            type Total = f64;
            fn total(self) -> f64 {
                self.to_f64()
            }
            fn rounded(total: f64) -> $ty {
                Number::from_f64(total)
            }
            fn mean(values: impl Iterator<Item = $ty>) -> $ty {
                let (mut sum, mut count) = (0.0, 0.0);
                for value in values {
                    sum += value.to_f64();
                    count += 1.0;
                }
                Number::from_f64(sum / count)
            }
        }
    )*};
}

accumulate_floats!(f16, bf16, f32, f64);

macro_rules! accumulate_integers {
    ($wide:ty: $($ty:ty),*) => {$(
        impl Accumulate for $ty {
            type Total = $ty;
            fn total(self) -> $ty {
                self
            }
            fn rounded(total: $ty) -> $ty {
                total
            }
            fn mean(values: impl Iterator<Item = $ty>) -> $ty {
                let (mut sum, mut count): ($wide, $wide) = (0, 0);
                for value in values {
                    sum = sum.wrapping_add(<$wide>::from(value));
                    count += 1;
                }
                sum.checked_div(count).unwrap_or(0) as $ty
            }
        }
    )*};
}

accumulate_integers!(i64: i8, i16, i32, i64);
accumulate_integers!(u64: u8, u16, u32, u64);

/// Where `ArgMax` and `MaxPool` start: as in TensorFlow, at the lowest finite value, which neither NaN nor
/// negative infinity exceeds.
pub trait LowestFinite: Element + PartialOrd {
    /// That value.
    const LOWEST_FINITE: Self;
}

macro_rules! lowest_finite {
    ($($ty:ident),*) => {
        $(impl LowestFinite for $ty {
            const LOWEST_FINITE: $ty = $ty::MIN;
        })*
    };
}

lowest_finite!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);

impl LowestFinite for bool {
    const LOWEST_FINITE: bool = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means() {
        // as tf.raw_ops.Mean
        assert_eq!(i32::mean([-1, -2].into_iter()), -1);
        assert_eq!(i8::mean([100; 3].into_iter()), 100);
        assert_eq!(u8::mean([200; 3].into_iter()), 200);
        assert_eq!(i8::mean([1; 300].into_iter()), 1);
        assert_eq!(i32::mean([].into_iter()), 0);
        assert!(f32::mean([].into_iter()).is_nan());
        assert_eq!(f16::mean([f16::from_f32(6e4); 4].into_iter()), f16::from_f32(6e4));
    }
}
