//! Resources whose values belong to a plugin.

use std::{any::Any, ffi::c_void};
use tenon_abi::ResourceType;
use tenon_framework::{KernelError, resource::Resource};

/// A value of a plugin's own type, with its destructor. The plugin's library stays mapped as long
/// as the process, so that the destructor exists whenever the last reference is dropped.
pub struct ForeignResource {
    name: String,
    value: *mut c_void,
    kind: ForeignType,
}

/// A plugin's type: its destructor, and its address, which identifies it. Several libraries may use
/// the same name, as may two builds of one plugin, whose values have different layouts.
#[derive(Clone, Copy)]
pub struct ForeignType {
    address: *const ResourceType,
    destroy: unsafe extern "C" fn(value: *mut c_void),
}

// SAFETY: the contract of resources says that any thread may use and destroy them.
unsafe impl Send for ForeignResource {}
// SAFETY: as for `Send`.
unsafe impl Sync for ForeignResource {}

/// Name and identity of a plugin's type.
///
/// # Errors
/// `INVALID_ARGUMENT` for a null pointer, a name that is empty or not UTF-8, or a missing
/// destructor.
///
/// # Safety
/// - `kind` is null or a filled type that lives as long as its library.
pub unsafe fn foreign_type<'a>(
    kind: *const ResourceType,
) -> Result<(&'a str, ForeignType), KernelError> {
    let address = kind;
    // SAFETY: the caller guarantees that `kind` is null or a filled type that lives as long as its
    // library.
    let kind = unsafe { kind.as_ref() }
        .ok_or_else(|| KernelError::invalid_argument("the type of a resource is null"))?;
    // SAFETY: `kind` is a filled type, as the caller guarantees, and so is its name.
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
    /// Takes ownership of a value.
    ///
    /// # Safety
    /// - The type's destructor may be called with `value` once, on any thread.
    pub unsafe fn new(name: &str, kind: ForeignType, value: *mut c_void) -> ForeignResource {
        ForeignResource { name: name.to_owned(), value, kind }
    }

    /// The value, valid as long as the resource, if it was created with this type.
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
        // SAFETY: the caller of `new` guarantees that the destructor may be called with `value`
        // once, on any thread.
        unsafe { (self.kind.destroy)(self.value) }
    }
}
