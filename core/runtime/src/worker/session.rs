//! Sessions of a master at a worker.

use super::{Worker, WorkerGraph};
use crate::{
    error::RuntimeError,
    kernels::KernelCache,
    options::SessionOptions,
    run_limits::RunLimits,
    step_graph::{Context, GraphVersion, take_part},
};
use std::sync::{Arc, atomic::AtomicU64};
use tenon_framework::device::{DeviceName, base::DeviceBase};
use tenon_graph::Graph;
use tenon_proto::{GraphDef, NodeDef};

/// A session of a master at a worker: the graphs that are registered in it share the kernel objects of stateful nodes, by the
/// names of the nodes.
pub struct WorkerSession {
    worker: Worker,
    options: SessionOptions,
    kernels: Arc<KernelCache>,
    /// The number of graphs created for steps.
    graphs: AtomicU64,
}

impl Worker {
    /// Opens a session, whose graphs come from a master. With [`SessionOptions::isolate_state`] it has values of its own.
    pub fn session(&self, options: SessionOptions) -> WorkerSession {
        let worker = if options.isolate_state { self.isolated() } else { self.clone() };
        WorkerSession { worker, options, kernels: Arc::default(), graphs: AtomicU64::new(0) }
    }
}

impl WorkerSession {
    /// The worker, which has the values of the session.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Registers the part of a step's graph that a master has for this process: nodes on its devices, with `_Send` and `_Recv`
    /// to other tasks and to the client. It is optimised, cut by device, and compiled.
    ///
    /// # Errors
    /// A node does not name a device of this process (`INVALID_ARGUMENT`); an op is not registered (`NOT_FOUND`); as compiling a
    /// step.
    pub fn register(&self, mut def: GraphDef) -> Result<WorkerGraph, RuntimeError> {
        let runtime = self.worker.runtime();
        let devices = runtime.devices().devices();
        if devices.is_empty() {
            let NodeDef { name, op, .. } = def.node.into_iter().next().unwrap_or_default();
            let searched = runtime.searched().to_vec();
            return Err(RuntimeError::NoDevices { node: name, op, searched });
        }
        for node in &mut def.node {
            let name = DeviceName::parse(&node.device).ok();
            let is_here = |name: &DeviceName| devices.iter().any(|device| device.name() == name);
            if !name.as_ref().is_some_and(is_here) {
                return Err(self.foreign(node));
            }
            // Nodes that it is to be with may be at other tasks; its device says where it runs.
            node.attr.remove("_class");
        }
        let registry = runtime.registry();
        let graph = Arc::new(Graph::import(&def, &registry)?);
        drop(def);
        let knobs = runtime.plugins().session_knobs(&registry, &self.options.knobs);
        let version = GraphVersion::new(graph, registry, knobs.map_err(RuntimeError::Setting)?)?;
        let context = Context {
            runtime,
            options: &self.options,
            version: &version,
            cache: &self.kernels,
            graphs: &self.graphs,
        };
        let graph = take_part(context, &RunLimits::default())?;
        WorkerGraph::of(&self.worker, graph, &self.options, Arc::clone(&self.kernels))
    }

    fn foreign(&self, node: &NodeDef) -> RuntimeError {
        let devices = self.worker.runtime().devices().devices();
        RuntimeError::ForeignNode {
            node: node.name.clone(),
            device: node.device.clone(),
            there: devices.iter().map(|device| device.name().to_string()).collect(),
        }
    }
}

impl Drop for WorkerSession {
    fn drop(&mut self) {
        self.kernels.clear();
        if self.options.isolate_state {
            self.worker.reset(&[""]);
        }
    }
}
