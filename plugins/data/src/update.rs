//! What an update does to a value that is locked.

use num_complex::Complex;
use tenon_sdk::{author::VarGuard, prelude::*};

/// Elements that are added and subtracted.
pub trait Sum: Element {
    /// `self + other`; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// `self - other`; integers wrap.
    fn minus(self, other: Self) -> Self;
}

macro_rules! sums {
    ($($ty:ty),* $(,)?) => {$(
        impl Sum for $ty {
            fn plus(self, other: $ty) -> $ty {
                Number::add(self, other)
            }

            fn minus(self, other: $ty) -> $ty {
                Number::sub(self, other)
            }
        }
    )*};
}

sums!(f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

macro_rules! complex_sums {
    ($($ty:ty),*) => {$(
        impl Sum for Complex<$ty> {
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }
        }
    )*};
}

complex_sums!(f32, f64);

/// Combines each element of a locked value with that of an input of the same shape.
///
/// # Errors
/// `INVALID_ARGUMENT` for another shape; the variable has no value.
pub fn elementwise<T: Element>(
    c: &ComputeContext<'_>,
    locked: &mut VarGuard<'_>,
    input: usize,
    combine: impl Fn(T, T) -> T,
) -> Result<(), KernelError> {
    let by = c.input::<T>(input)?;
    let value = locked.view_mut::<T>(0)?;
    if value.dims != by.dims {
        return Err(KernelError::invalid_argument(format!(
            "value: expected the shape of the variable, {:?}, found {:?}",
            value.dims, by.dims
        )));
    }
    value.data.iter_mut().zip(by.data).for_each(|(value, &by)| *value = combine(*value, by));
    Ok(())
}

/// The value of a counter of one element, which goes up by one.
///
/// # Errors
/// `OUT_OF_RANGE` at the limit; `INVALID_ARGUMENT` for another number of elements.
pub fn count_up<T: Number>(locked: &mut VarGuard<'_>, limit: i64) -> Result<T, KernelError> {
    let value = locked.view_mut::<T>(0)?;
    let [counter] = value.data else {
        return Err(KernelError::invalid_argument(format!(
            "ref: expected a scalar, found shape {:?}",
            value.dims
        )));
    };
    let before = *counter;
    if before.to_f64() >= limit as f64 {
        return Err(KernelError::new(
            Code::OUT_OF_RANGE,
            format!("the counter reached its limit of {limit}"),
        ));
    }
    *counter = before.add(T::ONE);
    Ok(before)
}

/// Checks that the input of an assignment has the shape of the value that is there, if there is one.
///
/// # Errors
/// `INVALID_ARGUMENT` for another shape.
pub fn check_shape(
    c: &ComputeContext<'_>,
    locked: &VarGuard<'_>,
    input: usize,
) -> Result<(), KernelError> {
    let Some(there) = locked.dims(0) else { return Ok(()) };
    let found = c.dims(input);
    if there == found {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "value: expected the shape of the variable, {:?}, found {found:?}; set validate_shape to false to give it another",
        there
    )))
}

/// A resource variable is there once it has a value.
///
/// # Errors
/// `NOT_FOUND` without one.
pub fn check_there(is_set: bool) -> Result<(), KernelError> {
    if is_set {
        return Ok(());
    }
    Err(KernelError::new(Code::NOT_FOUND, "the variable does not exist: run its initialiser first"))
}
