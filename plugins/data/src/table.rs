//! Tables from keys to values.
//!
//! `key` and `column` hold keys and values whatever their types, `entries` finds values by hashing,
//! `dense` is a table in which two keys of the user's mark empty and removed places. `kind` says what
//! each kind of table allows; `make` has the kernels that give handles, `ops` those that use them,
//! `file` the one that reads a file, and `vocabulary` the one that compares the words of two.
//!
//! # Invariants
//! - All kinds are one type of resource, as in TensorFlow: a name belongs to one of them.
//! - An op either takes effect for all of its keys or, where it fails, leaves out those after the
//!   first that it refuses. A table is locked for as long as an op looks at it, and no longer.

mod column;
mod dense;
mod entries;
mod file;
mod key;
mod kind;
mod make;
mod ops;
mod vocabulary;

use crate::place::{Place, Shared};
use kind::Content;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenon_sdk::prelude::*;

/// A table.
pub struct Table {
    place: Place,
    /// What it is called in messages.
    name: String,
    key: DType,
    value: DType,
    /// Shape of one key.
    key_dims: Vec<i64>,
    /// Shape of one value.
    value_dims: Vec<i64>,
    content: Mutex<Content>,
}

impl Shared for Table {
    const NAME: &'static str = "tenon_data.Table";
    const WHAT: &'static str = "table";

    fn place(&self) -> &Place {
        &self.place
    }
}

impl Table {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the types that an op or another node of the same name gives.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for others than the table's.
    fn check_types(&self, key: DType, value: DType) -> Result<(), KernelError> {
        self.check_key_type(key)?;
        if value.base() == self.value {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "{}: expected values of type {}, found {value}",
            self.name, self.value
        )))
    }

    fn check_key_type(&self, key: DType) -> Result<(), KernelError> {
        if key.base() == self.key {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "{}: expected keys of type {}, found {key}",
            self.name, self.key
        )))
    }

    /// Number of keys that a tensor of this shape holds, and the dimensions before those of one key.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a shape that does not end in that of a key.
    fn outer<'d>(&self, what: &str, dims: &'d [i64]) -> Result<&'d [i64], KernelError> {
        dims.strip_suffix(&self.key_dims[..]).ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "{what}: expected a shape that ends in that of a key of {}, {:?}, found {dims:?}",
                self.name, self.key_dims
            ))
        })
    }

    /// The shape of the values for keys with these dimensions before those of one key.
    fn values_of(&self, outer: &[i64]) -> Vec<i64> {
        outer.iter().chain(&self.value_dims).copied().collect()
    }

    /// Checks that an input has a value for each key.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another shape.
    fn check_values(&self, outer: &[i64], found: &[i64]) -> Result<(), KernelError> {
        let expected = self.values_of(outer);
        if expected == found {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "values: expected shape {expected:?} for {}, a value for each key, found {found:?}",
            self.name
        )))
    }
}
