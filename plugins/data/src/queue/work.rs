//! Elements of a queue as work items: texts that readers take.

use super::{
    Few, Queue, Take,
    state::{Form, State},
};
use crate::attempts::{Attempt, Attempts, Progress};
use std::sync::Arc;
use tenon_sdk::{growth, prelude::*};

/// Takes work items, one after the other.
pub struct WorkItems(Take);

impl Queue {
    /// The queue's attempts, and what takes work items in one of them.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a queue whose elements are not one string each.
    pub fn work_items(self: &Arc<Self>) -> Result<(Arc<Attempts<State>>, WorkItems), KernelError> {
        self.kind.check_types([DType::STRING].into_iter(), self.label())?;
        let queue = Arc::clone(self);
        let take = Take { queue, form: Form::One, wanted: 1, taken: Few::new() };
        Ok((Arc::clone(&self.attempts), WorkItems(take)))
    }
}

impl WorkItems {
    /// The next item, where there is one.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` for a closed queue that has none; `INVALID_ARGUMENT` for an element that is not one string.
    pub fn next(&mut self, state: &mut State) -> Result<Option<Vec<u8>>, KernelError> {
        match self.0.run(state) {
            Progress::Done(Ok(())) => {}
            Progress::Done(Err(error)) => return Err(error),
            Progress::Stuck | Progress::Moved => return Ok(None),
        }
        let element = self.0.taken.pop();
        let texts = match element.as_ref().and_then(|element| element.components.first()) {
            Some(component) => component.texts()?,
            None => Vec::new(),
        };
        match &texts[..] {
            [text] => growth::copied(text).map(Some),
            _ => Err(KernelError::invalid_argument(format!(
                "queue_handle: expected elements of one string each in {}, found one of {}",
                self.0.queue.label(),
                texts.len()
            ))),
        }
    }
}
