//! The in-memory graph.

use crate::GraphError;
use crate::names::{ParsedName, near_names, parse_tensor_name};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};
use tenon_framework::{
    DType,
    attr::AttrValue,
    attr_view::AttrTable,
    device::DeviceName,
    op::{OpDef, Signature},
};
use tenon_proto::{
    AttrValue as AttrProto, AttrValueKind, FunctionDef, FunctionDefLibrary, FunctionLibrary,
    GraphDef, NodeDef, VersionDef, convert::attr_to_proto,
};

/// Number of a node in its graph, in the order of addition. Nodes are never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An output of a node: a tensor of the graph, `node:output` in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Output {
    /// The node.
    pub node: NodeId,
    /// The flat position among the node's outputs.
    pub output: u32,
}

impl Output {
    /// Creates the reference to output `output` of `node`.
    pub fn new(node: NodeId, output: u32) -> Output {
        Output { node, output }
    }
}

/// A node that has been checked against its op. A [`Graph`] hands out only shared references to it.
#[derive(Debug, Clone)]
pub struct Node {
    /// The name, unique in the graph.
    pub name: String,
    /// The op.
    pub op: Arc<OpDef>,
    /// All attributes of the op, with defaults applied, and those undeclared ones (`_class`,
    /// `_kernel`, ...) whose value can be represented as an [`AttrValue`].
    pub attrs: Arc<AttrTable>,
    /// The device that the node requests; empty if it has no preference.
    pub device: DeviceName,
    /// The sources of the data inputs, in flat order.
    pub inputs: Vec<Output>,
    /// The nodes that must run before this one, without duplicates.
    pub control_inputs: Vec<NodeId>,
    /// Types of the flat inputs and outputs, and the positions of the arguments.
    pub signature: Signature,
    /// The imported message, so that writing the node loses nothing; `None` for a node made in
    /// code. A copy of a node that is changed must have `None` here.
    pub origin: Option<Arc<NodeDef>>,
}

impl Node {
    /// The types of the outputs.
    pub fn outputs(&self) -> &[DType] {
        &self.signature.outputs
    }

    /// The role in control flow, as the op declares it.
    pub fn control_flow(&self) -> crate::ControlFlow {
        crate::ControlFlow::of(&self.op)
    }
}

/// A graph: valid nodes, a function library and versions. Clones share the nodes.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) names: HashMap<String, NodeId>,
    pub(crate) library: Option<Arc<FunctionLibrary>>,
    pub(crate) version: i32,
    pub(crate) versions: Option<VersionDef>,
    pub(crate) debug_info: Option<Vec<u8>>,
}

/// The placeholder in an imported message for a tensor that the node itself holds. No valid tensor
/// equals it.
pub(crate) fn tensor_placeholder() -> AttrProto {
    AttrProto { value: Some(AttrValueKind::Tensor(Box::default())) }
}

impl Graph {
    /// Creates an empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Whether the library has a function of this name.
    pub fn defines(&self, function: &str) -> bool {
        self.function(function).is_some()
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node of this graph.
    ///
    /// # Panics
    /// Panics if `id` is not of this graph.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A node of this graph, to keep.
    pub(crate) fn shared(&self, id: NodeId) -> &Arc<Node> {
        &self.nodes[id.index()]
    }

    /// All nodes, to keep.
    pub fn shared_nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// Makes a graph with the library and versions of this one and with other nodes, as passes do.
    ///
    /// `nodes` begins with a node for each node of this graph, which has the same name; new nodes
    /// follow, whose names no other node has. Nothing is checked again: the caller ensures this,
    /// and that every node that a step runs is valid, with inputs that exist and have the types of
    /// its signature.
    pub fn with_nodes(&self, nodes: Vec<Arc<Node>>) -> Graph {
        let mut names = self.names.clone();
        let new = nodes.iter().zip(0..).skip(self.len());
        names.extend(new.map(|(node, at)| (node.name.clone(), NodeId(at))));
        Graph {
            nodes,
            names,
            library: self.library.clone(),
            version: self.version,
            versions: self.versions.clone(),
            debug_info: self.debug_info.clone(),
        }
    }

    /// Whether both graphs share this node: one graph was made from the other without changing it.
    pub fn shares(&self, other: &Graph, id: NodeId) -> bool {
        match (self.nodes.get(id.index()), other.nodes.get(id.index())) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// All nodes, in the order of addition.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(at, node)| (NodeId(at as u32), &**node))
    }

    /// Finds the node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// The type of an output.
    ///
    /// # Panics
    /// Panics if there is no such output.
    pub fn dtype(&self, output: Output) -> DType {
        self.node(output.node).signature.outputs[output.output as usize]
    }

    /// The text form of an output, `node:output`.
    pub fn output_name(&self, output: Output) -> String {
        format!("{}:{}", self.node(output.node).name, output.output)
    }

    /// Finds the output that a feed or fetch names as `node:output` or `node`.
    ///
    /// # Errors
    /// The text has another form, or there is no such node or output.
    pub fn tensor(&self, name: &str) -> Result<Output, GraphError> {
        let bad =
            |expected: &'static str| GraphError::TensorName { name: name.to_owned(), expected };
        let Some(ParsedName::Data { node, output }) = parse_tensor_name(name) else {
            return Err(bad("node:output, such as 'x:0'"));
        };
        let id = self.target(node)?;
        let source = self.node(id);
        let found = source.outputs().len();
        let dtype = source.outputs().get(output as usize).copied();
        if source.op.is_missing() && dtype.is_none_or(|dtype| dtype == DType::INVALID) {
            let op = source.op.name.clone();
            return Err(GraphError::UnreadOutput { name: name.to_owned(), op });
        }
        if output as usize >= found {
            return Err(GraphError::NoSuchOutput { name: name.to_owned(), outputs: found });
        }
        Ok(Output { node: id, output })
    }

    /// Finds the node that a target names.
    ///
    /// # Errors
    /// There is no such node.
    pub fn target(&self, name: &str) -> Result<NodeId, GraphError> {
        self.find(name).ok_or_else(|| GraphError::NoSuchNode {
            name: name.to_owned(),
            near: near_names(name, self.names.keys().map(String::as_str)),
        })
    }

    /// The library of functions that nodes may call.
    pub fn library(&self) -> Option<&FunctionDefLibrary> {
        self.library.as_deref().map(FunctionLibrary::message)
    }

    /// The library, to keep.
    pub fn shared_library(&self) -> Option<&Arc<FunctionLibrary>> {
        self.library.as_ref()
    }

    /// Finds the function with this name.
    pub fn function(&self, name: &str) -> Option<&FunctionDef> {
        self.library.as_ref()?.function(name)
    }

    /// The versions of the producer that wrote the graph.
    pub fn versions(&self) -> Option<&VersionDef> {
        self.versions.as_ref()
    }

    /// Gives the graph other versions, as an import of a graph of an older producer does.
    pub fn set_versions(&mut self, versions: VersionDef) {
        self.versions = Some(versions);
    }

    /// Writes the graph as a message. An imported node is written as it was read.
    ///
    /// # Errors
    /// A node made in code has an attribute that cannot be written.
    pub fn to_graph_def(&self) -> Result<GraphDef, GraphError> {
        let node = self.nodes.iter().map(|node| self.write_node(node)).collect::<Result<_, _>>()?;
        Ok(GraphDef {
            node,
            library: self.library().cloned(),
            version: self.version,
            versions: self.versions.clone(),
            debug_info: self.debug_info.clone(),
        })
    }

    /// Drops the messages that nodes were imported from. From then on, nodes are written from their
    /// fields: defaults are spelled out, and anything that has no representation here (debug
    /// information, attributes of unknown kinds or that the op does not declare) is lost. Nodes of
    /// unregistered ops keep their messages.
    pub fn forget_messages(&mut self) {
        let known = |node: &&mut Arc<Node>| node.origin.is_some() && !node.op.is_missing();
        for node in self.nodes.iter_mut().filter(known) {
            Arc::make_mut(node).origin = None;
        }
    }

    /// Writes one node as a message, as [`Graph::to_graph_def`] writes all.
    ///
    /// # Errors
    /// As [`Graph::to_graph_def`].
    ///
    /// # Panics
    /// Panics if `id` is not of this graph.
    pub fn to_node_def(&self, id: NodeId) -> Result<NodeDef, GraphError> {
        self.write_node(self.node(id))
    }

    fn write_node(&self, node: &Node) -> Result<NodeDef, GraphError> {
        let written = |name: &str, value: &AttrValue| {
            attr_to_proto(value).map_err(|source| GraphError::Attr {
                node: node.name.clone(),
                attr: name.to_owned(),
                source: Box::new(source),
            })
        };
        if let Some(origin) = &node.origin {
            let mut def = NodeDef::clone(origin);
            let tensor_placeholder = tensor_placeholder();
            for (name, value) in
                def.attr.iter_mut().filter(|(_, value)| **value == tensor_placeholder)
            {
                if let Some(own) = node.attrs.get(name) {
                    *value = written(name, own)?;
                }
            }
            return Ok(def);
        }
        let data = node.inputs.iter().map(|input| match input.output {
            0 => self.node(input.node).name.clone(),
            _ => self.output_name(*input),
        });
        let control = node.control_inputs.iter().map(|&id| format!("^{}", self.node(id).name));
        let attr = |(name, value): (&String, &AttrValue)| Ok((name.clone(), written(name, value)?));
        Ok(NodeDef {
            name: node.name.clone(),
            op: node.op.name.clone(),
            input: data.chain(control).collect(),
            device: node.device.to_string(),
            attr: node.attrs.attrs().iter().map(attr).collect::<Result<_, GraphError>>()?,
            ..NodeDef::default()
        })
    }
}

/// Removes duplicates from a list of nodes. The first occurrence of each node stays.
pub fn each_once(mut ids: Vec<NodeId>) -> Vec<NodeId> {
    if ids.len() > 1 {
        let mut seen = HashSet::with_capacity(ids.len());
        ids.retain(|id| seen.insert(*id));
    }
    ids
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
