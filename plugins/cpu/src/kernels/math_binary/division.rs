//! Division and its remainders, of integers and floats.

use crate::{
    arch::Isa,
    kernels::elementwise::{BinaryOp, any::zip, binary},
    lane::Compute,
};
use half::{bf16, f16};
use tenon_sdk::{
    KernelError,
    author::ComputeContext,
    element::{Element, Number},
    reg::Numerics,
    register_kernel,
};

/// Integers that can be divided; the divisor is never 0. The least integer divided by -1 gives
/// itself.
pub trait Divide: Number {
    fn quotient(self, other: Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    /// The quotient, rounded down.
    fn floor_quotient(self, other: Self) -> Self;
    /// The remainder, with the sign of the divisor.
    fn floor_remainder(self, other: Self) -> Self;
}

macro_rules! divide {
    ($($ty:ty),*) => {$(
        impl Divide for $ty {
            #[inline(always)]
            fn quotient(self, other: $ty) -> $ty {
                self.wrapping_div(other)
            }
            #[inline(always)]
            fn remainder(self, other: $ty) -> $ty {
                self.wrapping_rem(other)
            }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "also of unsigned integers")]
            fn floor_quotient(self, other: $ty) -> $ty {
                let below = self.wrapping_rem(other) != 0 && (self < 0) != (other < 0);
                self.wrapping_div(other).wrapping_sub(<$ty>::from(below))
            }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "also of unsigned integers")]
            fn floor_remainder(self, other: $ty) -> $ty {
                let rest = self.wrapping_rem(other);
                let other_side = rest != 0 && (rest < 0) != (other < 0);
                if other_side { rest.wrapping_add(other) } else { rest }
            }
        }
    )*};
}

divide!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Refuses a divisor that contains a 0, unless the output is empty.
fn check_divisor<T: Element + Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (x, y) = (c.input::<T>(0)?, c.input::<T>(1)?);
    match y.data.iter().position(|&y| y == T::ZERO) {
        Some(at) if !x.data.is_empty() => Err(KernelError::invalid_argument(format!(
            "integer division by zero: y must hold no 0, found one at position {at} of {}",
            y.data.len()
        ))),
        _ => Ok(()),
    }
}

macro_rules! integers {
    ($($name:ident: $method:ident;)*) => {$(
        fn $name<T: Divide>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            check_divisor::<T>(c)?;
            zip(c, 2.0, T::$method)
        }
    )*};
}

integers! {
    quotient: quotient;
    remainder: remainder;
    floor_quotient: floor_quotient;
    floor_remainder: floor_remainder;
}

/// A float type that computes in itself.
pub trait DivideFloat: Compute<Wide = Self> {
    fn ratio(self, other: Self) -> Self;
    fn floor(self) -> Self;
    fn trunc(self) -> Self;
    /// The remainder of the truncated quotient, exactly.
    fn modulus(self, other: Self) -> Self;
}

macro_rules! divide_floats {
    ($($ty:ty),*) => {$(
        impl DivideFloat for $ty {
            #[inline(always)]
            fn ratio(self, other: $ty) -> $ty {
                self / other
            }
            #[inline(always)]
            fn floor(self) -> $ty {
                <$ty>::floor(self)
            }
            #[inline(always)]
            fn trunc(self) -> $ty {
                <$ty>::trunc(self)
            }
            #[inline(always)]
            fn modulus(self, other: $ty) -> $ty {
                self % other
            }
        }
    )*};
}

divide_floats!(f32, f64);

/// The quotient as a whole number.
macro_rules! whole_quotients {
    ($($op:ident, $name:ident: $method:ident;)*) => {$(
        struct $op;

        impl<W: DivideFloat> BinaryOp<W> for $op {
            #[inline(always)]
            fn apply<I: Isa>(x: W, y: W) -> W {
                x.ratio(y).$method()
            }
        }

        fn $name<T: DivideFloat>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            binary::<T, $op>(c)
        }
    )*};
}

whole_quotients! {
    FloorQuotient, whole_floor_quotient: floor;
    TruncatedQuotient, whole_truncated_quotient: trunc;
}

macro_rules! rounded_quotients {
    ($($op:ident, $name:ident: $method:ident;)*) => {$(
        /// A quotient of 16-bit floats, which is rounded to the type before it is made whole.
        struct $op<T>(std::marker::PhantomData<T>);

        impl<T: Compute<Wide = f32>> BinaryOp<f32> for $op<T> {
            #[inline(always)]
            fn apply<I: Isa>(x: f32, y: f32) -> f32 {
                T::down(x / y).up().$method()
            }
        }

        fn $name<T: Compute<Wide = f32>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            binary::<T, $op<T>>(c)
        }
    )*};
}

rounded_quotients! {
    RoundedFloor, float_floor_quotient: floor;
    RoundedTruncated, float_truncated_quotient: trunc;
}

fn float_remainder<T: Compute<Wide: DivideFloat>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    zip(c, 10.0, |x: T, y: T| T::down(x.up().modulus(y.up())))
}

fn float_floor_remainder<T: Compute<Wide: DivideFloat>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    zip(c, 10.0, |x: T, y: T| {
        let (zero, y) = (T::Wide::ZERO, y.up());
        let rest = x.up().modulus(y);
        // NaN does not equal 0, and stays.
        let other_side = rest != zero && (rest < zero) != (y < zero);
        T::down(if other_side { rest.add(y) } else { rest })
    })
}

macro_rules! register {
    ($($op:literal $name:ident [$($ty:ty),*];)*) => {$(
        register_kernel!($op on "CPU": fn $name<T> for "T" in [$($ty),*], numerics = Numerics::EXACT);
    )*};
}

register! {
    "Div" quotient [i8, i16, i32, i64, u8, u16, u32, u64];
    "TruncateDiv" quotient [i8, i16, i32, i64, u8, u16, u32, u64];
    "FloorDiv" floor_quotient [i8, i16, i32, i64, u8, u16, u32, u64];
    "FloorMod" floor_remainder [i8, i16, i32, i64, u8, u16, u32, u64];
    "Mod" remainder [i32, i64];
    "TruncateMod" remainder [i32, i64];
    "TruncateDiv" float_truncated_quotient [f16, bf16];
    "FloorDiv" float_floor_quotient [f16, bf16];
    "FloorMod" float_floor_remainder [f16, bf16, f32, f64];
    "Mod" float_remainder [f32, f64];
    "TruncateMod" float_remainder [f32, f64];
}

register_kernel!("TruncateDiv" on "CPU": fn whole_truncated_quotient<T> for "T" in [f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("FloorDiv" on "CPU": fn whole_floor_quotient<T> for "T" in [f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

fn div<T: Compute<Wide: crate::kernels::elementary::Elementary>>(
    c: &ComputeContext<'_>,
) -> Result<(), KernelError> {
    binary::<T, super::arithmetic::RealDiv>(c)
}

register_kernel!("Div" on "CPU": fn div<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_and_remainders_agree_with_each_other() {
        for x in i8::MIN..=i8::MAX {
            for y in [-128, -7, -2, -1, 1, 2, 3, 127i8] {
                let again = x.floor_quotient(y).wrapping_mul(y).wrapping_add(x.floor_remainder(y));
                assert_eq!(again, x, "{x} {y}");
                let rest = x.floor_remainder(y);
                assert!(rest == 0 || (rest < 0) == (y < 0), "{x} {y}");
                assert_eq!(x.quotient(y).wrapping_mul(y).wrapping_add(x.remainder(y)), x);
            }
        }
        assert_eq!(i64::MIN.floor_quotient(-1), i64::MIN);
        assert_eq!((250u8.floor_quotient(7), 250u8.floor_remainder(7)), (35, 5));
    }
}
