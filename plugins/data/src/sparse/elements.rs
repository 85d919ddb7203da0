//! `SparseDenseCwiseAdd`, `SparseDenseCwiseMul`, `SparseDenseCwiseDiv`: values with the elements of a dense tensor at
//! their places, to whose shape that tensor broadcasts.

use super::places::Places;
use crate::scatter::Product;
use tenon_sdk::{growth, prelude::*};

/// The distances of a dense tensor's elements in each dimension of a shape, 0 where it is repeated.
fn steps(shape: &[i64], dense: &[i64]) -> Result<Vec<i64>, KernelError> {
    let refused = || {
        KernelError::invalid_argument(format!(
            "dense: expected a shape that broadcasts to {shape:?}, found {dense:?}"
        ))
    };
    let before = shape.len().checked_sub(dense.len()).ok_or_else(refused)?;
    let mut steps = growth::filled(shape.len(), 0i64)?;
    let mut step = 1i64;
    for (at, &size) in dense.iter().enumerate().rev() {
        if size != 1 {
            if size != shape[before + at] {
                return Err(refused());
            }
            steps[before + at] = step;
        }
        step = step.saturating_mul(size);
    }
    Ok(steps)
}

fn each<T: Product>(
    c: &ComputeContext<'_>,
    op: impl Fn(T, T) -> Result<T, KernelError>,
) -> Result<(), KernelError> {
    let places = Places::inside(c, [0, 1, 2])?;
    let (values, dense) = (c.input::<T>(1)?, c.input::<T>(3)?);
    let steps = steps(&places.shape, dense.dims)?;
    let y = c.output::<T>(0, values.dims)?.data;
    for (value, (y, &x)) in y.iter_mut().zip(values.data).enumerate() {
        let at: i64 = places.at(value).iter().zip(&steps).map(|(at, step)| at * step).sum();
        *y = op(x, dense.data[at as usize])?;
    }
    Ok(())
}

fn add<T: Product>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    each::<T>(c, |x, y| Ok(x.plus(y)))
}

fn mul<T: Product>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    each::<T>(c, |x, y| Ok(x.times(y)))
}

fn div<T: Product>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    each::<T>(c, |x, y| match y.has_no_quotient() {
        true => Err(KernelError::invalid_argument("dense: expected divisors but 0, found 0")),
        false => Ok(x.over(y)),
    })
}

macro_rules! elements {
    ($($op:literal: $kernel:ident;)*) => {$(
        register_kernel!($op on "CPU": fn $kernel<T> for "T" in [
            i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64],
            host_memory = &["sp_shape"]);
    )*};
}

elements! {
    "SparseDenseCwiseAdd": add;
    "SparseDenseCwiseMul": mul;
    "SparseDenseCwiseDiv": div;
}
