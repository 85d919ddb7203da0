//! The keys and elements of a barrier.
//!
//! States of a key: *incomplete* from its first component on → *ready* with its last one → *taken*. All
//! new keys of one insertion have one index, which is less than that of later insertions. A key that was
//! taken may come again, as a new one.

use crate::{
    attempts::{Attempt, Progress},
    queue::{Component, output_batch},
};
use std::collections::{BTreeMap, HashMap};
use tenon_sdk::prelude::*;

/// A key that lacks components.
struct Incomplete {
    index: i64,
    components: Vec<Option<Component>>,
}

/// An element that is complete.
pub struct Element {
    /// The insertion that brought the key, and a number that tells elements of one insertion apart.
    place: (i64, u64),
    key: Vec<u8>,
    components: Vec<Component>,
}

/// Whether new keys are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Keys that are there may still become complete.
    Closed,
    /// Nothing more may come.
    Cancelled,
}

/// The keys and elements.
pub struct State {
    phase: Phase,
    next_index: i64,
    next_number: u64,
    incomplete: HashMap<Vec<u8>, Incomplete>,
    ready: BTreeMap<(i64, u64), Element>,
}

impl State {
    /// An open barrier without keys.
    pub fn new() -> State {
        State {
            phase: Phase::Open,
            next_index: i64::MIN,
            next_number: 0,
            incomplete: HashMap::new(),
            ready: BTreeMap::new(),
        }
    }

    /// How many elements are ready.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// How many keys are incomplete.
    pub fn incomplete(&self) -> usize {
        self.incomplete.len()
    }

    /// Gives keys a component, one after the other. What came before an error stays.
    ///
    /// # Errors
    /// `CANCELLED` for a new key of a closed barrier, or any of a cancelled one; `INVALID_ARGUMENT` for a key that has the
    /// component; `INTERNAL` after 2^64 insertions.
    pub fn insert_all<'k>(
        &mut self,
        label: &str,
        components: usize,
        component: usize,
        rows: impl ExactSizeIterator<Item = (&'k [u8], Component)>,
    ) -> Result<(), KernelError> {
        let is_late = rows.len() > 0 && self.incomplete.is_empty();
        if self.phase == Phase::Cancelled || (self.phase == Phase::Closed && is_late) {
            let message = format!("{label} is closed: there are no keys to complete");
            return Err(KernelError::new(Code::CANCELLED, message));
        }
        let index = self.next_index;
        let later = index.checked_add(1).ok_or_else(|| {
            KernelError::internal(format!("{label} had all insertions that it can number"))
        })?;
        for (key, row) in rows {
            if !self.incomplete.contains_key(key) {
                if self.phase != Phase::Open {
                    return Err(KernelError::new(
                        Code::CANCELLED,
                        format!("{label} is closed to new keys, such as '{}'", shown(key)),
                    ));
                }
                self.next_index = later;
                let components = vec![None; components];
                self.incomplete.insert(key.to_owned(), Incomplete { index, components });
            }
            self.insert(label, key, component, row)?;
        }
        Ok(())
    }

    /// Gives a key a component.
    fn insert(
        &mut self,
        label: &str,
        key: &[u8],
        component: usize,
        row: Component,
    ) -> Result<(), KernelError> {
        let Some(entry) = self.incomplete.get_mut(key) else { return Ok(()) };
        match entry.components.get_mut(component) {
            Some(place @ None) => *place = Some(row),
            _ => {
                return Err(KernelError::invalid_argument(format!(
                    "keys: expected keys without component {component} of {label}, found '{}', which has it",
                    shown(key)
                )));
            }
        }
        if entry.components.iter().all(Option::is_some)
            && let Some((key, entry)) = self.incomplete.remove_entry(key)
        {
            let components = entry.components.into_iter().flatten().collect();
            let place = (entry.index, self.next_number);
            self.next_number += 1;
            self.ready.insert(place, Element { place, key, components });
        }
        Ok(())
    }

    /// Closes it to new keys, or to everything.
    ///
    /// # Errors
    /// `CANCELLED` when it is closed in this way already.
    pub fn close(&mut self, label: &str, cancel: bool) -> Result<(), KernelError> {
        if self.phase == Phase::Cancelled || (self.phase == Phase::Closed && !cancel) {
            let message = format!("{label} is already closed");
            return Err(KernelError::new(Code::CANCELLED, message));
        }
        self.phase = if cancel { Phase::Cancelled } else { Phase::Closed };
        if cancel {
            self.incomplete.clear();
        }
        Ok(())
    }
}

fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// Takes elements, all at once, since of those that come later some may go first.
pub struct Take {
    /// Name of the barrier in messages.
    pub label: String,
    /// Shapes of the components.
    pub shapes: Vec<Shape>,
    /// Whether a closed barrier may give fewer elements.
    pub small: bool,
    /// How many are wanted.
    pub wanted: usize,
    /// Those that were taken.
    pub taken: Vec<Element>,
}

impl Take {
    /// Of a closed barrier that cannot give as many: fewer are wanted, where that is allowed.
    fn settle(&mut self, state: &State) -> Result<(), KernelError> {
        if state.phase == Phase::Open {
            return Ok(());
        }
        let mut there = state.ready();
        if self.small {
            self.wanted = self.wanted.min(there);
        } else {
            there += state.incomplete();
        }
        if there >= self.wanted.max(1) {
            return Ok(());
        }
        let message = format!(
            "{} is closed and has insufficient elements (requested {}, total size {there})",
            self.label, self.wanted
        );
        Err(KernelError::new(Code::OUT_OF_RANGE, message))
    }
}

impl Attempt<State> for Take {
    fn run(&mut self, state: &mut State) -> Progress {
        if let Err(error) = self.settle(state) {
            return Progress::Done(Err(error));
        }
        if state.ready() < self.wanted {
            return Progress::Stuck;
        }
        while self.taken.len() < self.wanted {
            let Some((_, element)) = state.ready.pop_first() else { break };
            self.taken.push(element);
        }
        Progress::Done(Ok(()))
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let (c, taken) = (call.context(), &self.taken);
        let count = [taken.len() as i64];
        let indices = c.output::<i64>(0, &count)?.data;
        indices.iter_mut().zip(taken).for_each(|(index, element)| *index = element.place.0);
        c.set_strings(1, &count, taken.iter().map(|element| &element.key))?;
        for (at, shape) in self.shapes.iter().enumerate() {
            let rows: Vec<&Component> =
                taken.iter().filter_map(|element| element.components.get(at)).collect();
            output_batch(&c, at + 2, &rows, shape.dims())?;
        }
        self.taken.clear();
        Ok(())
    }

    fn abandon(&mut self, state: &mut State) {
        state.ready.extend(self.taken.drain(..).map(|element| (element.place, element)));
    }
}
