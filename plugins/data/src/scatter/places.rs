//! Which elements of a variable the updates reach.

use super::combine::Combine;
use tenon_sdk::{
    author::{Cells, VarGuard},
    geometry::{SlicePlan, element_count},
    growth,
    prelude::*,
};

/// What to do with an index that is out of range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BadIndices {
    /// It is an error.
    Refused,
    /// Its update is left out.
    Ignored,
}

impl BadIndices {
    /// Attribute `bad_indices_policy`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another policy.
    pub fn new(c: &CreateContext<'_>) -> Result<BadIndices, KernelError> {
        match c.attr("bad_indices_policy")? {
            "" | "DEFAULT" | "ERROR" => Ok(BadIndices::Refused),
            "IGNORE" => Ok(BadIndices::Ignored),
            found => Err(KernelError::invalid_argument(format!(
                "bad_indices_policy: expected DEFAULT, ERROR or IGNORE, found '{found}'"
            ))),
        }
    }
}

/// The slices that a list of indices names, in order, up to the first bad one.
pub struct Places {
    /// Number of each slice; none for one that is left out.
    slices: Vec<Option<usize>>,
    /// Elements of a slice.
    len: usize,
    /// Whether one update is for all elements.
    is_scalar: bool,
    /// What is wrong with the index after the last slice.
    bad: Option<KernelError>,
}

/// The position of an index in a list of this shape, as text.
fn position(dims: &[i64], at: usize) -> String {
    let mut rest = at as i64;
    let mut place: Vec<i64> = dims
        .iter()
        .rev()
        .map(|&size| {
            let index = rest % size.max(1);
            rest /= size.max(1);
            index
        })
        .collect();
    place.reverse();
    format!("{place:?}")
}

impl Places {
    /// The rows that input 1 names of a value of this shape, for the updates of input 2.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for shapes that do not fit.
    pub fn rows(c: &ComputeContext<'_>, value: &[i64]) -> Result<Places, KernelError> {
        let (&rows, row) = value.split_first().ok_or_else(|| {
            KernelError::invalid_argument(
                "the variable: expected at least 1 dimension, found a scalar",
            )
        })?;
        let updates = c.dims(2);
        let expected: Vec<i64> = c.dims(1).iter().chain(row).copied().collect();
        if !updates.is_empty() && updates != expected {
            return Err(KernelError::invalid_argument(format!(
                "updates: expected a scalar or shape {expected:?}, that of indices and of a row, found {updates:?}"
            )));
        }
        let indices = c.integers(1)?;
        let bad = indices.iter().position(|index| !(0..rows).contains(index));
        let good = &indices[..bad.unwrap_or(indices.len())];
        Ok(Places {
            slices: growth::collected(good.iter().map(|&index| Some(index as usize)))?,
            len: element_count(row)?,
            is_scalar: updates.is_empty(),
            bad: bad.map(|at| {
                KernelError::invalid_argument(format!(
                    "indices{} = {} is not in [0, {rows})",
                    position(c.dims(1), at),
                    indices[at]
                ))
            }),
        })
    }

    /// The slices that the index vectors of input 1 name of a value of this shape, for the updates of input 2.
    ///
    /// # Errors
    /// As [`Places::rows`].
    pub fn slices(
        c: &ComputeContext<'_>,
        value: &[i64],
        policy: BadIndices,
    ) -> Result<Places, KernelError> {
        if value.is_empty() {
            return Err(KernelError::invalid_argument(
                "the variable: expected at least 1 dimension, found a scalar",
            ));
        }
        let plan = SlicePlan::new(value, c.dims(1))?;
        plan.check_updates(c.dims(2))?;
        if element_count(value)? == 0 && plan.count > 0 {
            return Err(KernelError::invalid_argument(format!(
                "indices name {} slices of an empty variable of shape {value:?}",
                plan.count
            )));
        }
        let indices = c.integers(1)?;
        let vector = |at: usize| &indices[at * plan.depth..(at + 1) * plan.depth];
        let mut slices = growth::collected((0..plan.count).map(|at| plan.slice(vector(at))))?;
        let bad = slices.iter().position(Option::is_none).filter(|_| policy == BadIndices::Refused);
        slices.truncate(bad.unwrap_or(plan.count));
        let outer = &c.dims(1)[..c.dims(1).len() - 1];
        Ok(Places {
            slices,
            len: plan.len,
            is_scalar: false,
            bad: bad.map(|at| {
                KernelError::invalid_argument(format!(
                    "indices{} = {:?} does not index into shape {value:?}",
                    position(outer, at),
                    vector(at)
                ))
            }),
        })
    }

    /// Calls `with` for each element to update, with the position of its update.
    fn each(
        &self,
        mut with: impl FnMut(usize, usize) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        for (number, slice) in self.slices.iter().enumerate() {
            let Some(slice) = slice else { continue };
            for at in 0..self.len {
                let update = if self.is_scalar { 0 } else { number * self.len + at };
                with(slice * self.len + at, update)?;
            }
        }
        self.bad.clone().map_or(Ok(()), Err)
    }

    /// Updates elements that calls share.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a bad index.
    pub fn update_shared<T: Element, C: Combine<T>>(
        &self,
        value: &Cells<'_, T>,
        updates: &[T],
    ) -> Result<(), KernelError> {
        self.each(|at, update| {
            value.set(at, C::combine(value.get(at), updates[update]));
            Ok(())
        })
    }

    /// Updates elements that one call has.
    ///
    /// # Errors
    /// As [`Places::update_shared`].
    pub fn update<T: Element, C: Combine<T>>(
        &self,
        value: &mut [T],
        updates: &[T],
    ) -> Result<(), KernelError> {
        self.each(|at, update| {
            value[at] = C::combine(value[at], updates[update]);
            Ok(())
        })
    }

    /// Writes strings, which are those of input 2.
    ///
    /// # Errors
    /// As [`Places::update_shared`]; no memory.
    pub fn write_strings(
        &self,
        c: &ComputeContext<'_>,
        value: &mut VarGuard<'_>,
    ) -> Result<(), KernelError> {
        let updates = c.strings(2)?;
        self.each(|at, update| value.set_string(0, at, updates[update]))
    }
}
