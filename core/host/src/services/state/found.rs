//! Variables by their names, kept with the record of the call.

use crate::{
    call::CallFrame,
    resources::{Found, ResourceManager},
};
use std::sync::Arc;
use tenon_abi::{DType, Str};
use tenon_framework::resource::ResourceRef;

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
    let (found, names) = unsafe { (frame.found().as_deref()?, (container.bytes(), name.bytes())) };
    found.again(&frame.env().resources, names, dtype)
}

/// Finds a variable by `find` in this manager, and keeps what it found for the next call of the node.
///
/// # Safety
/// - The call of `frame` runs on this thread.
pub(super) unsafe fn first<E>(
    frame: &CallFrame,
    manager: Arc<ResourceManager>,
    names: (&str, &str),
    dtype: DType,
    find: impl FnOnce(&ResourceManager) -> Result<ResourceRef, E>,
) -> Result<ResourceRef, E> {
    let removals = manager.removals();
    let variable = find(&manager)?;
    let resources = &frame.env().resources;
    if let Some(found) = Found::new(resources, (manager, removals), names, dtype, &variable) {
        // SAFETY: the caller runs the call.
        unsafe { *frame.found() = Some(Box::new(found)) };
    }
    Ok(variable)
}
