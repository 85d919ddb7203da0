//! The left factor of a product: rows that tiles read in place, or that are packed row by row, with
//! the factors of a row contiguous.

use super::{
    super::{
        matmul::convert_up,
        product::{Factor, Operand},
    },
    lines::Lines,
};
use crate::{kernels::array::turn::turn_into, lane::Compute, panels::as_itself};
use std::ops::Range;

/// Rows of factors.
pub trait Left<S>: Sync {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Number of factors of a row.
    fn depth(&self) -> usize;
    /// The first row and the distance to the next one, if they are in memory as tiles read them.
    fn in_place(&self) -> Option<(*const S, usize)>;
    /// The first column and the distance to the next one, if columns are contiguous in memory.
    fn by_columns(&self) -> Option<(*const S, usize)> {
        None
    }
    /// The rows as lines, if they overlap.
    fn lines(&self) -> Option<&dyn Lines<S>> {
        None
    }
    /// Writes some factors of some rows: those of each row to the beginning of every `step`
    /// elements.
    fn pack(&self, rows: Range<usize>, depths: Range<usize>, to: &mut [S], step: usize);
}

impl<T: Compute<Wide: Factor>> Left<T::Wide> for Operand<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn depth(&self) -> usize {
        self.cols
    }

    fn in_place(&self) -> Option<(*const T::Wide, usize)> {
        assert!(self.fits(), "the matrix lies in its memory");
        let neighbours = self.strides[1] == 1 || self.cols == 1;
        let data = as_itself(self.data).filter(|_| neighbours)?;
        Some((data.as_ptr(), self.strides[0]))
    }

    fn by_columns(&self) -> Option<(*const T::Wide, usize)> {
        assert!(self.fits(), "the matrix lies in its memory");
        let data = as_itself(self.data).filter(|_| self.strides[0] == 1)?;
        Some((data.as_ptr(), self.strides[1]))
    }

    fn pack(&self, rows: Range<usize>, depths: Range<usize>, to: &mut [T::Wide], step: usize) {
        let [row_stride, stride] = self.strides;
        if depths.is_empty() {
            return;
        }
        if stride == 1 {
            for (row, to) in rows.zip(to.chunks_mut(step)) {
                let from = &self.data[row * row_stride + depths.start..];
                convert_up(&from[..depths.len()], &mut to[..depths.len()]);
            }
            return;
        }
        let first = rows.start * row_stride + depths.start * stride;
        if let Some(data) = as_itself(self.data).filter(|_| row_stride == 1) {
            return turn_into(&data[first..], stride, [depths.len(), rows.len()], to, step);
        }
        for (row, to) in (0..rows.len()).zip(to.chunks_mut(step)) {
            for (k, to) in to[..depths.len()].iter_mut().enumerate() {
                *to = self.data[first + row * row_stride + k * stride].up();
            }
        }
    }
}
