//! From a step graph to what runs: a plan for each partition, and the kernel objects in them.

use super::{Registered, Worker};
use crate::{
    error::RuntimeError,
    executor::StepWiring,
    kernels::{Scope, Site},
    options::NodeReport,
    patience::Patience,
    plan::{self, NodeKernel, Plan, PlanSource, Transfer},
    rendezvous::{EdgeName, Key},
    step_graph::StepGraph,
};
use std::{
    cell::RefCell,
    sync::{Arc, atomic::AtomicU64},
};
use tenon_framework::{
    device::{
        DeviceName,
        base::{DeviceBase, LocalDevice},
    },
    registry::KernelChoice,
    tensor::Memory,
};
use tenon_graph::{PartNode, PartOp, Partitioned};
use tenon_host::devices::PluginDevice;

/// Compiles the partitions of a step graph; calls are counted per node where `count_calls` says so.
///
/// # Errors
/// A device that is not this worker's; a kernel that cannot be made; the patience ended.
pub(crate) fn register(
    worker: &Worker,
    graph: &StepGraph,
    count_calls: bool,
    patience: &Patience,
) -> Result<Registered, RuntimeError> {
    let devices = worker.runtime.devices().devices();
    let planner = Planner {
        worker,
        scope: &graph.scope,
        count_calls,
        patience,
        devices,
        report: RefCell::default(),
    };
    let (feeds, fetches) = (graph.feeds.0.len(), graph.fetches);
    let graph = &graph.partitioned;
    let mut plans = Vec::with_capacity(graph.partitions.len());
    let mut wiring = StepWiring { feeds: vec![Vec::new(); feeds], fetches: vec![(0, 0); fetches] };
    for (at, part) in graph.partitions.iter().enumerate() {
        let device: Arc<dyn LocalDevice> = planner.device(&part.device)?.clone();
        let (plan, sites) = plan::build(part, &graph.frames, &device, &planner)?;
        for (feed, output) in sites.feeds {
            wiring.feeds[feed].push((at as u32, output));
        }
        for (fetch, output) in sites.fetches {
            wiring.fetches[fetch] = (at as u32, output);
        }
        plans.push(plan);
    }
    record_where_nobody_waits(graph, &mut plans);
    let plans = plans.into_iter().map(Arc::new).collect();
    let Report { nodes, counters } = planner.report.into_inner();
    Ok(Registered::new(plans, wiring, nodes, counters, worker.runtime.ledger()))
}

/// A partition that is recorded waits for all that comes from elsewhere, and sends nothing before: it is not recorded
/// where what comes waits for that.
fn record_where_nobody_waits(graph: &Partitioned, plans: &mut [Plan]) {
    let wish: Vec<bool> = plans.iter().map(|plan| plan.roles.is_some()).collect();
    for (plan, gathers) in plans.iter_mut().zip(graph.gatherers(&wish)) {
        plan.roles.take_if(|_| !gathers);
    }
}

#[derive(Default)]
struct Report {
    nodes: Vec<NodeReport>,
    counters: Vec<(String, Arc<AtomicU64>)>,
}

/// Answers what building the plans asks.
struct Planner<'p> {
    worker: &'p Worker,
    scope: &'p Arc<Scope>,
    count_calls: bool,
    /// Of the caller that waits for the plans.
    patience: &'p Patience,
    devices: Vec<Arc<PluginDevice>>,
    report: RefCell<Report>,
}

impl Planner<'_> {
    /// The device of this name, where it is this worker's.
    fn find(&self, name: &DeviceName) -> Option<&Arc<PluginDevice>> {
        self.devices.iter().find(|device| device.name() == name)
    }

    /// The device of this name.
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

/// Name of the kernel's plugin; where the choice is open, of all that may run.
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
        self.patience.check()?;
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
        let key = Key::of(self.worker.runtime.edges().intern(EdgeName {
            source: transfer.sender.to_string(),
            incarnation: transfer.incarnation,
            destination: transfer.receiver.to_string(),
            tensor: transfer.tensor.clone(),
        }));
        let to_device_memory = transfer.destination_memory == tenon_graph::Memory::Device;
        Transfer { key, peer, to_device_memory }
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
