//! The variable that a node has found: its next call finds it without a look at the table.

use crate::{
    call::CallFrame,
    resources::{ResourceManager, Resources},
};
use std::sync::{Arc, Weak};
use tenon_abi::{DType, Str};
use tenon_framework::resource::{ResourceRef, STEP_CONTAINER, WeakResourceRef};

/// A variable that a call has found, and what it asked for. It keeps the variable no longer than others do.
pub(crate) struct Found {
    resources: Weak<Resources>,
    manager: Arc<ResourceManager>,
    removals: u64,
    container: Box<[u8]>,
    name: Box<[u8]>,
    dtype: DType,
    variable: WeakResourceRef,
}

impl Found {
    /// Whether it is what a call with these resources asks for.
    fn fits(
        &self,
        resources: &Arc<Resources>,
        container: &[u8],
        name: &[u8],
        dtype: DType,
    ) -> bool {
        self.resources.as_ptr() == Arc::as_ptr(resources)
            && self.dtype == dtype
            && *self.name == *name
            && *self.container == *container
    }
}

/// The variable that an earlier call of the node has found, if it would be found again.
///
/// # Safety
/// - The call of `frame` runs on this thread.
/// - The names are readable.
pub(super) unsafe fn again(
    frame: &CallFrame,
    container: Str,
    name: Str,
    dtype: DType,
) -> Option<ResourceRef> {
    // SAFETY: the caller runs the call, and guarantees that the names are readable.
    let (found, container, name) =
        unsafe { (frame.found().as_deref()?, container.bytes(), name.bytes()) };
    let is_there = found.fits(&frame.env().resources, container, name, dtype)
        && found.removals == found.manager.removals();
    if is_there { found.variable.upgrade() } else { None }
}

/// Finds a variable by `find` in this manager, and keeps what it found for the next call of the node.
///
/// # Safety
/// - The call of `frame` runs on this thread.
pub(super) unsafe fn first<E>(
    frame: &CallFrame,
    manager: Arc<ResourceManager>,
    (container, name): (&str, &str),
    dtype: DType,
    find: impl FnOnce(&ResourceManager) -> Result<ResourceRef, E>,
) -> Result<ResourceRef, E> {
    let removals = manager.removals();
    let variable = find(&manager)?;
    // A variable without a name is another one for every call, and that of a step for every step.
    if !name.is_empty() && !container.starts_with(STEP_CONTAINER) {
        let found = Found {
            resources: Arc::downgrade(&frame.env().resources),
            manager,
            removals,
            container: container.as_bytes().into(),
            name: name.as_bytes().into(),
            dtype,
            variable: variable.downgrade(),
        };
        // SAFETY: the caller runs the call.
        unsafe { *frame.found() = Some(Box::new(found)) };
    }
    Ok(variable)
}
