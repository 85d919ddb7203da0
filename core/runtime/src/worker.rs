//! The worker: runs partitions on the devices of its process.
//!
//! What a step's front end makes, the *step graph*, is registered once and then run by number: a worker compiles each
//! partition into a plan, and runs all partitions of a graph together, on the thread that asks for the step.
//!
//! # Ownership
//! A worker has the values that outlive steps (variables, and what plugins keep), each on its device: sessions over one
//! worker share them by container and name, unless they [ask for values of their own](SessionOptions::isolate_state), and
//! they stay until the worker goes or their container is [reset](Worker::reset). The kernel
//! objects of stateful nodes are a session's.

mod graph;
mod register;
mod registered;

pub use graph::{StepOptions, WorkerGraph};
pub(crate) use register::register;
pub(crate) use registered::{Asked, Registered, StepCall};

use crate::{error::RuntimeError, options::SessionOptions, runtime::Runtime};
use std::sync::Arc;
use tenon_host::resources::Resources;
use tenon_proto::GraphDef;

/// What sessions over the same devices share: values that outlive steps. Clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    runtime: Runtime,
    resources: Arc<Resources>,
}

impl Worker {
    /// A worker on the devices of a runtime, without any values.
    pub fn new(runtime: &Runtime) -> Worker {
        Worker { runtime: runtime.clone(), resources: Arc::new(Resources::new()) }
    }

    /// The devices and threads.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The values that outlive steps.
    pub fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// Registers a graph that was cut elsewhere, as [`Partition::to_graph_def`] and [`Session::partitions`] write it. Its
    /// nodes run where they say; kernels are chosen here. No pass changes it.
    ///
    /// [`Partition::to_graph_def`]: tenon_graph::Partition::to_graph_def
    /// [`Session::partitions`]: crate::Session::partitions
    ///
    /// # Errors
    /// As importing a graph and compiling a step; an edge between devices; a device that is not the worker's.
    pub fn register(
        &self,
        graph: &GraphDef,
        options: SessionOptions,
    ) -> Result<WorkerGraph, RuntimeError> {
        WorkerGraph::new(self, graph, options)
    }

    /// A worker on the same devices, with values of its own.
    pub(crate) fn isolated(&self) -> Worker {
        Worker::new(&self.runtime)
    }

    /// Forgets what a step left in its container, whose parts met elsewhere: a step that a worker runs by itself does so
    /// at its end.
    pub fn cleanup_step(&self, step: u64) {
        self.resources.end_step(step);
    }

    /// Forgets the values of these containers, `""` for the one of nodes that name none; how many there were. Steps that
    /// have a value keep it until they end.
    pub fn reset(&self, containers: &[&str]) -> usize {
        containers.iter().map(|container| self.resources.clear(container)).sum()
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("runtime", &self.runtime).finish_non_exhaustive()
    }
}
