//! Element types as the ops of this family compute with them: sums, order, whether they are zero.

use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::element::{Element, Number};

/// What can be added and subtracted. The sum of booleans is whether one is true.
pub(super) trait Term: Element {
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
    /// `self - other`.
    fn minus(self, other: Self) -> Self;
}

/// What has an order. NaN is neither less nor greater.
pub(super) trait Less: Element {
    /// Whether `self < other`.
    fn less(self, other: Self) -> bool;
}

/// What may be zero.
pub(super) trait Truth: Element {
    /// Whether it is another number than zero; NaN is.
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
