//! The matrices of a tensor: its last two dimensions, for each index of the dimensions before.

use crate::{few::Few, scalar::Scalar};
use faer::Mat;
use tenon_sdk::{
    KernelError, View,
    author::ComputeContext,
    geometry::{Dims, GeometryError, square_size},
    growth,
};

/// Most copies of a matrix that a decomposition has at a time.
const COPIES: usize = 6;
/// Least number of bytes whose allocation is checked in advance.
const FORESEEN: usize = 1 << 14;

/// The matrices of an input.
pub struct Matrices<'a, T> {
    /// Dimensions before the last two.
    pub batch: &'a [i64],
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub cols: usize,
    data: &'a [T],
}

impl<'a, T: Scalar> Matrices<'a, T> {
    /// The matrices of an input with at least two dimensions.
    pub fn new(view: View<'a, T>, what: &'static str) -> Result<Matrices<'a, T>, KernelError> {
        let Some((batch, &[rows, cols])) = view.dims.split_last_chunk::<2>() else {
            let found = view.dims.len();
            return Err(GeometryError::RankTooSmall { what, expected: 2, found }.into());
        };
        Ok(Matrices { batch, rows: rows as usize, cols: cols as usize, data: view.data })
    }

    /// The matrices of an input, which must be square.
    pub fn square(view: View<'a, T>, what: &'static str) -> Result<Matrices<'a, T>, KernelError> {
        square_size(what, view.dims)?;
        Matrices::new(view, what)
    }

    /// Returns the same matrices for a larger batch, whose members share them.
    pub fn of_batch<'b>(&self, batch: &'b [i64]) -> Matrices<'b, T>
    where
        'a: 'b,
    {
        Matrices { batch, rows: self.rows, cols: self.cols, data: self.data }
    }

    /// The dimensions before the last two, followed by others.
    pub fn dims(&self, last: &[usize]) -> Result<Dims, KernelError> {
        let mut dims = Dims::from_slice(self.batch)?;
        for &size in last {
            dims.push(size as i64)?;
        }
        Ok(dims)
    }

    /// A matrix. Memory for its decomposition is checked in advance, since the library allocates
    /// it.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no memory for the factors and their computation.
    pub fn get(&self, number: usize) -> Result<Mat<T::Wide>, KernelError> {
        let (most, least) = (self.rows.max(self.cols), self.rows.min(self.cols));
        // Full factors of the larger dimension, plus the matrix and its copies.
        let elements = most.saturating_mul(most).saturating_add(least.saturating_mul(most));
        let bytes = elements.saturating_mul(COPIES * size_of::<T::Wide>());
        if bytes >= FORESEEN {
            growth::foresee(bytes)?;
        }
        let data = self.rows_of(number);
        Ok(Mat::from_fn(self.rows, self.cols, |i, j| data[i * self.cols + j].up()))
    }

    /// A matrix, if it has few elements of ordinary magnitude.
    pub fn few(&self, number: usize) -> Option<Few<T::Wide>> {
        Few::new(self.rows_of(number), self.rows, self.cols)
    }

    /// The elements of a matrix in row order.
    pub fn rows_of(&self, number: usize) -> &'a [T] {
        let size = self.rows * self.cols;
        &self.data[number * size..][..size]
    }

    /// Approximate nanoseconds of a decomposition.
    pub fn cost_ns(&self) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        500.0 + rows * cols * rows.min(cols)
    }
}

/// Checks that two inputs have the same dimensions before the last two.
pub fn same_batch<T, U>(
    a: &Matrices<'_, T>,
    b: &Matrices<'_, U>,
    what: &str,
) -> Result<(), KernelError> {
    if a.batch == b.batch {
        return Ok(());
    }
    Err(KernelError::invalid_argument(format!(
        "{what} must have the same outer dimensions, found {:?} and {:?}",
        a.batch, b.batch
    )))
}

/// Checks a size.
pub fn same_size(what: &'static str, expected: usize, found: usize) -> Result<(), KernelError> {
    if expected == found {
        return Ok(());
    }
    let (expected, found) = (expected as i64, found as i64);
    Err(GeometryError::SizeMismatch { what, expected, found }.into())
}

/// Writes a matrix in row order.
pub fn store<T: Scalar>(matrix: &Mat<T::Wide>, y: &mut [T]) {
    let cols = matrix.ncols().max(1);
    for (i, row) in y.chunks_mut(cols).enumerate() {
        for (j, y) in row.iter_mut().enumerate() {
            *y = T::down(matrix[(i, j)]);
        }
    }
}

/// Parts of an output, one for each of `count` matrices, which may be empty.
pub fn parts<T>(mut data: &mut [T], count: usize) -> impl Iterator<Item = &mut [T]> {
    let len = data.len() / count.max(1);
    (0..count).map(move |_| {
        let (part, rest) = std::mem::take(&mut data).split_at_mut(len);
        data = rest;
        part
    })
}

/// Computes each matrix's part of the one output, which has these dimensions.
pub fn for_each<T: Scalar>(
    c: &ComputeContext<'_>,
    x: &Matrices<'_, T>,
    dims: &[i64],
    body: impl Fn(usize, &mut [T]) -> Result<(), KernelError> + Sync,
) -> Result<(), KernelError> {
    let y = c.output::<T>(0, dims)?.data;
    if y.is_empty() {
        return Ok(());
    }
    let count = count(x.batch);
    c.parallel_items(parts(y, count), x.cost_ns(), body)
}

/// Number of matrices in a batch. It does not overflow, since an output has elements for each.
pub fn count(batch: &[i64]) -> usize {
    batch.iter().product::<i64>() as usize
}
