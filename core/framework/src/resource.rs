//! Resources: host-owned state that outlives a step, reached through counted references.

use std::sync::{Arc, OnceLock, Weak};
use tenon_abi::Resource as RawResource;

/// The beginning of the names of containers of steps, before the number of the step.
pub const STEP_CONTAINER: &str = "__per_step_";

/// The container of a step: its resources go with the step.
pub fn step_container(step: u64) -> String {
    format!("{STEP_CONTAINER}{step}")
}

/// What a resource is to the host.
pub trait Resource: Send + Sync + 'static {
    /// Unique name of its type.
    fn type_name(&self) -> &str;

    /// For downcasts by its owner.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Where a resource is found on its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcePlace {
    /// Container.
    pub container: String,
    /// Name.
    pub name: String,
}

/// A resource, and the place that it was made for.
struct Held {
    resource: Box<dyn Resource>,
    place: OnceLock<ResourcePlace>,
}

/// A counted reference to a resource; `into_raw` gives what an element of a `resource` tensor holds.
#[derive(Clone)]
pub struct ResourceRef(Arc<Held>);

impl ResourceRef {
    /// Takes a resource over.
    pub fn new(resource: impl Resource) -> ResourceRef {
        ResourceRef(Arc::new(Held { resource: Box::new(resource), place: OnceLock::new() }))
    }

    /// The resource.
    pub fn get(&self) -> &dyn Resource {
        &*self.0.resource
    }

    /// The place that it was made for; `None` for an anonymous resource. It need not be there any more.
    pub fn place(&self) -> Option<&ResourcePlace> {
        self.0.place.get()
    }

    /// Sets the place of a resource that has none.
    pub fn set_place(&self, place: ResourcePlace) {
        // A resource that is put into a second table keeps its first place.
        let _ = self.0.place.set(place);
    }

    /// Whether both are references to one resource.
    pub fn is(&self, other: &ResourceRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A reference that does not keep the resource.
    pub fn downgrade(&self) -> WeakResourceRef {
        WeakResourceRef(Arc::downgrade(&self.0))
    }

    /// Gives the reference away.
    pub fn into_raw(self) -> *mut RawResource {
        Arc::into_raw(self.0).cast_mut().cast()
    }

    /// A further reference to the resource of a raw pointer.
    ///
    /// # Safety
    /// `raw` is null or came from [`ResourceRef::into_raw`], and its reference is alive.
    pub unsafe fn clone_raw(raw: *const RawResource) -> Option<ResourceRef> {
        if raw.is_null() {
            return None;
        }
        let pointer = raw.cast::<Held>();
        // SAFETY: `raw` came from `into_raw`, and the caller keeps its reference alive.
        unsafe {
            Arc::increment_strong_count(pointer);
            Some(ResourceRef(Arc::from_raw(pointer)))
        }
    }
}

/// A reference that does not keep its resource.
#[derive(Clone)]
pub struct WeakResourceRef(Weak<Held>);

impl WeakResourceRef {
    /// A reference that keeps the resource, unless that is gone.
    pub fn upgrade(&self) -> Option<ResourceRef> {
        self.0.upgrade().map(ResourceRef)
    }
}

/// The resource of a raw pointer, without a further reference; null gives none.
///
/// # Safety
/// `raw` is null or came from [`ResourceRef::into_raw`], and its reference is alive for `'a`.
pub unsafe fn lend_raw<'a>(raw: *const RawResource) -> Option<&'a dyn Resource> {
    // SAFETY: `raw` came from `into_raw`, and the caller keeps its reference alive for `'a`.
    unsafe { raw.cast::<Held>().as_ref() }.map(|held| &*held.resource)
}

/// Gives a raw reference back; null is allowed.
///
/// # Safety
/// `raw` is null or came from [`ResourceRef::into_raw`], and its reference is given back once.
pub unsafe fn release_raw(raw: *mut RawResource) {
    if !raw.is_null() {
        // SAFETY: `raw` came from `into_raw`, and the caller gives its reference back once.
        drop(unsafe { Arc::from_raw(raw.cast_const().cast::<Held>()) });
    }
}
