//! `Where`, `LowerBound`, `UpperBound`, `Bucketize`, `UnravelIndex`.

use super::{
    NUMBERS, REAL,
    moves::{by_type, check_rank, check_vector, write_integers},
    numbers::{Less, Truth},
};
use half::{bf16, f16};
use num_complex::Complex;
use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::Element,
    geometry::{GeometryError, byte_size},
    growth,
    reg::Numerics,
    register_kernel,
};

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

/// An element that is compared with boundaries of single precision.
trait Bounded: Element {
    /// The number with which they are compared: integers are rounded to single precision.
    fn compared(self) -> f64;
}

macro_rules! bounded {
    ($($ty:ty: $convert:expr;)*) => {$(
        impl Bounded for $ty {
            fn compared(self) -> f64 {
                ($convert)(self)
            }
        }
    )*};
}

bounded! {
    i32: |x| f64::from(x as f32);
    i64: |x| f64::from(x as f32);
    f32: f64::from;
    f64: |x| x;
}

struct Bucketize<T> {
    boundaries: Vec<f64>,
    of: PhantomData<fn(T)>,
}

impl<T: Bounded> Kernel for Bucketize<T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        let given: Vec<f32> = c.attr("boundaries")?;
        if let Some(at) = given.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(KernelError::invalid_argument(format!(
                "boundaries must be sorted, found {} after {} at place {}",
                given[at + 1],
                given[at],
                at + 1
            )));
        }
        let boundaries = growth::collected(given.iter().map(|&x| x.into()))?;
        Ok(Bucketize { boundaries, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let x = c.input::<T>(0)?;
        let y = c.output::<i32>(0, x.dims)?.data;
        for (y, x) in y.iter_mut().zip(x.data) {
            let x = x.compared();
            // A NaN is below no boundary.
            let is_below = |boundary: &f64| x < *boundary;
            *y = self.boundaries.partition_point(|boundary| !is_below(boundary)) as i32;
        }
        Ok(())
    }
}

/// The coordinates of elements in a tensor of the given dimensions.
fn unravel(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    check_vector(c, 1, "dims")?;
    let (indices, dims) = (c.integer_list(0, "indices")?, c.integers(1)?);
    if let Some(&found) = dims.iter().find(|&&size| size < 1) {
        return Err(GeometryError::TooSmall { what: "dims", least: 1, found }.into());
    }
    let too_large = || GeometryError::TooLarge { dims: dims.clone() };
    let most = if c.slot(1)?.dtype == DType::INT32 { i32::MAX.into() } else { i64::MAX };
    let product = |all: i64, size: &i64| {
        all.checked_mul(*size).filter(|&all| all <= most).ok_or_else(too_large)
    };
    let all = dims.iter().try_fold(1, product)?;
    if let Some(found) = indices.iter().find(|index| !(0..all).contains(*index)) {
        return Err(KernelError::invalid_argument(format!(
            "indices must lie in [0, {all}), the elements of dims {dims:?}, found {found}"
        )));
    }
    let count = indices.len();
    let shape = [dims.len() as i64, count as i64];
    byte_size(&shape, 8)?;
    let mut places = growth::filled(dims.len() * count, 0i64)?;
    for (column, &index) in indices.iter().enumerate() {
        let mut rest = index;
        for (row, size) in dims.iter().enumerate().rev() {
            places[row * count + column] = rest % size;
            rest /= size;
        }
    }
    let rank = 1 + c.dims(0).len();
    write_integers(c, 0, &shape[..rank], places.into_iter())
}

register_kernel!("Bucketize" on "CPU": Bucketize<T> for "T" in [i32, i64, f32, f64],
    numerics = Numerics::EXACT);
register_kernel!("UnravelIndex" on "CPU": fn unravel, numerics = Numerics::EXACT);
register_kernel!("Where" on "CPU": fn place, types = ("T", NUMBERS), numerics = Numerics::EXACT);
register_kernel!("LowerBound" on "CPU": fn lower_bound, types = ("T", ORDERED),
    numerics = Numerics::EXACT);
register_kernel!("UpperBound" on "CPU": fn upper_bound, types = ("T", ORDERED),
    numerics = Numerics::EXACT);
