//! Copying bodies into a graph, and the nodes around them.

use super::body::Body;
use crate::{
    ControlFlow, Graph, GraphBuilder, GraphError, Node, NodeBuilder, NodeId, Output, required_ops,
};
use std::sync::Arc;
use tenon_framework::{
    attr::{AttrList, AttrValue},
    attr_view::AttrTable,
    device::DeviceName,
    registry::Registry,
};

/// A node that calls functions, with the inputs that it has in the expanded graph.
pub(super) struct Site {
    pub node: Arc<Node>,
    pub inputs: Vec<Output>,
    pub control: Vec<NodeId>,
}

/// What replaces a node.
pub(super) struct Replaced {
    pub outputs: Vec<Output>,
    /// The node to wait for in its place.
    pub done: NodeId,
}

/// Where a body is copied to.
pub(super) struct Place<'p> {
    /// The names of the copies begin with this.
    pub prefix: &'p str,
    /// The device of copies that request none.
    pub device: &'p DeviceName,
    /// The node for which copies wait that have no inputs, or that depend on nothing but constants: on a
    /// branch all of these, in a loop those that act. A constant of a branch does not wait.
    pub pivot: Option<NodeId>,
    /// Whether it is a branch, which may not be taken.
    pub is_branch: bool,
    /// The frame of the copies, if they are in a loop.
    pub frame: Option<&'p Frame>,
}

/// The frame of a loop.
pub(super) struct Frame {
    pub name: String,
    pub parallel_iterations: i64,
}

/// The results of a copied body.
pub(super) struct Copied {
    pub returns: Vec<Output>,
    /// The nodes to wait for.
    pub effects: Vec<NodeId>,
}

/// A graph under construction.
pub(super) struct Assembly<'r> {
    builder: GraphBuilder<'r>,
}

impl<'r> Assembly<'r> {
    pub fn new(graph: Graph, registry: &'r Registry) -> Assembly<'r> {
        Assembly { builder: GraphBuilder::extending(graph, registry) }
    }

    pub fn graph(&self) -> &Graph {
        self.builder.graph()
    }

    pub fn finish(self) -> Graph {
        self.builder.finish()
    }

    /// Adds a node whose name is this one, or begins with it.
    pub fn add(
        &mut self,
        op: &str,
        name: &str,
        fill: impl for<'b> FnOnce(NodeBuilder<'b, 'r>) -> NodeBuilder<'b, 'r>,
    ) -> Result<NodeId, GraphError> {
        let name = self.builder.unused_name(name);
        fill(self.builder.op(op).name(&name)).build()
    }

    /// Adds a node that waits for others.
    pub fn anchor(&mut self, name: &str, control: &[NodeId]) -> Result<NodeId, GraphError> {
        self.add(required_ops::NO_OP, name, |node| after(node, control))
    }

    /// The tensor once these nodes are done.
    pub fn gate(
        &mut self,
        tensor: Output,
        control: &[NodeId],
        name: &str,
    ) -> Result<Output, GraphError> {
        if control.is_empty() && !self.graph().dtype(tensor).is_ref() {
            return Ok(tensor);
        }
        let gate =
            self.add(required_ops::IDENTITY, name, |node| after(node.input(tensor), control));
        Ok(gate?.into())
    }

    /// Adds an `Enter` that brings a tensor into a frame.
    pub fn enter(
        &mut self,
        tensor: Output,
        frame: &Frame,
        is_constant: bool,
        control: &[NodeId],
        name: &str,
    ) -> Result<NodeId, GraphError> {
        self.add(required_ops::ENTER, name, |node| {
            let node = node
                .input(tensor)
                .attr("frame_name", frame.name.as_str())
                .attr("is_constant", is_constant)
                .attr("parallel_iterations", frame.parallel_iterations);
            after(node, control)
        })
    }

    /// Closes a loop.
    pub fn back_edge(&mut self, merge: NodeId, next: NodeId) -> Result<(), GraphError> {
        self.builder.back_edge(merge, 1, next)
    }

    /// Replaces the inputs of a node.
    pub fn rewire(&mut self, id: NodeId, inputs: Vec<Output>, control: Vec<NodeId>) {
        self.builder.rewire(id, inputs, control);
    }

    /// Copies the nodes of a body that its results and effects need; `args` are the tensors that
    /// replace its arguments.
    pub fn copy(
        &mut self,
        body: &Body,
        args: &[Output],
        place: &Place<'_>,
    ) -> Result<Copied, GraphError> {
        let live = body.live();
        let mut map = Map::new(body, args);
        if let Some(frame) = place.frame {
            for &id in live.iter().filter(|&&id| is_plain_constant(body.graph.node(id))) {
                let place = Place { pivot: None, ..*place };
                let value = self.copy_node(body, id, &map, &place, false);
                let name = format!("{}/enter", self.graph().node(value).name);
                map.tensors[id.index()] =
                    Some(self.enter(value.into(), frame, true, &[], &name)?.into());
            }
        }
        let base = self.graph().len() as u32;
        let copied = live.iter().filter(|id| map.tensors[id.index()].is_none());
        let copied: Vec<NodeId> = copied.copied().collect();
        for (&id, at) in copied.iter().zip(base..) {
            map.nodes[id.index()] = Some(NodeId(at));
        }
        let is_free = |id: NodeId| place.is_branch && is_plain_constant(body.graph.node(id));
        // A node may come before the constants that it reads.
        copied.iter().for_each(|&id| map.steady[id.index()] = is_free(id));
        for &id in &copied {
            if is_free(id) {
                self.copy_node(body, id, &map, &Place { pivot: None, ..*place }, false);
                continue;
            }
            let is_inside = place.is_branch || place.frame.is_some();
            let is_steady = is_inside && self.is_steady(body, id, &map);
            let waits = is_steady && (place.is_branch || acts(body.graph.node(id)));
            self.copy_node(body, id, &map, place, waits);
            map.steady[id.index()] = is_steady && !waits;
        }
        let returns = body.returns.iter().map(|&output| map.tensor(output)).collect();
        let effects = body.effects.iter().filter_map(|&id| map.nodes[id.index()]).collect();
        Ok(Copied { returns, effects })
    }

    /// Whether a node has inputs, all of which are constants, or the same in all iterations of the loop:
    /// without more it would run on a branch that is not taken, and in a loop once more than the body,
    /// in the iteration whose condition does not hold.
    fn is_steady(&self, body: &Body, id: NodeId, map: &Map) -> bool {
        let node = body.graph.node(id);
        let inputs = node.inputs.iter().map(|input| input.node);
        let mut before = inputs.chain(node.control_inputs.iter().copied()).peekable();
        before.peek().is_some()
            && before.all(|id| match map.tensors[id.index()] {
                Some(tensor) => self.graph().node(tensor.node).control_flow() == ControlFlow::Enter,
                None => map.steady[id.index()],
            })
    }

    /// Appends a copy of a node, which waits for the pivot if it `waits` or has no inputs. Its inputs may
    /// be nodes that are appended later.
    fn copy_node(
        &mut self,
        body: &Body,
        id: NodeId,
        map: &Map,
        place: &Place<'_>,
        waits: bool,
    ) -> NodeId {
        let node = body.graph.node(id);
        let inputs: Vec<Output> = node.inputs.iter().map(|&input| map.tensor(input)).collect();
        let control = node.control_inputs.iter();
        let mut control: Vec<NodeId> = control.filter_map(|id| map.nodes[id.index()]).collect();
        if waits || inputs.is_empty() && control.is_empty() {
            control.extend(place.pivot);
        }
        let name = self.builder.unused_name(&format!("{}/{}", place.prefix, node.name));
        self.builder.append(Node {
            name,
            attrs: renamed(body, node, place.prefix),
            device: node.device.completed_from(place.device),
            inputs,
            control_inputs: control,
            origin: None,
            ..node.clone()
        })
    }
}

/// Whether it matters how often a node runs: it has state, or begins a loop of its own.
fn acts(node: &Node) -> bool {
    node.op.stateful || node.control_flow() == ControlFlow::Enter
}

/// Adds control inputs.
fn after<'b, 'r>(node: NodeBuilder<'b, 'r>, control: &[NodeId]) -> NodeBuilder<'b, 'r> {
    control.iter().fold(node, |node, &id| node.control(id))
}

/// Whether a node is a constant that waits for nothing.
pub(super) fn is_plain_constant(node: &Node) -> bool {
    node.op.is_constant() && node.control_inputs.is_empty()
}

/// The attributes of a copy: frames and colocated nodes have the names of their copies.
fn renamed(body: &Body, node: &Node, prefix: &str) -> Arc<AttrTable> {
    let attrs = node.attrs.attrs();
    let is_enter = node.control_flow() == ControlFlow::Enter;
    if !is_enter && !attrs.contains_key("_class") {
        return Arc::clone(&node.attrs);
    }
    let mut attrs = attrs.clone();
    if let (true, Some(AttrValue::String(name))) = (is_enter, attrs.get_mut("frame_name")) {
        name.splice(0..0, format!("{prefix}/").into_bytes());
    }
    if let Some(AttrValue::List(AttrList::String(groups))) = attrs.get_mut("_class") {
        groups.retain_mut(|group| {
            let named = group.strip_prefix(b"loc:@").and_then(|name| str::from_utf8(name).ok());
            // Arguments have no copies.
            let is_copied =
                |name: &&str| body.graph.find(name).is_some_and(|id| !body.args.contains(&id));
            let Some(name) = named.filter(is_copied) else { return false };
            *group = format!("loc:@{prefix}/{name}").into_bytes();
            true
        });
    }
    Arc::new(AttrTable::new(attrs))
}

/// What stands for the nodes of a body in the graph that it is copied to.
struct Map {
    /// The tensor in place of a node's output 0, for arguments and constants of a loop.
    tensors: Vec<Option<Output>>,
    /// The copy of each node.
    nodes: Vec<Option<NodeId>>,
    /// Whether a node is a constant, or its outputs are the same in all iterations of the loop, and it does not wait for
    /// the pivot.
    steady: Vec<bool>,
}

impl Map {
    fn new(body: &Body, args: &[Output]) -> Map {
        let mut tensors = vec![None; body.graph.len()];
        for (&arg, &tensor) in body.args.iter().zip(args) {
            tensors[arg.index()] = Some(tensor);
        }
        let count = body.graph.len();
        Map { tensors, nodes: vec![None; count], steady: vec![false; count] }
    }

    fn tensor(&self, output: Output) -> Output {
        let copy = || self.nodes[output.node.index()].map(|id| Output::new(id, output.output));
        self.tensors[output.node.index()].or_else(copy).unwrap_or(output)
    }
}
