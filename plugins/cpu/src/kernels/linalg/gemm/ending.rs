//! Operations on results: while they are in registers, and while they are in the cache.

use crate::lane::Compute;
use std::fmt;

/// An operation on new results while they are in the cache. Its arguments are the index of the
/// first of some adjacent results, counted from the target's first element, and the results: whole
/// rows, or part of one.
pub type After<'a, S> = dyn Fn(usize, &mut [S]) + Sync + 'a;

/// Operations on sums as they leave the registers, in this order; each step rounds.
#[derive(Debug, Clone, Copy)]
pub struct Finish<'a, S> {
    /// Added: a number for each column.
    pub bias: Option<&'a [S]>,
    /// `(sum - mean) * factor + offset`, with three numbers for each column.
    pub affine: Option<[&'a [S]; 3]>,
    /// Added: numbers with the layout of the results.
    pub other: Option<&'a [S]>,
    /// `min(max(sum, 0), high)`, which preserves NaN.
    pub high: Option<S>,
}

impl<'a, S: Copy> Finish<'a, S> {
    /// No operations.
    pub const NONE: Finish<'a, S> = Finish { bias: None, affine: None, other: None, high: None };

    /// Whether there are no operations.
    pub fn is_none(&self) -> bool {
        self.bias.is_none() && self.affine.is_none() && self.other.is_none() && self.high.is_none()
    }

    /// The operations for results that begin with column `column` of the columns covered here, as
    /// element `first`.
    ///
    /// Panics if there are fewer numbers.
    pub fn from(&self, column: usize, first: usize) -> Finish<'a, S> {
        Finish {
            bias: self.bias.map(|bias| &bias[column..]),
            affine: self.affine.map(|affine| affine.map(|values| &values[column..])),
            other: self.other.map(|other| &other[first..]),
            high: self.high,
        }
    }

    /// Whether it has numbers for `columns` columns, and for results that end at `end`.
    pub fn covers(&self, columns: usize, end: usize) -> bool {
        let by_column = self.bias.iter().chain(self.affine.iter().flatten());
        by_column.into_iter().all(|values| values.len() >= columns)
            && self.other.is_none_or(|other| other.len() >= end)
    }
}

/// All operations on the results of a product.
pub struct Ending<'a, T: Compute> {
    /// The operations in registers; none for types with a wider type of computation.
    pub finish: Finish<'a, T::Wide>,
    /// The operations that are left after `finish`.
    pub rest: Option<&'a After<'a, T>>,
    /// All operations, for results that were not in these registers.
    pub all: Option<&'a After<'a, T>>,
}

impl<T: Compute> Clone for Ending<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Compute> Copy for Ending<'_, T> {}

impl<T: Compute> fmt::Debug for Ending<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ending").field("finish", &self.finish).finish_non_exhaustive()
    }
}

impl<'a, T: Compute> Ending<'a, T> {
    /// No operations.
    pub const NONE: Ending<'a, T> = Ending { finish: Finish::NONE, rest: None, all: None };

    /// No operations in registers.
    pub fn after(after: Option<&'a After<'a, T>>) -> Ending<'a, T> {
        Ending { finish: Finish::NONE, rest: after, all: after }
    }
}
