//! `DenseBincount`, `SparseBincount` and `RaggedBincount`: how often numbers occur in each row.

use std::marker::PhantomData;
use tenon_sdk::{
    DType, KernelError,
    author::{ComputeContext, CreateContext, Kernel},
    element::{Element, Number},
    geometry::{GeometryError, byte_size},
    reg::Numerics,
    register_kernel,
};

/// Approximate nanoseconds of a number.
const COST_NS: f64 = 1.5;

/// What is counted: a type of integers.
trait Counted: Element {
    fn wide(self) -> i64;
}

impl Counted for i32 {
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Counted for i64 {
    fn wide(self) -> i64 {
        self
    }
}

/// How the numbers of a row are counted.
struct Rule<'a, T> {
    /// Empty where each number counts as 1.
    weights: &'a [T],
    /// Whether a number that occurs gives 1, however often it does.
    is_binary: bool,
}

impl<T: Number> Rule<'_, T> {
    /// Counts number `value`, which is at place `at` of the input; one that is beyond the bins does not count.
    fn count<I: Counted>(&self, bins: &mut [T], at: usize, value: I) -> Result<(), KernelError> {
        let value = value.wide();
        let Ok(place) = usize::try_from(value) else {
            return Err(KernelError::invalid_argument(format!(
                "the numbers that are counted: expected at least 0, found {value} at place {at}"
            )));
        };
        let Some(bin) = bins.get_mut(place) else { return Ok(()) };
        *bin = match (self.is_binary, self.weights.get(at)) {
            (true, _) => T::ONE,
            (false, weight) => bin.add(weight.copied().unwrap_or(T::ONE)),
        };
        Ok(())
    }

    fn count_all<I: Counted>(
        &self,
        bins: &mut [T],
        start: usize,
        values: &[I],
    ) -> Result<(), KernelError> {
        values.iter().enumerate().try_for_each(|(at, &value)| self.count(bins, start + at, value))
    }
}

/// The number of bins.
fn bins(c: &ComputeContext<'_>, input: usize) -> Result<i64, KernelError> {
    match c.integer(input, "size")? {
        found if found < 0 => Err(GeometryError::TooSmall { what: "size", least: 0, found }.into()),
        size => Ok(size),
    }
}

/// The weights in an input, which has the shape of the numbers or no element.
fn weights<'a, T: Element>(
    c: &ComputeContext<'a>,
    input: usize,
    dims: &[i64],
) -> Result<&'a [T], KernelError> {
    let weights = c.input::<T>(input)?;
    match weights.data.is_empty() || weights.dims == dims {
        true => Ok(weights.data),
        false => Err(KernelError::invalid_argument(format!(
            "weights: expected shape {dims:?}, that of the numbers, or no elements, found shape {:?}",
            weights.dims
        ))),
    }
}

/// An output of zeros with this many rows, or a vector; computes the rows at once where that pays.
fn rows<T: Number>(
    c: &ComputeContext<'_>,
    dims: &[i64],
    numbers: usize,
    body: impl Fn(usize, &mut [T]) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    byte_size(dims, size_of::<T>())?;
    let y = c.output::<T>(0, dims)?.data;
    y.fill(T::ZERO);
    let &[count, size] = dims else { return body(0, y) };
    if size == 0 {
        return (0..count as usize).try_for_each(|row| body(row, &mut []));
    }
    let cost = COST_NS * numbers as f64 / (count as f64).max(1.0);
    c.parallel_items(y.chunks_exact_mut(size as usize), cost, body)
}

struct Dense<I, T> {
    is_binary: bool,
    of: PhantomData<fn(I, T)>,
}

impl<I: Counted, T: Number> Kernel for Dense<I, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Dense { is_binary: c.attr("binary_output")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (values, size) = (c.input::<I>(0)?, bins(c, 1)?);
        let rule = Rule { weights: weights::<T>(c, 2, values.dims)?, is_binary: self.is_binary };
        let numbers = values.data.len();
        match *values.dims {
            [count, columns] => rows(c, &[count, size], numbers, |row, bins| {
                let start = row * columns as usize;
                rule.count_all(bins, start, &values.data[start..][..columns as usize])
            }),
            [] | [_] => rows(c, &[size], numbers, |_, bins| rule.count_all(bins, 0, values.data)),
            _ => {
                let (what, expected, found) = ("input", 2, values.dims.len());
                Err(GeometryError::Rank { what, expected, found }.into())
            }
        }
    }
}

struct Sparse<I, T> {
    is_binary: bool,
    of: PhantomData<fn(I, T)>,
}

/// The row of a value, by its coordinates.
fn row_of(at: usize, found: i64, count: i64) -> Result<usize, KernelError> {
    match (0..count).contains(&found) {
        true => Ok(found as usize),
        false => Err(KernelError::invalid_argument(format!(
            "indices: expected rows from 0 to before {count}, found {found} for value {at}"
        ))),
    }
}

impl<I: Counted, T: Number> Kernel for Sparse<I, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Sparse { is_binary: c.attr("binary_output")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (indices, values) = (c.input::<i64>(0)?, c.input::<I>(1)?);
        let (shape, size) = (c.input::<i64>(2)?, bins(c, 3)?);
        let rule = Rule { weights: weights::<T>(c, 4, values.dims)?, is_binary: self.is_binary };
        let rank = shape.data.len();
        if !(1..=2).contains(&rank) || shape.dims.len() != 1 {
            return Err(KernelError::invalid_argument(format!(
                "dense_shape: expected a vector of 1 or 2 sizes, found shape {:?}",
                shape.dims
            )));
        }
        if values.dims.len() != 1 || indices.dims != [values.dims[0], rank as i64] {
            return Err(KernelError::invalid_argument(format!(
                "indices: expected shape [values, {rank}], found {:?} for values of shape {:?}",
                indices.dims, values.dims
            )));
        }
        if let Some(&found) = shape.data.iter().find(|&&size| size < 0) {
            return Err(GeometryError::TooSmall { what: "dense_shape", least: 0, found }.into());
        }
        if rank == 1 {
            return rows(c, &[size], 0, |_, bins| rule.count_all(bins, 0, values.data));
        }
        let dims = [shape.data[0], size];
        byte_size(&dims, size_of::<T>())?;
        let y = c.output::<T>(0, &dims)?.data;
        y.fill(T::ZERO);
        let each = size as usize;
        for (at, (&value, place)) in
            values.data.iter().zip(indices.data.chunks_exact(2)).enumerate()
        {
            let row = row_of(at, place[0], dims[0])?;
            rule.count(&mut y[row * each..][..each], at, value)?;
        }
        Ok(())
    }
}

struct Ragged<I, T> {
    is_binary: bool,
    of: PhantomData<fn(I, T)>,
}

impl<I: Counted, T: Number> Kernel for Ragged<I, T> {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Ok(Ragged { is_binary: c.attr("binary_output")?, of: PhantomData })
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let (splits, values) = (c.input::<i64>(0)?, c.input::<I>(1)?);
        let size = bins(c, 2)?;
        let rule = Rule { weights: weights::<T>(c, 3, values.dims)?, is_binary: self.is_binary };
        let numbers = values.data.len();
        let ends = [splits.data.first(), splits.data.last()];
        let whole = ends == [Some(&0), Some(&(numbers as i64))];
        if splits.dims.len() != 1 || !whole || !splits.data.is_sorted() {
            return Err(KernelError::invalid_argument(format!(
                "splits: expected a vector that ascends from 0 to the number of values, {numbers}, \
                 found one of shape {:?} from {:?} to {:?}",
                splits.dims, ends[0], ends[1]
            )));
        }
        let count = splits.data.len() as i64 - 1;
        rows(c, &[count, size], numbers, |row, bins| {
            let (start, end) = (splits.data[row] as usize, splits.data[row + 1] as usize);
            rule.count_all(bins, start, &values.data[start..end])
        })
    }
}

macro_rules! counts {
    ($($op:literal $kernel:ident [$($memory:literal),*];)*) => {$(
        counts!(@index $op $kernel [$($memory),*] DType::INT32, i32);
        counts!(@index $op $kernel [$($memory),*] DType::INT64, i64);
    )*};
    (@index $op:literal $kernel:ident $memory:tt $index:expr, $of:ty) => {
        counts!(@kernel $op $kernel $memory $index, $of, [i32, i64], Numerics::EXACT);
        counts!(@kernel $op $kernel $memory $index, $of, [f32], super::FLOAT);
        counts!(@kernel $op $kernel $memory $index, $of, [f64], super::DOUBLE);
    };
    (@kernel $op:literal $kernel:ident [$($memory:literal),*] $index:expr, $of:ty,
        [$($ty:ty),*], $numerics:expr) => {
        const _: () = {
            type Of<T> = $kernel<$of, T>;
            register_kernel!($op on "CPU": Of<T> for "T" in [$($ty),*],
                types = ("Tidx", &[$index]), host_memory = &[$($memory),*], numerics = $numerics);
        };
    };
}

counts! {
    "DenseBincount" Dense ["size"];
    "SparseBincount" Sparse ["dense_shape", "size"];
    "RaggedBincount" Ragged ["size"];
}
