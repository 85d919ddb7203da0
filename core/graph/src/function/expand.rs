//! Which calls are replaced, in which order.

use super::{
    assembly::{Assembly, Copied, Place, Replaced, Site},
    body::{Body, FunctionKey, Library},
    ops::{CALL, Calls, STATEFUL_CALL},
};
use crate::{
    FunctionError, Graph, GraphError, Node, NodeId, Output, Subgraph, prune, required_ops,
};
use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};
use tenon_framework::{
    DType,
    attr::{AttrList, AttrValue, FuncValue},
    device::DeviceName,
    op::OpRole,
    registry::Registry,
};
use tenon_proto::convert::call_of_function;

/// The number of functions that are open at once: a call inside that many others stays a call.
const MAX_DEPTH: usize = 64;
/// The number of nodes that an expansion copies: further calls stay calls.
const MAX_COPIES: usize = 1 << 20;

/// A step's graph without calls that can be replaced.
#[derive(Debug)]
pub struct Expanded {
    /// The graph. The nodes of the original graph have the same numbers in it.
    pub graph: Graph,
    /// The tensors that are fetched.
    pub fetches: Vec<Output>,
    /// The nodes that run for their effects.
    pub targets: Vec<NodeId>,
}

/// The graph that a call runs.
#[derive(Debug)]
pub struct Callee {
    /// The graph.
    pub graph: Graph,
    /// The tensors that are fed with the arguments.
    pub args: Vec<Output>,
    /// The tensors that are the results.
    pub returns: Vec<Output>,
    /// The nodes that run for their effects.
    pub effects: Vec<NodeId>,
}

/// Replaces the calls in a step's graph; `None` if it has none.
///
/// # Errors
/// A function that is not there, that is not valid, or that does not fit its call.
pub fn expand(
    graph: &Graph,
    registry: &Registry,
    sub: &Subgraph,
) -> Result<Option<Expanded>, GraphError> {
    if !sub.order.iter().any(|&id| graph.node(id).op.facts().role == OpRole::Call) {
        return Ok(None);
    }
    let library = Library::of(graph, registry);
    let fed: HashSet<Output> = sub.feeds.iter().copied().collect();
    let done = Expander::new(&library).nodes(graph.clone(), &sub.order, &fed)?;
    let fetches = sub.fetches.iter().map(|&fetch| done.tensor(fetch)).collect();
    let targets = sub.targets.iter().map(|&target| done.node(target)).collect();
    Ok(Some(Expanded { graph: done.graph, fetches, targets }))
}

/// The graph of a function in the library of `graph`, for a call that stays a node.
///
/// # Errors
/// As [`expand`].
pub fn callee(
    graph: &Graph,
    registry: &Registry,
    node: &Node,
    function: &FuncValue,
) -> Result<Callee, GraphError> {
    let library = Library::of(graph, registry);
    let key = FunctionKey::of(function);
    let body = Expander::new(&library).flat(node, &key)?;
    let own = Graph { nodes: Vec::new(), names: HashMap::new(), ..graph.clone() };
    let mut assembly = Assembly::new(own, registry);
    let mut args = Vec::with_capacity(body.args.len());
    for (at, dtype) in body.arg_types().into_iter().enumerate() {
        let name = format!("{}/argument_{at}", key.name());
        let arg = assembly
            .add(required_ops::ARG, &name, |node| node.attr("T", dtype).attr("index", at as i64))?;
        args.push(Output::from(arg));
    }
    // Kernels of nodes with state are kept by name: those of two functions must differ.
    let (prefix, device) = (key.name(), &node.device);
    let place = Place { prefix, device, pivot: None, is_branch: false, frame: None };
    let Copied { returns, effects } = assembly.copy(&body, &args, &place)?;
    Ok(Callee { graph: assembly.finish(), args, returns, effects })
}

/// The graph of a function in the library of `graph` as its definition has it, with the attributes of
/// the call filled in: calls in it stay calls.
///
/// # Errors
/// A function that is not there or not valid.
pub fn definition(
    graph: &Graph,
    registry: &Registry,
    node: &Node,
    function: &FuncValue,
) -> Result<Callee, GraphError> {
    let library = Library::of(graph, registry);
    let key = FunctionKey::of(function);
    let body = library.body(&key).ok_or_else(|| library.unknown(node, key.name()))??;
    let args = body.args.iter().map(|&arg| arg.into()).collect();
    Ok(Callee { graph: body.graph, args, returns: body.returns, effects: body.effects })
}

/// A function at a call.
pub(super) struct Function {
    pub key: FunctionKey,
    value: FuncValue,
    pub source: Source,
}

/// What a call of a function becomes.
pub(super) enum Source {
    /// A copy of its body, in which no call can be replaced.
    Inline(Rc<Body>),
    /// A node.
    Call,
}

/// The state of an expansion.
pub(super) struct Expander<'g> {
    library: &'g Library<'g>,
    /// The bodies in which calls are replaced.
    flat: HashMap<FunctionKey, Rc<Body>>,
    /// The functions whose bodies are being expanded, outermost first.
    open: Vec<FunctionKey>,
    copies: usize,
}

/// An expanded graph, and what replaces its former nodes.
struct Done {
    graph: Graph,
    fed: HashSet<Output>,
    tensors: HashMap<Output, Output>,
    nodes: HashMap<NodeId, NodeId>,
}

impl Done {
    fn tensor(&self, output: Output) -> Output {
        if self.fed.contains(&output) { output } else { moved(&self.tensors, output) }
    }

    fn node(&self, id: NodeId) -> NodeId {
        moved(&self.nodes, id)
    }
}

/// What stands for a tensor or node.
fn moved<T: Copy + Eq + std::hash::Hash>(map: &HashMap<T, T>, from: T) -> T {
    map.get(&from).copied().unwrap_or(from)
}

impl<'g> Expander<'g> {
    fn new(library: &'g Library<'g>) -> Expander<'g> {
        Expander { library, flat: HashMap::new(), open: Vec::new(), copies: 0 }
    }

    /// Replaces the calls among these nodes, which are in topological order.
    fn nodes(
        &mut self,
        graph: Graph,
        order: &[NodeId],
        fed: &HashSet<Output>,
    ) -> Result<Done, GraphError> {
        let mut assembly = Assembly::new(graph, self.library.registry);
        let (mut tensors, mut nodes) = (HashMap::new(), HashMap::new());
        let tensor = |tensors: &HashMap<Output, Output>, input: Output| {
            if fed.contains(&input) { input } else { moved(tensors, input) }
        };
        for &id in order {
            let node = Arc::clone(assembly.graph().shared(id));
            let Some(calls) = Calls::of(&node)? else { continue };
            let inputs = node.inputs.iter().map(|&input| tensor(&tensors, input)).collect();
            let control = node.control_inputs.iter().map(|&id| moved(&nodes, id)).collect();
            let site = Site { node: Arc::clone(&node), inputs, control };
            let Some(replaced) = self.replace(&mut assembly, &site, &calls)? else { continue };
            for (at, output) in (0..).zip(replaced.outputs) {
                tensors.insert(Output::new(id, at), output);
            }
            nodes.insert(id, replaced.done);
        }
        for &id in order.iter().filter(|id| !nodes.contains_key(id)) {
            let node = assembly.graph().node(id);
            let inputs: Vec<Output> =
                node.inputs.iter().map(|&input| tensor(&tensors, input)).collect();
            let control: Vec<NodeId> =
                node.control_inputs.iter().map(|&id| moved(&nodes, id)).collect();
            if inputs != node.inputs || control != node.control_inputs {
                assembly.rewire(id, inputs, control);
            }
        }
        Ok(Done { graph: assembly.finish(), fed: fed.clone(), tensors, nodes })
    }

    /// Replaces a node; `None` if it stays.
    fn replace(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        calls: &Calls<'_>,
    ) -> Result<Option<Replaced>, GraphError> {
        let node = &*site.node;
        let outputs = node.outputs();
        match calls {
            Calls::Function(function) => {
                let function = self.function(node, function, &node.signature.inputs, outputs)?;
                let stays = matches!(function.source, Source::Call);
                if stays { Ok(None) } else { self.call(assembly, site, &function).map(Some) }
            }
            Calls::Named => {
                let function = self.named(node)?;
                self.call(assembly, site, &function).map(Some)
            }
            Calls::Remote(function) => {
                let args = &node.signature.inputs[1..];
                let function = self.function(node, function, args, outputs)?;
                let device = target(assembly, site)?;
                let node = Node { device, ..node.clone() };
                let (inputs, control) = (site.inputs[1..].to_vec(), site.control.clone());
                let site = Site { node: Arc::new(node), inputs, control };
                self.call(assembly, &site, &function).map(Some)
            }
            Calls::If { then_branch, else_branch } => {
                let args = &node.signature.inputs[1..];
                let branches = [
                    self.function(node, then_branch, args, outputs)?,
                    self.function(node, else_branch, args, outputs)?,
                ];
                self.lower_if(assembly, site, branches).map(Some)
            }
            Calls::Case(branches) => {
                let args = &node.signature.inputs[1..];
                let branches = branches.iter().map(|f| self.function(node, f, args, outputs));
                let branches = branches.collect::<Result<Vec<_>, _>>()?;
                self.lower_branches(assembly, site, site.inputs[0], &branches).map(Some)
            }
            Calls::While { cond, body } => {
                let args = &node.signature.inputs;
                let cond = self.condition_of(node, cond)?;
                let body = self.function(node, body, args, outputs)?;
                let parallel = node.attrs.attrs().get("parallel_iterations");
                let parallel = parallel.and_then(AttrValue::as_int).unwrap_or(1);
                self.lower_while(assembly, site, &cond, &body, parallel).map(Some)
            }
        }
    }

    /// Replaces a call of a function with all inputs.
    fn call(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        function: &Function,
    ) -> Result<Replaced, GraphError> {
        let name = &site.node.name;
        let pivot = match site.control.is_empty() {
            true => None,
            false => Some(assembly.anchor(&format!("{name}/begin"), &site.control)?),
        };
        let before: Vec<NodeId> = pivot.into_iter().collect();
        let mut args = Vec::with_capacity(site.inputs.len());
        for (at, &input) in site.inputs.iter().enumerate() {
            args.push(assembly.gate(input, &before, &format!("{name}/arg_{at}"))?);
        }
        let device = &site.node.device;
        let place = Place { prefix: name, device, pivot, is_branch: false, frame: None };
        let Copied { returns, effects } = self.place(assembly, site, function, &args, &place)?;
        let mut outputs = Vec::with_capacity(returns.len());
        for (at, &result) in returns.iter().enumerate() {
            outputs.push(assembly.gate(result, &effects, &format!("{name}/result_{at}"))?);
        }
        let mut ends: Vec<NodeId> = effects.into_iter().chain(before).collect();
        ends.extend(outputs.iter().map(|output| output.node));
        let done = assembly.anchor(&format!("{name}/done"), &ends)?;
        Ok(Replaced { outputs, done })
    }

    /// Puts a function's body, or a call of it, in a place.
    pub(super) fn place(
        &mut self,
        assembly: &mut Assembly<'_>,
        site: &Site,
        function: &Function,
        args: &[Output],
        place: &Place<'_>,
    ) -> Result<Copied, GraphError> {
        if let Source::Inline(body) = &function.source {
            self.copies += body.graph.len();
            return assembly.copy(body, args, place);
        }
        let types = |types: Vec<DType>| AttrValue::List(AttrList::Type(types));
        let arg_types = args.iter().map(|&arg| assembly.graph().dtype(arg).base()).collect();
        let results = site.node.outputs().iter().map(|dtype| dtype.base()).collect();
        let is_stateful = site.node.op.stateful;
        let op = if is_stateful { STATEFUL_CALL } else { CALL };
        let node = assembly.add(op, &format!("{}/call", place.prefix), |node| {
            let node = place.pivot.into_iter().fold(node, |node, pivot| node.control(pivot));
            node.inputs(args.iter().copied())
                .attr("Tin", types(arg_types))
                .attr("Tout", types(results))
                .attr("f", AttrValue::Func(function.value.clone()))
                .device(&place.device.to_string())
        })?;
        let count = assembly.graph().node(node).outputs().len() as u32;
        let returns = (0..count).map(|at| Output::new(node, at)).collect();
        Ok(Copied { returns, effects: if is_stateful { vec![node] } else { Vec::new() } })
    }

    /// A bool that says whether a condition holds.
    pub(super) fn truth(
        &mut self,
        assembly: &mut Assembly<'_>,
        condition: Output,
        prefix: &str,
    ) -> Result<Output, GraphError> {
        if assembly.graph().dtype(condition).base() == DType::BOOL {
            return Ok(condition);
        }
        let name = format!("{prefix}/holds");
        Ok(assembly.add(required_ops::TO_BOOL, &name, |node| node.input(condition))?.into())
    }

    /// The function that a node names, for a call with arguments and results of these types.
    fn function(
        &mut self,
        node: &Node,
        value: &FuncValue,
        args: &[DType],
        results: &[DType],
    ) -> Result<Function, GraphError> {
        let key = FunctionKey::of(value);
        let source = self.source(node, &key)?;
        if let Source::Inline(body) = &source {
            check(node, &key, "arguments", args, &body.arg_types())?;
            check(node, &key, "results", results, &body.return_types())?;
        }
        Ok(Function { key, value: value.clone(), source })
    }

    /// The condition of a loop, which has one result.
    fn condition_of(&mut self, node: &Node, value: &FuncValue) -> Result<Function, GraphError> {
        let key = FunctionKey::of(value);
        let body = self.body_of(node, &key)?;
        check(node, &key, "arguments", &node.signature.inputs, &body.arg_types())?;
        let results = body.return_types();
        if results.len() != 1 {
            check(node, &key, "results", &[DType::BOOL], &results)?;
        }
        Ok(Function { key, value: value.clone(), source: Source::Inline(body) })
    }

    /// The function that a node's op is named after; the node's attributes are those of the call.
    fn named(&mut self, node: &Node) -> Result<Function, GraphError> {
        let value = call_of_function(&node.op.name, node.attrs.attrs()).map_err(|error| {
            GraphError::Attr {
                node: node.name.clone(),
                attr: node.op.name.clone(),
                source: Box::new(error),
            }
        })?;
        self.function(node, &value, &node.signature.inputs, node.outputs())
    }

    /// Whether a call becomes a copy.
    fn source(&mut self, node: &Node, key: &FunctionKey) -> Result<Source, GraphError> {
        if self.open.contains(key) || self.open.len() >= MAX_DEPTH || self.copies > MAX_COPIES {
            return Ok(Source::Call);
        }
        let body = self.body_of(node, key)?;
        Ok(if body.is_kept { Source::Call } else { Source::Inline(body) })
    }

    fn body_of(&mut self, node: &Node, key: &FunctionKey) -> Result<Rc<Body>, GraphError> {
        if let Some(body) = self.flat.get(key) {
            return Ok(Rc::clone(body));
        }
        let body = Rc::new(self.flat(node, key)?);
        self.flat.insert(key.clone(), Rc::clone(&body));
        Ok(body)
    }

    /// A function's body without calls that can be replaced.
    fn flat(&mut self, node: &Node, key: &FunctionKey) -> Result<Body, GraphError> {
        let body =
            self.library.body(key).ok_or_else(|| self.library.unknown(node, key.name()))??;
        let all: Vec<NodeId> = body.graph.nodes().map(|(id, _)| id).collect();
        let order = prune(&body.graph, &[], &[], &all)?.order;
        self.open.push(key.clone());
        let done = self.nodes(body.graph, &order, &HashSet::new());
        self.open.pop();
        let done = done?;
        Ok(Body {
            args: body.args,
            returns: body.returns.iter().map(|&output| done.tensor(output)).collect(),
            effects: body.effects.iter().map(|&id| done.node(id)).collect(),
            graph: done.graph,
            is_kept: body.is_kept,
        })
    }
}

/// The device that the first input of a remote call names.
fn target(assembly: &Assembly<'_>, site: &Site) -> Result<DeviceName, GraphError> {
    let unknown =
        || FunctionError::Target { node: site.node.name.clone(), op: site.node.op.name.clone() };
    let source = assembly.graph().node(site.inputs[0].node);
    let value = match source.attrs.attrs().get("value") {
        Some(AttrValue::Tensor(value)) if source.op.is_constant() => value,
        _ => return Err(unknown().into()),
    };
    let name = match value.as_strings().as_deref() {
        Ok([name]) => String::from_utf8_lossy(name).into_owned(),
        _ => return Err(unknown().into()),
    };
    DeviceName::parse(&name).map_err(|error| GraphError::Device {
        node: site.node.name.clone(),
        source: Box::new(error),
    })
}

/// Checks the types of a function against those of its call. A reference serves as a value.
fn check(
    node: &Node,
    key: &FunctionKey,
    what: &'static str,
    expected: &[DType],
    found: &[DType],
) -> Result<(), GraphError> {
    if expected.iter().map(|dtype| dtype.base()).eq(found.iter().map(|dtype| dtype.base())) {
        return Ok(());
    }
    let list = |types: &[DType]| {
        let names: Vec<String> = types.iter().map(DType::to_string).collect();
        format!("[{}]", names.join(", "))
    };
    Err(FunctionError::Signature {
        node: node.name.clone(),
        op: node.op.name.clone(),
        function: key.name().to_owned(),
        what,
        expected: list(expected),
        found: list(found),
    }
    .into())
}
