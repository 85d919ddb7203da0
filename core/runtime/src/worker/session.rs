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
    /// The name of this task in the graphs, if it is another one than the runtime's.
    task: Option<DeviceName>,
    kernels: Arc<KernelCache>,
    /// The number of graphs created for steps.
    graphs: AtomicU64,
}

impl Worker {
    /// Opens a session, whose graphs come from a master. With [`SessionOptions::isolate_state`] it has values of its own.
    /// With [`SessionOptions::task`] its graphs know the devices of this process by that task.
    pub fn session(&self, mut options: SessionOptions) -> WorkerSession {
        let worker = if options.isolate_state { self.isolated() } else { self.clone() };
        let (task, graphs) = (options.task.take(), AtomicU64::new(0));
        WorkerSession { worker, options, task, kernels: Arc::default(), graphs }
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
        let own = devices[0].name();
        for node in &mut def.node {
            let name = DeviceName::parse(&node.device).ok();
            let name = name.and_then(|name| self.own_name(name, own));
            let is_here = |name: &DeviceName| devices.iter().any(|device| device.name() == name);
            let Some(name) = name.filter(is_here) else { return Err(self.foreign(node)) };
            if self.task.is_some() {
                node.device = name.to_string();
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
        self.place_functions(&mut def, own);
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
            any_shape: false,
        };
        let graph = take_part(context, &RunLimits::default())?;
        WorkerGraph::of(&self.worker, graph, &self.options, Arc::clone(&self.kernels))
    }

    /// The runtime's name of a device that a graph names; `own` is any of the runtime's. `None` for one of another task.
    fn own_name(&self, name: DeviceName, own: &DeviceName) -> Option<DeviceName> {
        let Some(task) = &self.task else { return Some(name) };
        let DeviceName { device_type, id, .. } = name.clone();
        let of_task = DeviceName { device_type: None, id: None, ..name };
        let named = DeviceName { device_type, id, ..own.clone() };
        (of_task.job.is_some() && of_task.matches(task)).then_some(named)
    }

    /// Gives the nodes of functions the runtime's names of the devices that they request.
    fn place_functions(&self, def: &mut GraphDef, own: &DeviceName) {
        if self.task.is_none() {
            return;
        }
        let functions = def.library.iter_mut().flat_map(|library| &mut library.function);
        for node in functions.flat_map(|function| &mut function.node_def) {
            let name = DeviceName::parse(&node.device).ok();
            if let Some(name) = name.and_then(|name| self.own_name(name, own)) {
                node.device = name.to_string();
            }
        }
    }

    fn foreign(&self, node: &NodeDef) -> RuntimeError {
        let devices = self.worker.runtime().devices().devices();
        let names = SessionOptions { task: self.task.clone(), ..SessionOptions::default() };
        RuntimeError::ForeignNode {
            node: node.name.clone(),
            device: node.device.clone(),
            there: devices.iter().map(|device| names.named(device.name()).to_string()).collect(),
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
