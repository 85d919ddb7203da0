//! The matrices of a tensor: its last two dimensions, for each index of those before.

use crate::scalar::Scalar;
use faer::Mat;
use tenon_sdk::{
    KernelError, View,
    author::ComputeContext,
    geometry::{Dims, GeometryError, square_size},
    growth,
};

/// Copies of a matrix that a decomposition keeps at a time, at most.
const COPIES: usize = 6;
/// Memory for less is not asked for beforehand.
const FORESEEN: usize = 1 << 14;

/// The matrices of an input.
pub struct Matrices<'a, T> {
    /// Dimensions before the last two.
    pub batch: &'a [i64],
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub cols: usize,
    data: &'a [T],
}

impl<'a, T: Scalar> Matrices<'a, T> {
    /// Of an input with at least two dimensions.
    pub fn new(view: View<'a, T>, what: &'static str) -> Result<Matrices<'a, T>, KernelError> {
        let Some((batch, &[rows, cols])) = view.dims.split_last_chunk::<2>() else {
            let found = view.dims.len();
            return Err(GeometryError::RankTooSmall { what, expected: 2, found }.into());
        };
        Ok(Matrices { batch, rows: rows as usize, cols: cols as usize, data: view.data })
    }

    /// Of an input whose matrices are square.
    pub fn square(view: View<'a, T>, what: &'static str) -> Result<Matrices<'a, T>, KernelError> {
        square_size(what, view.dims)?;
        Matrices::new(view, what)
    }

    /// The same matrices for a larger batch, whose members share them.
    pub fn of_batch<'b>(&self, batch: &'b [i64]) -> Matrices<'b, T>
    where
        'a: 'b,
    {
        Matrices { batch, rows: self.rows, cols: self.cols, data: self.data }
    }

    /// The dimensions before the last two, and others.
    pub fn dims(&self, last: &[usize]) -> Result<Dims, KernelError> {
        let mut dims = Dims::from_slice(self.batch)?;
        for &size in last {
            dims.push(size as i64)?;
        }
        Ok(dims)
    }

    /// One of them. Memory for its decomposition is foreseen: the library takes it itself.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is no memory for the factors and what they are computed with.
    pub fn get(&self, number: usize) -> Result<Mat<T::Wide>, KernelError> {
        let (most, least) = (self.rows.max(self.cols), self.rows.min(self.cols));
        // Full factors of the larger dimension, and the matrix and its copies.
        let elements = most.saturating_mul(most).saturating_add(least.saturating_mul(most));
        let bytes = elements.saturating_mul(COPIES * size_of::<T::Wide>());
        if bytes >= FORESEEN {
            growth::foresee(bytes)?;
        }
        let data = &self.data[number * self.rows * self.cols..][..self.rows * self.cols];
        Ok(Mat::from_fn(self.rows, self.cols, |i, j| data[i * self.cols + j].up()))
    }

    /// About how many nanoseconds a decomposition takes.
    pub fn cost_ns(&self) -> f64 {
        let (rows, cols) = (self.rows as f64, self.cols as f64);
        500.0 + rows * cols * rows.min(cols)
    }
}

/// Writes a matrix by rows.
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

/// Matrices in a batch. Some output has elements for each, so that there are not too many.
pub fn count(batch: &[i64]) -> usize {
    batch.iter().product::<i64>() as usize
}
