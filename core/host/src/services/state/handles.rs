//! Resources by their handles: the link [`HANDLES`] of the host's table.

use super::{conclude, resources::manager};
use crate::{
    call::{CallFrame, OVER},
    resources::{LockedVariables, Variable},
};
use tenon_abi::{CallRecord, Code, ExtHandles, ExtHeader, Resource, ext_tags, layout::EXT_HANDLES};
use tenon_framework::{KernelError, resource::ResourceRef};

/// The link of the host's table.
pub const HANDLES: ExtHandles = ExtHandles {
    header: ExtHeader::new(ext_tags::HANDLES, 1, &EXT_HANDLES),
    remove: Some(remove),
    has_name: Some(has_name),
};

/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - `resource` is null or a live resource.
unsafe extern "C" fn remove(record: *mut CallRecord, resource: *mut Resource) -> Code {
    // SAFETY: the kernel passes its call's record, and a live resource or null.
    let (frame, found) = unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        (frame, ResourceRef::clone_raw(resource))
    };
    conclude(frame, removed(frame, found), |()| ())
}

/// Removes a resource from the table of its device, and the value of a variable.
fn removed(frame: &CallFrame, resource: Option<ResourceRef>) -> Result<(), KernelError> {
    let none = |what: String| KernelError::new(Code::NOT_FOUND, what);
    let resource = resource.ok_or_else(|| none("the handle shows no resource".to_owned()))?;
    let variable = Variable::of(&resource);
    // A step that is cancelled while it waits for the lock removes nothing.
    let _locked = match variable {
        Some(variable) => Some(LockedVariables::lock(&[variable], &frame.env().cancellation)?),
        None => None,
    };
    let place = resource
        .place()
        .filter(|place| manager(frame).remove_exactly(place, &resource))
        .ok_or_else(|| none(format!("no container has this {}", resource.get().type_name())))?;
    if let Some(variable) = variable {
        // The ops that give handles make variables without values, which count as absent.
        if variable.replace(None)?.is_none() {
            return Err(none(format!("variable '{}' has no value", place.name)));
        }
    }
    tracing::debug!(container = place.container, name = place.name, "a resource was removed");
    Ok(())
}

/// # Safety
/// - `resource` is null or a live resource.
unsafe extern "C" fn has_name(resource: *const Resource) -> u32 {
    // SAFETY: the kernel passes a live resource, or null.
    let found = unsafe { ResourceRef::clone_raw(resource) };
    u32::from(found.is_some_and(|resource| resource.place().is_some()))
}
