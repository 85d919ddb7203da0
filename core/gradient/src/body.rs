//! The gradient of a function's body: which of its values the gradient reads, and both as functions.

use crate::{
    GradientError,
    engine::Engine,
    known::{Known, is_trainable},
    options::{Gradient, Options},
};
use std::collections::{HashMap, HashSet};
use tenon_framework::{DType, PartialShape, attr::FuncValue, registry::Registry};
use tenon_graph::{Callee, Graph, GraphBuilder, Node, NodeId, Output, definition};

/// The number of functions inside each other whose gradients are made.
const MAX_LEVEL: usize = 64;
/// The number of functions whose gradients are made for one graph. It ends functions which call others with ever new
/// shapes or attributes; calls that are alike count once.
const MAX_BODIES: usize = 20_000;
/// The number of values of one function that its gradient reads. It ends functions each of which calls the next one several
/// times: the innermost values are kept for each of these calls.
const MAX_KEPT: usize = 1 << 14;

/// A function's body with the nodes of its gradient.
pub(crate) struct Body<'r> {
    pub builder: GraphBuilder<'r>,
    pub known: Known,
    pub args: Vec<Output>,
    pub returns: Vec<Output>,
    pub effects: Vec<NodeId>,
    /// The argument with the gradient of each result, where it has one.
    pub incoming: Vec<Option<Output>>,
    /// The gradient of each argument, where it has one.
    pub gradients: Vec<Option<Output>>,
    /// The nodes of the body itself.
    pub forward: HashSet<NodeId>,
    /// Nodes of the body of which the gradient has its own copy, so that it need not read their values.
    pub again: HashSet<NodeId>,
    /// The values of the body that its gradient reads, constants and arguments aside.
    pub kept: Vec<Output>,
    /// The arguments that its gradient reads.
    pub kept_args: Vec<usize>,
}

/// Which gradients of a function are there and wanted.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    /// Of each result: whether it has a gradient.
    pub results: Vec<bool>,
    /// Of each argument: whether its gradient is wanted.
    pub args: Vec<bool>,
}

/// The body of a function that a node calls.
pub(crate) fn open(
    engine: &Engine<'_, '_>,
    node: &Node,
    function: &FuncValue,
) -> Result<Callee, GradientError> {
    Ok(definition(engine.b.graph(), engine.b.registry(), node, function)?)
}

impl<'r> Body<'r> {
    /// Differentiates a function that a node calls. `shapes` are those of the arguments as far as they are known.
    pub fn differentiate(
        engine: &mut Engine<'_, 'r>,
        node: &Node,
        function: &FuncValue,
        flow: &Flow,
        shapes: &[PartialShape],
    ) -> Result<Body<'r>, GradientError> {
        engine.count_body(&function.name)?;
        let Callee { graph, args, returns, effects } = open(engine, node, function)?;
        let (graph, args) = with_placeholders(engine.b.registry(), graph, &args, shapes)?;
        let mut builder = GraphBuilder::extending(graph, engine.b.registry());
        let original = builder.graph().len();
        let known = Known::of(builder.graph());
        let incoming = placeholders_of_gradients(&mut builder, &known, &returns, flow)?;
        let ys = returns.iter().zip(&incoming).filter_map(|(&y, g)| Some((y, (*g)?)));
        let (ys, given): (Vec<Output>, Vec<_>) =
            ys.map(|(y, g)| (y, Some(Gradient::Dense(g)))).unzip();
        let wanted: Vec<usize> = (0..args.len()).filter(|&at| flow.args[at]).collect();
        let xs: Vec<Output> = wanted.iter().map(|&at| args[at]).collect();
        let options = Options {
            grad_ys: given,
            prefix: engine.options.prefix.clone(),
            gate: engine.options.gate,
            ..Options::default()
        };
        let mut inner = Engine::new(&mut builder, &options);
        inner.scope.clone_from(&engine.scope);
        inner.level = engine.level + 1;
        let found = engine.lend(&mut inner, |inner| inner.dense_gradients(&ys, &xs));
        let found = found.map_err(|error| in_function(error, function))?;
        let mut gradients = vec![None; args.len()];
        for (&at, gradient) in wanted.iter().zip(found) {
            gradients[at] = gradient;
        }
        let known = inner.known;
        let mut body = Body {
            builder,
            known,
            args,
            returns,
            effects,
            incoming,
            gradients,
            forward: HashSet::new(),
            again: HashSet::new(),
            kept: Vec::new(),
            kept_args: Vec::new(),
        };
        body.find_kept(original);
        let found = body.kept.len();
        if found > MAX_KEPT {
            let what = format!(
                "expected a gradient that reads at most {MAX_KEPT} values of the function, found {found}: give the function \
                 a gradient of its own"
            );
            return Err(GradientError::Limit { function: function.name.clone(), what });
        }
        Ok(body)
    }

    /// Finds the values of the body that the gradient reads.
    fn find_kept(&mut self, original: usize) {
        let graph = self.builder.graph();
        // Differentiating a call adds nodes before it: they belong to the body.
        let roots = (0..original as u32).map(NodeId);
        self.forward = ancestors(graph, roots, |_| true);
        let incoming: HashSet<Output> = self.incoming.iter().flatten().copied().collect();
        let ends = self.gradients.iter().flatten().map(|gradient| gradient.node);
        let backward = ancestors(graph, ends, |id| self.is_copied(id));
        let mut read: Vec<Output> = self.gradients.iter().flatten().copied().collect();
        let mut ids: Vec<&NodeId> = backward.iter().filter(|&&id| self.is_copied(id)).collect();
        ids.sort_unstable();
        read.extend(ids.into_iter().flat_map(|&id| graph.node(id).inputs.iter().copied()));
        let mut seen = HashSet::new();
        for output in read {
            if incoming.contains(&output) || self.is_copied(output.node) || !seen.insert(output) {
                continue;
            }
            match self.args.iter().position(|&arg| arg == output) {
                Some(at) => self.kept_args.push(at),
                None => self.kept.push(output),
            }
        }
    }

    /// Whether the gradient has its own copy of a node: one that it added, a constant, or one of `again`.
    fn is_copied(&self, id: NodeId) -> bool {
        !self.forward.contains(&id)
            || self.builder.graph().node(id).op.is_constant()
            || self.again.contains(&id)
    }

    /// What is known of the shape of a tensor of the body.
    pub fn shape(&self, tensor: Output) -> PartialShape {
        self.known.value(tensor).map(|value| value.shape.partial()).unwrap_or_default()
    }

    /// Type of a tensor of the body.
    pub fn dtype(&self, tensor: Output) -> DType {
        self.builder.graph().dtype(tensor).base()
    }
}

/// An error in the body of a function. One that names a function says where it is by that.
fn in_function(error: GradientError, function: &FuncValue) -> GradientError {
    match error {
        GradientError::Limit { .. } => error,
        _ => GradientError::Body { function: function.name.clone(), source: Box::new(error) },
    }
}

/// An argument with the gradient of each result that has one.
fn placeholders_of_gradients(
    builder: &mut GraphBuilder<'_>,
    known: &Known,
    returns: &[Output],
    flow: &Flow,
) -> Result<Vec<Option<Output>>, GradientError> {
    let mut incoming = Vec::with_capacity(returns.len());
    for (at, (&result, &has)) in returns.iter().zip(&flow.results).enumerate() {
        let dtype = builder.graph().dtype(result).base();
        let gradient = (has && is_trainable(dtype) && dtype != DType::RESOURCE).then(|| {
            let shape = known.value(result).map(|value| value.shape.partial());
            let name = builder.unused_name(&format!("gradient_of_result_{at}"));
            builder.placeholder(&name, dtype, shape.unwrap_or_default())
        });
        incoming.push(gradient.transpose()?);
    }
    Ok(incoming)
}

/// The nodes that these depend on, themselves included, through nodes that `through` accepts.
fn ancestors(
    graph: &Graph,
    roots: impl IntoIterator<Item = NodeId>,
    through: impl Fn(NodeId) -> bool,
) -> HashSet<NodeId> {
    let mut seen = HashSet::new();
    let mut stack: Vec<NodeId> = roots.into_iter().collect();
    while let Some(id) = stack.pop() {
        if seen.insert(id) && through(id) {
            let node = graph.node(id);
            stack.extend(node.inputs.iter().map(|input| input.node));
            stack.extend(&node.control_inputs);
        }
    }
    seen
}

/// The graph of a body whose arguments are placeholders with shapes.
pub(crate) fn with_placeholders(
    registry: &Registry,
    graph: Graph,
    args: &[Output],
    shapes: &[PartialShape],
) -> Result<(Graph, Vec<Output>), GradientError> {
    let mut extract = Extract::new(registry, &graph);
    let unknown = PartialShape::UNKNOWN;
    for (at, &arg) in args.iter().enumerate() {
        extract.arg(arg, shapes.get(at).unwrap_or(&unknown))?;
    }
    let is_arg: HashSet<NodeId> = args.iter().map(|arg| arg.node).collect();
    let all: Vec<NodeId> =
        graph.nodes().map(|(id, _)| id).filter(|id| !is_arg.contains(id)).collect();
    // The numbers of nodes stay the same: arguments are the first nodes of a body.
    extract.copy(&all);
    let args = args.iter().map(|&arg| extract.tensor(arg)).collect();
    Ok((extract.finish(), args))
}

/// A part of a graph that becomes a graph of its own.
pub(crate) struct Extract<'g, 'r> {
    from: &'g Graph,
    to: GraphBuilder<'r>,
    /// What replaces tensors: arguments, and outputs of copied nodes.
    tensors: HashMap<Output, Output>,
    nodes: HashMap<NodeId, NodeId>,
    pub args: Vec<Output>,
}

impl<'g, 'r> Extract<'g, 'r> {
    /// Nothing of a graph yet. The part has no library: it becomes a function of the library that the graph's calls name.
    pub fn new(registry: &'r Registry, from: &'g Graph) -> Extract<'g, 'r> {
        let to = GraphBuilder::new(registry);
        Extract { from, to, tensors: HashMap::new(), nodes: HashMap::new(), args: Vec::new() }
    }

    /// An argument in the place of a tensor.
    pub fn arg(&mut self, tensor: Output, shape: &PartialShape) -> Result<Output, GradientError> {
        let dtype = self.from.dtype(tensor).base();
        let arg = self.free_arg(dtype, shape)?;
        self.tensors.insert(tensor, arg);
        Ok(arg)
    }

    /// Another tensor of the part in the place of one.
    pub fn map(&mut self, tensor: Output, other: Output) {
        self.tensors.insert(tensor, other);
    }

    /// An argument that stands for nothing.
    pub fn free_arg(
        &mut self,
        dtype: DType,
        shape: &PartialShape,
    ) -> Result<Output, GradientError> {
        let name = format!("argument_{}", self.args.len());
        let name = self.to.unused_name(&name);
        let arg = self.to.placeholder(&name, dtype, shape.clone())?;
        self.args.push(arg);
        Ok(arg)
    }

    /// Copies nodes. Control inputs that are not copied are left out.
    pub fn copy(&mut self, ids: &[NodeId]) {
        let first = self.to.graph().len() as u32;
        for (at, &id) in (first..).zip(ids) {
            self.nodes.insert(id, NodeId(at));
        }
        for &id in ids {
            let mut node = self.from.node(id).clone();
            // The names of arguments in a definition are taken.
            let taken = node.name.starts_with("arg_");
            let name = if taken { format!("node_{}", node.name) } else { node.name };
            node.name = self.to.unused_name(&name);
            node.inputs = node.inputs.iter().map(|&input| self.tensor(input)).collect();
            let control = node.control_inputs.iter().filter_map(|id| self.nodes.get(id).copied());
            node.control_inputs = control.collect();
            node.origin = None;
            self.to.append(node);
        }
    }

    /// Copies what tensors depend on, up to the arguments, through nodes that `through` accepts.
    pub fn copy_for(&mut self, tensors: &[Output], through: impl Fn(NodeId) -> bool) {
        let ends = tensors.iter().filter(|tensor| !self.tensors.contains_key(tensor));
        let mut stack: Vec<NodeId> = ends.map(|tensor| tensor.node).collect();
        let mut seen = HashSet::new();
        while let Some(id) = stack.pop() {
            if !through(id) || self.nodes.contains_key(&id) || !seen.insert(id) {
                continue;
            }
            let node = self.from.node(id);
            let inputs = node.inputs.iter().filter(|input| !self.tensors.contains_key(input));
            stack.extend(inputs.map(|input| input.node));
            stack.extend(&node.control_inputs);
        }
        let mut ids: Vec<NodeId> = seen.into_iter().collect();
        ids.sort_unstable();
        self.copy(&ids);
    }

    /// The tensor in the place of one of the original graph.
    pub fn tensor(&self, tensor: Output) -> Output {
        if let Some(&found) = self.tensors.get(&tensor) {
            return found;
        }
        let node = self.nodes.get(&tensor.node).copied().unwrap_or(tensor.node);
        Output::new(node, tensor.output)
    }

    /// The node in the place of one of the original graph.
    pub fn node(&self, id: NodeId) -> Option<NodeId> {
        self.nodes.get(&id).copied()
    }

    /// The builder of the part.
    pub fn builder(&mut self) -> &mut GraphBuilder<'r> {
        &mut self.to
    }

    pub fn finish(self) -> Graph {
        self.to.finish()
    }
}

impl<'r> Body<'r> {
    /// The body itself, without its gradient; its arguments are the first ones of the part.
    pub fn forward_part<'g>(&'g self) -> Result<Extract<'g, 'r>, GradientError> {
        let mut part = self.part();
        for &arg in &self.args {
            part.arg(arg, &self.shape(arg))?;
        }
        let is_arg: HashSet<NodeId> = self.args.iter().map(|arg| arg.node).collect();
        let mut ids: Vec<NodeId> =
            self.forward.iter().copied().filter(|id| !is_arg.contains(id)).collect();
        ids.sort_unstable();
        part.copy(&ids);
        Ok(part)
    }

    /// Nothing of the body and its gradient yet.
    pub fn part<'g>(&'g self) -> Extract<'g, 'r> {
        Extract::new(self.builder.registry(), self.builder.graph())
    }

    /// Copies the gradient without the body into a part whose arguments stand for everything that it reads.
    pub fn copy_backward(&self, part: &mut Extract<'_, 'r>) {
        let ends: Vec<Output> = self.gradients.iter().flatten().copied().collect();
        part.copy_for(&ends, |id| self.is_copied(id));
    }

    /// The control nodes of the part's forward copy.
    pub fn effects_in(&self, part: &Extract<'_, 'r>) -> Vec<NodeId> {
        let controls =
            self.effects.iter().filter(|&&id| !self.builder.graph().node(id).op.stateful);
        controls.filter_map(|&id| part.node(id)).collect()
    }
}

impl Engine<'_, '_> {
    /// Counts a function whose gradient is made. The limits end a function that calls itself, and functions each of which
    /// calls the next one several times.
    fn count_body(&mut self, function: &str) -> Result<(), GradientError> {
        self.shared.bodies += 1;
        let limit = |what: String| GradientError::Limit { function: function.to_owned(), what };
        if self.level >= MAX_LEVEL {
            return Err(limit(format!(
                "expected at most {MAX_LEVEL} functions inside each other, found more: a function that calls itself \
                 has no gradient"
            )));
        }
        if self.shared.bodies > MAX_BODIES {
            return Err(limit(format!(
                "expected at most {MAX_BODIES} functions that are called in different ways in a graph and its \
                 functions, found more: give the function a gradient of its own"
            )));
        }
        Ok(())
    }

    /// The gradients of `ys` with respect to `xs` as tensors.
    fn dense_gradients(
        &mut self,
        ys: &[Output],
        xs: &[Output],
    ) -> Result<Vec<Option<Output>>, GradientError> {
        let found = self.gradients(ys, xs)?;
        let dense = |(&x, gradient): (&Output, Option<Gradient>)| {
            gradient.map(|gradient| Ok(self.dense(x, gradient)?)).transpose()
        };
        xs.iter().zip(found).map(dense).collect()
    }

    /// What the graph knows of the shapes of tensors.
    pub fn shapes(&self, tensors: &[Output]) -> Vec<PartialShape> {
        let shape = |&tensor: &Output| self.known.value(tensor).map(|value| value.shape.partial());
        tensors.iter().map(|tensor| shape(tensor).unwrap_or_default()).collect()
    }
}
