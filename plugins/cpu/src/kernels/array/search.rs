//! `Where`, `LowerBound`, `UpperBound`.

use super::{
    NUMBERS, REAL,
    moves::{by_type, check_rank, write_integers},
    numbers::{Less, Truth},
};
use half::{bf16, f16};
use num_complex::Complex;
use tenon_sdk::{DType, KernelError, author::ComputeContext, reg::Numerics, register_kernel};

fn is_true<T: Truth>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let x = c.input::<T>(0)?;
    if x.dims.is_empty() {
        return Err(KernelError::invalid_argument(
            "input must have at least 1 dimension, found a scalar",
        ));
    }
    let (rank, count) = (x.dims.len(), x.data.iter().filter(|x| x.is_true()).count());
    let y = c.output::<i64>(0, &[count as i64, rank as i64])?.data;
    let places = (0i64..).zip(x.data).filter(|(_, x)| x.is_true());
    for ((mut at, _), y) in places.zip(y.chunks_exact_mut(rank)) {
        for (y, &size) in y.iter_mut().zip(x.dims).rev() {
            (*y, at) = (at % size, at / size);
        }
    }
    Ok(())
}

fn place(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    by_type!(c.slot(0)?.dtype, is_true(c), [
        bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, Complex<f32>, Complex<f64>
    ])
}

/// The first position in each value's sorted row whose element is not `before` the value.
fn search<T: Less>(c: &ComputeContext<'_>, before: fn(T, T) -> bool) -> Result<(), KernelError> {
    check_rank(c, 0, "sorted_inputs", 2)?;
    check_rank(c, 1, "values", 2)?;
    let (sorted, values) = (c.input::<T>(0)?, c.input::<T>(1)?);
    if sorted.dims[0] != values.dims[0] {
        return Err(KernelError::invalid_argument(format!(
            "sorted_inputs and values must have as many rows, found {} and {}",
            sorted.dims[0], values.dims[0]
        )));
    }
    let [row, width] = [sorted.dims[1] as usize, values.dims[1] as usize];
    if c.output_slot(0)?.dtype == DType::INT32 && i32::try_from(row).is_err() {
        let message = format!("out_type int32 is too small for rows of {row} elements");
        return Err(KernelError::invalid_argument(message));
    }
    let places = values.data.iter().enumerate().map(|(at, &value)| {
        let row = &sorted.data[at / width * row..][..row];
        row.partition_point(|&x| before(x, value)) as i64
    });
    write_integers(c, 0, values.dims, places)
}

fn lower<T: Less>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    search::<T>(c, |x, value| x.less(value))
}

fn upper<T: Less>(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    search::<T>(c, |x, value| !value.less(x))
}

macro_rules! by_order {
    ($dtype:expr, $function:ident($c:ident)) => {
        by_type!($dtype, $function($c), [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64])
    };
}

fn lower_bound(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    by_order!(c.slot(0)?.dtype, lower(c))
}

fn upper_bound(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    by_order!(c.slot(0)?.dtype, upper(c))
}

/// Types with an order: those of [`REAL`] without bool, its first.
const ORDERED: &[DType] = REAL.split_at(1).1;

register_kernel!("Where" on "CPU": fn place, types = ("T", NUMBERS), numerics = Numerics::EXACT);
register_kernel!("LowerBound" on "CPU": fn lower_bound, types = ("T", ORDERED),
    numerics = Numerics::EXACT);
register_kernel!("UpperBound" on "CPU": fn upper_bound, types = ("T", ORDERED),
    numerics = Numerics::EXACT);
