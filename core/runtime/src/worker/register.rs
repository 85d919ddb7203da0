//! Compiles a step graph: a plan for each partition, with its kernel objects.

use super::{Registered, Worker};
use crate::{
    error::RuntimeError,
    executor::{Function, Functions, StepWiring},
    kernels::{Scope, Site},
    options::NodeReport,
    plan::{self, NodeKernel, Plan, PlanSource, Transfer},
    rendezvous::{EdgeName, Key},
    run_limits::RunLimits,
    step_graph::{CalledGraphs, StepGraph},
};
use std::{
    cell::RefCell,
    sync::{Arc, atomic::AtomicU64},
};
use tenon_framework::{
    KernelError,
    attr::AttrValue,
    device::{
        DeviceName,
        base::{DeviceBase, LocalDevice},
    },
    registry::KernelChoice,
    tensor::Memory,
};
use tenon_graph::{PartNode, PartOp, Partitioned};
use tenon_host::devices::PluginDevice;

/// Compiles the partitions of a step graph; with `count_calls`, calls are counted per node.
///
/// # Errors
/// A device is not this worker's, a kernel cannot be created, or the limits of the run ended it.
pub(crate) fn register(
    worker: &Worker,
    graph: &StepGraph,
    count_calls: bool,
    run_limits: &RunLimits,
) -> Result<Registered, RuntimeError> {
    let planner = Planner {
        worker,
        scope: &graph.scope,
        count_calls,
        run_limits,
        devices: worker.runtime.devices().devices(),
        callees: &graph.callees,
        report: RefCell::default(),
    };
    let functions = graph.callees.graphs.iter().map(|(name, graph)| {
        let (plans, wiring) = compiled(&planner, graph)?;
        Ok(Function::new(name.clone(), graph.feeds.clone(), plans, wiring))
    });
    let functions = functions.collect::<Result<Vec<_>, RuntimeError>>()?;
    let (plans, wiring) = compiled(&planner, graph)?;
    let Report { nodes, counters } = planner.report.into_inner();
    let functions = (!functions.is_empty()).then(|| {
        let (runtime, resources) = (&worker.runtime, worker.resources());
        Functions::new(
            functions,
            graph.callees.numbers(),
            Arc::clone(runtime.step_numbers()),
            Arc::clone(runtime.pool()),
            Arc::clone(resources),
        )
    });
    Ok(Registered::new(plans, wiring, functions, nodes, counters, worker.runtime.ledger()))
}

/// The plans of a step graph, and the places of its feeds and fetches.
fn compiled(
    planner: &Planner<'_>,
    graph: &StepGraph,
) -> Result<(Vec<Arc<Plan>>, StepWiring), RuntimeError> {
    let (feeds, fetches) = (graph.feeds.0.len(), graph.fetches);
    let graph = &graph.partitioned;
    let mut plans = Vec::with_capacity(graph.partitions.len());
    let mut wiring = StepWiring { feeds: vec![Vec::new(); feeds], fetches: vec![(0, 0); fetches] };
    for (at, part) in graph.partitions.iter().enumerate() {
        let device: Arc<dyn LocalDevice> = planner.device(&part.device)?.clone();
        let (plan, endpoints) = plan::build(part, &graph.frames, &device, planner)?;
        for (feed, output) in endpoints.feeds {
            wiring.feeds[feed].push((at as u32, output));
        }
        for (fetch, output) in endpoints.fetches {
            wiring.fetches[fetch] = (at as u32, output);
        }
        plans.push(plan);
    }
    drop_circular_recordings(graph, &mut plans);
    Ok((plans.into_iter().map(Arc::new).collect(), wiring))
}

/// Drops recording for a partition if one of its inputs depends on one of its own outputs: it would
/// wait for itself.
fn drop_circular_recordings(graph: &Partitioned, plans: &mut [Plan]) {
    let candidates: Vec<bool> = plans.iter().map(|plan| plan.roles.is_some()).collect();
    for (plan, gathers) in plans.iter_mut().zip(graph.gatherers(&candidates)) {
        plan.roles.take_if(|_| !gathers);
    }
}

#[derive(Default)]
struct Report {
    nodes: Vec<NodeReport>,
    counters: Vec<(String, Arc<AtomicU64>)>,
}

/// The services for building plans.
struct Planner<'p> {
    worker: &'p Worker,
    scope: &'p Arc<Scope>,
    count_calls: bool,
    /// The limits of the caller that waits for the plans.
    run_limits: &'p RunLimits,
    devices: Vec<Arc<PluginDevice>>,
    /// The functions that nodes call.
    callees: &'p CalledGraphs,
    report: RefCell<Report>,
}

impl Planner<'_> {
    /// The device with this name, if it is one of the worker's.
    fn find(&self, name: &DeviceName) -> Option<&Arc<PluginDevice>> {
        self.devices.iter().find(|device| device.name() == name)
    }

    /// The device with this name.
    fn device(&self, name: &DeviceName) -> Result<&Arc<PluginDevice>, RuntimeError> {
        self.find(name).ok_or_else(|| RuntimeError::ForeignDevice {
            what: "a partition of device",
            name: name.to_string(),
            there: self.devices.iter().map(|device| device.name().to_string()).collect(),
        })
    }

    fn note(&self, node: &PartNode, op: &PartOp, chosen: &KernelChoice, device: &PluginDevice) {
        let inputs = node.signature.inputs.iter().copied().zip(op.input_shapes.iter().cloned());
        let outputs =
            node.signature.outputs.iter().copied().zip(node.output_shapes.iter().cloned());
        self.report.borrow_mut().nodes.push(NodeReport {
            name: node.name.clone(),
            op: node.op.clone(),
            device: device.name().to_string(),
            plugin: chosen.kernel.plugin_name.to_string(),
            label: chosen.kernel.label.clone(),
            attrs: Arc::clone(&op.attrs),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            per_shape: !chosen.per_shape.is_empty(),
        });
    }
}

/// The name of the kernel's plugin; if the choice is open, the names of all candidates' plugins.
fn plugins_of(chosen: &KernelChoice) -> String {
    let mut names = vec![&*chosen.kernel.plugin_name];
    for kernel in &chosen.per_shape {
        if !names.contains(&&*kernel.plugin_name) {
            names.push(&kernel.plugin_name);
        }
    }
    names.join(" or ")
}

impl PlanSource for Planner<'_> {
    fn kernel(
        &self,
        node: &PartNode,
        op: &PartOp,
        device: &DeviceName,
    ) -> Result<Option<NodeKernel>, RuntimeError> {
        self.run_limits.check()?;
        let Some(chosen) = &op.kernel else { return Ok(None) };
        let device = self.device(device)?;
        let site = Site::new(&node.name, op.clone(), &node.signature, device, self.scope);
        let choice = site.choice(chosen)?;
        let runs = self.count_calls.then(Arc::<AtomicU64>::default);
        self.note(node, op, chosen, device);
        if let Some(runs) = &runs {
            self.report.borrow_mut().counters.push((node.name.clone(), Arc::clone(runs)));
        }
        let plugin = plugins_of(chosen);
        let (stateful, allows_uninitialized_input) =
            (op.def.stateful, op.def.allows_uninitialized_input);
        Ok(Some(NodeKernel { choice, plugin, runs, stateful, allows_uninitialized_input }))
    }

    fn transfer(&self, transfer: &tenon_graph::Transfer, peer: &DeviceName) -> Transfer {
        let peer = self.find(peer).map(|device| Arc::clone(device) as Arc<dyn LocalDevice>);
        let key = Key::of(self.worker.runtime.edges().intern(EdgeName::of(transfer)));
        let to_device_memory = transfer.destination_memory == tenon_graph::Memory::Device;
        Transfer { key, peer, to_device_memory }
    }

    fn function(&self, node: &PartNode, op: &PartOp) -> Result<u32, RuntimeError> {
        let found = match op.attrs.get("f") {
            Some(AttrValue::Func(function)) => self.callees.find(function),
            _ => None,
        };
        found.ok_or_else(|| RuntimeError::Kernel {
            node: node.name.clone(),
            op: node.op.clone(),
            device: String::new(),
            error: KernelError::internal("the function that it calls has no plan"),
        })
    }

    fn host_memory(&self) -> &Arc<dyn Memory> {
        self.worker.runtime.host_memory()
    }

    fn streams(&self, device: &dyn LocalDevice) -> u32 {
        let asked = self.scope.knobs.int("runtime", "streams_per_device").unwrap_or(1);
        u32::try_from(asked.max(1)).unwrap_or(u32::MAX).min(device.info().stream_count)
    }

    fn record_after(&self) -> Option<u32> {
        let knobs = &self.scope.knobs;
        u32::try_from(knobs.int("runtime", "record_after").unwrap_or(-1)).ok()
    }
}
