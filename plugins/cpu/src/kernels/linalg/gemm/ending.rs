//! What is done to results: while they are in registers, and while they are in the cache.

use crate::lane::Compute;
use std::fmt;

/// What is done to results as soon as they are there, while they are in the cache: it gets the number of the first of
/// some neighbours, counted from the target's first element, and them: whole rows, or part of one.
pub type After<'a, S> = dyn Fn(usize, &mut [S]) + Sync + 'a;

/// What is done to sums on their way out of registers, in this order; each step rounds.
#[derive(Debug, Clone, Copy)]
pub struct Finish<'a, S> {
    /// Added, a number for each column.
    pub bias: Option<&'a [S]>,
    /// `(sum - mean) * factor + offset`, the three for each column.
    pub affine: Option<[&'a [S]; 3]>,
    /// Added, laid out as the results.
    pub other: Option<&'a [S]>,
    /// `min(max(sum, 0), high)`, where NaN stays.
    pub high: Option<S>,
}

impl<'a, S: Copy> Finish<'a, S> {
    /// Nothing.
    pub const NONE: Finish<'a, S> = Finish { bias: None, affine: None, other: None, high: None };

    /// Whether there is anything to do.
    pub fn is_none(&self) -> bool {
        self.bias.is_none() && self.affine.is_none() && self.other.is_none() && self.high.is_none()
    }

    /// Of results that begin with column `column` of those that this is of, as their element `first`.
    ///
    /// Panics when there are not so many.
    pub fn from(&self, column: usize, first: usize) -> Finish<'a, S> {
        Finish {
            bias: self.bias.map(|bias| &bias[column..]),
            affine: self.affine.map(|affine| affine.map(|values| &values[column..])),
            other: self.other.map(|other| &other[first..]),
            high: self.high,
        }
    }

    /// Whether it has something for each of so many columns, and of results that end there.
    pub fn covers(&self, columns: usize, end: usize) -> bool {
        let by_column = self.bias.iter().chain(self.affine.iter().flatten());
        by_column.into_iter().all(|values| values.len() >= columns)
            && self.other.is_none_or(|other| other.len() >= end)
    }
}

/// All that is done to the results of a product.
pub struct Ending<'a, T: Compute> {
    /// In registers; nothing of types that do not compute in themselves.
    pub finish: Finish<'a, T::Wide>,
    /// What is left to do then.
    pub rest: Option<&'a After<'a, T>>,
    /// Both, for results that were not in these registers.
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
    /// Nothing is done.
    pub const NONE: Ending<'a, T> = Ending { finish: Finish::NONE, rest: None, all: None };

    /// Nothing in registers.
    pub fn after(after: Option<&'a After<'a, T>>) -> Ending<'a, T> {
        Ending { finish: Finish::NONE, rest: after, all: after }
    }
}
