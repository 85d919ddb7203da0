//! The ops of a graph and of its functions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tenon_framework::registry::Registry;
use tenon_proto::{AttrValue, AttrValueKind, FunctionDef, GraphDef, NodeDef};

/// An op that a graph or one of its functions uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpUse {
    /// The op.
    pub name: String,
    /// The number of its nodes.
    pub nodes: usize,
}

/// Ops whose nodes are variables.
const VARIABLES: [&str; 5] =
    ["VarHandleOp", "_VarHandlesOp", "Variable", "VariableV2", "TemporaryVariable"];

/// The functions of a graph by their names.
fn functions(graph: &GraphDef) -> HashMap<&str, &FunctionDef> {
    let functions = graph.library.iter().flat_map(|library| &library.function);
    functions.filter_map(|f| Some((f.signature.as_ref()?.name.as_str(), f))).collect()
}

/// The ops of a graph and of all its functions, in the order of their names. Calls of functions are not listed.
pub(crate) fn used(graph: &GraphDef) -> Vec<OpUse> {
    let functions = functions(graph);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let nodes = graph.node.iter().chain(functions.values().flat_map(|f| &f.node_def));
    for node in nodes.filter(|node| !functions.contains_key(node.op.as_str())) {
        *counts.entry(&node.op).or_default() += 1;
    }
    counts.into_iter().map(|(name, nodes)| OpUse { name: name.to_owned(), nodes }).collect()
}

/// The number of nodes that are variables.
pub(crate) fn count_variables(graph: &GraphDef) -> usize {
    graph.node.iter().filter(|node| VARIABLES.contains(&node.op.as_str())).count()
}

/// The node of a tensor's name: `x` for `x`, `x:1` and `^x`.
pub(crate) fn node_of(tensor: &str) -> &str {
    let name = tensor.strip_prefix('^').unwrap_or(tensor);
    name.split_once(':').map_or(name, |(node, _)| node)
}

/// Finds which ops the steps of a graph need.
pub(crate) struct Needs<'g> {
    nodes: HashMap<&'g str, &'g NodeDef>,
    functions: HashMap<&'g str, &'g FunctionDef>,
}

impl<'g> Needs<'g> {
    pub(crate) fn new(graph: &'g GraphDef) -> Needs<'g> {
        let nodes = graph.node.iter().map(|node| (node.name.as_str(), node)).collect();
        Needs { nodes, functions: functions(graph) }
    }

    /// The ops that steps which fetch these tensors need and the registry lacks, in the order of their names. Tensors that the
    /// graph does not have need nothing.
    pub(crate) fn missing(&self, tensors: &[&str], registry: &Registry) -> Vec<String> {
        let mut missing = BTreeSet::new();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut called: HashSet<&str> = HashSet::new();
        let mut stack: Vec<&NodeDef> = Vec::new();
        let mut names: Vec<&str> = tensors.iter().map(|tensor| node_of(tensor)).collect();
        loop {
            while let Some(name) = names.pop() {
                if let Some((name, node)) = self.nodes.get_key_value(name)
                    && seen.insert(name)
                {
                    names.extend(node.input.iter().map(|input| node_of(input)));
                    stack.push(node);
                }
            }
            let Some(node) = stack.pop() else { break };
            if !self.functions.contains_key(node.op.as_str()) && registry.op(&node.op).is_none() {
                missing.insert(node.op.clone());
            }
            for name in callees(node) {
                if let Some((name, function)) = self.functions.get_key_value(name)
                    && called.insert(name)
                {
                    stack.extend(&function.node_def);
                }
            }
        }
        missing.into_iter().collect()
    }
}

/// The functions that a node calls: its op, and those that its attributes name.
fn callees(node: &NodeDef) -> impl Iterator<Item = &str> {
    let mut names = vec![node.op.as_str()];
    let mut attrs: Vec<&AttrValue> = node.attr.values().collect();
    while let Some(attr) = attrs.pop() {
        match &attr.value {
            Some(AttrValueKind::Func(function)) => {
                names.push(&function.name);
                attrs.extend(function.attr.values());
            }
            Some(AttrValueKind::List(list)) => {
                for function in &list.func {
                    names.push(&function.name);
                    attrs.extend(function.attr.values());
                }
            }
            _ => {}
        }
    }
    names.into_iter()
}
