//! Tables in which two keys of the user's mark empty and removed places.
//!
//! In TensorFlow such a table is one array of buckets, and an export shows all of it: the empty key
//! stands where there is no entry. Here entries are kept as in other tables. An export has as many
//! places as TensorFlow's array, so that either reads what the other exports; the number of buckets
//! and when it doubles are TensorFlow's.

use super::{
    column::{Column, Values},
    entries::Entries,
    key::{Key, set_keys},
};
use tenon_sdk::prelude::*;

/// Such a table.
pub struct Dense {
    /// What is in it.
    pub entries: Entries,
    empty: Key,
    deleted: Key,
    buckets: i64,
    max_load: f32,
}

/// What a node says of such a table.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Number of places at first.
    pub buckets: i64,
    /// Share of the places beyond which their number is doubled.
    pub max_load: f32,
}

impl Limits {
    /// Attributes `initial_num_buckets` and `max_load_factor`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for values out of range.
    pub fn new(c: &CreateContext<'_>) -> Result<Limits, KernelError> {
        let (buckets, max_load): (i64, f32) =
            (c.attr("initial_num_buckets")?, c.attr("max_load_factor")?);
        if !(max_load > 0.0 && max_load < 1.0) {
            return Err(KernelError::invalid_argument(format!(
                "max_load_factor: expected between 0 and 1, found {max_load}"
            )));
        }
        if buckets < 4 || buckets & (buckets - 1) != 0 {
            return Err(KernelError::invalid_argument(format!(
                "initial_num_buckets: expected a power of 2 of at least 4, found {buckets}"
            )));
        }
        Ok(Limits { buckets, max_load })
    }
}

impl Dense {
    /// A table without entries.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when both keys are the same.
    pub fn new(
        values: Column,
        [empty, deleted]: [Key; 2],
        limits: Limits,
    ) -> Result<Dense, KernelError> {
        if empty == deleted {
            return Err(KernelError::invalid_argument(
                "deleted_key: expected another key than empty_key, found the same",
            ));
        }
        let Limits { buckets, max_load } = limits;
        Ok(Dense { entries: Entries::new(values), empty, deleted, buckets, max_load })
    }

    /// Refuses the two keys that mark places.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for them.
    pub fn check(&self, key: &Key) -> Result<(), KernelError> {
        let which = match () {
            () if *key == self.empty => "empty_key",
            () if *key == self.deleted => "deleted_key",
            () => return Ok(()),
        };
        Err(KernelError::invalid_argument(format!(
            "keys: expected keys for entries, found {which}, which marks places"
        )))
    }

    /// Makes places for a number of further entries, all of which count as new.
    pub fn grow(&mut self, more: usize) {
        let pending = (self.entries.len() as i64).saturating_add(more as i64) as f32;
        while pending > self.buckets as f32 * self.max_load && self.buckets <= i64::MAX / 2 {
            self.buckets *= 2;
        }
    }

    /// Replaces all entries by those of an export, without the keys that mark places.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` without memory.
    pub fn import(&mut self, keys: Vec<Key>, values: &Values<'_>) -> Result<(), KernelError> {
        let places = keys.len();
        let mut entries = Entries::new(self.entries.values().blank());
        for (at, key) in keys.into_iter().enumerate() {
            if key != self.empty && key != self.deleted {
                entries.insert(key, values, at, |_, _| Ok(true))?;
            }
        }
        self.entries = entries;
        self.buckets = (places as u64).next_power_of_two().max(4) as i64;
        self.grow(0);
        Ok(())
    }

    /// Returns all places as outputs 0 and 1: the entries, and the empty key with zeros for the others. Both are
    /// matrices, with the `key` or `value` elements of a place in a row, also where that is a scalar.
    ///
    /// # Errors
    /// As the outputs of [`ComputeContext`].
    pub fn export(
        &self,
        c: &ComputeContext<'_>,
        [key, value]: [usize; 2],
    ) -> Result<(), KernelError> {
        let count = self.buckets as usize;
        let keys = self.entries.keys().iter().chain(std::iter::repeat(&self.empty)).take(count);
        set_keys(c, 0, &[self.buckets, key as i64], keys)?;
        self.entries.values().output(c, 1, &[self.buckets, value as i64], count)
    }
}
