//! The variable that a node has found: its next call finds it without a look at the table.

use super::{ResourceManager, Resources};
use std::sync::{Arc, Weak};
use tenon_framework::{
    DType,
    resource::{ResourceRef, STEP_CONTAINER, WeakResourceRef},
};

/// A variable that a call has found by its name, and what it asked for. It keeps the variable no longer than others do.
pub(crate) struct Found {
    resources: Weak<Resources>,
    manager: Arc<ResourceManager>,
    removals: u64,
    container: Box<str>,
    name: Box<str>,
    dtype: DType,
    variable: WeakResourceRef,
}

impl Found {
    /// Keeps a variable that was found in a manager when so many resources had been removed from it; `None` for
    /// names that the next call does not ask for again: without a name each call makes another variable, and each step
    /// has a container of its own.
    pub fn new(
        resources: &Arc<Resources>,
        (manager, removals): (Arc<ResourceManager>, u64),
        (container, name): (&str, &str),
        dtype: DType,
        variable: &ResourceRef,
    ) -> Option<Found> {
        if name.is_empty() || container.starts_with(STEP_CONTAINER) {
            return None;
        }
        Some(Found {
            resources: Arc::downgrade(resources),
            manager,
            removals,
            container: container.into(),
            name: name.into(),
            dtype,
            variable: variable.downgrade(),
        })
    }

    /// The variable, if a call that asks for this would find it again.
    pub fn again(
        &self,
        resources: &Arc<Resources>,
        (container, name): (&[u8], &[u8]),
        dtype: DType,
    ) -> Option<ResourceRef> {
        let is_same = self.resources.as_ptr() == Arc::as_ptr(resources)
            && self.dtype == dtype
            && self.name.as_bytes() == name
            && self.container.as_bytes() == container;
        if is_same && self.removals == self.manager.removals() {
            return self.variable.upgrade();
        }
        None
    }
}
