//! The working copy of a step's graph: cheap, checked edits that can be undone.
//!
//! A draft keeps the numbers of the graph's nodes; new nodes follow. A node is *live* while a node
//! that must run needs it, *kept* if a feed, a fetch or a target names it (its name, types and
//! values are then fixed), and *clean* if neither it nor any node that it depends on has an effect
//! or is a control-flow node. A fed output has no source: its readers read the feed. The nodes that
//! must run are those that fetches and targets need, those with effects, and those that may fail.

use crate::{Change, PassError, effects, limits::Budget, undo::Undo};
use edges::Edges;
use std::{borrow::Cow, cell::Cell, collections::HashSet, sync::Arc};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrMap, AttrValue},
    infer::ValueInfo,
    registry::Registry,
};
use tenon_graph::{
    ControlFlow, DeviceEntry, DeviceView, Evaluate, Graph, Node, NodeId, Output, Shapes, Subgraph,
    required_ops, topological,
};

mod edges;
mod edit;
mod node;
mod rewire;
mod roots;

pub use edges::Users;
pub use node::NewNode;

/// The context that a draft is created and checked with.
pub(crate) struct DraftContext<'a> {
    pub registry: &'a Registry,
    pub view: &'a dyn DeviceView,
    pub evaluate: &'a dyn Evaluate,
    pub folding_limit: usize,
    pub budget: Budget<'a>,
}

/// A step's graph while passes edit it.
pub struct Draft<'a> {
    pub(crate) context: DraftContext<'a>,
    pub(crate) base: &'a Graph,
    pub(crate) sub: &'a Subgraph,
    /// All nodes, including those that do not run.
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) shapes: Shapes,
    /// The position of the device by node; `None` for nodes that do not run.
    pub(crate) devices: Vec<Option<usize>>,
    live: Vec<bool>,
    clean: Vec<Cleanliness>,
    kept: Vec<bool>,
    /// Whether a node runs for its effects or errors even without readers, provided that it can
    /// have any.
    effect: Vec<bool>,
    /// Nodes with a fed output.
    fed: Vec<bool>,
    /// The tensors that are fetched.
    fetched: HashSet<Output>,
    /// The edges that lead to live nodes.
    edges: Edges,
    /// The nodes whose [`Cleanliness`] is out of date.
    stale: Vec<NodeId>,
    /// The names of new nodes.
    names: HashSet<String>,
    /// Kernels already looked up, by op, element types and device.
    pub(crate) known_kernels: HashSet<(String, Vec<DType>, usize)>,
    pub(crate) undo: Vec<Undo>,
    pub(crate) changes: Vec<Change>,
    /// A counter that every edit increments.
    pub(crate) version: u64,
}

/// Whether a node is clean. After an edge was moved, a stale value may be `false` for a clean node
/// until it is next read.
#[derive(Debug, Default)]
struct Cleanliness {
    is_clean: Cell<bool>,
    is_stale: Cell<bool>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        context: DraftContext<'a>,
        base: &'a Graph,
        sub: &'a Subgraph,
        shapes: Shapes,
        devices: Vec<Option<usize>>,
    ) -> Draft<'a> {
        let count = base.len();
        let mut draft = Draft {
            context,
            base,
            sub,
            nodes: base.shared_nodes().to_vec(),
            shapes,
            devices,
            live: vec![false; count],
            clean: (0..count).map(|_| Cleanliness::default()).collect(),
            kept: vec![false; count],
            effect: vec![false; count],
            fed: vec![false; count],
            fetched: sub.fetches.iter().copied().collect(),
            edges: Edges::default(),
            stale: Vec::new(),
            names: HashSet::new(),
            known_kernels: HashSet::new(),
            undo: Vec::new(),
            changes: Vec::new(),
            version: 0,
        };
        let named = sub.feeds.iter().chain(&sub.fetches).map(|output| output.node);
        for id in named.chain(sub.targets.iter().copied()) {
            draft.kept[id.index()] = true;
        }
        sub.feeds.iter().for_each(|feed| draft.fed[feed.node.index()] = true);
        for &id in &sub.order {
            draft.live[id.index()] = true;
            draft.effect[id.index()] = true;
            draft.clean[id.index()].is_clean.set(draft.looks_clean(id));
        }
        draft.count_users();
        draft.context.budget.measure(sub.order.len(), draft.edges.count);
        draft
    }

    /// The node with this number.
    ///
    /// # Panics
    /// Panics if `id` is not in this draft.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The number of live nodes.
    pub fn len(&self) -> usize {
        self.live.iter().filter(|live| **live).count()
    }

    /// Whether no node runs.
    pub fn is_empty(&self) -> bool {
        !self.live.contains(&true)
    }

    /// Whether a node runs.
    pub fn is_live(&self, id: NodeId) -> bool {
        self.live.get(id.index()).copied().unwrap_or(false)
    }

    /// Whether a feed, a fetch or a target names the node.
    pub fn is_kept(&self, id: NodeId) -> bool {
        self.kept[id.index()]
    }

    /// Whether the node and all nodes that it depends on have no effects and no role in control
    /// flow.
    pub fn is_clean(&self, id: NodeId) -> bool {
        let own = &self.clean[id.index()];
        if own.is_stale.replace(false) {
            own.is_clean.set(self.looks_clean(id));
        }
        own.is_clean.get()
    }

    /// Whether a node may be replaced: it is pure ([`effects::is_rewritable`]), reads no reference,
    /// and none of its outputs is fed.
    pub fn is_rewritable(&self, id: NodeId) -> bool {
        self.is_live(id)
            && effects::is_rewritable(self.node(id))
            && !self.reads_reference(id)
            && !self.is_fed_at_all(id)
    }

    /// Whether an input is a reference: the node takes the value that the variable has when the
    /// node runs, which control edges order.
    fn reads_reference(&self, id: NodeId) -> bool {
        self.node(id).inputs.iter().any(|&input| self.dtype(input).is_ref())
    }

    /// Whether a tensor is fed.
    pub fn is_fed(&self, output: Output) -> bool {
        self.feed_of(output).is_some()
    }

    /// The feed of a tensor. This is called for every edge, so it checks the cheaper condition
    /// first: only kept nodes are fed.
    fn feed_of(&self, output: Output) -> Option<usize> {
        let kept = self.kept.get(output.node.index()).copied().unwrap_or(false);
        if kept { self.sub.feed_of(output) } else { None }
    }

    fn is_fed_at_all(&self, id: NodeId) -> bool {
        self.fed.get(id.index()).copied().unwrap_or(false)
    }

    /// Whether a tensor is fetched.
    pub fn is_fetched(&self, output: Output) -> bool {
        self.kept[output.node.index()] && self.fetched.contains(&output)
    }

    /// The node that computes a tensor; `None` if it is fed.
    pub fn source(&self, output: Output) -> Option<NodeId> {
        (!self.is_fed(output)).then_some(output.node)
    }

    /// The node that computes input `index` of a node; `None` if it is fed or there is no such
    /// input.
    pub fn source_of(&self, id: NodeId, index: usize) -> Option<NodeId> {
        self.source(*self.node(id).inputs.get(index)?)
    }

    /// The live nodes that use a node, once for each data edge and each control edge.
    pub fn users(&self, id: NodeId) -> Users<'_> {
        self.edges.users(id)
    }

    /// Whether a live node waits for the node by a control edge.
    pub fn is_waited_for(&self, id: NodeId) -> bool {
        !self.edges.waiters(id).is_empty()
    }

    /// The live nodes that wait for a node by a control edge.
    pub fn waiters(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.edges.waiters(id).iter().map(|edge| edge.user)
    }

    /// Whether a node may be replaced by one that does more, with the same effects: an op that reads
    /// or writes resources, in a place where a pure node would be rewritable.
    pub fn is_extensible(&self, id: NodeId) -> bool {
        let node = self.node(id);
        let touches = node.signature.inputs.contains(&DType::RESOURCE);
        self.is_live(id)
            && touches
            && node.signature.outputs.is_empty()
            && !node.op.is_built_in()
            && node.attrs.get("_kernel").is_none()
            && !self.reads_reference(id)
    }

    /// The live nodes that read an output, once for each edge.
    pub fn readers(&self, output: Output) -> impl Iterator<Item = NodeId> + '_ {
        self.edges.readers(output).iter().map(|edge| edge.user)
    }

    /// The number of data edges from an output.
    pub fn uses(&self, output: Output) -> usize {
        self.edges.readers(output).len()
    }

    /// Whether a pass should stop, because the step was cancelled or the work limit is reached.
    /// Check it between nodes. The edits made so far stay.
    pub fn is_stopped(&self) -> bool {
        let budget = &self.context.budget;
        budget.is_cancelled() || budget.is_used_up(self.edges.count)
    }

    pub(crate) fn budget(&self) -> &Budget<'a> {
        &self.context.budget
    }

    /// Counts work beyond the edits themselves: nodes or edges that a pass visits more than a few
    /// times.
    pub fn spend(&self, units: usize) {
        self.context.budget.spend(units);
    }

    /// The element type of a tensor as its readers see it.
    pub fn dtype(&self, output: Output) -> DType {
        let dtype = self.node(output.node).signature.outputs[output.output as usize];
        if self.is_fed(output) { dtype.base() } else { dtype }
    }

    /// The value of a tensor as far as it is known before the step.
    pub fn value(&self, output: Output) -> Option<&ValueInfo> {
        match self.feed_of(output) {
            Some(feed) => self.shapes.feed(feed),
            None => self.shapes.value(output),
        }
    }

    /// The shape of a tensor, as far as it is known.
    pub fn shape(&self, output: Output) -> PartialShape {
        self.value(output).map_or(PartialShape::UNKNOWN, |value| value.shape.partial())
    }

    /// The value of a tensor that is the same in every step.
    pub fn constant(&self, output: Output) -> Option<&Tensor> {
        self.value(output)?.constant.as_ref()
    }

    /// The integers of a constant, or of a tensor derived from shapes, if all are known.
    pub fn integers(&self, output: Output) -> Option<Vec<i64>> {
        self.value(output)?.symbolic_value()?.known()
    }

    /// Whether two tensors are certain to have equal shapes. Unknown dimensions are equal if they
    /// are the same symbol.
    pub fn same_shape(&self, a: Output, b: Output) -> bool {
        match (self.value(a), self.value(b)) {
            (Some(a), Some(b)) => a.shape.dims().is_some() && a.shape == b.shape,
            _ => false,
        }
    }

    /// An attribute of a node.
    pub fn attr(&self, id: NodeId, name: &str) -> Option<&AttrValue> {
        self.node(id).attrs.get(name)
    }

    /// The attributes of a node.
    pub fn attrs(&self, id: NodeId) -> &AttrMap {
        self.node(id).attrs.attrs()
    }

    /// The device on which a node runs.
    pub fn device(&self, id: NodeId) -> Option<&DeviceEntry> {
        self.context.view.devices().get(self.devices[id.index()]?)
    }

    /// The devices, and the nodes that they can run.
    pub fn view(&self) -> &dyn DeviceView {
        self.context.view
    }

    /// All registrations.
    pub fn registry(&self) -> &Registry {
        self.context.registry
    }

    /// The evaluator that runs kernels before the step.
    pub fn evaluate(&self) -> &'a dyn Evaluate {
        self.context.evaluate
    }

    /// The size in bytes of the largest constant that folding may create.
    pub fn folding_limit(&self) -> usize {
        self.context.folding_limit
    }

    /// The live nodes, sources first; the source of a back edge comes after its `Merge`.
    ///
    /// # Errors
    /// There is a cycle that is not a loop.
    pub fn order(&self) -> Result<Vec<NodeId>, PassError> {
        let live: Vec<NodeId> = self.ids().filter(|id| self.is_live(*id)).collect();
        self.spend(live.len() + self.edges.count);
        let mut number = vec![u32::MAX; self.nodes.len()];
        for (at, id) in live.iter().enumerate() {
            number[id.index()] = at as u32;
        }
        let sources = |at: usize| {
            let own = self.sources(live[at]);
            own.map(|id| number[id.index()] as usize).filter(|&at| at != u32::MAX as usize)
        };
        let order = topological(live.len(), sources);
        if order.len() == live.len() {
            return Ok(order.into_iter().map(|at| live[at]).collect());
        }
        let mut placed = vec![false; live.len()];
        order.into_iter().for_each(|at| placed[at] = true);
        let stuck = placed.iter().position(|placed| !placed).unwrap_or_default();
        Err(PassError::Cycle { node: self.node(live[stuck]).name.clone() })
    }

    fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// The nodes on which a node depends within an iteration, one for each edge.
    pub fn sources(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let node = self.node(id);
        let is_merge = node.control_flow() == ControlFlow::Merge;
        let data = node.inputs.iter().filter_map(|&input| self.source(input));
        let data = data.filter(move |&source| {
            !(is_merge && self.node(source).control_flow() == ControlFlow::NextIteration)
        });
        data.chain(self.control_sources(id))
    }

    /// The nodes that must run before `id`, without fed placeholders.
    pub fn control_sources(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let waits = |&id: &NodeId| {
            !(self.node(id).op.facts().placeholder && self.is_fed(Output::new(id, 0)))
        };
        self.node(id).control_inputs.iter().copied().filter(waits)
    }

    /// The nodes that a node must wait for once its data edge to `source` is removed: the source
    /// itself if it is not clean, none if it is. Returns `None` if no control edge can express the
    /// dependency, as for a `Switch`, which has only one live output.
    pub fn anchors(&self, source: Output) -> Option<Vec<NodeId>> {
        let Some(id) = self.source(source) else { return Some(Vec::new()) };
        if self.is_clean(id) {
            return Some(Vec::new());
        }
        let node = self.node(id);
        match node.control_flow() {
            ControlFlow::Switch => None,
            _ if node.op.is_constant() => Some(node.control_inputs.clone()),
            _ => Some(vec![id]),
        }
    }

    /// Checks that a device can run a node. The answer is cached for `Const` and `Identity`, by types
    /// and device.
    pub(crate) fn has_kernel(&mut self, node: &Node, device: usize) -> Result<(), PassError> {
        let Some(entry) = self.context.view.devices().get(device) else { return Ok(()) };
        let simple = [required_ops::CONST, required_ops::IDENTITY].contains(&node.op.name.as_str());
        let types = || node.signature.outputs.clone();
        let key = || (node.op.name.clone(), types(), device);
        if simple && self.known_kernels.contains(&key()) {
            return Ok(());
        }
        let shapes: Vec<PartialShape> =
            node.inputs.iter().map(|&input| self.shape(input)).collect();
        let answer = self.context.view.can_run(node, &shapes, device);
        answer.map_err(|reason| PassError::NoKernel {
            node: node.name.clone(),
            op: node.op.name.clone(),
            device: entry.device_type.clone(),
            reason,
        })?;
        if simple {
            self.known_kernels.insert(key());
        }
        Ok(())
    }

    /// Records a change to a node for the report.
    pub fn note(&mut self, id: NodeId, what: impl Into<Cow<'static, str>>) {
        let node = self.node(id).name.clone();
        self.changes.push(Change { node, what: what.into() });
    }

    fn looks_clean(&self, id: NodeId) -> bool {
        let node = self.node(id);
        self.spend(node.inputs.len() + node.control_inputs.len());
        let is_clean = |source: NodeId| self.clean[source.index()].is_clean.get();
        effects::is_pure(node) && !self.reads_reference(id) && self.sources(id).all(is_clean)
    }
}

impl std::fmt::Debug for Draft<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for id in self.ids().filter(|id| self.is_live(*id)) {
            let node = self.node(id);
            let inputs: Vec<String> = node
                .inputs
                .iter()
                .map(|input| format!("{}:{}", self.node(input.node).name, input.output))
                .collect();
            write!(f, "{} = {}({})", node.name, node.op.name, inputs.join(", "))?;
            for control in &node.control_inputs {
                write!(f, " ^{}", self.node(*control).name)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
