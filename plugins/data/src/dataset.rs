//! Datasets: descriptions of elements, each of which has a tensor for each component.
//!
//! A dataset is a value of a variant that does not change; [`Elements`] are one walk over it. What comes
//! next may take time, so that [`Elements::next`] is a future: `task` runs it on the threads that wake it,
//! and no thread waits for it. `context` says for whom elements are made, `element` what they are, and
//! `make` how a kernel makes a dataset.
//!
//! `source`, `file`: elements from tensors, numbers and files. `part`, `join`, `batch`, `shuffle`, `cache`,
//! `prefetch`, `pass`: elements of other datasets. `function` calls a function of the graph's library, with
//! which `map`, `parallel`, `filter`, `interleave`, `scan` and `generator` make elements. The elements of `window` are
//! datasets.
//!
//! # Invariants
//! - Two walks over one dataset share nothing but what the op says: the seeds of a shuffle, a cache.
//! - After an error of one element, the next call goes on with what comes after it, where TensorFlow's does.
//! - `OUT_OF_RANGE` is for the end of an iterator alone: as the error of an element it becomes `INTERNAL`.

mod batch;
mod cache;
mod cache_file;
mod cardinality;
mod context;
mod element;
mod file;
mod filter;
mod function;
mod generator;
mod helper;
mod interleave;
mod join;
mod make;
mod map;
mod parallel;
mod part;
mod pass;
mod prefetch;
mod scan;
mod shuffle;
mod source;
mod task;
mod window;

pub use cardinality::Cardinality;
pub use context::Context;
pub use element::{Element, Spec};
pub use function::Captured;
pub use make::{DatasetValue, dataset_in, only_dataset, text};
pub use scan::{check_types, state_in, with_state};
pub use shuffle::{Deleter, delete};
pub use task::{BoxFuture, caught, leave, pace, spawn};

use std::sync::Arc;
use tenon_sdk::prelude::*;

/// What [`Elements::next`] returns: the next element, or `None` at the end.
pub type Next<'a> = BoxFuture<'a, Result<Option<Element>, KernelError>>;

/// Says how elements are made.
pub trait Dataset: Send + Sync + 'static {
    /// Starts a walk over the elements.
    fn elements(&self) -> Box<dyn Elements>;

    /// How many elements there are, as far as that is known without making them.
    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }

    /// How many elements of another dataset each element is made of at most; `None` where they are not batches.
    fn batch_size(&self) -> Option<usize> {
        None
    }
}

/// A walk over the elements of a dataset.
pub trait Elements: Send {
    /// Makes the next element. After the end there is none.
    fn next<'a>(&'a mut self, context: &'a Context) -> Next<'a>;
}

/// A dataset that others share.
pub type Shared = Arc<dyn Dataset>;

/// The elements of an input, which are dropped at their end.
pub struct Input(Option<Box<dyn Elements>>);

/// The error of one element: `OUT_OF_RANGE`, which means the end of an iterator, becomes `INTERNAL`.
pub fn in_the_middle(error: KernelError) -> KernelError {
    if error.code != Code::OUT_OF_RANGE {
        return error;
    }
    KernelError::internal(format!("an element failed as only an iterator ends: {}", error.message))
}

impl Input {
    /// A walk over a dataset.
    pub fn of(dataset: &Shared) -> Input {
        Input(Some(dataset.elements()))
    }

    /// The next element.
    ///
    /// # Errors
    /// Those of the element.
    pub async fn next(&mut self, context: &Context) -> Result<Option<Element>, KernelError> {
        let Some(elements) = &mut self.0 else { return Ok(None) };
        pace().await;
        let found = elements.next(context).await.map_err(in_the_middle)?;
        if found.is_none() {
            self.0 = None;
        }
        Ok(found)
    }

    /// Leaves the elements: there are no others.
    pub fn end(&mut self) {
        self.0 = None;
    }
}
