//! What each kind of table allows.

use super::{
    column::{Column, Values},
    dense::Dense,
    entries::Entries,
    key::Key,
};
use tenon_sdk::prelude::*;

/// The entries of a table, by its kind.
pub enum Content {
    /// It is filled once.
    Once {
        /// What is in it.
        entries: Entries,
        /// Whether it was filled.
        is_filled: bool,
    },
    /// It changes.
    Mutable(Entries),
    /// It changes, and two keys mark places.
    Dense(Dense),
}

fn refused(name: &str, what: &str) -> KernelError {
    KernelError::unimplemented(format!(
        "{name}: {what} a table that is filled once by its initialiser; use a mutable one"
    ))
}

fn not_filled(name: &str, code: Code) -> KernelError {
    KernelError::new(
        code,
        format!("Table not initialized: {name} has no entries before its initialiser ran"),
    )
}

impl Content {
    /// What is in it.
    pub fn entries(&self) -> &Entries {
        match self {
            Content::Once { entries, .. } | Content::Mutable(entries) => entries,
            Content::Dense(dense) => &dense.entries,
        }
    }

    /// Whether it is a table that is filled once, and was.
    pub fn is_filled(&self) -> bool {
        matches!(self, Content::Once { is_filled: true, .. })
    }

    /// The numbers of keys; none for those that are not there.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` before a table is filled; `INVALID_ARGUMENT` for a key that marks places.
    pub fn numbers(&self, name: &str, keys: &[Key]) -> Result<Vec<Option<usize>>, KernelError> {
        match self {
            Content::Once { is_filled: false, .. } => {
                return Err(not_filled(name, Code::FAILED_PRECONDITION));
            }
            Content::Dense(dense) => keys.iter().try_for_each(|key| dense.check(key))?,
            _ => {}
        }
        let entries = self.entries();
        tenon_sdk::growth::collected(keys.iter().map(|key| entries.number(key)))
    }

    /// Sets the values of keys.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a table that is filled once; `INVALID_ARGUMENT` for a key that marks places.
    pub fn insert(
        &mut self,
        name: &str,
        keys: Vec<Key>,
        values: &Values<'_>,
    ) -> Result<(), KernelError> {
        let entries = match self {
            Content::Once { .. } => return Err(refused(name, "cannot insert into")),
            Content::Mutable(entries) => entries,
            Content::Dense(dense) => {
                dense.grow(keys.len());
                for (at, key) in keys.into_iter().enumerate() {
                    dense.check(&key)?;
                    dense.entries.insert(key, values, at, |_, _| Ok(true))?;
                }
                return Ok(());
            }
        };
        let mut keys = keys.into_iter().enumerate();
        keys.try_for_each(|(at, key)| entries.insert(key, values, at, |_, _| Ok(true)))
    }

    /// Removes keys.
    ///
    /// # Errors
    /// As [`Content::insert`].
    pub fn remove(&mut self, name: &str, keys: &[Key]) -> Result<(), KernelError> {
        match self {
            Content::Once { .. } => return Err(refused(name, "cannot remove from")),
            Content::Mutable(entries) => keys.iter().for_each(|key| entries.remove(key)),
            Content::Dense(dense) => {
                for key in keys {
                    dense.check(key)?;
                    dense.entries.remove(key);
                }
            }
        }
        Ok(())
    }

    /// Replaces all entries; fills a table that is filled once.
    ///
    /// # Errors
    /// As [`Content::fill`].
    pub fn import(
        &mut self,
        name: &str,
        keys: Vec<Key>,
        values: &Values<'_>,
    ) -> Result<(), KernelError> {
        match self {
            Content::Once { .. } => self.fill(name, keys, values),
            Content::Mutable(entries) => {
                let mut all = Entries::new(entries.values().blank());
                for (at, key) in keys.into_iter().enumerate() {
                    all.insert(key, values, at, |_, _| Ok(true))?;
                }
                *entries = all;
                Ok(())
            }
            Content::Dense(dense) => dense.import(keys, values),
        }
    }

    /// Fills a table once. A table that was filled keeps what it has, if that is as many entries.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` for another number of entries than it has, and for a key with two values;
    /// `INVALID_ARGUMENT` for a table that is not filled by an initialiser.
    pub fn fill(
        &mut self,
        name: &str,
        keys: Vec<Key>,
        values: &Values<'_>,
    ) -> Result<(), KernelError> {
        let Content::Once { entries, is_filled } = self else {
            return Err(KernelError::invalid_argument(format!(
                "{name}: expected a table that is filled once by an initialiser, found a mutable one"
            )));
        };
        if *is_filled {
            return match entries.len() == keys.len() {
                true => Ok(()),
                false => Err(KernelError::new(
                    Code::FAILED_PRECONDITION,
                    format!(
                        "{name}: was already initialized with {} entries, found {} others",
                        entries.len(),
                        keys.len()
                    ),
                )),
            };
        }
        for (at, key) in keys.into_iter().enumerate() {
            entries.insert(key, values, at, |column: &Column, number| {
                if column.equals(number, values, at) {
                    return Ok(false);
                }
                Err(KernelError::new(
                    Code::FAILED_PRECONDITION,
                    format!(
                        "{name}: keys: expected one value for a key, found another as entry {at}"
                    ),
                ))
            })?;
        }
        *is_filled = true;
        Ok(())
    }

    /// Refuses a table that is filled once and was not yet.
    ///
    /// # Errors
    /// `ABORTED` for it.
    pub fn check_exportable(&self, name: &str) -> Result<(), KernelError> {
        match self {
            Content::Once { is_filled: false, .. } => Err(not_filled(name, Code::ABORTED)),
            _ => Ok(()),
        }
    }
}
