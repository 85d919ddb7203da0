//! Sessions of a master at a worker.

use super::{Worker, WorkerGraph};
use crate::{
    error::RuntimeError,
    kernels::KernelCache,
    options::SessionOptions,
    run_limits::RunLimits,
    step_graph::{Context, GraphVersion, take_part},
};
use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicU64},
};
use tenon_framework::device::{DeviceName, base::DeviceBase};
use tenon_graph::{Graph, required_ops};
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
            // Whatever crosses tasks does so in host memory.
            match node.op.as_str() {
                "_HostSend" => required_ops::SEND.clone_into(&mut node.op),
                "_HostRecv" => required_ops::RECV.clone_into(&mut node.op),
                _ => {}
            }
        }
        name_plainly(&mut def);
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

/// Gives nodes of public ops whose names are internal, with `_` at the beginning, names that any node may have: the control
/// loops of TensorFlow's partitions have such.
fn name_plainly(def: &mut GraphDef) {
    let is_internal = |node: &&mut NodeDef| node.name.starts_with('_') && !node.op.starts_with('_');
    let internal: HashSet<String> =
        def.node.iter_mut().filter(is_internal).map(|node| node.name.clone()).collect();
    if internal.is_empty() {
        return;
    }
    for node in &mut def.node {
        if internal.contains(&node.name) {
            node.name.insert(0, '.');
        }
        for input in &mut node.input {
            let is_control = input.starts_with('^');
            let source = input.trim_start_matches('^').split(':').next().unwrap_or_default();
            if internal.contains(source) {
                input.insert(usize::from(is_control), '.');
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internal_names_become_plain_ones() {
        let node = |name: &str, op: &str, input: &[&str]| NodeDef {
            name: name.to_owned(),
            op: op.to_owned(),
            input: input.iter().map(|input| (*input).to_owned()).collect(),
            ..NodeDef::default()
        };
        let mut def = GraphDef {
            node: vec![
                node("_loop", "Merge", &["a", "_loop/next:1"]),
                node("_recv", "_Recv", &["^_loop"]),
                node("a", "Neg", &["_loop:1", "^_recv"]),
            ],
            ..GraphDef::default()
        };
        name_plainly(&mut def);
        let shown: Vec<String> =
            def.node.iter().map(|it| format!("{} {}", it.name, it.input.join(" "))).collect();
        assert_eq!(shown, ["._loop a _loop/next:1", "_recv ^._loop", "a ._loop:1 ^_recv"]);
    }
}
