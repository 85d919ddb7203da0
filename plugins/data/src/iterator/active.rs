//! A walk over a dataset, with the calls that wait for elements.
//!
//! # States
//! *at rest*: the walk is in the state, and no call waits → *at work*: a task has the walk, and makes an
//! element for the first call that waits, until none does. A call that is cancelled leaves its element to
//! the next one.

use crate::{
    attempts::{Attempts, Order},
    dataset::{Context, DatasetValue, Element, Elements, caught, in_the_middle, leave, spawn},
};
use std::sync::Arc;
use tenon_sdk::prelude::*;

/// What a walk gives: an element, or the end.
pub type Outcome = Result<Option<Element>, KernelError>;

/// The walk at rest, and what is for the first call that waits.
pub struct State {
    elements: Option<Box<dyn Elements>>,
    /// An element for the next call.
    pub outcome: Option<Outcome>,
    /// Whether a call waits for an element.
    pub is_wanted: bool,
}

/// A walk, and the calls that wait for it.
pub struct Active {
    attempts: Arc<Attempts<State>>,
    context: Context,
}

impl Active {
    /// A walk before the first element.
    pub fn new(label: String, dataset: &DatasetValue) -> Active {
        let elements = Some(dataset.dataset.elements());
        let state = State { elements, outcome: None, is_wanted: false };
        let attempts = Attempts::new(label, state, [Order::First, Order::First]);
        Active { attempts: Arc::new(attempts), context: Context::new(dataset.depth) }
    }

    /// The calls.
    pub fn attempts(&self) -> &Arc<Attempts<State>> {
        &self.attempts
    }

    /// Makes elements for the calls that wait, here as far as possible.
    pub fn work(&self) {
        let elements = self.attempts.update(State::begin);
        if let Some(elements) = elements {
            spawn(work(Arc::clone(&self.attempts), self.context.clone(), elements));
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.context.end();
    }
}

impl State {
    /// The walk, for a task that makes the element that is wanted.
    fn begin(&mut self) -> Option<Box<dyn Elements>> {
        if self.is_wanted && self.outcome.is_none() { self.elements.take() } else { None }
    }
}

async fn work(attempts: Arc<Attempts<State>>, context: Context, elements: Box<dyn Elements>) {
    let mut next = Some(elements);
    while let Some(mut elements) = next.take() {
        let found = caught("making an element", elements.next(&context)).await;
        let found = found.map_err(in_the_middle);
        attempts.update(|state| {
            state.outcome = Some(found);
            state.is_wanted = false;
        });
        // The next call in line has said meanwhile whether it wants an element.
        next = attempts.update(|state| {
            state.elements = Some(elements);
            state.begin()
        });
        if next.is_some() {
            // The element of another call: this thread may be waited for.
            leave().await;
        }
    }
}
