//! The keys of an area: elements that are complete, and keys that lack components.
//!
//! States of a key: *incomplete*, while components come → *complete*, with the last of them → gone, when
//! the last component was taken. A put of all components makes a complete one; where the key is complete
//! already, the element that is there stays.

use super::{Limits, bytes_of};
use crate::attempts::{Attempt, Progress};
use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    sync::Arc,
};
use tenon_sdk::prelude::*;

type Values = Vec<Option<Arc<Kept>>>;

/// The keys of an area.
pub struct State {
    limits: Limits,
    bytes: u64,
    complete: BTreeMap<i64, Values>,
    incomplete: HashMap<i64, Values>,
}

impl State {
    /// An area without keys.
    pub fn new(limits: Limits) -> State {
        State { limits, bytes: 0, complete: BTreeMap::new(), incomplete: HashMap::new() }
    }

    /// What there is room for.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// How many elements are complete.
    pub fn complete(&self) -> usize {
        self.complete.len()
    }

    /// How many keys are incomplete.
    pub fn incomplete(&self) -> usize {
        self.incomplete.len()
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.bytes = 0;
        self.complete.clear();
        self.incomplete.clear();
    }
}

/// Puts components under a key.
pub struct Put {
    /// Name of the area in messages.
    pub label: String,
    /// The key.
    pub key: i64,
    /// How many components an element has.
    pub components: usize,
    /// Which components come, each less than `components`.
    pub indices: Vec<usize>,
    /// The components.
    pub values: Vec<Arc<Kept>>,
    /// The bytes of them.
    pub bytes: u64,
}

impl Put {
    fn put(&self, state: &mut State) -> Result<(), KernelError> {
        let key = self.key;
        let there = state.incomplete.get(&key);
        let doubled = self
            .indices
            .iter()
            .find(|&&index| there.and_then(|there| there.get(index)).is_some_and(Option::is_some));
        if let Some(index) = doubled {
            return Err(KernelError::invalid_argument(format!(
                "indices: expected components that key {key} of {} lacks, found {index}, which it has",
                self.label
            )));
        }
        let values = state.incomplete.entry(key).or_default();
        values.resize(values.len().max(self.components), None);
        for (&index, value) in self.indices.iter().zip(&self.values) {
            values[index] = Some(Arc::clone(value));
        }
        state.bytes += self.bytes;
        if values.iter().all(Option::is_some)
            && let Some(values) = state.incomplete.remove(&key)
        {
            self.complete(state, values);
        }
        Ok(())
    }

    fn complete(&self, state: &mut State, values: Values) {
        match state.complete.entry(self.key) {
            Entry::Occupied(_) => state.bytes -= bytes(&values),
            Entry::Vacant(place) => {
                place.insert(values);
            }
        }
    }
}

impl Attempt<State> for Put {
    fn run(&mut self, state: &mut State) -> Progress {
        let is_whole = self.indices.len() == self.components;
        let has_place = !is_whole || state.limits.has_place(state.complete.len());
        if !has_place || !state.limits.has_bytes(state.bytes, self.bytes) {
            return Progress::Stuck;
        }
        if !is_whole {
            return Progress::Done(self.put(state));
        }
        state.bytes += self.bytes;
        self.complete(state, self.values.iter().cloned().map(Some).collect());
        Progress::Done(Ok(()))
    }
}

fn bytes(values: &Values) -> u64 {
    values.iter().flatten().map(|value| bytes_of(value)).sum()
}

/// What becomes of the components that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They stay.
    Look,
    /// They go; with the last one, the key.
    Take,
    /// As `Take`, of the least key, which is an output.
    TakeAny,
}

/// Takes components of a complete element, or looks at them.
pub struct Take {
    /// Name of the area in messages.
    pub label: String,
    /// The key; of [`Way::TakeAny`], the one that was taken.
    pub key: i64,
    /// Which components.
    pub indices: Vec<usize>,
    /// What becomes of them.
    pub way: Way,
    /// The components.
    pub taken: Vec<Arc<Kept>>,
}

impl Take {
    fn take(&mut self, values: &mut Values) -> Result<(), KernelError> {
        let there = |&index: &usize| values.get(index).cloned().flatten().ok_or(index);
        let taken: Result<Vec<_>, usize> = self.indices.iter().map(there).collect();
        self.taken = taken.map_err(|index| {
            KernelError::invalid_argument(format!(
                "indices: expected components that key {} of {} has, found {index} of {}",
                self.key,
                self.label,
                values.len()
            ))
        })?;
        if self.way != Way::Look {
            self.indices.iter().for_each(|&index| values[index] = None);
        }
        Ok(())
    }
}

impl Attempt<State> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        if self.way == Way::TakeAny {
            let Some((&key, _)) = state.complete.first_key_value() else { return Progress::Stuck };
            self.key = key;
        }
        let Some(values) = state.complete.get_mut(&self.key) else { return Progress::Stuck };
        let result = self.take(values);
        let is_empty = values.iter().all(Option::is_none);
        if result.is_ok() && self.way != Way::Look {
            state.bytes -= self.taken.iter().map(|value| bytes_of(value)).sum::<u64>();
        }
        if is_empty {
            state.complete.remove(&self.key);
        }
        Progress::Done(result)
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let c = call.context();
        let mut first = 0;
        if self.way == Way::TakeAny {
            c.output::<i64>(0, &[])?.data[0] = self.key;
            first = 1;
        }
        let mut values = self.taken.iter().enumerate();
        values.try_for_each(|(at, value)| c.output_kept(first + at, value))
    }

    fn abandon(&mut self, state: &mut State) {
        let taken = std::mem::take(&mut self.taken);
        if self.way == Way::Look {
            return;
        }
        let values = state.complete.entry(self.key).or_default();
        for (&index, value) in self.indices.iter().zip(taken) {
            values.resize(values.len().max(index + 1), None);
            if values[index].is_none() {
                state.bytes += bytes_of(&value);
                values[index] = Some(value);
            }
        }
        if values.iter().all(Option::is_none) {
            state.complete.remove(&self.key);
        }
    }
}
