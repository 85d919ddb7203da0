//! Resources of a plugin's own: values that the host keeps by name, for all sessions of a device's worker.

use crate::{
    compute::ComputeContext,
    interned::Interned,
    links::host_link,
    misuse::mismatch,
    state::{StateContext, Var, check},
};
use std::{ffi::c_void, marker::PhantomData, ops::Deref, ptr};
use tenon_abi::{
    Code, DType, ExtHandles, Resource, ResourceElement, ResourceFactory, ResourceType, Sink, Slot,
    StateTable, Str, ext_tags, layout::EXT_HANDLES,
};
use tenon_framework::{
    KernelError,
    plugin::{guard, host, report},
};

/// A type of a plugin's own whose values the host keeps. A value is found or made by container and name on the
/// kernel's device. It lives as long as its container has it or a handle exists. Without a name, each call makes a new
/// value, which lives as long as its handles.
///
/// ```
/// use std::sync::atomic::{AtomicI64, Ordering};
/// use tenon_author::{ComputeContext, ResourceValue};
/// use tenon_framework::KernelError;
///
/// #[derive(Default)]
/// struct Counter(AtomicI64);
///
/// impl ResourceValue for Counter {
///     const NAME: &'static str = "example.Counter";
/// }
///
/// /// Gives a handle of the counter.
/// fn handle(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let state = c.state();
///     let counter = state.find_or_create("", "steps", || Ok(Counter::default()))?;
///     c.output_handle(0, &counter)
/// }
///
/// /// Takes a handle, and gives the next number of its counter.
/// fn next(c: &ComputeContext<'_>) -> Result<(), KernelError> {
///     let counter = c.state().input_resource::<Counter>(0)?;
///     c.output::<i64>(0, &[])?.data[0] = counter.0.fetch_add(1, Ordering::Relaxed) + 1;
///     Ok(())
/// }
/// ```
pub trait ResourceValue: Send + Sync + 'static {
    /// Name of the type, unique: by convention `plugin.Type`.
    const NAME: &'static str;
}

/// A counted reference to a resource whose value is a `T`; clones share the value.
pub struct ResourceHandle<T: ResourceValue> {
    raw: *mut Resource,
    value: *const T,
    shared: PhantomData<T>,
}

// SAFETY: the count is the host's and takes any thread; the value is shared as a `&T`.
unsafe impl<T: ResourceValue> Send for ResourceHandle<T> {}
// SAFETY: as above.
unsafe impl<T: ResourceValue> Sync for ResourceHandle<T> {}

pub(super) fn state_table() -> &'static StateTable {
    // SAFETY: the host's table lives as long as the process.
    unsafe { &*host().state }
}

/// The type of boxed `T`s. The host distinguishes types by the address of this, so that a value made by an
/// earlier build of the plugin, or by a plugin that uses the same name, is never taken for a `T`.
fn kind<T: ResourceValue>() -> &'static ResourceType {
    static KINDS: Interned<ResourceType> = Interned::new();
    unsafe extern "C" fn destroy<T>(value: *mut c_void) {
        // SAFETY: the host gives back what the factory made, once.
        let _ = guard(|| drop(unsafe { Box::from_raw(value.cast::<T>()) }));
    }
    KINDS.of::<T>(|| ResourceType {
        struct_size: size_of::<ResourceType>() as u32,
        reserved: 0,
        name: Str::new(T::NAME),
        destroy: Some(destroy::<T>),
        ext: ptr::null(),
    })
}

impl<T: ResourceValue> ResourceHandle<T> {
    /// Takes one reference over; `None`, and it is given back, when the value is not a `T`.
    ///
    /// # Safety
    /// `raw` is a reference to a live resource, or null.
    unsafe fn of(raw: *mut Resource) -> Option<ResourceHandle<T>> {
        if raw.is_null() {
            return None;
        }
        let entry = state_table().resource_value.expect("the host fills every entry");
        // SAFETY: the caller gives a reference to a live resource, and `kind` a type that is never freed.
        let value = unsafe { entry(raw, kind::<T>()) };
        let handle = ResourceHandle { raw, value: value.cast_const().cast(), shared: PhantomData };
        (!value.is_null()).then_some(handle)
    }
}

impl<T: ResourceValue> Deref for ResourceHandle<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the host says that the value is a `T` of this library, and the reference keeps it alive.
        unsafe { &*self.value }
    }
}

impl<T: ResourceValue> Clone for ResourceHandle<T> {
    fn clone(&self) -> ResourceHandle<T> {
        let entry = state_table().retain_resource.expect("the host fills every entry");
        // SAFETY: this object holds a reference.
        unsafe { entry(self.raw) };
        ResourceHandle { raw: self.raw, value: self.value, shared: PhantomData }
    }
}

impl<T: ResourceValue> Drop for ResourceHandle<T> {
    fn drop(&mut self) {
        let entry = state_table().release_resource.expect("the host fills every entry");
        // SAFETY: this object holds one reference.
        unsafe { entry(self.raw) };
    }
}

struct Factory<F> {
    make: Option<F>,
}

unsafe extern "C" fn run_factory<T, F: FnOnce() -> Result<T, KernelError>>(
    data: *mut c_void,
    value: *mut *mut c_void,
    sink: *mut Sink,
) -> Code {
    // SAFETY: `data` is the `Factory` of the running look-up; the host runs it at most once.
    unsafe {
        let factory = &mut *data.cast::<Factory<F>>();
        let Some(make) = factory.make.take() else { return Code::INTERNAL };
        match guard(make) {
            Ok(Ok(made)) => {
                *value = Box::into_raw(Box::new(made)).cast();
                Code::OK
            }
            Ok(Err(error)) => report(sink, &error),
            Err(panic) => {
                report(sink, &KernelError::internal(format!("making a resource panicked: {panic}")))
            }
        }
    }
}

impl StateContext<'_> {
    /// Finds the resource of this name, or makes it. An empty container is the default one.
    ///
    /// # Errors
    /// The error of `make`; `FAILED_PRECONDITION` when the name belongs to a resource that another library
    /// made, such as an earlier build of the plugin.
    pub fn find_or_create<T: ResourceValue>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> Result<T, KernelError>,
    ) -> Result<ResourceHandle<T>, KernelError> {
        fn factory<T, F: FnOnce() -> Result<T, KernelError>>(_: &Factory<F>) -> ResourceFactory {
            ResourceFactory { run: Some(run_factory::<T, F>) }
        }
        let mut data = Factory { make: Some(make) };
        let factory = factory::<T, _>(&data);
        // SAFETY: the factory is that of its data, which lives through the call, and makes boxed `T`s.
        let (code, raw) =
            unsafe { self.look_up::<T>(container, name, factory, (&raw mut data).cast()) };
        check(code, "cannot find or make the resource")?;
        // SAFETY: the reference that the look-up gave.
        unsafe { ResourceHandle::of(raw) }
            .ok_or_else(|| KernelError::internal("the host found a resource of another type"))
    }

    /// Finds the resource of this name, when there is one.
    ///
    /// # Errors
    /// As [`StateContext::find_or_create`].
    pub fn find<T: ResourceValue>(
        &self,
        container: &str,
        name: &str,
    ) -> Result<Option<ResourceHandle<T>>, KernelError> {
        let none = ResourceFactory { run: None };
        // SAFETY: without a factory there is no data.
        let (code, raw) = unsafe { self.look_up::<T>(container, name, none, ptr::null_mut()) };
        if code == Code::NOT_FOUND {
            return Ok(None);
        }
        check(code, "cannot find the resource")?;
        // SAFETY: the reference that the look-up gave.
        Ok(unsafe { ResourceHandle::of(raw) })
    }

    /// # Safety
    /// The factory takes the data, and makes boxed `T`s.
    unsafe fn look_up<T: ResourceValue>(
        &self,
        container: &str,
        name: &str,
        factory: ResourceFactory,
        data: *mut c_void,
    ) -> (Code, *mut Resource) {
        let mut raw = ptr::null_mut();
        let (container, name) = (Str::new(container), Str::new(name));
        let entry = self.table.resource.expect("the host fills every entry");
        // SAFETY: names and result live through the call; the caller's factory takes `data` and makes boxed `T`s.
        let code = unsafe {
            entry(self.call.record, container, name, kind::<T>(), factory, data, &mut raw)
        };
        (code, raw)
    }

    /// Removes the resource of this name from the call's device; returns whether there was one. Handles to it stay
    /// valid.
    ///
    /// # Errors
    /// A name that the host refuses.
    pub fn remove<T: ResourceValue>(
        &self,
        container: &str,
        name: &str,
    ) -> Result<bool, KernelError> {
        let entry = self.table.remove_resource.expect("the host fills every entry");
        let (container, name) = (Str::new(container), Str::new(name));
        // SAFETY: names live through the call.
        match unsafe { entry(self.call.record, container, name, Str::new(T::NAME)) } {
            Code::NOT_FOUND => Ok(false),
            code => check(code, "cannot remove the resource").map(|()| true),
        }
    }

    /// The resource behind element 0 of a resource input.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input is not a resource, or one of another type.
    pub fn input_resource<T: ResourceValue>(
        &self,
        input: usize,
    ) -> Result<ResourceHandle<T>, KernelError> {
        let raw = self.input_element(input).unwrap_or(ptr::null_mut());
        let retain = self.table.retain_resource.expect("the host fills every entry");
        // SAFETY: the input's element lives during the call, and null is allowed; the handle takes over the
        // reference that is added here.
        let handle = unsafe {
            retain(raw);
            ResourceHandle::of(raw)
        };
        handle.ok_or_else(|| {
            KernelError::invalid_argument(format!(
                "input {input}: expected a resource of type {}",
                T::NAME
            ))
        })
    }

    /// Removes the resource behind element 0 of a resource input from its container, and the value of a variable. A
    /// holder of a handle keeps the resource.
    ///
    /// # Errors
    /// `NOT_FOUND` when no container has it; `UNIMPLEMENTED` in a host without the service, as in the process of an
    /// isolated plugin.
    pub fn remove_input(&self, input: usize) -> Result<(), KernelError> {
        let link: &ExtHandles =
            host_link(ext_tags::HANDLES, &EXT_HANDLES, "removal of resources by handle")?;
        let entry = link.remove.expect("the host fills every entry");
        let raw = self.input_element(input).unwrap_or(ptr::null_mut());
        // SAFETY: the record of this call, and an element of its input, which lives through the call, or null.
        check(unsafe { entry(self.call.record, raw) }, "cannot remove the resource")
    }

    /// Whether the resource behind element 0 of a resource input was made under a name; an anonymous one was not.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the input has no resource; `UNIMPLEMENTED` as for [`StateContext::remove_input`].
    pub fn has_name(&self, input: usize) -> Result<bool, KernelError> {
        let link: &ExtHandles =
            host_link(ext_tags::HANDLES, &EXT_HANDLES, "names of resources by handle")?;
        let entry = link.has_name.expect("the host fills every entry");
        let raw = self.input_element(input).filter(|raw| !raw.is_null()).ok_or_else(|| {
            KernelError::invalid_argument(format!("input {input}: expected a handle of a resource"))
        })?;
        // SAFETY: an element of the call's input, which lives through the call.
        Ok(unsafe { entry(raw) } != 0)
    }

    /// Element 0 of a resource input.
    pub(super) fn input_element(&self, input: usize) -> Option<*mut Resource> {
        if input >= self.call.input_count as usize {
            return None;
        }
        // SAFETY: `input_count` pointers to filled slots.
        let slot = unsafe { &**self.call.inputs.add(input) };
        if slot.dtype != DType::RESOURCE || slot.elements == 0 || slot.data.is_null() {
            return None;
        }
        // SAFETY: a resource slot holds resource elements.
        Some(unsafe { *slot.data.cast::<ResourceElement>() }.resource)
    }
}

/// Something that has a handle: a resource of the plugin's own, or a variable.
pub trait Handle: sealed::Raw {}

impl<T: ResourceValue> Handle for ResourceHandle<T> {}
impl Handle for Var<'_> {}

mod sealed {
    use tenon_abi::Resource;

    /// Only this crate uses the pointer.
    pub trait Raw {
        /// The resource, without a new reference.
        fn raw(&self) -> *mut Resource;
    }
}

impl<T: ResourceValue> sealed::Raw for ResourceHandle<T> {
    fn raw(&self) -> *mut Resource {
        self.raw
    }
}

impl sealed::Raw for Var<'_> {
    fn raw(&self) -> *mut Resource {
        self.resource()
    }
}

impl ComputeContext<'_> {
    /// Returns the handle of a resource or of a variable as a scalar resource output.
    ///
    /// # Errors
    /// As [`ComputeContext::prepare`]; `INTERNAL` when the output is not a resource.
    pub fn output_handle(&self, output: usize, handle: &impl Handle) -> Result<(), KernelError> {
        let slot: &Slot = self.prepare(output, &[])?;
        if slot.dtype != DType::RESOURCE || !slot.memory.is_host_address() {
            return Err(mismatch("output", output, DType::RESOURCE, slot));
        }
        let (table, resource) = (state_table(), handle.raw());
        // SAFETY: the handle keeps the resource alive; the element belongs to the output, which owns one
        // reference, and gives back the one it had.
        unsafe {
            table.retain_resource.expect("the host fills every entry")(resource);
            let before = slot.data.cast::<ResourceElement>().replace(ResourceElement { resource });
            table.release_resource.expect("the host fills every entry")(before.resource);
        }
        Ok(())
    }
}
