//! A definition with the attributes of a call filled in: a graph with arguments and results.

use crate::{
    FunctionError, Graph, GraphError, Node, NodeId, Output,
    graph::each_once,
    import::{Readings, Resolver, Wiring, check_cycles, check_types, unknown_op},
    names::near_names,
    required_ops,
};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tenon_framework::{
    DType,
    attr::FuncValue,
    op::{MAX_VALUES, OpRole},
    registry::Registry,
    text::cut,
};
use tenon_proto::{
    ArgDef, AttrValue as AttrProto, AttrValueKind, FunctionDef, FunctionLibrary, ListValue,
    NameAttrList, NodeDef, convert::Decoder, decode, encode,
};

/// Attribute values by name, as messages.
type Attrs = BTreeMap<String, AttrProto>;

/// A function of a library with the values of its attributes: what a call names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionKey {
    name: String,
    /// The serialised `NameAttrList`.
    call: Vec<u8>,
}

impl FunctionKey {
    /// The function that an attribute names.
    pub fn of(function: &FuncValue) -> FunctionKey {
        let name = function.name.clone();
        let call = match function.call.is_empty() {
            true => encode(&NameAttrList { name: name.clone(), ..NameAttrList::default() })
                .unwrap_or_default(),
            false => function.call.clone(),
        };
        FunctionKey { name, call }
    }

    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A function with the values of its attributes.
pub(super) struct Body {
    /// The nodes. Arguments are nodes that nothing computes.
    pub graph: Graph,
    /// The node of each argument.
    pub args: Vec<NodeId>,
    /// The tensors that are the results.
    pub returns: Vec<Output>,
    /// The nodes that run for their effects.
    pub effects: Vec<NodeId>,
    /// Whether it asks not to be inlined.
    pub is_kept: bool,
}

impl Body {
    /// The types of the arguments.
    pub fn arg_types(&self) -> Vec<DType> {
        self.args.iter().map(|&arg| self.graph.node(arg).outputs()[0]).collect()
    }

    /// The nodes that results and effects need, without the arguments.
    pub fn live(&self) -> Vec<NodeId> {
        let mut is_live = vec![false; self.graph.len()];
        self.args.iter().for_each(|arg| is_live[arg.index()] = true);
        let results = self.returns.iter().map(|output| output.node);
        let mut stack: Vec<NodeId> = results.chain(self.effects.iter().copied()).collect();
        let mut live = Vec::new();
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut is_live[id.index()], true) {
                continue;
            }
            live.push(id);
            let node = self.graph.node(id);
            stack.extend(node.inputs.iter().map(|input| input.node));
            stack.extend(&node.control_inputs);
        }
        live.sort_unstable();
        live
    }

    /// The types of the results.
    pub fn return_types(&self) -> Vec<DType> {
        self.returns.iter().map(|&output| self.graph.dtype(output).base()).collect()
    }
}

/// The functions of a graph.
pub(super) struct Library<'g> {
    pub registry: &'g Registry,
    functions: Option<&'g FunctionLibrary>,
    producer: i32,
}

impl<'g> Library<'g> {
    pub fn of(graph: &'g Graph, registry: &'g Registry) -> Library<'g> {
        let producer = graph.versions().map_or(0, |versions| versions.producer);
        Library { registry, functions: graph.library.as_deref(), producer }
    }

    /// The error for a function that is not there.
    pub fn unknown(&self, node: &Node, name: &str) -> GraphError {
        let near = near_names(name, self.functions.into_iter().flat_map(FunctionLibrary::names));
        let (node, op) = (node.name.clone(), node.op.name.clone());
        FunctionError::Unknown { node, op, name: name.to_owned(), near }.into()
    }

    /// Fills a definition in; `None` if there is none of this name.
    ///
    /// # Errors
    /// A definition that is not valid, or an attribute without a value.
    pub fn body(&self, key: &FunctionKey) -> Option<Result<Body, GraphError>> {
        let def = self.functions?.function(&key.name)?;
        let body = Filler { library: self, def, name: &key.name }.body(&key.call);
        Some(body.map_err(|source| match source {
            GraphError::Function(_) => source,
            source => {
                let function = key.name.clone();
                FunctionError::Body { function, source: Box::new(source) }.into()
            }
        }))
    }
}

/// A definition that is being filled in.
struct Filler<'f> {
    library: &'f Library<'f>,
    def: &'f FunctionDef,
    name: &'f str,
}

/// What a name in a definition stands for.
#[derive(Default)]
struct Names {
    /// The tensors of each argument.
    args: HashMap<String, Vec<Output>>,
    nodes: HashMap<String, NodeId>,
}

impl Filler<'_> {
    fn wrong(&self, what: String) -> GraphError {
        FunctionError::Definition { function: self.name.to_owned(), what }.into()
    }

    fn body(&self, call: &[u8]) -> Result<Body, GraphError> {
        let attrs = self.attrs(call)?;
        let producer = self.library.producer;
        let mut decoder = Decoder::new();
        if let Some(functions) = self.library.functions {
            decoder = decoder.with_library(functions);
        }
        let mut resolver = Resolver::new(self.library.registry, decoder, producer)
            .with_functions(self.library.functions);
        let mut names = Names::default();
        let mut nodes = Vec::new();
        self.arguments(&attrs, &mut resolver, &mut names, &mut nodes)?;
        let args: Vec<NodeId> = (0..nodes.len() as u32).map(NodeId).collect();
        for def in &self.def.node_def {
            let id = NodeId(nodes.len() as u32);
            let node = resolver.resolve(&self.filled(def, &attrs)?)?;
            if node.op.is_missing() {
                return Err(unknown_op(self.library.registry, node.name, node.op.name.clone()));
            }
            if names.nodes.insert(def.name.clone(), id).is_some() {
                return Err(GraphError::DuplicateNode { node: def.name.clone() });
            }
            nodes.push(Node { origin: None, ..node });
        }
        self.wire(&names, args.len(), &mut nodes)?;
        let returns = self.returns(&names, &nodes)?;
        let effects = self.effects(&names, &nodes)?;
        let by_name =
            nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), NodeId(at as u32)));
        let graph = Graph {
            names: by_name.collect(),
            nodes: nodes.into_iter().map(Arc::new).collect(),
            ..Graph::new()
        };
        let kept = self.def.attr.get("_noinline").and_then(|attr| attr.value.as_ref());
        let is_kept = kept == Some(&AttrValueKind::B(true));
        Ok(Body { graph, args, returns, effects, is_kept })
    }

    /// The values of the function's attributes: those of the call, and defaults.
    fn attrs(&self, call: &[u8]) -> Result<Attrs, GraphError> {
        let call: NameAttrList = match decode(call) {
            Ok(call) => call,
            Err(error) => {
                return Err(self.wrong(format!("its call is not a NameAttrList: {error}")));
            }
        };
        let mut attrs = call.attr;
        for attr in self.def.signature.iter().flat_map(|signature| &signature.attr) {
            if let (Some(default), false) = (&attr.default_value, attrs.contains_key(&attr.name)) {
                attrs.insert(attr.name.clone(), default.clone());
            }
        }
        Ok(attrs)
    }

    /// A node's message with the values of the function's attributes.
    fn filled(&self, def: &NodeDef, attrs: &Attrs) -> Result<NodeDef, GraphError> {
        let fill =
            |(name, value): (&String, &AttrProto)| Ok((name.clone(), self.value(value, attrs)?));
        let attr = def.attr.iter().map(fill).collect::<Result<_, GraphError>>()?;
        let (name, op, device) = (def.name.clone(), def.op.clone(), def.device.clone());
        Ok(NodeDef { name, op, device, attr, ..NodeDef::default() })
    }

    fn value(&self, value: &AttrProto, attrs: &Attrs) -> Result<AttrProto, GraphError> {
        let function = |call: &NameAttrList| {
            let fill = |(name, value): (&String, &AttrProto)| {
                Ok((name.clone(), self.value(value, attrs)?))
            };
            let attr = call.attr.iter().map(fill).collect::<Result<_, GraphError>>()?;
            Ok::<_, GraphError>(NameAttrList { name: call.name.clone(), attr })
        };
        let value = match &value.value {
            Some(AttrValueKind::Placeholder(name)) => {
                let filled = attrs.get(name).cloned();
                return filled.ok_or_else(|| self.no_attr(name));
            }
            Some(AttrValueKind::Func(call)) => AttrValueKind::Func(function(call)?),
            Some(AttrValueKind::List(list)) if !list.func.is_empty() => {
                let func = list.func.iter().map(function).collect::<Result<_, _>>()?;
                AttrValueKind::List(Box::new(ListValue { func, ..*list.clone() }))
            }
            _ => return Ok(value.clone()),
        };
        Ok(AttrProto { value: Some(value) })
    }

    fn no_attr(&self, attr: &str) -> GraphError {
        FunctionError::NoAttr { function: self.name.to_owned(), attr: attr.to_owned() }.into()
    }

    /// Adds a node for each tensor of the arguments.
    fn arguments(
        &self,
        attrs: &Attrs,
        resolver: &mut Resolver<'_>,
        names: &mut Names,
        nodes: &mut Vec<Node>,
    ) -> Result<(), GraphError> {
        for arg in self.def.signature.iter().flat_map(|signature| &signature.input_arg) {
            let types = self.types(arg, attrs)?;
            let mut tensors = Vec::with_capacity(types.len());
            for (at, dtype) in types.into_iter().enumerate() {
                let name = if at == 0 { arg.name.clone() } else { format!("{}_{at}", arg.name) };
                let index = AttrProto { value: Some(AttrValueKind::I(nodes.len() as i64)) };
                let attr = [("T".to_owned(), dtype), ("index".to_owned(), index)].into();
                let op = required_ops::ARG.to_owned();
                let def = NodeDef { name, op, attr, ..NodeDef::default() };
                tensors.push(Output::new(NodeId(nodes.len() as u32), 0));
                nodes.push(Node { origin: None, ..resolver.resolve(&def)? });
            }
            names.args.insert(arg.name.clone(), tensors);
        }
        Ok(())
    }

    /// The element types of an argument or result, as messages.
    fn types(&self, arg: &ArgDef, attrs: &Attrs) -> Result<Vec<AttrProto>, GraphError> {
        let of = |name: &str| attrs.get(name).and_then(|attr| attr.value.as_ref());
        let make = |number: i32| AttrProto { value: Some(AttrValueKind::Type(number)) };
        if !arg.type_list_attr.is_empty() {
            return match of(&arg.type_list_attr) {
                Some(AttrValueKind::List(list)) => {
                    Ok(list.r#type.iter().copied().map(make).collect())
                }
                _ => Err(self.no_attr(&arg.type_list_attr)),
            };
        }
        let dtype = match (arg.type_attr.as_str(), of(&arg.type_attr)) {
            ("", _) => make(arg.r#type),
            (_, Some(AttrValueKind::Type(number))) => make(*number),
            (name, _) => return Err(self.no_attr(name)),
        };
        let count = match (arg.number_attr.as_str(), of(&arg.number_attr)) {
            ("", _) => 1,
            (_, Some(&AttrValueKind::I(count))) => usize::try_from(count)
                .ok()
                .filter(|&count| count <= MAX_VALUES)
                .ok_or_else(|| self.wrong(format!("argument '{}' has {count} values", arg.name)))?,
            (name, _) => return Err(self.no_attr(name)),
        };
        Ok(vec![dtype; count])
    }

    /// The tensors that a name stands for: `argument`, `argument:index`, `node:result` or
    /// `node:result:index`.
    fn tensors(
        &self,
        names: &Names,
        nodes: &[Node],
        text: &str,
    ) -> Result<Vec<Output>, GraphError> {
        let wrong = || {
            self.wrong(format!(
                "expected an argument, or node:result:index of its nodes, found '{}'",
                cut(text)
            ))
        };
        let mut parts = text.split(':');
        let (name, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let index = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        if let Some(tensors) = names.args.get(name) {
            return match second {
                None => Ok(tensors.clone()),
                Some(at) => Ok(vec![*tensors.get(index(at)?).ok_or_else(wrong)?]),
            };
        }
        let id = *names.nodes.get(name).ok_or_else(wrong)?;
        let node = &nodes[id.index()];
        let all: Vec<Output> =
            (0..node.outputs().len() as u32).map(|at| Output::new(id, at)).collect();
        let Some(result) = second else {
            return all.get(..1).map(<[Output]>::to_vec).ok_or_else(wrong);
        };
        let Some(at) = node.op.output_index(result) else {
            return Ok(vec![*all.get(index(result)?).ok_or_else(wrong)?]);
        };
        let range = node.signature.output_args[at];
        let tensors = all.get(range.start as usize..(range.start + range.len) as usize);
        let tensors = tensors.ok_or_else(wrong)?;
        match third {
            None => Ok(tensors.to_vec()),
            Some(at) => Ok(vec![*tensors.get(index(at)?).ok_or_else(wrong)?]),
        }
    }

    /// Sets the inputs of the nodes behind the arguments.
    fn wire(&self, names: &Names, args: usize, nodes: &mut [Node]) -> Result<(), GraphError> {
        for (at, def) in self.def.node_def.iter().enumerate() {
            let (mut inputs, mut control_inputs) = (Vec::new(), Vec::new());
            for text in &def.input {
                match text.strip_prefix('^') {
                    None => inputs.extend(self.tensors(names, nodes, text)?),
                    // An argument is there before the body runs.
                    Some(arg) if names.args.contains_key(arg) => {}
                    Some(node) => match names.nodes.get(node) {
                        Some(&id) => control_inputs.push(id),
                        None => {
                            return Err(self.wrong(format!(
                                "node '{}' waits for '{node}', which it does not have",
                                def.name
                            )));
                        }
                    },
                }
            }
            let node = &mut nodes[args + at];
            (node.inputs, node.control_inputs) = (inputs, each_once(control_inputs));
        }
        let graph = Graph::new();
        let wiring = Wiring { graph: &graph, names: &HashMap::new(), nodes };
        for node in nodes.iter() {
            check_types(&wiring, node, &node.inputs, &mut Readings::default())?;
        }
        check_cycles(nodes, 0)
    }

    fn returns(&self, names: &Names, nodes: &[Node]) -> Result<Vec<Output>, GraphError> {
        let mut returns = Vec::new();
        for result in self.def.signature.iter().flat_map(|signature| &signature.output_arg) {
            let text =
                self.def.ret.get(&result.name).ok_or_else(|| {
                    self.wrong(format!("nothing gives its result '{}'", result.name))
                })?;
            returns.extend(self.tensors(names, nodes, text)?);
        }
        Ok(returns)
    }

    /// The nodes behind the control outputs, and those with state.
    fn effects(&self, names: &Names, nodes: &[Node]) -> Result<Vec<NodeId>, GraphError> {
        let mut effects = Vec::new();
        for node in self.def.control_ret.values() {
            let id = names.nodes.get(node).ok_or_else(|| {
                self.wrong(format!("its control output '{node}' is not among its nodes"))
            })?;
            effects.push(*id);
        }
        let acts = |node: &Node| matches!(node.op.facts().role, OpRole::Kernel | OpRole::Call);
        let stateful = nodes.iter().enumerate().filter(|(_, node)| node.op.stateful && acts(node));
        effects.extend(stateful.map(|(at, _)| NodeId(at as u32)));
        Ok(each_once(effects))
    }
}
