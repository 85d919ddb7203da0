//! Loops over several devices.
//!
//! Where a value of a loop goes to another device, it is sent and received once in each iteration.
//! So each device with nodes of such a frame runs a *control loop* in it: a `Merge` that runs in
//! every iteration, and a `Switch` by the loop's condition, which the device receives. Every `Recv`
//! in the frame waits for that `Merge`. The control loop of an inner frame starts from that of the
//! frame around it. TensorFlow's partitioner adds the same nodes.
//!
//! The value of an `Enter` is there in one iteration only, and that of a `NextIteration` in all but
//! the first, so neither is sent: a reader elsewhere has a copy of the node on its own device, and
//! what enters, or goes to the next iteration, is sent.

use crate::{
    ControlFlow, FrameId, Frames, Graph, GraphBuilder, GraphError, Node, NodeId, Output, Placement,
    Shapes, Subgraph, required_ops,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use tenon_framework::{Tensor, infer::ValueInfo, registry::Registry};

/// A step's graph with control loops.
#[derive(Debug)]
pub struct WithControlLoops {
    /// The graph; its former nodes have the same numbers.
    pub graph: Graph,
    /// The nodes that run.
    pub sub: Subgraph,
    /// The known shapes.
    pub shapes: Shapes,
    /// The placement, also of the control loops.
    pub placement: Placement,
    /// The `Merge` of each control loop.
    pub merges: Vec<NodeId>,
}

/// Adds the control loops that a placed graph needs; `None` if it needs none.
///
/// # Errors
/// As [`Frames::find`]; a loop over several devices has no condition.
pub fn control_loops(
    graph: &Graph,
    sub: &Subgraph,
    shapes: &Shapes,
    placement: &Placement,
    location: &dyn Fn(NodeId) -> usize,
    registry: &Registry,
) -> Result<Option<WithControlLoops>, GraphError> {
    let enters = |&id: &NodeId| graph.node(id).control_flow() == ControlFlow::Enter;
    let first = sub.order.first().map(|&id| location(id));
    let is_elsewhere = |&id: &NodeId| Some(location(id)) != first;
    if !sub.order.iter().any(enters) || !sub.order.iter().any(is_elsewhere) {
        return Ok(None);
    }
    let near = Near::new(graph, sub, location, registry);
    let own = graph.len();
    let at = |id: NodeId| near.devices.get(id.index()).copied().flatten();
    let location = |id: NodeId| at(id).unwrap_or_else(|| location(id));
    let frames = Frames::find(&near.graph, &near.sub)?;
    let needed =
        Needed { graph: &near.graph, sub: &near.sub, location: &location, frames: &frames }.find();
    if needed.is_empty() && near.graph.len() == own {
        return Ok(None);
    }
    let mut adder = Adder {
        conditions: conditions(&near.graph, &near.sub, &frames),
        builder: GraphBuilder::extending(near.graph, registry),
        frames: &frames,
        merges: HashMap::new(),
        first: Vec::new(),
        last: Vec::new(),
        devices: near.devices,
    };
    for &(frame, location) in &needed {
        adder.add(frame, location)?;
    }
    let Adder { builder, merges, first, last, devices, .. } = adder;
    let graph = builder.finish();
    let mut shapes = shapes.clone();
    for (_, node) in graph.nodes().skip(own) {
        shapes.push(vec![ValueInfo::default(); node.outputs().len()]);
    }
    let order = first.into_iter().chain(near.sub.order.iter().copied()).chain(last).collect();
    Ok(Some(WithControlLoops {
        sub: near.sub.with_order(order, graph.len()),
        placement: placement.clone().extended(&devices),
        merges: merges.into_values().collect(),
        graph,
        shapes,
    }))
}

/// A graph in which the values of `Enter` and `NextIteration` stay on their devices.
struct Near {
    graph: Graph,
    sub: Subgraph,
    /// The device of each copy; `None` for the nodes of the original graph.
    devices: Vec<Option<usize>>,
}

impl Near {
    fn new(
        graph: &Graph,
        sub: &Subgraph,
        location: &dyn Fn(NodeId) -> usize,
        registry: &Registry,
    ) -> Near {
        let mut builder = GraphBuilder::extending(graph.clone(), registry);
        let mut copies: HashMap<(NodeId, usize), NodeId> = HashMap::new();
        let mut after: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let mut devices = vec![None; graph.len()];
        let mut near = |source: NodeId, here: usize| {
            let node = graph.node(source);
            let role = node.control_flow();
            let stays = matches!(role, ControlFlow::Enter | ControlFlow::NextIteration);
            if !stays || !sub.contains(source) || location(source) == here {
                return source;
            }
            *copies.entry((source, here)).or_insert_with(|| {
                let name = builder.unused_name(&format!("{}/near", node.name));
                let copy = builder.append(Node { name, origin: None, ..node.clone() });
                after.entry(source).or_default().push(copy);
                devices.push(Some(here));
                copy
            })
        };
        let mut changed = Vec::new();
        for &id in &sub.order {
            let (node, here) = (graph.node(id), location(id));
            let data = node.inputs.iter().map(|&input| match sub.feed_of(input) {
                None => Output { node: near(input.node, here), ..input },
                Some(_) => input,
            });
            let inputs: Vec<Output> = data.collect();
            let control = node.control_inputs.iter().map(|&id| near(id, here)).collect::<Vec<_>>();
            if inputs != node.inputs || control != node.control_inputs {
                changed.push((id, inputs, control));
            }
        }
        for (id, inputs, control) in changed {
            builder.rewire(id, inputs, control);
        }
        let graph = builder.finish();
        let copies = |id: NodeId| after.get(&id).into_iter().flatten().copied();
        let order = sub.order.iter().flat_map(|&id| std::iter::once(id).chain(copies(id)));
        let sub = sub.with_order(order.collect(), graph.len());
        Near { graph, sub, devices }
    }
}

/// The condition of each frame.
fn conditions(graph: &Graph, sub: &Subgraph, frames: &Frames) -> HashMap<FrameId, NodeId> {
    let placed = sub.order.iter().zip(&frames.runs_in);
    let conditions =
        placed.filter(|(id, _)| graph.node(**id).control_flow() == ControlFlow::LoopCond);
    conditions.map(|(&id, &frame)| (frame, id)).collect()
}

/// Looks for the frames and devices that need control loops.
struct Needed<'n> {
    graph: &'n Graph,
    sub: &'n Subgraph,
    location: &'n dyn Fn(NodeId) -> usize,
    frames: &'n Frames,
}

impl Needed<'_> {
    /// Frames with devices; a frame comes after the frame around it.
    fn find(&self) -> BTreeSet<(FrameId, usize)> {
        let split: HashSet<FrameId> =
            self.sub.order.iter().flat_map(|&id| self.received(id)).collect();
        let mut needed = BTreeSet::new();
        for (at, &id) in self.sub.order.iter().enumerate() {
            for frame in [self.frames.runs_in[at], self.frames.gives_to[at]] {
                if split.contains(&frame) {
                    self.add(frame, (self.location)(id), &mut needed);
                }
            }
        }
        needed
    }

    /// The frames in which a node takes values of other devices.
    fn received(&self, id: NodeId) -> impl Iterator<Item = FrameId> {
        let location = (self.location)(id);
        let node = self.graph.node(id);
        let data = node.inputs.iter().filter(|input| self.sub.feed_of(**input).is_none());
        let control = self.sub.control_inputs(self.graph, id);
        let sources = data.map(|input| input.node).chain(control);
        let elsewhere = sources.filter(move |&source| (self.location)(source) != location);
        let frames = elsewhere.filter_map(|source| self.sub.position(source));
        frames.map(|at| self.frames.gives_to[at]).filter(|&frame| frame != FrameId::ROOT)
    }

    fn add(&self, frame: FrameId, location: usize, needed: &mut BTreeSet<(FrameId, usize)>) {
        let mut frame = frame;
        while frame != FrameId::ROOT && needed.insert((frame, location)) {
            frame = self.frames.info(frame).parent;
        }
    }
}

/// Adds control loops.
struct Adder<'a> {
    builder: GraphBuilder<'a>,
    frames: &'a Frames,
    conditions: HashMap<FrameId, NodeId>,
    merges: HashMap<(FrameId, usize), NodeId>,
    /// The new nodes that run before the others, and those that run after them.
    first: Vec<NodeId>,
    last: Vec<NodeId>,
    /// The device of each new node.
    devices: Vec<Option<usize>>,
}

impl Adder<'_> {
    fn add(&mut self, frame: FrameId, location: usize) -> Result<(), GraphError> {
        let info = self.frames.info(frame).clone();
        let Some(&condition) = self.conditions.get(&frame) else {
            return Err(GraphError::NoCondition { frame: self.frames.path(frame) });
        };
        let name = format!("{}/control_loop", self.builder.graph().node(condition).name);
        let start = match self.merges.get(&(info.parent, location)) {
            Some(&merge) => Output::from(merge),
            None => self.constant(&name)?,
        };
        let enter = self.builder.unused_name(&format!("{name}/enter"));
        let enter = self.builder.op(required_ops::ENTER).name(&enter).input(start);
        let enter = enter.attr("frame_name", info.name.as_str());
        let enter = enter.attr("parallel_iterations", info.parallel_iterations).build()?;
        let merge = self.builder.unused_name(&format!("{name}/merge"));
        let merge =
            self.builder.op(required_ops::MERGE).name(&merge).input(enter).input(enter).build()?;
        let switch = self.builder.unused_name(&format!("{name}/switch"));
        let switch =
            self.builder.op(required_ops::SWITCH).name(&switch).input(merge).input(condition);
        let switch = switch.build()?;
        let next = self.builder.unused_name(&format!("{name}/next"));
        let next =
            self.builder.op(required_ops::NEXT_ITERATION).name(&next).input(Output::new(switch, 1));
        let next = next.build()?;
        self.builder.back_edge(merge, 1, next)?;
        self.first.extend([enter, merge]);
        self.last.extend([switch, next]);
        self.devices.resize(self.builder.graph().len(), Some(location));
        self.merges.insert((frame, location), merge);
        Ok(())
    }

    /// A value that starts a control loop outside of all frames.
    fn constant(&mut self, name: &str) -> Result<Output, GraphError> {
        let name = self.builder.unused_name(&format!("{name}/start"));
        let value = Tensor::scalar(true).map_err(|error| GraphError::Location {
            what: format!("{name}: {error}"),
            found: 0,
            devices: 0,
        })?;
        let constant = self.builder.op(required_ops::CONST).name(&name);
        let constant = constant.attr("dtype", value.dtype()).attr("value", value).build()?;
        self.first.push(constant);
        Ok(constant.into())
    }
}
