//! Building graphs in code.

use crate::{
    ControlFlow, Graph, GraphError, Node, NodeId, Output,
    graph::each_once,
    import::{Readings, Wiring, check_types, unknown_op},
    required_ops,
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tenon_framework::{
    DType, PartialShape, Tensor,
    attr::{AttrMap, AttrValue},
    attr_view::AttrTable,
    device::DeviceName,
    op::{OpDef, Signature, apply_defaults, check_attrs, infer_attrs},
    registry::Registry,
};
use tenon_proto::{FunctionDefLibrary, FunctionLibrary, versions::own_versions};

impl From<NodeId> for Output {
    /// Output 0 of the node.
    fn from(node: NodeId) -> Output {
        Output { node, output: 0 }
    }
}

/// Adds nodes to a graph, each checked when it is added.
///
/// ```
/// use tenon_framework::{DType, PartialShape, op::OpDef, registry::*};
/// use tenon_graph::GraphBuilder;
///
/// let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
/// plugin.add_op(OpDef::from_spec("Placeholder", &[], &["output: dtype"], &["dtype: type", "shape: shape = ?"])?);
/// plugin.add_op(OpDef::from_spec("Add", &["x: T", "y: T"], &["z: T"], &["T: type"])?);
/// let (registry, _) = commit_all(&Registry::new(), vec![plugin]).unwrap();
///
/// let mut b = GraphBuilder::new(&registry);
/// let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
/// let y = b.op("Add").name("y").input(x).input(x).build()?;
/// let graph = b.finish();
/// assert_eq!(graph.node(y).attrs.get("T").unwrap().as_type(), Some(DType::FLOAT));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GraphBuilder<'r> {
    graph: Graph,
    registry: &'r Registry,
    /// The next number to try for a node that is given no name, by op.
    numbers: HashMap<String, u64>,
    /// What the names of new nodes begin with: empty, or one that ends with a slash.
    scope: String,
    /// What new nodes request of a device where they do not say it themselves.
    device: DeviceName,
}

impl<'r> GraphBuilder<'r> {
    /// Starts an empty graph.
    pub fn new(registry: &'r Registry) -> GraphBuilder<'r> {
        let versions = Some(own_versions());
        GraphBuilder::extending(Graph { versions, ..Graph::new() }, registry)
    }

    /// Continues an existing graph.
    pub fn extending(graph: Graph, registry: &'r Registry) -> GraphBuilder<'r> {
        GraphBuilder {
            graph,
            registry,
            numbers: HashMap::new(),
            scope: String::new(),
            device: DeviceName::default(),
        }
    }

    /// The graph built so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// Starts a node of this op. Without a name, the node is named after the op.
    pub fn op(&mut self, op: &str) -> NodeBuilder<'_, 'r> {
        NodeBuilder {
            builder: self,
            op: op.to_owned(),
            name: None,
            inputs: Vec::new(),
            control: Vec::new(),
            attrs: AttrMap::new(),
            device: String::new(),
        }
    }

    /// Adds a `Placeholder`.
    ///
    /// # Errors
    /// As [`NodeBuilder::build`].
    pub fn placeholder(
        &mut self,
        name: &str,
        dtype: DType,
        shape: PartialShape,
    ) -> Result<Output, GraphError> {
        let node =
            self.op(required_ops::PLACEHOLDER).name(name).attr("dtype", dtype).attr("shape", shape);
        Ok(node.build()?.into())
    }

    /// Adds a `Const`.
    ///
    /// # Errors
    /// As [`NodeBuilder::build`].
    pub fn constant(&mut self, name: &str, value: Tensor) -> Result<Output, GraphError> {
        let dtype = value.dtype();
        let node =
            self.op(required_ops::CONST).name(name).attr("dtype", dtype).attr("value", value);
        Ok(node.build()?.into())
    }

    /// Connects input `index` of a `Merge` to a `NextIteration`, which closes a loop. Build the
    /// `Merge` with another value of the same type in that place first, such as the `Enter` twice.
    ///
    /// # Errors
    /// The nodes are of other ops, the types differ, or there is no such input.
    pub fn back_edge(
        &mut self,
        merge: NodeId,
        index: usize,
        next: impl Into<Output>,
    ) -> Result<(), GraphError> {
        let next = next.into();
        let mut node = self.graph.nodes.get(merge.index()).map(|node| Node::clone(node));
        let source = self.graph.nodes.get(next.node.index());
        let (Some(node), Some(source)) = (node.as_mut(), source) else {
            let missing = if source.is_none() { next.node } else { merge };
            return Err(GraphError::Foreign {
                node: missing.to_string(),
                op: format!("{:?}", ControlFlow::Merge),
                found: format!("node {missing}"),
            });
        };
        let fits = node.control_flow() == ControlFlow::Merge
            && source.control_flow() == ControlFlow::NextIteration
            && next.output == 0;
        match node.inputs.get_mut(index).filter(|_| fits) {
            Some(input) => *input = next,
            None => {
                return Err(GraphError::BackEdge {
                    node: node.name.clone(),
                    op: node.op.name.clone(),
                    source_name: source.name.clone(),
                    source_op: source.op.name.clone(),
                });
            }
        }
        check_edges(&self.graph, node)?;
        // The imported message no longer describes the node.
        node.origin = None;
        self.graph.nodes[merge.index()] = Arc::new(node.clone());
        Ok(())
    }

    /// Calls `build`, whose nodes request this device where they do not request another. As in TensorFlow, an inner device
    /// takes over those parts of its name that it leaves open.
    ///
    /// # Errors
    /// The name is malformed. Nothing is called then.
    ///
    /// ```
    /// # use tenon_framework::{op::OpDef, registry::*};
    /// # use tenon_graph::GraphBuilder;
    /// # let mut plugin = Transaction::new(PluginInfo::linked(PluginId(0), "ops", "0", 0));
    /// # plugin.add_op(OpDef::from_spec::<&str>("NoOp", &[], &[], &[])?);
    /// # let (registry, _) = commit_all(&Registry::new(), vec![plugin]).unwrap();
    /// let mut b = GraphBuilder::new(&registry);
    /// let node = b.with_device("/job:worker/task:1", |b| {
    ///     b.with_name_scope("tower", |b| b.op("NoOp").device("/device:CPU:0").build())
    /// })??;
    /// let node = b.graph().node(node);
    /// assert_eq!(node.name, "tower/NoOp");
    /// assert_eq!(node.device.to_string(), "/job:worker/task:1/device:CPU:0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_device<T>(
        &mut self,
        device: &str,
        build: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, GraphError> {
        let inner = DeviceName::parse(device).map_err(|error| GraphError::Device {
            node: self.full_name("*"),
            source: Box::new(error),
        })?;
        let inner = inner.completed_from(&self.device);
        let outer = std::mem::replace(&mut self.device, inner);
        let built = build(self);
        self.device = outer;
        Ok(built)
    }

    /// Calls `build`, the names of whose nodes begin with `name` and a slash, inside the scope that holds now. Names that
    /// `build` gives and is given ([`GraphBuilder::unused_name`]) are without the scope; those of the graph have it. An empty
    /// `name` leads out of all scopes.
    pub fn with_name_scope<T>(&mut self, name: &str, build: impl FnOnce(&mut Self) -> T) -> T {
        let inner = match name {
            "" => String::new(),
            name => format!("{}{name}/", self.scope),
        };
        let outer = std::mem::replace(&mut self.scope, inner);
        let built = build(self);
        self.scope = outer;
        built
    }

    /// The name that the graph has for a node which is given this one here.
    pub fn full_name(&self, name: &str) -> String {
        format!("{}{name}", self.scope)
    }

    /// The ops of which the graph may have nodes.
    pub fn registry(&self) -> &'r Registry {
        self.registry
    }

    /// Adds functions to the graph's library.
    ///
    /// # Errors
    /// The library has another function of the same name.
    pub fn add_library(&mut self, library: FunctionDefLibrary) -> Result<(), GraphError> {
        let own = Arc::make_mut(self.graph.library.get_or_insert_default());
        own.merge(&library).map_err(|name| GraphError::FunctionConflict { name })
    }

    /// Takes the library out of the graph, so that another graph can have it and add to it without copying it.
    pub fn take_library(&mut self) -> Option<Arc<FunctionLibrary>> {
        self.graph.library.take()
    }

    /// Gives the graph another library instead of its own.
    pub fn set_library(&mut self, library: Option<Arc<FunctionLibrary>>) {
        self.graph.library = library;
    }

    /// This name, or one that begins with it and that no node has.
    ///
    /// ```
    /// # use tenon_framework::registry::Registry;
    /// # use tenon_graph::GraphBuilder;
    /// # let registry = Registry::new();
    /// assert_eq!(GraphBuilder::new(&registry).unused_name("x"), "x");
    /// ```
    pub fn unused_name(&mut self, name: &str) -> String {
        match self.is_taken(name) {
            true => self.free_name(name),
            false => name.to_owned(),
        }
    }

    /// Appends a node that was checked in another graph. Its inputs may be nodes that are appended
    /// later. The caller sees to it that they exist in the end, and that the only cycles are loops.
    pub fn append(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.graph.len() as u32);
        self.graph.names.insert(node.name.clone(), id);
        self.graph.nodes.push(Arc::new(node));
        id
    }

    /// Gives a node other inputs of the same types. The caller sees to it that they exist, and that the
    /// only cycles are loops.
    pub fn rewire(&mut self, id: NodeId, inputs: Vec<Output>, control: Vec<NodeId>) {
        let node = Arc::make_mut(&mut self.graph.nodes[id.index()]);
        (node.inputs, node.control_inputs) = (inputs, each_once(control));
        // The imported message no longer describes the node.
        node.origin = None;
    }

    /// Whether a node has this name, with the scope or as it is: a node that is appended has its name as it is.
    fn is_taken(&self, name: &str) -> bool {
        let names = &self.graph.names;
        names.contains_key(name)
            || !self.scope.is_empty() && names.contains_key(&self.full_name(name))
    }

    fn free_name(&mut self, op: &str) -> String {
        let full = self.full_name(op);
        let mut number = self.numbers.get(&full).copied().unwrap_or(0);
        loop {
            let name = if number == 0 { op.to_owned() } else { format!("{op}_{number}") };
            number += 1;
            if !self.is_taken(&name) {
                self.numbers.insert(full, number);
                return name;
            }
        }
    }
}

/// A node under construction.
#[derive(Debug)]
#[must_use = "build() adds the node"]
pub struct NodeBuilder<'b, 'r> {
    builder: &'b mut GraphBuilder<'r>,
    op: String,
    name: Option<String>,
    inputs: Vec<Output>,
    control: Vec<NodeId>,
    attrs: AttrMap,
    device: String,
}

impl<'b, 'r> NodeBuilder<'b, 'r> {
    /// Names the node.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Adds a data input. A [`NodeId`] means output 0 of that node.
    pub fn input(mut self, input: impl Into<Output>) -> Self {
        self.inputs.push(input.into());
        self
    }

    /// Adds data inputs.
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = Output>) -> Self {
        self.inputs.extend(inputs);
        self
    }

    /// Sets an attribute. Types and numbers that the inputs determine may be left out.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.attrs.insert(name.to_owned(), value.into());
        self
    }

    /// Requests a device, by a full or partial name.
    pub fn device(mut self, name: &str) -> Self {
        self.device = name.to_owned();
        self
    }

    /// Adds a control input.
    pub fn control(mut self, node: NodeId) -> Self {
        self.control.push(node);
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// Everything that [`Graph::extend`] refuses, and inputs from another graph where that can be
    /// detected. The graph is then unchanged.
    pub fn build(self) -> Result<NodeId, GraphError> {
        let (node, builder) = self.checked()?;
        Ok(builder.append(node))
    }

    /// The node, checked as [`NodeBuilder::build`] does, for a caller that looks at it before it adds it by
    /// [`GraphBuilder::append`].
    ///
    /// # Errors
    /// As [`NodeBuilder::build`].
    pub fn checked(self) -> Result<(Node, &'b mut GraphBuilder<'r>), GraphError> {
        let graph = &self.builder.graph;
        if u32::try_from(graph.len() + 1).is_err() {
            return Err(GraphError::TooManyNodes { found: graph.len() + 1 });
        }
        let name = match &self.name {
            Some(name) => name.clone(),
            None => self.builder.free_name(&self.op),
        };
        let name = self.builder.full_name(&name);
        self.builder.graph.check_name(&name, &self.op)?;
        let (mut node, builder) = self.node(&name)?;
        node.device = node.device.completed_from(&builder.device);
        Ok((node, builder))
    }

    /// Puts the node in the place of another one, whose name and device it takes over. Its readers
    /// read the outputs of the same numbers; the node may have more.
    ///
    /// # Errors
    /// As [`NodeBuilder::build`]; an output of the former node is missing or of another type; an
    /// input depends on the former node. The graph is then unchanged.
    pub fn replace(mut self, id: NodeId) -> Result<(), GraphError> {
        let former = match self.builder.graph.nodes.get(id.index()) {
            Some(node) => Arc::clone(node),
            None => {
                let (node, op) = (id.to_string(), self.op.clone());
                return Err(GraphError::Foreign { node, op, found: format!("node {id}") });
            }
        };
        self.device = former.device.to_string();
        let (node, builder) = self.node(&former.name)?;
        let replaced = |expected: String, found: String| GraphError::Replaced {
            node: former.name.clone(),
            op: node.op.name.clone(),
            expected,
            found,
        };
        if !node.outputs().starts_with(former.outputs()) {
            let expected = format!("outputs that begin with {:?}", former.outputs());
            return Err(replaced(expected, format!("{:?}", node.outputs())));
        }
        if depends_on(&builder.graph, &node, &former, id) {
            let expected = "inputs that do not depend on the node".to_owned();
            return Err(replaced(expected, "a cycle".to_owned()));
        }
        builder.graph.nodes[id.index()] = Arc::new(node);
        Ok(())
    }

    /// The node, checked, and the builder of its graph.
    fn node(self, name: &str) -> Result<(Node, &'b mut GraphBuilder<'r>), GraphError> {
        let name = name.to_owned();
        let graph = &self.builder.graph;
        let registry = self.builder.registry;
        let op = registry.op(&self.op).cloned();
        let op = op.ok_or_else(|| unknown_op(registry, name.clone(), self.op.clone()))?;
        let types = self.input_types(&name)?;
        let device = DeviceName::parse(&self.device)
            .map_err(|error| GraphError::Device { node: name.clone(), source: Box::new(error) })?;
        let (attrs, signature) = complete(&op, &types, self.attrs)
            .map_err(|error| GraphError::Op { node: name.clone(), source: Box::new(error) })?;
        let node = Node {
            name,
            op,
            attrs: Arc::new(AttrTable::new(attrs)),
            device,
            inputs: self.inputs,
            control_inputs: each_once(self.control),
            signature,
            origin: None,
        };
        check_edges(graph, &node)?;
        Ok((node, self.builder))
    }

    fn input_types(&self, name: &str) -> Result<Vec<DType>, GraphError> {
        let graph = &self.builder.graph;
        let foreign =
            |found| GraphError::Foreign { node: name.to_owned(), op: self.op.clone(), found };
        if let Some(id) = self.control.iter().find(|id| id.index() >= graph.len()) {
            return Err(foreign(format!("node {id}")));
        }
        let dtype = |input: &Output| {
            let types = graph.nodes.get(input.node.index()).map(|node| node.outputs());
            let dtype = types.and_then(|types| types.get(input.output as usize)).copied();
            dtype.ok_or_else(|| foreign(format!("output {} of node {}", input.output, input.node)))
        };
        self.inputs.iter().map(dtype).collect()
    }
}

fn complete(
    op: &OpDef,
    types: &[DType],
    mut attrs: AttrMap,
) -> Result<(AttrMap, Signature), tenon_framework::op::OpError> {
    infer_attrs(op, types, &mut attrs)?;
    apply_defaults(op, &mut attrs)?;
    check_attrs(op, &attrs)?;
    let signature = Signature::resolve(op, &attrs)?;
    Ok((attrs, signature))
}

/// Whether a node reads what node `id` gives, directly or through others, by inputs which the node that it replaces,
/// `former`, did not have.
fn depends_on(graph: &Graph, node: &Node, former: &Node, id: NodeId) -> bool {
    let sources = |node: &Node| -> Vec<NodeId> {
        node.inputs
            .iter()
            .map(|input| input.node)
            .chain(node.control_inputs.iter().copied())
            .collect()
    };
    let mut stack = sources(node);
    let mut seen: HashSet<NodeId> = sources(former).into_iter().collect();
    while let Some(at) = stack.pop() {
        if at == id {
            return true;
        }
        if seen.insert(at) {
            stack.extend(sources(graph.node(at)));
        }
    }
    false
}

fn check_edges(graph: &Graph, node: &Node) -> Result<(), GraphError> {
    let wiring = Wiring { graph, names: &HashMap::new(), nodes: &[] };
    check_types(&wiring, node, &node.inputs, &mut Readings::default())
}
