//! What enqueues and dequeues do with a queue when their turn comes.

use super::{
    Component, Few, Queue,
    kind::Kind,
    output_batch,
    store::{Element, Store},
};
use crate::attempts::{Attempt, Progress};
use std::{mem, sync::Arc};
use tenon_sdk::prelude::*;

/// The elements of a queue, and whether it is closed.
pub struct State {
    closed: bool,
    capacity: usize,
    min_after_dequeue: usize,
    next: u64,
    store: Store,
}

impl State {
    /// An open queue without elements.
    pub fn new(kind: &Kind) -> State {
        State {
            closed: false,
            capacity: kind.capacity as usize,
            min_after_dequeue: kind.shuffle.map_or(0, |shuffle| shuffle.min_after_dequeue),
            next: 0,
            store: Store::new(kind),
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether it takes no further elements.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// From now on it takes no elements.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// How many elements may be taken.
    fn spare(&self) -> usize {
        let stay = if self.closed { 0 } else { self.min_after_dequeue };
        self.len().saturating_sub(stay)
    }
}

/// Adds elements: rows of tensors, or the tensors themselves.
pub struct Put {
    /// The queue.
    pub queue: Arc<Queue>,
    /// One for each component.
    pub tensors: Few<Arc<Kept>>,
    /// How many rows are added; `None` for the tensors.
    pub rows: Option<usize>,
    /// How many were added.
    pub added: usize,
}

impl Put {
    fn next(&self, number: u64) -> Result<Element, KernelError> {
        let component = |tensor| match self.rows {
            None => Component::whole(tensor),
            Some(_) => Component::row(tensor, self.added),
        };
        let components: Few<Component> = self.tensors.iter().map(component).collect();
        let mut priority = 0;
        if let Some(first) = components.first().filter(|_| self.queue.kind.has_priority) {
            priority = first.scalar::<i64>()?.ok_or_else(|| {
                let (label, dims) = (self.queue.label(), first.dims());
                KernelError::invalid_argument(format!(
                    "components: expected a scalar, the priority, as component 0 of {label}, found shape {dims:?}"
                ))
            })?;
        }
        Ok(Element { components, place: (priority, number) })
    }
}

impl Attempt<State> for Put {
    fn ends_now(&self, state: &State) -> bool {
        let room = state.capacity.saturating_sub(state.len());
        state.closed || self.rows.unwrap_or(1) <= room
    }

    fn run(&mut self, state: &mut State) -> Progress {
        if state.closed {
            let message = format!("{} is closed", self.queue.label());
            return Progress::Done(Err(KernelError::new(Code::CANCELLED, message)));
        }
        let (before, all) = (self.added, self.rows.unwrap_or(1));
        while self.added < all && state.len() < state.capacity {
            match self.next(state.next) {
                Ok(element) => state.store.push(element),
                Err(error) => return Progress::Done(Err(error)),
            }
            state.next += 1;
            self.added += 1;
        }
        match self.added {
            added if added == all => Progress::Done(Ok(())),
            added if added > before => Progress::Moved,
            _ => Progress::Stuck,
        }
    }
}

/// Closes a queue after the elements that are being added.
pub struct Close {
    /// Name of the queue in messages.
    pub label: String,
}

impl Attempt<State> for Close {
    fn ends_now(&self, _: &State) -> bool {
        true
    }

    fn run(&mut self, state: &mut State) -> Progress {
        if state.closed {
            let message = format!("{} is already closed", self.label);
            return Progress::Done(Err(KernelError::new(Code::CANCELLED, message)));
        }
        state.close();
        Progress::Done(Ok(()))
    }
}

/// What the outputs of a dequeue are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The components of one element.
    One,
    /// Batches of all wanted elements.
    Batch,
    /// Batches of the wanted elements, or of what is left of a closed queue.
    UpTo,
}

/// Takes elements.
pub struct Take {
    /// The queue.
    pub queue: Arc<Queue>,
    /// What the outputs are.
    pub form: Form,
    /// How many elements are wanted.
    pub wanted: usize,
    /// Those that were taken.
    pub taken: Few<Element>,
}

impl Take {
    /// Of a closed queue that has too few elements: they go back, and fewer are wanted.
    fn settle(&mut self, state: &mut State) -> Result<(), KernelError> {
        let (missing, there) = (self.wanted - self.taken.len(), state.len());
        if !state.closed || there >= missing {
            return Ok(());
        }
        state.store.give_back(&mut self.taken);
        if self.form == Form::UpTo && state.len() > 0 {
            self.wanted = state.len();
            return Ok(());
        }
        let message = format!(
            "{} is closed and has insufficient elements (requested {missing}, current size {there})",
            self.queue.label()
        );
        Err(KernelError::new(Code::OUT_OF_RANGE, message))
    }

    /// Returns what was taken.
    pub fn output(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        if let (Form::One, [element]) = (self.form, &self.taken[..]) {
            let mut components = element.components.iter().enumerate();
            return components.try_for_each(|(at, component)| component.output(c, at));
        }
        (0..self.queue.kind.types.len()).try_for_each(|at| {
            let components: Vec<&Component> =
                self.taken.iter().filter_map(|element| element.components.get(at)).collect();
            let row = self.queue.kind.row_dims(at, components.iter().copied());
            output_batch(c, at, &components, &row)
        })
    }
}

impl Attempt<State> for Take {
    fn ends_now(&self, state: &State) -> bool {
        state.closed || self.wanted <= state.spare()
    }

    fn run(&mut self, state: &mut State) -> Progress {
        if let Err(error) = self.settle(state) {
            return Progress::Done(Err(error));
        }
        let (before, spare) = (self.taken.len(), state.spare());
        if self.queue.kind.has_priority && spare < self.wanted {
            // Of elements that come later, some may go first.
            return Progress::Stuck;
        }
        for _ in 0..spare.min(self.wanted - before) {
            self.taken.extend(state.store.pop());
        }
        match self.taken.len() {
            taken if taken == self.wanted => Progress::Done(Ok(())),
            taken if taken > before => Progress::Moved,
            _ => Progress::Stuck,
        }
    }

    fn finish(&mut self, call: &mut AsyncCall) -> Result<(), KernelError> {
        let result = self.output(&call.context());
        if result.is_ok() {
            // The tensors of rows that are copied need not live until the call is forgotten.
            drop(mem::take(&mut self.taken));
        }
        result
    }

    fn abandon(&mut self, state: &mut State) {
        state.store.give_back(&mut self.taken);
    }
}
