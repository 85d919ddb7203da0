//! A table that finds its values by hashing.

use super::{
    column::{Column, Values},
    key::Key,
};
use std::collections::{HashMap, hash_map::Entry};
use tenon_sdk::{growth, prelude::*};

/// Keys with their values, numbered without gaps.
pub struct Entries {
    numbers: HashMap<Key, usize>,
    keys: Vec<Key>,
    values: Column,
}

impl Entries {
    /// No keys; values are like those of the column.
    pub fn new(values: Column) -> Entries {
        Entries { numbers: HashMap::new(), keys: Vec::new(), values }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The keys, in the order of their numbers.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// The values, in the order of their numbers.
    pub fn values(&self) -> &Column {
        &self.values
    }

    /// The number of a key.
    pub fn number(&self, key: &Key) -> Option<usize> {
        self.numbers.get(key).copied()
    }

    /// Gives a key value `at` of `values`. Where the key has a value, `again` says whether it is replaced.
    ///
    /// # Errors
    /// What `again` says; `RESOURCE_EXHAUSTED` without memory.
    pub fn insert(
        &mut self,
        key: Key,
        values: &Values<'_>,
        at: usize,
        again: impl FnOnce(&Column, usize) -> Result<bool, KernelError>,
    ) -> Result<(), KernelError> {
        growth::reserve_entries(&mut self.numbers, 1)?;
        growth::reserve(&mut self.keys, 1)?;
        match self.numbers.entry(key) {
            Entry::Occupied(entry) => match again(&self.values, *entry.get())? {
                true => self.values.set(*entry.get(), values, at),
                false => Ok(()),
            },
            Entry::Vacant(entry) => {
                self.values.push(values, at)?;
                self.keys.push(entry.key().clone());
                entry.insert(self.keys.len() - 1);
                Ok(())
            }
        }
    }

    /// Removes a key, if it is there; the last one takes its number.
    pub fn remove(&mut self, key: &Key) {
        let Some(number) = self.numbers.remove(key) else { return };
        self.keys.swap_remove(number);
        self.values.swap_remove(number);
        if let Some(moved) = self.keys.get(number)
            && let Some(moved) = self.numbers.get_mut(moved)
        {
            *moved = number;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Insertions, replacements and removals in a fixed order that looks random, beside an ordered map.
    #[test]
    fn entries_agree_with_a_map() {
        let mut entries = Entries::new(Column::new(DType::INT64, 2).unwrap());
        let mut expected = BTreeMap::new();
        let mut state = 7u64;
        for step in 0..2000u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let key = (state >> 33) as i64 % 50;
            if state >> 60 < 5 {
                entries.remove(&Key::Integer(key));
                expected.remove(&key);
            } else {
                let bytes: Vec<u8> = [step, !step].iter().flat_map(|x| x.to_ne_bytes()).collect();
                let values = Values::Bytes(&bytes);
                entries.insert(Key::Integer(key), &values, 0, |_, _| Ok(true)).unwrap();
                expected.insert(key, bytes);
            }
        }
        assert_eq!(entries.len(), expected.len());
        for (key, bytes) in &expected {
            let number = entries.number(&Key::Integer(*key)).unwrap();
            assert_eq!(entries.keys()[number], Key::Integer(*key));
            assert!(entries.values().equals(number, &Values::Bytes(bytes), 0));
        }
    }

    #[test]
    fn strings_move_with_their_keys() {
        let mut entries = Entries::new(Column::new(DType::STRING, 2).unwrap());
        let key = |text: &str| Key::Text(text.as_bytes().into());
        let texts: Vec<&[u8]> = vec![b"a", b"b", b"c", b"d", b"e", b"f"];
        for (at, name) in ["x", "y", "z"].into_iter().enumerate() {
            entries.insert(key(name), &Values::Texts(texts.clone()), at, |_, _| Ok(true)).unwrap();
        }
        entries.remove(&key("x"));
        let number = entries.number(&key("z")).unwrap();
        assert!(entries.values().equals(number, &Values::Texts(vec![b"e", b"f"]), 0));
        assert_eq!(entries.len(), 2);
    }
}
