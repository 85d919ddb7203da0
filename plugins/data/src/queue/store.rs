//! The elements of a queue, in its order.

use super::{Component, Few, kind::Kind};
use std::collections::{BTreeMap, VecDeque};
use tenon_philox::{Philox, Words};

/// An element: its components, and its place in a queue by priority.
#[derive(Debug)]
pub struct Element {
    /// The components.
    pub components: Few<Component>,
    /// The priority, of which the least goes first, and the number of the element in its queue.
    pub place: (i64, u64),
}

/// The elements that wait.
pub enum Store {
    /// In the order in which they came.
    First(VecDeque<Element>),
    /// In random order: the generator's next word chooses one.
    Random(Vec<Element>, Words),
    /// The least priority first, and of equal ones the one that came first.
    Priority(BTreeMap<(i64, u64), Element>),
}

impl Store {
    /// An empty one.
    pub fn new(kind: &Kind) -> Store {
        match *kind {
            Kind { shuffle: Some(shuffle), .. } => {
                let [seed, seed2] = shuffle.seeds;
                Store::Random(Vec::new(), Words::new(Philox::seeded(seed, seed2)))
            }
            Kind { has_priority: true, .. } => Store::Priority(BTreeMap::new()),
            _ => Store::First(VecDeque::new()),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Store::First(elements) => elements.len(),
            Store::Random(elements, _) => elements.len(),
            Store::Priority(elements) => elements.len(),
        }
    }

    /// Adds one.
    pub fn push(&mut self, element: Element) {
        match self {
            Store::First(elements) => elements.push_back(element),
            Store::Random(elements, _) => elements.push(element),
            Store::Priority(elements) => drop(elements.insert(element.place, element)),
        }
    }

    /// Takes the next one.
    pub fn pop(&mut self) -> Option<Element> {
        match self {
            Store::First(elements) => elements.pop_front(),
            Store::Random(elements, words) => {
                if elements.is_empty() {
                    return None;
                }
                let at = words.next_word() as usize % elements.len();
                Some(elements.swap_remove(at))
            }
            Store::Priority(elements) => elements.pop_first().map(|(_, element)| element),
        }
    }

    /// Puts elements back that were taken, the first of them in front.
    pub fn give_back(&mut self, taken: &mut Few<Element>) {
        for element in taken.drain(..).rev() {
            match &mut *self {
                Store::First(elements) => elements.push_front(element),
                other => other.push(element),
            }
        }
    }
}
