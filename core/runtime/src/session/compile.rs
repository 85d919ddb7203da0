//! Compiling a step: prune, infer shapes, place, optimise, partition, plan.

use super::{
    Current, Inner,
    callable::CallableOptions,
    executable::{Executable, FeedSpec},
    kernels::{self, Chosen},
    optimize,
    options::NodeReport,
    patience::Patience,
    placement,
    site::Site,
};
use crate::{
    error::RuntimeError,
    executor::StepWiring,
    plan::{self, NodeKernel, Plan, PlanSource, Transfer, Wanted},
    rendezvous::{EdgeName, Key},
};
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::AtomicU64},
    time::Instant,
};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::AttrValue,
    device::base::{DeviceBase, LocalDevice},
    tensor::Memory as TensorMemory,
};
use tenon_graph::{
    ArgSide, ControlFlow, DeviceView, FrameId, Frames, Graph, GraphError, Memory, NodeId, Output,
    PartitionOptions, Partitioned, Placement, Shapes, Subgraph, infer_shapes, partition, prune,
};
use tenon_host::devices::{PluginDevice, copy_tensor};

/// A step's graph, placed.
pub(super) struct Placed<'s> {
    pub session: &'s Inner,
    pub current: &'s Current,
    /// The session's graph, or what optimisation made of it.
    pub graph: Arc<Graph>,
    /// Number of the graph among those of the session's plans; 0 for the session's own.
    pub own_graph: u64,
    pub sub: Subgraph,
    pub shapes: Shapes,
    pub placement: Placement,
    pub view: kernels::Devices<'s>,
    /// Of the caller that waits for the step.
    pub patience: Patience,
}

impl<'s> Placed<'s> {
    /// Prunes, infers shapes, places.
    pub fn new(
        session: &'s Inner,
        current: &'s Current,
        feeds: &[Output],
        fetches: &[Output],
        targets: &[NodeId],
        patience: &Patience,
    ) -> Result<Placed<'s>, RuntimeError> {
        let sub = prune(&current.graph, feeds, fetches, targets)?;
        current.graph.check_ops(&sub, &current.registry)?;
        patience.check()?;
        let shapes = infer_shapes(&current.graph, &sub, &[])?;
        patience.check()?;
        let view = kernels::Devices::new(session, current);
        let placement = placement::placed(session, current, &sub, &view)?;
        let graph = Arc::clone(&current.graph);
        let patience = patience.clone();
        Ok(Placed { session, current, graph, own_graph: 0, sub, shapes, placement, view, patience })
    }

    fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The device of a node that runs.
    pub fn device(&self, node: NodeId) -> &Arc<PluginDevice> {
        let at = self.placement.device(node).unwrap_or(self.view.client());
        &self.view.local()[at]
    }

    /// Types and shapes of a node's inputs.
    fn inputs(&self, id: NodeId) -> Vec<(DType, PartialShape)> {
        let inputs = self.graph.node(id).inputs.iter();
        let seen = |input: &Output| self.shapes.seen(&self.sub, *input);
        inputs.map(|input| (self.graph.dtype(*input), seen(input))).collect()
    }

    /// Types and shapes of a node's outputs.
    fn outputs(&self, id: NodeId) -> Vec<(DType, PartialShape)> {
        let types = self.graph.node(id).outputs().iter().zip(0..);
        types.map(|(&dtype, at)| (dtype, self.shapes.shape(Output::new(id, at)))).collect()
    }

    /// The kernel of a node; `None` for one that only orders others.
    pub fn choose(&self, node: NodeId) -> Result<Option<Chosen>, RuntimeError> {
        kernels::choose(self, node)
    }

    /// Name of the kernel's plugin; where the choice is open, of all that may run.
    fn plugins_of(&self, chosen: &Chosen) -> String {
        let mut names = vec![&*chosen.kernel.plugin_name];
        for kernel in &chosen.per_shape {
            if !names.contains(&&*kernel.plugin_name) {
                names.push(&kernel.plugin_name);
            }
        }
        names.join(" or ")
    }

    fn partition(&self) -> Result<Partitioned, RuntimeError> {
        let memory = HostArguments { placed: self, known: RefCell::default() };
        let options = PartitionOptions {
            devices: self.view.devices(),
            location: &|node| self.placement.device(node).unwrap_or(self.view.client()),
            client: self.view.client(),
            host_memory: &|node, side| memory.lies_in_host_memory(node, side),
            shapes: &self.shapes,
        };
        Ok(partition(self.graph(), &self.sub, &options)?)
    }
}

/// Which arguments lie in host memory, asked once per node.
struct HostArguments<'p> {
    placed: &'p Placed<'p>,
    known: RefCell<HashMap<NodeId, Option<Chosen>>>,
}

impl HostArguments<'_> {
    fn lies_in_host_memory(&self, node: NodeId, side: ArgSide) -> bool {
        let described = self.placed.graph().node(node);
        let dtype = match side {
            ArgSide::Input(at) => described.signature.inputs[at],
            ArgSide::Output(at) => described.signature.outputs[at],
        };
        if dtype.needs_drop() {
            return true;
        }
        let mut known = self.known.borrow_mut();
        let chosen =
            known.entry(node).or_insert_with(|| self.placed.choose(node).unwrap_or_default());
        let Some(chosen) = chosen else {
            return steers_from_host_memory(described.control_flow(), side);
        };
        let name = match side {
            ArgSide::Input(at) => described.signature.input_arg_of(&described.op, at),
            ArgSide::Output(at) => described.signature.output_arg_of(&described.op, at),
        };
        name.is_some_and(|name| chosen.kernel.host_memory.iter().any(|host| host == name))
    }
}

/// Whether the executor itself reads or writes an argument: predicates, and the number that a `Merge` gives.
fn steers_from_host_memory(role: ControlFlow, side: ArgSide) -> bool {
    match (role, side) {
        (ControlFlow::LoopCond, _) => true,
        (ControlFlow::Switch, ArgSide::Input(at)) => at == 1,
        (ControlFlow::Merge, ArgSide::Output(at)) => at == 1,
        _ => false,
    }
}

/// What a signature names.
pub(super) struct Named {
    pub feeds: Vec<Output>,
    pub fetches: Vec<Output>,
    pub targets: Vec<NodeId>,
}

impl Named {
    pub fn find(graph: &Graph, signature: &CallableOptions) -> Result<Named, RuntimeError> {
        let feeds = tensors(graph, "feed", &signature.feeds)?;
        let fetches = tensors(graph, "fetch", &signature.fetches)?;
        let mut targets = Vec::new();
        for name in &signature.targets {
            targets.push(graph.target(name).map_err(|_| unknown(graph, "target", name))?);
        }
        let mut seen = HashSet::with_capacity(feeds.len());
        for (at, feed) in feeds.iter().enumerate() {
            if !seen.insert(*feed) {
                return Err(RuntimeError::FedTwice { name: signature.feeds[at].clone() });
            }
        }
        Ok(Named { feeds, fetches, targets })
    }
}

/// Compiles the step of a signature.
pub(super) fn compile(
    session: &Inner,
    current: &Current,
    signature: &CallableOptions,
    patience: &Patience,
) -> Result<Executable, RuntimeError> {
    let begin = Instant::now();
    let named = Named::find(&current.graph, signature)?;
    let Named { feeds, fetches, targets } = named;
    let placed = Placed::new(session, current, &feeds, &fetches, &targets, patience)?;
    let (placed, _) = optimize::optimized(placed)?;
    patience.check()?;
    let partitioned = placed.partition()?;
    let planner =
        Planner { placed: &placed, frames: &partitioned.frames, report: RefCell::default() };
    let mut plans = Vec::new();
    let mut wiring =
        StepWiring { feeds: vec![Vec::new(); feeds.len()], fetches: vec![(0, 0); fetches.len()] };
    for (at, part) in partitioned.partitions.iter().enumerate() {
        let device: Arc<dyn LocalDevice> = placed.view.local()[part.location].clone();
        let (plan, sites) = plan::build(part, &partitioned.frames, &device, &planner)?;
        for (feed, output) in sites.feeds {
            wiring.feeds[feed].push((at as u32, output));
        }
        for (fetch, output) in sites.fetches {
            wiring.fetches[fetch] = (at as u32, output);
        }
        plans.push(plan);
    }
    record_where_nobody_waits(&partitioned, &mut plans);
    let plans = plans.into_iter().map(Arc::new).collect();
    let specs = feed_specs(&placed, signature, &feeds);
    let Report { nodes, counters } = planner.report.into_inner();
    let compile_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(Executable::new(plans, wiring, specs, nodes, counters, compile_ns, session.runtime.ledger()))
}

/// Who records waits for all that comes from elsewhere, and sends nothing before: not where what comes waits for that.
fn record_where_nobody_waits(partitioned: &Partitioned, plans: &mut [Plan]) {
    let wish: Vec<bool> = plans.iter().map(|plan| plan.roles.is_some()).collect();
    for (plan, gathers) in plans.iter_mut().zip(partitioned.gatherers(&wish)) {
        plan.roles.take_if(|_| !gathers);
    }
}

fn feed_specs(placed: &Placed<'_>, signature: &CallableOptions, feeds: &[Output]) -> Vec<FeedSpec> {
    let named = signature.feeds.iter().zip(feeds);
    named
        .map(|(name, &feed)| FeedSpec {
            name: name.clone(),
            dtype: placed.graph().dtype(feed).base(),
            shape: placed.shapes.seen(&placed.sub, feed),
        })
        .collect()
}

fn tensors(
    graph: &Graph,
    what: &'static str,
    names: &[String],
) -> Result<Vec<Output>, RuntimeError> {
    let tensor = |name: &String| {
        graph.tensor(name).map_err(|error| match error {
            GraphError::UnreadOutput { .. } => error.into(),
            _ => unknown(graph, what, name),
        })
    };
    names.iter().map(tensor).collect()
}

/// The error for a name that the graph has not, with names that are near.
fn unknown(graph: &Graph, what: &'static str, name: &str) -> RuntimeError {
    let wanted = name.trim_start_matches('^').split(':').next().unwrap_or(name);
    let mut near: Vec<(usize, &str)> = graph
        .nodes()
        .map(|(_, node)| (common_prefix(&node.name, wanted), node.name.as_str()))
        .collect();
    near.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let shown: Vec<&str> = near.iter().take(5).map(|(_, name)| *name).collect();
    let nearest = if shown.is_empty() { "no nodes".to_owned() } else { shown.join(", ") };
    RuntimeError::UnknownTensor { what, name: name.to_owned(), nearest }
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[derive(Default)]
struct Report {
    nodes: Vec<NodeReport>,
    counters: Vec<(String, Arc<AtomicU64>)>,
}

/// Answers what building the plans asks.
struct Planner<'p> {
    placed: &'p Placed<'p>,
    frames: &'p Frames,
    report: RefCell<Report>,
}

impl PlanSource for Planner<'_> {
    fn kernel(&self, id: NodeId) -> Result<Option<NodeKernel>, RuntimeError> {
        self.placed.patience.check()?;
        let Some(chosen) = self.placed.choose(id)? else { return Ok(None) };
        let node = self.placed.graph().node(id);
        let choice = Site::new(self.placed, id).choice(&chosen)?;
        let runs = self.placed.session.options.count_calls.then(Arc::<AtomicU64>::default);
        let mut report = self.report.borrow_mut();
        report.nodes.push(NodeReport {
            name: node.name.clone(),
            op: node.op.name.clone(),
            device: self.placed.device(id).name().to_string(),
            plugin: chosen.kernel.plugin_name.to_string(),
            label: chosen.kernel.label.clone(),
            attrs: Arc::clone(&node.attrs),
            inputs: self.placed.inputs(id),
            outputs: self.placed.outputs(id),
            per_shape: !chosen.per_shape.is_empty(),
        });
        if let Some(runs) = &runs {
            report.counters.push((node.name.clone(), Arc::clone(runs)));
        }
        let plugin = self.placed.plugins_of(&chosen);
        Ok(Some(NodeKernel { choice, plugin, runs, stateful: node.op.stateful }))
    }

    fn constant(
        &self,
        id: NodeId,
        (device, memory): Wanted<'_>,
    ) -> Result<Option<Tensor>, RuntimeError> {
        let node = self.placed.graph().node(id);
        if node.op.name != "Const" {
            return Ok(None);
        }
        let Some(AttrValue::Tensor(value)) = node.attrs.get("value") else { return Ok(None) };
        let there = device.memory(device.info().ordinary_memory());
        let (Memory::Device, Some(there)) = (memory, there) else { return Ok(Some(value.clone())) };
        copy_tensor(value, None, &there, Some(&**device)).map(Some).map_err(|error| {
            RuntimeError::Kernel {
                node: node.name.clone(),
                op: node.op.name.clone(),
                device: device.name().to_string(),
                error,
            }
        })
    }

    fn transfer(&self, transfer: &tenon_graph::Transfer) -> Transfer {
        let local = self.placed.view.local();
        let source: Arc<dyn LocalDevice> = local[transfer.source].clone();
        let destination: Arc<dyn LocalDevice> = local[transfer.destination].clone();
        let key = Key::of(self.placed.session.runtime.edges().intern(EdgeName {
            source: source.name().to_string(),
            incarnation: source.incarnation(),
            destination: destination.name().to_string(),
            tensor: transfer.tensor.clone(),
        }));
        let to_device_memory = transfer.destination_memory == tenon_graph::Memory::Device;
        Transfer { key, source, destination, to_device_memory }
    }

    fn gives_to(&self, id: NodeId) -> FrameId {
        let at = self.placed.sub.position(id);
        at.map_or(FrameId::ROOT, |at| self.frames.gives_to[at])
    }

    fn is_loop_constant(&self, id: NodeId) -> bool {
        let attrs = &self.placed.graph().node(id).attrs;
        matches!(attrs.get("is_constant"), Some(AttrValue::Bool(true)))
    }

    fn host_memory(&self) -> &Arc<dyn TensorMemory> {
        self.placed.session.runtime.host_memory()
    }

    fn streams(&self, device: &dyn LocalDevice) -> u32 {
        let knobs = &self.placed.current.knobs;
        let asked = knobs.int("runtime", "streams_per_device").unwrap_or(1);
        u32::try_from(asked.max(1)).unwrap_or(u32::MAX).min(device.info().stream_count)
    }

    fn record_after(&self) -> Option<u32> {
        let knobs = &self.placed.current.knobs;
        u32::try_from(knobs.int("runtime", "record_after").unwrap_or(-1)).ok()
    }
}
