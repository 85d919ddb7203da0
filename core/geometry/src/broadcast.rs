//! Broadcasting, with NumPy's rule: shapes are aligned at their last dimension, missing dimensions count as
//! 1, and in each dimension the sizes are equal or all but one size are 1; the output has the other size.
//!
//! A [`BroadcastPlan`] prepares the visit: dimensions of size 1 are dropped, and neighbours merge
//! if each operand either runs through both or repeats over both. `[8, 3, 5] + [3, 5]` becomes
//! `[8, 15] + [15]`.

use crate::error::{GeometryError, Result};
use crate::size::{Dims, element_count, index, validate_dims, validate_partial_dims};
use std::ops::Range;

/// The shape that two shapes broadcast to; -1 is an unknown dimension.
///
/// As in TensorFlow's shape inference, an unknown dimension with one above 1 gives the latter (the
/// kernel checks later), with 1 it gives unknown, and with 0 or unknown it gives unknown.
pub fn broadcast_shape(a: &[i64], b: &[i64]) -> Result<Dims> {
    validate_partial_dims(a)?;
    validate_partial_dims(b)?;
    let mut output = Dims::filled(a.len().max(b.len()), 1)?;
    let rank = output.len();
    for i in 0..rank {
        let (x, y) = (aligned(a, rank, i), aligned(b, rank, i));
        output[i] = match (x, y) {
            (1, other) | (other, 1) => other,
            (-1, other) | (other, -1) => {
                if other > 1 {
                    other
                } else {
                    -1
                }
            }
            (x, y) if x == y => x,
            _ => return Err(GeometryError::Incompatible { a: a.to_vec(), b: b.to_vec() }),
        };
    }
    validate_partial_dims(&output)?;
    Ok(output)
}

/// The shape that any number of shapes broadcast to; a scalar for an empty list.
pub fn broadcast_shapes(shapes: &[&[i64]]) -> Result<Dims> {
    shapes.iter().try_fold(Dims::EMPTY, |output, shape| broadcast_shape(&output, shape))
}

/// Size of dimension `i` of `rank`, where missing leading dimensions are 1.
fn aligned(dims: &[i64], rank: usize, i: usize) -> i64 {
    (i + dims.len()).checked_sub(rank).map_or(1, |own| dims[own])
}

/// The shapes of two operands for which kernels have special loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BroadcastKind {
    /// Both operands have every element of the output.
    Same,
    /// The left operand has one element, the right all.
    ScalarLeft,
    /// The right operand has one element, the left all.
    ScalarRight,
    /// The output is `rows x cols`; the left operand is one row, repeated.
    RowLeft {
        /// Rows of the output.
        rows: usize,
        /// Columns of the output.
        cols: usize,
    },
    /// The output is `rows x cols`; the right operand is one row, repeated.
    RowRight {
        /// Rows of the output.
        rows: usize,
        /// Columns of the output.
        cols: usize,
    },
    /// The output is `rows x cols`; the left operand has one element per row.
    ColLeft {
        /// Rows of the output.
        rows: usize,
        /// Columns of the output.
        cols: usize,
    },
    /// The output is `rows x cols`; the right operand has one element per row.
    ColRight {
        /// Rows of the output.
        rows: usize,
        /// Columns of the output.
        cols: usize,
    },
    /// Any other shapes: visit [`BroadcastPlan::runs`].
    General,
}

/// The broadcast of `N` operands of known shape to one output.
#[derive(Debug, Clone)]
pub struct BroadcastPlan<const N: usize> {
    output: Dims,
    len: usize,
    extents: Dims,
    strides: [Dims; N],
}

impl<const N: usize> BroadcastPlan<N> {
    /// Plans the broadcast of operands with these dimensions. Fails if they are invalid, do not
    /// broadcast, or give too many elements.
    pub fn new(operands: [&[i64]; N]) -> Result<BroadcastPlan<N>> {
        for dims in operands {
            validate_dims(dims)?;
        }
        let output = broadcast_shapes(&operands)?;
        let len = element_count(&output)?;
        let mut plan =
            BroadcastPlan { output, len, extents: Dims::EMPTY, strides: [Dims::EMPTY; N] };
        plan.collapse(operands)?;
        Ok(plan)
    }

    /// Merges dimensions from the innermost outwards, then reverses the lists.
    fn collapse(&mut self, operands: [&[i64]; N]) -> Result<()> {
        let rank = self.output.len();
        let mut next_stride = [1i64; N];
        for i in (0..rank).rev() {
            let extent = self.output[i];
            if extent == 1 {
                continue;
            }
            let repeats: [bool; N] = operands.map(|dims| aligned(dims, rank, i) == 1);
            let merges = self.extents.last().is_some()
                && (0..N).all(|n| (self.strides[n].last() == Some(&0)) == repeats[n]);
            match self.extents.last_mut().filter(|_| merges) {
                Some(last) => *last = last.saturating_mul(extent),
                None => {
                    self.extents.push(extent)?;
                    for n in 0..N {
                        self.strides[n].push(if repeats[n] { 0 } else { next_stride[n] })?;
                    }
                }
            }
            for n in 0..N {
                if !repeats[n] {
                    next_stride[n] = next_stride[n].saturating_mul(extent);
                }
            }
        }
        if self.extents.is_empty() {
            self.extents.push(1)?;
            for strides in &mut self.strides {
                strides.push(1)?;
            }
        }
        self.extents.reverse();
        self.strides.iter_mut().for_each(|strides| strides.reverse());
        Ok(())
    }

    /// Dimensions of the output, before merging.
    pub fn output_dims(&self) -> &[i64] {
        &self.output
    }

    /// Number of elements of the output.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the output has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Merged dimensions; at least one.
    pub fn extents(&self) -> &[i64] {
        &self.extents
    }

    /// Strides of an operand in elements over [`BroadcastPlan::extents`]; 0 where it repeats.
    pub fn strides(&self, operand: usize) -> &[i64] {
        &self.strides[operand]
    }

    /// Whether no operand repeats: element `i` of the output comes from element `i` of each.
    pub fn is_elementwise(&self) -> bool {
        self.extents.len() == 1 && self.strides.iter().all(|strides| strides[0] == 1)
    }

    /// Elements per run: the last merged dimension.
    pub fn run_len(&self) -> usize {
        if self.is_empty() { 0 } else { index(self.extents[self.extents.len() - 1]) }
    }

    /// Number of runs; 0 if the output is empty.
    pub fn run_count(&self) -> usize {
        self.len.checked_div(self.run_len()).unwrap_or(0)
    }

    /// All runs, in the order of the output.
    pub fn runs(&self) -> Runs<'_, N> {
        self.runs_in(0..self.run_count())
    }

    /// The runs with these numbers, for splitting the work; numbers beyond the last run are
    /// ignored.
    pub fn runs_in(&self, range: Range<usize>) -> Runs<'_, N> {
        let end = range.end.min(self.run_count());
        let start = range.start.min(end);
        let mut runs = Runs { plan: self, next: start, end, index: Dims::EMPTY, offsets: [0; N] };
        runs.seek(start);
        runs
    }
}

impl BroadcastPlan<2> {
    /// The special case of this plan.
    pub fn kind(&self) -> BroadcastKind {
        if self.is_empty() {
            return BroadcastKind::Same;
        }
        let (a, b) = (&*self.strides[0], &*self.strides[1]);
        match (&*self.extents, a, b) {
            (_, [1], [1]) => BroadcastKind::Same,
            (_, [0], _) => BroadcastKind::ScalarLeft,
            (_, _, [0]) => BroadcastKind::ScalarRight,
            (&[rows, cols], a, b) => {
                let (rows, cols) = (index(rows), index(cols));
                // An operand without repetition has strides [cols, 1], and cols is above 1.
                match (a, b) {
                    ([0, 1], [2..=i64::MAX, 1]) => BroadcastKind::RowLeft { rows, cols },
                    ([2..=i64::MAX, 1], [0, 1]) => BroadcastKind::RowRight { rows, cols },
                    ([1, 0], [2..=i64::MAX, 1]) => BroadcastKind::ColLeft { rows, cols },
                    ([2..=i64::MAX, 1], [1, 0]) => BroadcastKind::ColRight { rows, cols },
                    _ => BroadcastKind::General,
                }
            }
            _ => BroadcastKind::General,
        }
    }
}

/// A piece of the output that is contiguous, and in which each operand is contiguous or one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<const N: usize> {
    /// First element of the output.
    pub output: usize,
    /// Number of elements.
    pub len: usize,
    /// First element of each operand.
    pub offsets: [usize; N],
    /// The stride of each operand: 1 if it is contiguous, 0 if its one element repeats.
    pub strides: [usize; N],
}

/// Iterator over the runs of a plan.
#[derive(Debug, Clone)]
pub struct Runs<'a, const N: usize> {
    plan: &'a BroadcastPlan<N>,
    next: usize,
    end: usize,
    /// Position in the outer merged dimensions.
    index: Dims,
    offsets: [i64; N],
}

impl<const N: usize> Runs<'_, N> {
    /// Sets position and offsets for this run number.
    fn seek(&mut self, run: usize) {
        self.index = self.plan.extents;
        self.index.fill(0);
        let mut rest = run as i64;
        for d in (0..self.plan.extents.len() - 1).rev() {
            let extent = self.plan.extents[d].max(1);
            self.index[d] = rest % extent;
            rest /= extent;
            for n in 0..N {
                self.offsets[n] += self.index[d] * self.plan.strides[n][d];
            }
        }
    }

    /// Moves position and offsets to the next run.
    fn advance(&mut self) {
        for d in (0..self.plan.extents.len() - 1).rev() {
            self.index[d] += 1;
            let wraps = self.index[d] == self.plan.extents[d];
            let step = if wraps { 1 - self.plan.extents[d] } else { 1 };
            for n in 0..N {
                self.offsets[n] += step * self.plan.strides[n][d];
            }
            if !wraps {
                return;
            }
            self.index[d] = 0;
        }
    }
}

impl<const N: usize> Iterator for Runs<'_, N> {
    type Item = Run<N>;

    fn next(&mut self) -> Option<Run<N>> {
        if self.next == self.end {
            return None;
        }
        let len = self.plan.run_len();
        let last = self.plan.extents.len() - 1;
        let run = Run {
            output: self.next * len,
            len,
            offsets: self.offsets.map(|offset| offset as usize),
            strides: std::array::from_fn(|n| self.plan.strides[n][last] as usize),
        };
        self.next += 1;
        if self.next < self.end {
            self.advance();
        }
        Some(run)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}

impl<const N: usize> ExactSizeIterator for Runs<'_, N> {}

#[cfg(test)]
#[path = "broadcast_tests.rs"]
mod tests;
