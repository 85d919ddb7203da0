//! A resource of the plugin's own: a counter, reached by name or by handle.

use std::{
    ptr,
    sync::atomic::{AtomicI64, Ordering},
};
use tenon_sdk::{
    abi::{Resource, ResourceElement, ResourceFactory, ResourceType, Sink, StateTable, Str},
    author::{host, resource_type},
    prelude::*,
};

/// Counters that are alive, so that a test sees that each is destroyed.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counter(AtomicI64);

impl Counter {
    fn new() -> Counter {
        LIVE.fetch_add(1, Ordering::Relaxed);
        Counter(AtomicI64::new(0))
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

const TYPE_NAME: &str = "zoo.Counter";
static COUNTER: ResourceType = resource_type::<Counter>(TYPE_NAME);

/// Names of a resource, as attributes give them.
pub(crate) struct Named {
    /// Container; empty is the default one.
    pub container: String,
    /// Name.
    pub name: String,
}

impl Named {
    /// From the attributes `container` and `shared_name`; without a name, the node's own.
    pub(crate) fn new(c: &CreateContext<'_>) -> Result<Named, KernelError> {
        let name: &str = c.attr("shared_name")?;
        let name = if name.is_empty() { c.node() } else { name };
        Ok(Named { container: c.attr::<&str>("container")?.to_owned(), name: name.to_owned() })
    }
}

fn table() -> &'static StateTable {
    // SAFETY: the host's tables live as long as the process.
    unsafe { &*host().state }
}

fn scalar(c: &ShapeContext<'_>) -> ShapeResult {
    c.set_output(0, c.scalar())
}

register_op!(
    "ZooCounterNext",
    outputs = &["count: int64", "live: int64"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = |c: &ShapeContext<'_>| {
        c.set_output(0, c.scalar())?;
        c.set_output(1, c.scalar())
    },
    summary = "The next number of a counter, from 1; and how many counters are alive.",
);

struct Next(Named);

impl Kernel for Next {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Next)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Named { container, name } = &self.0;
        // SAFETY: `COUNTER` is the type of boxed `Counter`s.
        let counter =
            unsafe { c.state().find_or_make(container, name, &COUNTER, || Ok(Counter::new()))? };
        c.output::<i64>(0, &[])?.data[0] = counter.0.fetch_add(1, Ordering::Relaxed) + 1;
        c.output::<i64>(1, &[])?.data[0] = LIVE.load(Ordering::Relaxed);
        Ok(())
    }
}

register_kernel!("ZooCounterNext" on "CPU": Next);

register_op!(
    "ZooCounterHandle",
    outputs = &["handle: resource"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = scalar,
    summary = "A handle of a counter, which is made when there is none.",
);

struct Handle(Named);

unsafe extern "C" fn new_counter(
    _: *mut std::ffi::c_void,
    value: *mut *mut std::ffi::c_void,
    _: *mut Sink,
) -> Code {
    // SAFETY: the host gives a place for the value, and destroys it by `COUNTER`.
    unsafe { *value = Box::into_raw(Box::new(Counter::new())).cast() };
    Code::OK
}

impl Kernel for Handle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Handle)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let Named { container, name } = &self.0;
        let output = c.prepare(0, &[])?.data.cast::<ResourceElement>();
        let mut resource: *mut Resource = ptr::null_mut();
        // SAFETY: an entry of the host's table with the record of this call; what it lends lives meanwhile.
        let code = unsafe {
            table().resource.expect("the host fills every entry")(
                c.raw().record,
                Str::new(container),
                Str::new(name),
                &COUNTER,
                ResourceFactory { run: Some(new_counter) },
                ptr::null_mut(),
                &mut resource,
            )
        };
        if !code.is_ok() {
            return Err(KernelError::new(code, "cannot find or make the counter"));
        }
        // SAFETY: one element of the output, empty before; the reference that `resource` gave moves into it.
        unsafe { *output = ResourceElement { resource } };
        Ok(())
    }
}

register_kernel!("ZooCounterHandle" on "CPU": Handle);

register_op!(
    "ZooCounterRead",
    inputs = &["handle: resource"],
    outputs = &["count: int64"],
    stateful = true,
    shape = scalar,
    summary = "The last number of the counter behind a handle; 0 before the first.",
);

fn read(c: &ComputeContext<'_>) -> Result<(), KernelError> {
    let slot = c.slot(0)?;
    if slot.dtype != DType::RESOURCE || slot.elements == 0 {
        return Err(KernelError::invalid_argument("handle: expected a resource"));
    }
    // SAFETY: a resource slot holds resource elements, whose references live during the call.
    let counter = unsafe {
        let handle = *slot.data.cast::<ResourceElement>();
        let entry = table().resource_value.expect("the host fills every entry");
        entry(handle.resource, &COUNTER).cast::<Counter>().as_ref()
    };
    let counter = counter.ok_or_else(|| {
        KernelError::invalid_argument("handle: expected a resource of type zoo.Counter")
    })?;
    c.output::<i64>(0, &[])?.data[0] = counter.0.load(Ordering::Relaxed);
    Ok(())
}

register_kernel!("ZooCounterRead" on "CPU": fn read);

register_op!(
    "ZooCounterRemove",
    outputs = &["removed: bool"],
    attrs = &["container: string = ''", "shared_name: string = ''"],
    stateful = true,
    shape = scalar,
    summary = "Removes a counter; whether there was one.",
);

struct Remove(Named);

impl Kernel for Remove {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Remove)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        let entry = table().remove_resource.expect("the host fills every entry");
        // SAFETY: as in `Handle`.
        let code = unsafe {
            entry(
                c.raw().record,
                Str::new(&self.0.container),
                Str::new(&self.0.name),
                Str::new(TYPE_NAME),
            )
        };
        match code {
            Code::OK | Code::NOT_FOUND => {
                c.output::<bool>(0, &[])?.data[0] = code.is_ok();
                Ok(())
            }
            code => Err(KernelError::new(code, "cannot remove the counter")),
        }
    }
}

register_kernel!("ZooCounterRemove" on "CPU": Remove);
