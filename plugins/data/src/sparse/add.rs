//! `SparseAdd` and its gradient, `SparseSparseMaximum` and `SparseSparseMinimum`.

use super::places::{Places, rank, size, write_numbers};
use crate::update::Sum;
use num_complex::Complex;
use std::cmp::Ordering;
use tenon_sdk::{growth, prelude::*};

/// An element that is compared with a threshold by its magnitude.
trait Magnitude: Sum {
    fn magnitude(self) -> f64;
}

macro_rules! magnitudes {
    ($($ty:ty),*) => {$(
        impl Magnitude for $ty {
            fn magnitude(self) -> f64 {
                Number::to_f64(self).abs()
            }
        }
    )*};
}

magnitudes!(i8, i16, i32, i64, f32, f64);

impl Magnitude for Complex<f32> {
    fn magnitude(self) -> f64 {
        self.norm().into()
    }
}

impl Magnitude for Complex<f64> {
    fn magnitude(self) -> f64 {
        self.norm()
    }
}

/// The threshold in a scalar of any type of real numbers.
fn threshold(c: &ComputeContext<'_>, input: usize) -> Result<f64, KernelError> {
    rank(c, input, "thresh", 0)?;
    match c.slot(input)?.dtype {
        DType::FLOAT => Ok(c.input::<f32>(input)?.data[0].into()),
        DType::DOUBLE => Ok(c.input::<f64>(input)?.data[0]),
        DType::HALF => Ok(c.input::<f16>(input)?.data[0].to_f64()),
        DType::BFLOAT16 => Ok(c.input::<bf16>(input)?.data[0].to_f64()),
        DType::INT8 => Ok(c.input::<i8>(input)?.data[0].into()),
        DType::UINT8 => Ok(c.input::<u8>(input)?.data[0].into()),
        DType::UINT16 => Ok(c.input::<u16>(input)?.data[0].into()),
        DType::UINT64 => Ok(c.input::<u64>(input)?.data[0] as f64),
        DType::UINT32 => Ok(c.input::<u32>(input)?.data[0].into()),
        _ => Ok(c.integer(input, "thresh")? as f64),
    }
}

/// The places of both operands, which have one shape.
fn operands(c: &ComputeContext<'_>) -> Result<(Places, Places), KernelError> {
    let (a, b) = (Places::new(c, [0, 1, 2])?, Places::new(c, [3, 4, 5])?);
    if a.shape != b.shape {
        return Err(KernelError::invalid_argument(format!(
            "b_shape: expected {:?}, as a_shape, found {:?}",
            a.shape, b.shape
        )));
    }
    Ok((a, b))
}

/// Calls a function for each place that one of two tensors names, in order, with the value of either or none.
fn for_union(
    a: &Places,
    b: &Places,
    mut each: impl FnMut(&[i64], Option<usize>, Option<usize>) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let (mut i, mut j) = (0, 0);
    while i < a.count || j < b.count {
        let order = match (i < a.count, j < b.count) {
            (true, true) => a.at(i).cmp(b.at(j)),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let (of_a, of_b) = (order.is_le().then_some(i), order.is_ge().then_some(j));
        each(if order.is_le() { a.at(i) } else { b.at(j) }, of_a, of_b)?;
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    Ok(())
}

fn add<T: Magnitude>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let (a, b) = operands(c)?;
    let (first, second) = (c.input::<T>(1)?.data, c.input::<T>(4)?.data);
    let least = threshold(c, 6)?;
    let (mut places, mut sums) = (Vec::new(), Vec::new());
    for_union(&a, &b, |place, i, j| {
        let sum = match (i, j) {
            (Some(i), Some(j)) => first[i].plus(second[j]),
            (Some(i), None) => first[i],
            (None, j) => second[j.unwrap_or(0)],
        };
        // The threshold is for sums: a value without a counterpart stays.
        if i.is_none() || j.is_none() || sum.magnitude() >= least {
            growth::append(&mut places, place)?;
            growth::push(&mut sums, sum)?;
        }
        Ok(())
    })?;
    let dims = [sums.len() as i64, a.shape.len() as i64];
    c.output::<i64>(0, &dims)?.data.copy_from_slice(&places);
    c.output::<T>(1, &dims[..1])?.data.copy_from_slice(&sums);
    write_numbers(c, 2, &a.shape)
}

/// One of two values at each place that one of two tensors names; a value that is not there is 0.
fn extremes<T: Number>(c: &ComputeContext<'_>, pick: fn(T, T) -> T) -> Result<(), KernelError> {
    let (a, b) = operands(c)?;
    let (first, second) = (c.input::<T>(1)?.data, c.input::<T>(4)?.data);
    let (mut places, mut values) = (Vec::new(), Vec::new());
    for_union(&a, &b, |place, i, j| {
        let of = |data: &[T], at: Option<usize>| at.map_or(T::ZERO, |at| data[at]);
        growth::append(&mut places, place)?;
        growth::push(&mut values, pick(of(first, i), of(second, j)))
    })?;
    let dims = [values.len() as i64, a.shape.len() as i64];
    c.output::<i64>(0, &dims)?.data.copy_from_slice(&places);
    c.output::<T>(1, &dims[..1])?.data.copy_from_slice(&values);
    Ok(())
}

fn maximum<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    extremes::<T>(c, |a, b| if a < b { b } else { a })
}

fn minimum<T: Number>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    extremes::<T>(c, |a, b| if b < a { b } else { a })
}

/// The gradient of the values of one summand: that of the sum at their places, 0 where the sum was left out.
fn of_summand<T: Sum>(
    c: &ComputeContext<'_>,
    output: usize,
    (places, sums): (&[i64], &[i64]),
    rank_of: usize,
) -> Result<(), KernelError> {
    let grads = c.input::<T>(0)?.data;
    let count = places.len() / rank_of.max(1);
    let y = c.output::<T>(output, &[count as i64])?.data;
    let mut next = 0;
    for (value, y) in y.iter_mut().enumerate() {
        let place = &places[value * rank_of..][..rank_of];
        let sum = |at: usize| &sums[at * rank_of..][..rank_of];
        while next < grads.len() && sum(next) < place {
            next += 1;
        }
        let is_there = next < grads.len() && sum(next) == place;
        *y = if is_there { grads[next] } else { T::default() };
    }
    Ok(())
}

fn grad<T: Sum>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    rank(c, 0, "backprop_val_grad", 1)?;
    for (at, what) in [(1, "a_indices"), (2, "b_indices"), (3, "sum_indices")] {
        rank(c, at, what, 2)?;
        size("the second dimension of indices", c.dims(1)[1], c.dims(at)[1])?;
    }
    size("the number of backprop_val_grad", c.dims(3)[0], c.dims(0)[0])?;
    let rank_of = c.dims(1)[1] as usize;
    if rank_of == 0 {
        return Err(KernelError::invalid_argument(
            "a_indices: expected places of one dimension or more, found none",
        ));
    }
    let sums = c.input::<i64>(3)?.data;
    of_summand::<T>(c, 0, (c.input::<i64>(1)?.data, sums), rank_of)?;
    of_summand::<T>(c, 1, (c.input::<i64>(2)?.data, sums), rank_of)
}

register_kernel!("SparseAdd" on "CPU":
    fn add<T> for "T" in [i8, i16, i32, i64, f32, f64, Complex<f32>, Complex<f64>],
    host_memory = &["thresh"]);
register_kernel!("SparseAddGrad" on "CPU":
    fn grad<T> for "T" in [i8, i16, i32, i64, f32, f64, Complex<f32>, Complex<f64>]);
register_kernel!("SparseSparseMaximum" on "CPU":
    fn maximum<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64]);
register_kernel!("SparseSparseMinimum" on "CPU":
    fn minimum<T> for "T" in [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64]);
