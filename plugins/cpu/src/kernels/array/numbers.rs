//! Operations of this family on element types: sums, order, tests for zero.

use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::element::{Element, Number};

/// A type that can be added and subtracted. The sum of booleans is their disjunction.
pub(super) trait Term: Element {
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
}

/// A type with an order. NaN is neither less nor greater.
pub(super) trait Less: Element {
    /// Whether `self < other`.
    fn less(self, other: Self) -> bool;
}

/// A type whose values can be tested for zero.
pub(super) trait Truth: Element {
    /// Whether the value is not zero; true for NaN.
    fn is_true(self) -> bool;
}

macro_rules! real {
    ($($ty:ty)*) => {$(
        impl Term for $ty {
            fn plus(self, other: Self) -> Self {
                Number::add(self, other)
            }
            fn minus(self, other: Self) -> Self {
                Number::sub(self, other)
            }
        }
        impl Less for $ty {
            fn less(self, other: Self) -> bool {
                self.widen() < other.widen()
            }
        }
        impl Truth for $ty {
            fn is_true(self) -> bool {
                self.widen() != <Self as Number>::ZERO.widen()
            }
        }
    )*};
}

real!(i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);

macro_rules! complex {
    ($($ty:ty)*) => {$(
        impl Term for Complex<$ty> {
            fn plus(self, other: Self) -> Self {
                self + other
            }
            fn minus(self, other: Self) -> Self {
                self - other
            }
        }
        impl Truth for Complex<$ty> {
            fn is_true(self) -> bool {
                self.re != 0.0 || self.im != 0.0
            }
        }
    )*};
}

complex!(f32 f64);

impl Term for bool {
    fn plus(self, other: bool) -> bool {
        self | other
    }
    fn minus(self, other: bool) -> bool {
        self ^ other
    }
}

impl Truth for bool {
    fn is_true(self) -> bool {
        self
    }
}
