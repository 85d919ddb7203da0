//! A resource of the plugin's own: a counter, reached by name or by handle.

use std::sync::atomic::{AtomicI64, Ordering};
use tenon_sdk::prelude::*;

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

impl ResourceValue for Counter {
    const NAME: &'static str = "zoo.Counter";
}

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

impl Named {
    /// Finds or makes the counter of this name.
    fn counter(&self, c: &ComputeContext<'_>) -> Result<ResourceHandle<Counter>, KernelError> {
        c.state().find_or_create(&self.container, &self.name, || Ok(Counter::new()))
    }
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
        let counter = self.0.counter(c)?;
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

impl Kernel for Handle {
    fn new(c: &CreateContext<'_>) -> Result<Self, KernelError> {
        Named::new(c).map(Handle)
    }

    fn compute(&self, c: &ComputeContext<'_>) -> Result<(), KernelError> {
        c.output_handle(0, &self.0.counter(c)?)
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
    let counter = c.state().input_resource::<Counter>(0)?;
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
        let Named { container, name } = &self.0;
        let before = c.state().find::<Counter>(container, name)?.is_some();
        let removed = c.state().remove::<Counter>(container, name)?;
        c.output::<bool>(0, &[])?.data[0] = before && removed;
        Ok(())
    }
}

register_kernel!("ZooCounterRemove" on "CPU": Remove);
