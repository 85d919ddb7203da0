//! Absolute values and signs, rounding, predicates, and functions of bits.

use crate::{
    arch::Isa,
    kernels::elementwise::{
        UnaryOp,
        any::{map, map_in_place},
        unary,
    },
    lane::Compute,
};
use half::{bf16, f16};
use tenon_sdk::{
    DType, KernelError,
    author::ComputeContext,
    element::{Element, Number},
    reg::Numerics,
    register_kernel,
};

/// A number with a sign.
pub trait Signed: Element {
    /// Absolute value.
    fn magnitude(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
}

macro_rules! signed_integers {
    ($($ty:ty),*) => {$(
        impl Signed for $ty {
            #[inline(always)]
            fn magnitude(self) -> $ty {
                self.wrapping_abs()
            }
            #[inline(always)]
            fn sign(self) -> $ty {
                self.signum()
            }
        }
    )*};
}

macro_rules! signed_floats {
    ($($ty:ty: $bits:expr),*) => {$(
        impl Signed for $ty {
            #[inline(always)]
            fn magnitude(self) -> $ty {
                <$ty>::from_bits(self.to_bits() & $bits)
            }
            #[inline(always)]
            fn sign(self) -> $ty {
                let x = self.up();
                let sign = f32::from(u8::from(x > 0.0)) - f32::from(u8::from(x < 0.0));
                if x.is_nan() { self } else { <$ty>::down(sign.into()) }
            }
        }
    )*};
}

signed_integers!(i8, i16, i32, i64);
signed_floats!(f16: 0x7fff, bf16: 0x7fff, f32: 0x7fff_ffff, f64: 0x7fff_ffff_ffff_ffff);

fn abs<T: Signed>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    map_in_place(c, 0.2, T::magnitude)
}

fn sign<T: Signed>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    map_in_place(c, 0.4, T::sign)
}

register_kernel!("Abs" on "CPU": fn abs<T> for "T" in [i8, i16, i32, i64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Sign" on "CPU": fn sign<T> for "T" in [i8, i16, i32, i64, f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

/// A float type that computes: rounding to whole numbers.
pub trait Whole: Compute<Wide = Self> {
    /// The largest whole number that is not above `self`.
    fn floor(self) -> Self;
    /// The smallest whole number that is not below `self`.
    fn ceil(self) -> Self;
    /// The nearest whole number; of two equally near, the even one.
    fn nearest(self) -> Self;
    /// Whether this is an infinity.
    fn is_infinite(self) -> bool;
}

macro_rules! whole {
    ($($ty:ty),*) => {$(
        impl Whole for $ty {
            #[inline(always)]
            fn floor(self) -> $ty {
                <$ty>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> $ty {
                <$ty>::ceil(self)
            }
            #[inline(always)]
            fn nearest(self) -> $ty {
                self.round_ties_even()
            }
            #[inline(always)]
            fn is_infinite(self) -> bool {
                <$ty>::is_infinite(self)
            }
        }
    )*};
}

whole!(f32, f64);

macro_rules! rounding {
    ($($op:ident, $name:ident: $method:ident;)*) => {$(
        struct $op;

        impl<W: Whole> UnaryOp<W> for $op {
            #[inline(always)]
            fn apply<I: Isa>(x: W) -> W {
                x.$method()
            }
        }

        #[inline(always)]
        fn $name<T: Compute<Wide: Whole>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            unary::<T, $op>(c)
        }
    )*};
}

// One instruction from SSE4.1 on, and a call of the mathematical library on older processors.
rounding! {
    Floor, floor: floor;
    Ceil, ceil: ceil;
    Round, round: nearest;
}

/// Integers are already whole, so that the input is returned.
fn unchanged(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    c.share(0, 0, c.dims(0))
}

register_kernel!("Floor" on "CPU": fn floor<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Ceil" on "CPU": fn ceil<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Round" on "CPU": fn round<T> for "T" in [f16, bf16, f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("Round" on "CPU": fn unchanged, types = ("T", &[DType::INT32, DType::INT64]),
    numerics = Numerics::EXACT);
register_kernel!("Rint" on "CPU": fn round<T> for "T" in [f32, f64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

macro_rules! predicates {
    ($($op:literal $name:ident: |$x:ident| $value:expr;)*) => {$(
        fn $name<T: Compute<Wide: Whole>>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            map::<T, bool>(c, 0.3, |x| {
                let $x = x.up();
                $value
            })
        }

        register_kernel!($op on "CPU": fn $name<T> for "T" in [f16, bf16, f32, f64],
            numerics = Numerics::EXACT);
    )*};
}

predicates! {
    "IsNan" is_nan: |x| x.is_nan();
    "IsInf" is_inf: |x| x.is_infinite();
    "IsFinite" is_finite: |x| !x.is_nan() && !x.is_infinite();
}

fn logical_not(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    map_in_place::<bool>(c, 0.1, |x| !x)
}

register_kernel!("LogicalNot" on "CPU": fn logical_not,
    in_place = &[(0, 0)], numerics = Numerics::EXACT);

/// An integer as a set of bits.
trait Bits: Element + std::ops::Not<Output = Self> {
    fn count(self) -> u8;
}

macro_rules! bits {
    ($($ty:ty),*) => {$(
        impl Bits for $ty {
            #[inline(always)]
            fn count(self) -> u8 {
                self.count_ones() as u8
            }
        }
    )*};
}

bits!(i8, i16, i32, i64, u8, u16, u32, u64);

fn invert<T: Bits>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    map_in_place::<T>(c, 0.2, |x| !x)
}

fn population_count<T: Bits>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    map(c, 0.5, T::count)
}

register_kernel!("Invert" on "CPU": fn invert<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64],
    in_place = &[(0, 0)], numerics = Numerics::EXACT);
register_kernel!("PopulationCount" on "CPU": fn population_count<T>
    for "T" in [i8, i16, i32, i64, u8, u16, u32, u64], numerics = Numerics::EXACT);
