//! Queues: elements of several components wait between steps.
//!
//! `kind` says what a queue is, from the attributes of the node that makes it. `store` has the elements,
//! in one of three orders, `state` what the attempts of enqueues and dequeues do with them. `batch` puts
//! outputs together, `make` and `access` are the kernels.
//!
//! # Invariants
//! - An element of a batch that was enqueued is a row of the batch's tensor, which stays as it is until
//!   all of its rows are gone: nothing is copied before it is dequeued.
//! - The elements of one queue have the types of its components, and their shapes where it says them.

mod access;
mod batch;
mod kind;
mod make;
mod state;
mod store;
mod work;

pub use access::check_timeout;
pub use batch::{Component, output_batch};
pub use state::State as QueueState;
pub use work::WorkItems;

use crate::{
    attempts::{Attempts, Order},
    place::{Place, Shared},
};
use kind::Kind;
use smallvec::SmallVec;
use state::{State, Take};
use std::sync::Arc;

/// A list that mostly has one item, which then needs no memory of its own.
type Few<T> = SmallVec<[T; 1]>;

/// A queue.
pub struct Queue {
    place: Place,
    kind: Kind,
    attempts: Arc<Attempts<State>>,
}

impl Queue {
    fn new(place: Place, kind: Kind) -> Queue {
        let label = place.label::<Queue>();
        let state = State::new(&kind);
        let attempts = Attempts::new(label, state, [Order::First, Order::First]);
        Queue { place, kind, attempts: Arc::new(attempts) }
    }

    fn label(&self) -> &str {
        self.attempts.label()
    }
}

impl Shared for Queue {
    const NAME: &'static str = "tenon_data.Queue";
    const WHAT: &'static str = "queue";

    fn place(&self) -> &Place {
        &self.place
    }
}
