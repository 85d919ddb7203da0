//! Iterators: walks over datasets that steps share.
//!
//! `active` is a walk with the calls that wait for elements, `get_next` has those calls, `name` leads from
//! texts to iterators and back, `make` and `one_shot` put an iterator before the first element of a dataset.
//!
//! # Invariants
//! - Calls for elements get them in the order in which they came, whatever a walk has to wait for.
//! - A walk goes when its iterator has another one, or is gone, and no call waits for an element.

mod active;
mod get_next;
mod make;
mod name;
mod one_shot;
mod reduce;
mod single;

use crate::{
    dataset::{Context, DatasetValue, Spec},
    place::{Place, Shared},
};
use active::Active;
use one_shot::Once;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_sdk::prelude::*;

/// An iterator.
pub struct Iterator {
    place: Place,
    spec: Spec,
    active: Mutex<Option<Arc<Active>>>,
    /// The making of an iterator of one dataset.
    once: Once,
    /// Ends with the iterator, and the call that makes its dataset too.
    making: Context,
}

impl Drop for Iterator {
    fn drop(&mut self) {
        self.making.end();
    }
}

impl Shared for Iterator {
    const NAME: &'static str = "tenon_data.Iterator";
    const WHAT: &'static str = "iterator";

    fn place(&self) -> &Place {
        &self.place
    }
}

impl Iterator {
    fn new(place: Place, spec: Spec) -> Iterator {
        let once = one_shot::once(&place);
        Iterator { place, spec, active: Mutex::new(None), once, making: Context::new(0) }
    }

    fn label(&self) -> String {
        self.place.label::<Iterator>()
    }

    /// Puts it before the first element of a dataset.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the dataset has other elements.
    fn begin(&self, dataset: &DatasetValue) -> Result<(), KernelError> {
        self.spec.check(&dataset.spec, "the dataset")?;
        let active = Some(Arc::new(Active::new(self.label(), dataset)));
        let mut place = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, active);
        drop(place);
        drop(before);
        Ok(())
    }

    /// The current walk.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when there is none.
    fn active(&self) -> Result<Arc<Active>, KernelError> {
        let active = self.active.lock().unwrap_or_else(PoisonError::into_inner).clone();
        active.ok_or_else(|| {
            KernelError::new(
                Code::FAILED_PRECONDITION,
                format!(
                    "{} is not initialised: run its initialiser before asking for an element",
                    self.label()
                ),
            )
        })
    }
}
