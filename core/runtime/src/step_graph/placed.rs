//! A placed step's graph.

use super::{Context, GraphVersion, choice, placement};
use crate::{
    error::RuntimeError,
    kernels::{Scope, Site},
    run_limits::RunLimits,
};
use std::sync::Arc;
use tenon_framework::{PartialShape, op::OpRole, registry::KernelChoice};
use tenon_graph::{
    ArgSide, ControlFlow, DeviceView, Graph, MadeFrom, Node, NodeId, Output, PartOp,
    PartitionOptions, Partitioned, Placement, Shapes, Subgraph, WithControlLoops, assemble,
    control_loops, expand, infer_shapes, partition, partition_part, prune,
};
use tenon_host::devices::PluginDevice;

/// Cuts a graph.
type Cut<'c> =
    &'c dyn Fn(&Graph, &Subgraph, &PartitionOptions<'_>) -> Result<Partitioned, RuntimeError>;

/// A placed step's graph.
pub(crate) struct PlacedStep<'s> {
    pub context: Context<'s>,
    /// The session's graph, or the result of its optimisation.
    pub graph: Arc<Graph>,
    /// The number of the graph among those created for the session's steps; 0 for the session's
    /// own.
    pub own_graph: u64,
    pub sub: Subgraph,
    pub shapes: Shapes,
    pub placement: Placement,
    pub view: choice::Devices<'s>,
    pub scope: Arc<Scope>,
    /// The limits of the caller that waits for the step.
    pub run_limits: RunLimits,
}

impl<'s> PlacedStep<'s> {
    /// Prunes the session's graph, replaces calls of functions, infers shapes and places the nodes.
    pub fn new(
        context: Context<'s>,
        feeds: &[Output],
        fetches: &[Output],
        targets: &[NodeId],
        run_limits: &RunLimits,
    ) -> Result<PlacedStep<'s>, RuntimeError> {
        let GraphVersion { graph, registry, .. } = context.version;
        let mut sub = prune(graph, feeds, fetches, targets)?;
        let lowered = tenon_gradient::lower(graph, &sub.order, registry)?.map(Arc::new);
        let graph = lowered.as_ref().unwrap_or(graph);
        if lowered.is_some() {
            sub = prune(graph, feeds, fetches, targets)?;
        }
        graph.check_ops(&sub, registry)?;
        run_limits.check()?;
        let Some(expanded) = expand(graph, registry, &sub)? else {
            let own = if lowered.is_some() { context.next_graph() } else { 0 };
            return PlacedStep::of(context, Arc::clone(graph), own, sub, run_limits);
        };
        run_limits.check()?;
        let graph = Arc::new(expanded.graph);
        let sub = prune(&graph, feeds, &expanded.fetches, &expanded.targets)?;
        graph.check_ops(&sub, registry)?;
        PlacedStep::of(context, graph, context.next_graph(), sub, run_limits)
    }

    /// Infers shapes and places the nodes of a graph whose calls stay.
    pub fn of(
        context: Context<'s>,
        graph: Arc<Graph>,
        own_graph: u64,
        sub: Subgraph,
        run_limits: &RunLimits,
    ) -> Result<PlacedStep<'s>, RuntimeError> {
        run_limits.check()?;
        let any = if context.any_shape { sub.feeds.len() } else { 0 };
        let shapes = infer_shapes(&graph, &sub, &vec![PartialShape::UNKNOWN; any])?;
        run_limits.check()?;
        let view = choice::Devices::new(context);
        let placement = placement::placed(context, &graph, &sub, &view)?;
        let (scope, run_limits) = (context.scope(), run_limits.clone());
        Ok(PlacedStep {
            context,
            graph,
            own_graph,
            sub,
            shapes,
            placement,
            view,
            scope,
            run_limits,
        })
    }

    /// Checks that all nodes are on devices of this process.
    ///
    /// # Errors
    /// The first node that is not.
    pub fn check_local(&self) -> Result<(), RuntimeError> {
        let local = self.view.local();
        let remote = self.sub.order.iter().find(|&&id| self.location(id) >= local.len());
        let Some(&id) = remote else { return Ok(()) };
        Err(RuntimeError::RemoteNode {
            node: self.graph.node(id).name.clone(),
            device: self.view.devices()[self.location(id)].name.to_string(),
        })
    }

    /// The location of a node that runs.
    pub fn location(&self, node: NodeId) -> usize {
        self.placement.device(node).unwrap_or(self.view.client())
    }

    /// The device of a node that runs.
    pub fn device(&self, node: NodeId) -> &Arc<PluginDevice> {
        &self.view.local()[self.location(node)]
    }

    /// The partition op of a node, without a kernel.
    fn op(&self, id: NodeId) -> PartOp {
        let original = (&*self.context.version.graph, self.own_graph);
        let made_from: MadeFrom<'_> = (self.own_graph != 0).then_some(original);
        PartOp::new(&self.graph, &self.sub, &self.shapes, id, made_from)
    }

    /// The site of a node.
    pub fn site(&self, id: NodeId) -> Arc<Site> {
        self.site_of(id, self.op(id))
    }

    fn site_of(&self, id: NodeId, op: PartOp) -> Arc<Site> {
        let node = self.graph.node(id);
        Arc::new(Site::new(&node.name, op, &node.signature, self.device(id), &self.scope))
    }

    /// The kernels of a node; `None` for a node that only orders others.
    pub fn choose(&self, id: NodeId) -> Result<Option<KernelChoice>, RuntimeError> {
        choice::choose(self, id, &self.site(id))
    }

    /// The partition op of a node, with its kernel if it has one.
    fn op_with_kernel(&self, id: NodeId) -> Result<PartOp, RuntimeError> {
        let op = self.op(id);
        if op.value().is_some() || op.def.is_built_in() {
            return Ok(op);
        }
        let site = self.site_of(id, op);
        let kernel = choice::choose(self, id, &site)?;
        // A running measurement may still hold the site.
        let op = Arc::try_unwrap(site).map_or_else(|site| site.op().clone(), Site::into_op);
        Ok(PartOp { kernel, ..op })
    }

    /// Chooses the kernels, and cuts the graph. Loops over several devices get control loops.
    pub fn partition(&self) -> Result<Partitioned, RuntimeError> {
        self.partition_by(&|graph, sub, options| Ok(partition(graph, sub, options)?))
    }

    /// Like [`PlacedStep::partition`], for the part of one task of a graph that was cut elsewhere.
    pub fn partition_part(&self) -> Result<Partitioned, RuntimeError> {
        self.partition_by(&|graph, sub, options| Ok(partition_part(graph, sub, options)?))
    }

    fn partition_by(&self, cut: Cut<'_>) -> Result<Partitioned, RuntimeError> {
        let PlacedStep { graph, sub, shapes, placement, .. } = self;
        let (location, registry) = (|id| self.location(id), &self.context.version.registry);
        let looped = control_loops(graph, sub, shapes, placement, &location, registry)?;
        let Some(WithControlLoops { graph, sub, shapes, placement, merges }) = looped else {
            return self.cut(&[], cut);
        };
        let looped = PlacedStep {
            context: self.context,
            graph: Arc::new(graph),
            own_graph: self.own_graph,
            sub,
            shapes,
            placement,
            view: choice::Devices::new(self.context),
            scope: Arc::clone(&self.scope),
            run_limits: self.run_limits.clone(),
        };
        looped.cut(&merges, cut)
    }

    fn cut(&self, control_loops: &[NodeId], cut: Cut<'_>) -> Result<Partitioned, RuntimeError> {
        self.with_kernels(control_loops, |options| cut(&self.graph, &self.sub, options))
    }

    /// Chooses the kernels of a graph that was cut elsewhere.
    pub fn assemble(&self) -> Result<Partitioned, RuntimeError> {
        self.with_kernels(&[], |options| Ok(assemble(&self.graph, &self.sub, options)?))
    }

    fn with_kernels(
        &self,
        control_loops: &[NodeId],
        cut: impl FnOnce(&PartitionOptions<'_>) -> Result<Partitioned, RuntimeError>,
    ) -> Result<Partitioned, RuntimeError> {
        let mut ops = Vec::with_capacity(self.sub.order.len());
        for &id in &self.sub.order {
            self.run_limits.check()?;
            ops.push(self.op_with_kernel(id)?);
        }
        let op = |id: NodeId| &ops[self.sub.position(id).unwrap_or_default()];
        let options = PartitionOptions {
            devices: self.view.devices(),
            location: &|node| self.location(node),
            client: self.view.client(),
            host_memory: &|id, side| is_in_host_memory(self.graph.node(id), op(id), side),
            op: &|id| op(id).clone(),
            shapes: &self.shapes,
            control_loops,
        };
        cut(&options)
    }
}

/// Whether an input or output of a node is in host memory, on a device with memory of its own.
fn is_in_host_memory(node: &Node, op: &PartOp, side: ArgSide) -> bool {
    let signature = &node.signature;
    let dtype = match side {
        ArgSide::Input(at) => signature.inputs[at],
        ArgSide::Output(at) => signature.outputs[at],
    };
    if dtype.needs_drop() {
        return true;
    }
    let Some(chosen) = &op.kernel else {
        let is_call = node.op.facts().role == OpRole::Call;
        return is_call || steers_from_host_memory(node.control_flow(), side);
    };
    let name = match side {
        ArgSide::Input(at) => signature.input_arg_of(&node.op, at),
        ArgSide::Output(at) => signature.output_arg_of(&node.op, at),
    };
    name.is_some_and(|name| chosen.kernel.host_memory.iter().any(|host| host == name))
}

/// Whether the executor itself reads or writes an argument: a predicate, or the index output of a
/// `Merge`.
fn steers_from_host_memory(role: ControlFlow, side: ArgSide) -> bool {
    match (role, side) {
        (ControlFlow::LoopCond, _) => true,
        (ControlFlow::Switch, ArgSide::Input(at)) => at == 1,
        (ControlFlow::Merge, ArgSide::Output(at)) => at == 1,
        _ => false,
    }
}
