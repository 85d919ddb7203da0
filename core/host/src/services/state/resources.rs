//! Resources by container, name and type, as services for kernels.

use super::{conclude, text};
use crate::{
    call::{CallFrame, OVER},
    devices::name_of,
    resources::{self, ForeignResource, ResourceManager, foreign_type},
    sink::MessageSink,
};
use std::{ffi::c_void, sync::Arc};
use tenon_abi::{CallRecord, Code, Resource, ResourceFactory, ResourceType, Str};
use tenon_framework::{
    KernelError,
    resource::{ResourceRef, release_raw},
};

/// The resources of the device of a call.
pub(super) fn manager(frame: &CallFrame) -> Arc<ResourceManager> {
    // SAFETY: the device of a running call is open.
    let device = unsafe { name_of(frame.call().device) };
    frame.env().resources.of(device)
}

/// Finds a resource, or creates it with a factory.
///
/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - The other arguments meet what [`find_or_make`] requires.
/// - `result` is valid for writes.
pub(super) unsafe extern "C" fn resource(
    record: *mut CallRecord,
    container: Str,
    name: Str,
    kind: *const ResourceType,
    factory: ResourceFactory,
    data: *mut c_void,
    result: *mut *mut Resource,
) -> Code {
    // SAFETY: the kernel passes its call's record, readable names, its own type and factory, and a
    // valid result pointer.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let found = find_or_make(frame, container, name, kind, factory, data);
        conclude(frame, found, |resource| *result = resource.into_raw())
    }
}

/// # Safety
/// - The names are readable.
/// - `kind` is null or a type that lives as long as its library.
/// - `factory` is absent, or may be called with `data`.
unsafe fn find_or_make(
    frame: &CallFrame,
    container: Str,
    name: Str,
    kind: *const ResourceType,
    factory: ResourceFactory,
    data: *mut c_void,
) -> Result<ResourceRef, KernelError> {
    // SAFETY: the caller passes on the kernel's readable names and a type that lives as long as its
    // library.
    let (container, name, (type_name, kind)) =
        unsafe { (text("a container", container)?, text("a name", name)?, foreign_type(kind)?) };
    let manager = manager(frame);
    let found = match factory.run {
        None => manager.find(container, name, type_name).ok_or_else(|| {
            KernelError::new(Code::NOT_FOUND, format!("there is no {type_name} named '{name}'"))
        })?,
        Some(run) => manager.find_or_make(container, name, type_name, || {
            let sink = MessageSink::new();
            let mut value = std::ptr::null_mut();
            // SAFETY: the kernel's own factory and data, a valid result pointer and a sink.
            sink.check(unsafe { run(data, &mut value, sink.as_sink()) })?;
            // SAFETY: the factory gave the value away, and the type's destructor accepts it.
            Ok(ResourceRef::new(unsafe { ForeignResource::new(type_name, kind, value) }))
        })?,
    };
    match resources::downcast::<ForeignResource>(&found).and_then(|found| found.value(kind)) {
        Some(_) => Ok(found),
        None => Err(KernelError::new(
            Code::FAILED_PRECONDITION,
            format!(
                "resource '{name}' was made with another type of the name {type_name}, by another \
                 library or an earlier build of the plugin: remove it, or use a new session"
            ),
        )),
    }
}

/// The value of a resource; null if it was not created with this type.
///
/// # Safety
/// - `resource` is null or a live resource.
/// - `kind` is null or a type that lives as long as its library.
pub(super) unsafe extern "C" fn resource_value(
    resource: *const Resource,
    kind: *const ResourceType,
) -> *mut c_void {
    // SAFETY: the kernel passes a live resource, or null, and its own type.
    let (found, kind) = unsafe {
        let Ok((_, kind)) = foreign_type(kind) else { return std::ptr::null_mut() };
        (ResourceRef::clone_raw(resource), kind)
    };
    let foreign = found.as_ref().and_then(resources::downcast::<ForeignResource>);
    foreign.and_then(|foreign| foreign.value(kind)).unwrap_or(std::ptr::null_mut())
}

/// Adds a reference to a resource.
///
/// # Safety
/// - `resource` is null or a live resource.
pub(super) unsafe extern "C" fn retain_resource(resource: *mut Resource) {
    // SAFETY: the kernel passes a live resource, or null.
    if let Some(resource) = unsafe { ResourceRef::clone_raw(resource) } {
        // The plugin releases it by `release_resource`.
        let _ = resource.into_raw();
    }
}

/// Drops a reference to a resource.
///
/// # Safety
/// - `resource` is null, or a reference of the caller, which it does not use any more.
pub(super) unsafe extern "C" fn release_resource(resource: *mut Resource) {
    // SAFETY: the kernel returns one of its references, or null.
    unsafe { release_raw(resource) }
}

/// Removes a resource.
///
/// # Safety
/// - `record` meets what [`CallFrame::from_raw`] requires.
/// - The names are readable.
pub(super) unsafe extern "C" fn remove_resource(
    record: *mut CallRecord,
    container: Str,
    name: Str,
    kind: Str,
) -> Code {
    // SAFETY: the kernel passes its call's record and readable names.
    unsafe {
        let Some(frame) = CallFrame::from_raw(record) else { return OVER };
        let names =
            || Ok((text("a container", container)?, text("a name", name)?, text("a type", kind)?));
        let removed = names().and_then(|(container, name, kind)| {
            if manager(frame).remove(container, name, kind) {
                return Ok(());
            }
            let message = format!("there is no {kind} named '{name}'");
            Err(KernelError::new(Code::NOT_FOUND, message))
        });
        conclude(frame, removed, |()| ())
    }
}
