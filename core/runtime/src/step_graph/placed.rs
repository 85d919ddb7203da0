//! A step's graph, placed.

use super::{Context, choice, placement};
use crate::{
    error::RuntimeError,
    kernels::{Scope, Site},
    patience::Patience,
};
use std::sync::Arc;
use tenon_framework::registry::KernelChoice;
use tenon_graph::{
    ArgSide, ControlFlow, DeviceView, Graph, MadeFrom, Node, NodeId, Output, PartOp,
    PartitionOptions, Partitioned, Placement, Shapes, Subgraph, assemble, infer_shapes, partition,
    prune,
};
use tenon_host::devices::PluginDevice;

/// A step's graph, placed.
pub(crate) struct Placed<'s> {
    pub context: Context<'s>,
    /// The session's graph, or what optimisation made of it.
    pub graph: Arc<Graph>,
    /// Number of the graph among those that were made for steps of the session; 0 for the session's own.
    pub own_graph: u64,
    pub sub: Subgraph,
    pub shapes: Shapes,
    pub placement: Placement,
    pub view: choice::Devices<'s>,
    pub scope: Arc<Scope>,
    /// Of the caller that waits for the step.
    pub patience: Patience,
}

impl<'s> Placed<'s> {
    /// Prunes, infers shapes, places.
    pub fn new(
        context: Context<'s>,
        feeds: &[Output],
        fetches: &[Output],
        targets: &[NodeId],
        patience: &Patience,
    ) -> Result<Placed<'s>, RuntimeError> {
        let version = context.version;
        let sub = prune(&version.graph, feeds, fetches, targets)?;
        version.graph.check_ops(&sub, &version.registry)?;
        patience.check()?;
        let shapes = infer_shapes(&version.graph, &sub, &[])?;
        patience.check()?;
        let view = choice::Devices::new(context);
        let placement = placement::placed(context, &sub, &view)?;
        let (graph, scope) = (Arc::clone(&version.graph), context.scope());
        let patience = patience.clone();
        Ok(Placed { context, graph, own_graph: 0, sub, shapes, placement, view, scope, patience })
    }

    /// Location of a node that runs.
    fn location(&self, node: NodeId) -> usize {
        self.placement.device(node).unwrap_or(self.view.client())
    }

    /// The device of a node that runs.
    pub fn device(&self, node: NodeId) -> &Arc<PluginDevice> {
        &self.view.local()[self.location(node)]
    }

    /// What a partition has of a node; without its kernel.
    fn op(&self, id: NodeId) -> PartOp {
        let original = (&*self.context.version.graph, self.own_graph);
        let made_from: MadeFrom<'_> = (self.own_graph != 0).then_some(original);
        PartOp::new(&self.graph, &self.sub, &self.shapes, id, made_from)
    }

    /// A node on its device.
    pub fn site(&self, id: NodeId) -> Arc<Site> {
        self.site_of(id, self.op(id))
    }

    fn site_of(&self, id: NodeId, op: PartOp) -> Arc<Site> {
        let node = self.graph.node(id);
        Arc::new(Site::new(&node.name, op, &node.signature, self.device(id), &self.scope))
    }

    /// The kernels of a node; `None` for one that only orders others.
    pub fn choose(&self, id: NodeId) -> Result<Option<KernelChoice>, RuntimeError> {
        choice::choose(self, id, &self.site(id))
    }

    /// What a partition has of a node, with its kernel where it has one.
    fn op_with_kernel(&self, id: NodeId) -> Result<PartOp, RuntimeError> {
        let op = self.op(id);
        if op.value().is_some() || op.def.is_built_in() {
            return Ok(op);
        }
        let site = self.site_of(id, op);
        let kernel = choice::choose(self, id, &site)?;
        // Measurements may hold the site for as long as they run.
        let op = Arc::try_unwrap(site).map_or_else(|site| site.op().clone(), Site::into_op);
        Ok(PartOp { kernel, ..op })
    }

    /// Chooses the kernels, and cuts the graph.
    pub fn partition(&self) -> Result<Partitioned, RuntimeError> {
        self.with_kernels(|options| Ok(partition(&self.graph, &self.sub, options)?))
    }

    /// Chooses the kernels of a graph that was cut elsewhere.
    pub fn assemble(&self) -> Result<Partitioned, RuntimeError> {
        self.with_kernels(|options| Ok(assemble(&self.graph, &self.sub, options)?))
    }

    fn with_kernels(
        &self,
        cut: impl FnOnce(&PartitionOptions<'_>) -> Result<Partitioned, RuntimeError>,
    ) -> Result<Partitioned, RuntimeError> {
        let mut ops = Vec::with_capacity(self.sub.order.len());
        for &id in &self.sub.order {
            self.patience.check()?;
            ops.push(self.op_with_kernel(id)?);
        }
        let op = |id: NodeId| &ops[self.sub.position(id).unwrap_or_default()];
        let options = PartitionOptions {
            devices: self.view.devices(),
            location: &|node| self.location(node),
            client: self.view.client(),
            host_memory: &|id, side| lies_in_host_memory(self.graph.node(id), op(id), side),
            op: &|id| op(id).clone(),
            shapes: &self.shapes,
        };
        cut(&options)
    }
}

/// Whether an argument of a node on a device with memory of its own lies in host memory.
fn lies_in_host_memory(node: &Node, op: &PartOp, side: ArgSide) -> bool {
    let signature = &node.signature;
    let dtype = match side {
        ArgSide::Input(at) => signature.inputs[at],
        ArgSide::Output(at) => signature.outputs[at],
    };
    if dtype.needs_drop() {
        return true;
    }
    let Some(chosen) = &op.kernel else {
        return steers_from_host_memory(node.control_flow(), side);
    };
    let name = match side {
        ArgSide::Input(at) => signature.input_arg_of(&node.op, at),
        ArgSide::Output(at) => signature.output_arg_of(&node.op, at),
    };
    name.is_some_and(|name| chosen.kernel.host_memory.iter().any(|host| host == name))
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
