//! Functions of bits and of truth values.

use crate::kernels::elementwise::any::zip;
use std::ops::{BitAnd, BitOr, BitXor};
use tenon_sdk::{
    KernelError, author::ComputeContext, element::Element, reg::Numerics, register_kernel,
};

/// Integers and truth values.
trait Bits: Element + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> {}

impl<T> Bits for T where T: Element + BitAnd<Output = T> + BitOr<Output = T> + BitXor<Output = T> {}

/// Integers that can be shifted. A distance is clamped to between 0 and the number of bits less
/// one.
trait Shift: Element {
    fn left(self, distance: Self) -> Self;
    fn right(self, distance: Self) -> Self;
}

macro_rules! shift {
    ($($ty:ty),*) => {$(
        impl Shift for $ty {
            #[inline(always)]
            fn left(self, distance: $ty) -> $ty {
                self << distance.clamp(0, <$ty>::BITS as $ty - 1)
            }
            #[inline(always)]
            fn right(self, distance: $ty) -> $ty {
                self >> distance.clamp(0, <$ty>::BITS as $ty - 1)
            }
        }
    )*};
}

shift!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! integers {
    ($($op:literal $name:ident: $bound:ident, $function:expr;)*) => {$(
        fn $name<T: $bound>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
            zip::<T, T>(c, 0.3, $function)
        }

        register_kernel!($op on "CPU": fn $name<T>
            for "T" in [i8, i16, i32, i64, u8, u16, u32, u64], numerics = Numerics::EXACT);
    )*};
}

integers! {
    "BitwiseAnd" and: Bits, |x, y| x & y;
    "BitwiseOr" or: Bits, |x, y| x | y;
    "BitwiseXor" xor: Bits, |x, y| x ^ y;
    "LeftShift" left: Shift, T::left;
    "RightShift" right: Shift, T::right;
}

register_kernel!("LogicalAnd" on "CPU": fn and::<bool>, numerics = Numerics::EXACT);
register_kernel!("LogicalOr" on "CPU": fn or::<bool>, numerics = Numerics::EXACT);
