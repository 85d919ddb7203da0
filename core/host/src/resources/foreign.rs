//! Resources whose values belong to a plugin.

use std::{any::Any, ffi::c_void};
use tenon_abi::ResourceType;
use tenon_framework::{KernelError, resource::Resource};

/// A value of a plugin's own type, with its destructor. The plugin's library stays mapped for as long as
/// the process lives, so that the destructor is there whenever the last reference goes.
pub struct ForeignResource {
    name: String,
    value: *mut c_void,
    kind: ForeignType,
}

/// A plugin's type: its destructor, and the address that it is known by. Several libraries may use one name,
/// also two builds of one plugin, whose values are not laid out alike.
#[derive(Clone, Copy)]
pub struct ForeignType {
    address: *const ResourceType,
    destroy: unsafe extern "C" fn(value: *mut c_void),
}

// SAFETY: the contract of resources says that any thread may use and destroy them.
unsafe impl Send for ForeignResource {}
// SAFETY: as above.
unsafe impl Sync for ForeignResource {}

/// Name and identity of a plugin's type.
///
/// # Errors
/// `INVALID_ARGUMENT` for a null pointer, a name that is empty or not UTF-8, no destructor.
///
/// # Safety
/// `kind` is null or a filled type that lives as long as its library.
pub unsafe fn foreign_type<'a>(
    kind: *const ResourceType,
) -> Result<(&'a str, ForeignType), KernelError> {
    let address = kind;
    // SAFETY: `kind` is null or a filled type that lives as long as its library, as the caller guarantees.
    let kind = unsafe { kind.as_ref() }
        .ok_or_else(|| KernelError::invalid_argument("the type of a resource is null"))?;
    // SAFETY: as above.
    let name = unsafe { kind.name.text() }.filter(|name| !name.is_empty()).ok_or_else(|| {
        KernelError::invalid_argument(
            "the type of a resource has no name, or one that is not UTF-8",
        )
    })?;
    let destroy = kind.destroy.ok_or_else(|| {
        KernelError::invalid_argument(format!(
            "resource type {name}: expected a destructor, found none"
        ))
    })?;
    Ok((name, ForeignType { address, destroy }))
}

impl ForeignResource {
    /// Takes a value over.
    ///
    /// # Safety
    /// The type's destructor takes `value` once, from any thread.
    pub unsafe fn new(name: &str, kind: ForeignType, value: *mut c_void) -> ForeignResource {
        ForeignResource { name: name.to_owned(), value, kind }
    }

    /// The value, as long as the resource lives, when it was made with this type.
    pub fn value(&self, kind: ForeignType) -> Option<*mut c_void> {
        std::ptr::eq(self.kind.address, kind.address).then_some(self.value)
    }
}

impl Resource for ForeignResource {
    fn type_name(&self) -> &str {
        &self.name
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for ForeignResource {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`.
        unsafe { (self.kind.destroy)(self.value) }
    }
}
