//! What an update does to an element.

use crate::update::Sum;
use num_complex::Complex;
use tenon_sdk::prelude::*;

/// Elements that are multiplied and divided.
pub trait Product: Sum {
    /// `self * other`; integers wrap.
    fn times(self, other: Self) -> Self;
    /// `self / other`; of integers `other` is not 0, and the quotient is rounded to 0.
    fn over(self, other: Self) -> Self;
    /// Whether division by it is refused in the ops of references: of integers, 0.
    fn has_no_quotient(self) -> bool;
}

macro_rules! integer_products {
    ($($ty:ty),*) => {$(
        impl Product for $ty {
            fn times(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }

            fn over(self, other: $ty) -> $ty {
                self.wrapping_div(other)
            }

            fn has_no_quotient(self) -> bool {
                self == 0
            }
        }
    )*};
}

integer_products!(i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! other_products {
    ($($ty:ty),*) => {$(
        impl Product for $ty {
            fn times(self, other: $ty) -> $ty {
                self * other
            }

            fn over(self, other: $ty) -> $ty {
                self / other
            }

            fn has_no_quotient(self) -> bool {
                false
            }
        }
    )*};
}

other_products!(f16, bf16, f32, f64, Complex<f32>, Complex<f64>);

impl Sum for bool {
    fn plus(self, other: bool) -> bool {
        self | other
    }

    fn minus(self, other: bool) -> bool {
        self ^ other
    }
}

/// A way to combine elements with updates.
pub trait Combine<T>: 'static {
    /// The element after an update.
    fn combine(before: T, update: T) -> T;

    /// Checks the updates; `by_handle` is for the ops of handles.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for updates that have no result.
    fn check(_updates: &[T], _by_handle: bool) -> Result<(), KernelError> {
        Ok(())
    }
}

/// The update takes the element's place.
pub struct Write;
/// The sum.
pub struct Add;
/// The difference.
pub struct Subtract;
/// The product.
pub struct Multiply;
/// The quotient.
pub struct Divide;
/// The smaller one.
pub struct Smaller;
/// The larger one.
pub struct Larger;

impl<T: Element> Combine<T> for Write {
    fn combine(_: T, update: T) -> T {
        update
    }
}

impl<T: Sum> Combine<T> for Add {
    fn combine(before: T, update: T) -> T {
        before.plus(update)
    }
}

impl<T: Sum> Combine<T> for Subtract {
    fn combine(before: T, update: T) -> T {
        before.minus(update)
    }
}

impl<T: Product> Combine<T> for Multiply {
    fn combine(before: T, update: T) -> T {
        before.times(update)
    }
}

impl<T: Product> Combine<T> for Divide {
    fn combine(before: T, update: T) -> T {
        before.over(update)
    }

    fn check(updates: &[T], by_handle: bool) -> Result<(), KernelError> {
        let is_refused =
            |&update: &T| update.has_no_quotient() || (by_handle && update == T::default());
        match updates.iter().position(is_refused) {
            None => Ok(()),
            Some(at) => Err(KernelError::invalid_argument(format!(
                "updates must not contain 0, found one as element {at}"
            ))),
        }
    }
}

impl<T: Number> Combine<T> for Smaller {
    fn combine(before: T, update: T) -> T {
        if update < before { update } else { before }
    }
}

impl<T: Number> Combine<T> for Larger {
    fn combine(before: T, update: T) -> T {
        if update > before { update } else { before }
    }
}
