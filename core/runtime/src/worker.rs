//! The worker: runs partitions on the devices of its process.
//!
//! A step's graph from the front end (the *step graph*) is registered once and then run by number.
//! A worker compiles each partition into a plan, and runs all partitions of a graph together, on
//! the thread that requests the step.
//!
//! # Ownership
//! A worker owns the values that outlive steps (variables, and values that plugins keep), each on
//! its device. Sessions on one worker share them by container and name, unless they [isolate their
//! state](SessionOptions::isolate_state). The values stay until the worker is dropped or their
//! container is [reset](Worker::reset). A session owns the kernel objects of its stateful nodes.

mod graph;
mod register;
mod registered;
mod session;

pub use graph::{StepOptions, WorkerGraph};
pub(crate) use register::register;
pub(crate) use registered::{CallerOptions, Registered, StepCall};
pub use session::WorkerSession;

use crate::{error::RuntimeError, options::SessionOptions, runtime::Runtime};
use std::sync::Arc;
use tenon_host::resources::Resources;
use tenon_proto::GraphDef;

/// The values that outlive steps, shared by sessions over the same devices. Clones are the same
/// worker.
#[derive(Clone)]
pub struct Worker {
    runtime: Runtime,
    values: Arc<Values>,
}

/// The values of a worker. They go with the worker even if one of them holds a function, which holds
/// the tables.
struct Values(Arc<Resources>);

impl Drop for Values {
    fn drop(&mut self) {
        self.0.clear_all();
    }
}

impl Worker {
    /// Creates a worker without values on the devices of a runtime.
    pub fn new(runtime: &Runtime) -> Worker {
        let resources = Resources::with_registry(runtime.plugins().handle());
        Worker { runtime: runtime.clone(), values: Arc::new(Values(Arc::new(resources))) }
    }

    /// The runtime with the devices and threads.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The values that outlive steps.
    pub fn resources(&self) -> &Arc<Resources> {
        &self.values.0
    }

    /// Registers a graph that was cut elsewhere, in the form that [`Partition::to_graph_def`] and
    /// [`Session::partitions`] write. Its nodes run on the devices that they name; kernels are
    /// chosen here. Passes do not change it.
    ///
    /// [`Partition::to_graph_def`]: tenon_graph::Partition::to_graph_def
    /// [`Session::partitions`]: crate::Session::partitions
    ///
    /// # Errors
    /// As importing a graph and compiling a step; an edge leads between devices; a device does not
    /// belong to the worker.
    pub fn register(
        &self,
        graph: &GraphDef,
        options: SessionOptions,
    ) -> Result<WorkerGraph, RuntimeError> {
        WorkerGraph::new(self, graph, options)
    }

    /// Creates a worker on the same devices with values of its own.
    pub(crate) fn isolated(&self) -> Worker {
        Worker::new(&self.runtime)
    }

    /// Drops the values in a step's container, for a step whose parts ran on several workers. A
    /// worker that runs a whole step does this at its end.
    pub fn cleanup_step(&self, step: u64) {
        self.values.0.end_step(step);
    }

    /// Drops the values in these containers and returns their number; `""` is the container of
    /// nodes that name none. Steps that use a value keep it until they end.
    pub fn reset(&self, containers: &[&str]) -> usize {
        containers.iter().map(|container| self.values.0.clear(container)).sum()
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("runtime", &self.runtime).finish_non_exhaustive()
    }
}
