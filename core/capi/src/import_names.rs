//! How an import changes the names in a message.
//!
//! A node of the message gets a prefix, and a number where the graph has its name. Inputs that are mapped lead to nodes of the
//! graph. All of this happens in the message, so that the import itself is that of `tenon-graph`.

use crate::fail::Failure;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::c_int,
};
use tenon_framework::{Code, registry::Registry};
use tenon_graph::{Graph, NodeId, Output};
use tenon_proto::{AttrValueKind, GraphDef, NodeDef};

/// The changes that an import makes.
#[derive(Default, Clone)]
pub(crate) struct Plan {
    pub(crate) prefix: String,
    pub(crate) device: String,
    pub(crate) uniquify_names: bool,
    pub(crate) uniquify_prefix: bool,
    /// The output of the graph that replaces one of a node of the message; number -1 is the node itself.
    pub(crate) inputs: BTreeMap<(String, c_int), (String, c_int)>,
    /// Nodes of the graph that those wait for that follow no other node of the message.
    pub(crate) control: Vec<String>,
}

/// How the nodes of a message are named in the graph.
#[derive(Default)]
pub(crate) struct Imported {
    names: HashMap<String, String>,
    used: HashSet<(String, c_int)>,
}

/// An input of a node in a message: node and output, -1 for a control input.
fn parse(input: &str) -> (&str, c_int) {
    if let Some(node) = input.strip_prefix('^') {
        return (node, -1);
    }
    match input.rsplit_once(':') {
        Some((node, digits)) => match digits.parse() {
            Ok(index) => (node, index),
            Err(_) => (input, 0),
        },
        None => (input, 0),
    }
}

fn written(node: &str, index: c_int) -> String {
    match index {
        -1 => format!("^{node}"),
        0 => node.to_owned(),
        _ => format!("{node}:{index}"),
    }
}

/// Gives names that the graph does not have yet.
struct Namer<'g> {
    graph: &'g Graph,
    given: HashSet<String>,
    /// Names of nodes of the graph up to each slash.
    prefixes: HashSet<&'g str>,
}

impl<'g> Namer<'g> {
    fn new(graph: &'g Graph) -> Namer<'g> {
        let names = graph.nodes().map(|(_, node)| node.name.as_str());
        let slashes = names.flat_map(|name| name.match_indices('/').map(|(at, _)| &name[..at]));
        Namer { graph, given: HashSet::new(), prefixes: slashes.collect() }
    }

    fn is_taken(&self, name: &str) -> bool {
        self.graph.find(name).is_some() || self.given.contains(name) || self.prefixes.contains(name)
    }

    fn free(&self, name: &str) -> String {
        let mut names = (1u64..).map(|number| format!("{name}_{number}"));
        let found = names.find(|name| !self.is_taken(name));
        found.unwrap_or_else(|| name.to_owned())
    }

    /// The prefix with its slash; empty for none.
    fn prefix(&self, plan: &Plan) -> Result<String, Failure> {
        let prefix = plan.prefix.strip_suffix('/').unwrap_or(&plan.prefix);
        match prefix {
            "" => Ok(String::new()),
            taken if self.is_taken(taken) && plan.uniquify_prefix => Ok(self.free(taken) + "/"),
            taken if self.is_taken(taken) && !plan.uniquify_names => {
                Err(Failure::invalid(format!(
                    "prefix '{taken}': the graph has nodes of this name already; choose another one"
                )))
            }
            free => Ok(format!("{free}/")),
        }
    }

    fn name(&mut self, prefix: &str, name: &str, plan: &Plan) -> Result<String, Failure> {
        let full = format!("{prefix}{name}");
        let full = match self.is_taken(&full) {
            true if plan.uniquify_names => self.free(&full),
            true if self.graph.find(&full).is_some() => {
                return Err(Failure::invalid(format!(
                    "node '{full}': the graph has a node of this name already"
                )));
            }
            _ => full,
        };
        self.given.insert(full.clone());
        Ok(full)
    }
}

/// Changes the names in a message as a plan says.
///
/// # Errors
/// A name that the graph has already; an input of a node that is not in the message; an op that is not registered.
pub(crate) fn rewrite(
    graph: &Graph,
    mut def: GraphDef,
    plan: &Plan,
    registry: &Registry,
) -> Result<(GraphDef, Imported), Failure> {
    check_ops(graph, &def, registry)?;
    let mut namer = Namer::new(graph);
    let prefix = namer.prefix(plan)?;
    let mut imported = Imported::default();
    for node in &def.node {
        if imported.names.contains_key(&node.name) {
            return Err(Failure::invalid(format!("node '{}' is in the message twice", node.name)));
        }
        let name = namer.name(&prefix, &node.name, plan)?;
        imported.names.insert(node.name.clone(), name);
    }
    for node in &mut def.node {
        imported.rename(node, plan)?;
    }
    Ok((def, imported))
}

/// Checks that each op is registered, or is a function.
fn check_ops(graph: &Graph, def: &GraphDef, registry: &Registry) -> Result<(), Failure> {
    let functions = def.library.iter().flat_map(|library| &library.function);
    let functions =
        functions.filter_map(|function| Some(function.signature.as_ref()?.name.as_str()));
    let functions: HashSet<&str> = functions.collect();
    let known = |op: &str| {
        registry.op(op).is_some() || functions.contains(op) || graph.function(op).is_some()
    };
    match def.node.iter().find(|node| !known(&node.op)) {
        None => Ok(()),
        Some(node) => Err(Failure::new(
            Code::NOT_FOUND,
            format!(
                "node '{}': op '{}' is not registered: load the plugin that has it",
                node.name, node.op
            ),
        )),
    }
}

impl Imported {
    fn rename(&mut self, node: &mut NodeDef, plan: &Plan) -> Result<(), Failure> {
        let mut follows = false;
        let mut inputs = Vec::with_capacity(node.input.len());
        for input in &node.input {
            let (source, index) = parse(input);
            if let Some((to, output)) = plan.inputs.get(&(source.to_owned(), index)) {
                self.used.insert((source.to_owned(), index));
                inputs.push(written(to, if index < 0 { -1 } else { *output }));
                continue;
            }
            let name = self.names.get(source).ok_or_else(|| {
                Failure::invalid(format!(
                    "node '{}': input '{input}' is of no node of the message, and is not mapped",
                    node.name
                ))
            })?;
            follows = true;
            inputs.push(written(name, index));
        }
        if !follows {
            for name in &plan.control {
                let input = written(name, -1);
                if !inputs.contains(&input) {
                    inputs.push(input);
                }
            }
        }
        // Control inputs come last.
        inputs.sort_by_key(|input| input.starts_with('^'));
        node.input = inputs;
        self.rename_groups(node);
        if node.device.is_empty() {
            node.device.clone_from(&plan.device);
        }
        node.name.clone_from(&self.names[&node.name]);
        Ok(())
    }

    /// Renames the nodes that a node is colocated with.
    fn rename_groups(&self, node: &mut NodeDef) {
        let class = node.attr.get_mut("_class").and_then(|value| value.value.as_mut());
        let Some(AttrValueKind::List(list)) = class else { return };
        for group in &mut list.s {
            let text = String::from_utf8_lossy(group).into_owned();
            let name = text.strip_prefix("loc:@").and_then(|name| self.names.get(name));
            if let Some(name) = name {
                *group = format!("loc:@{name}").into_bytes();
            }
        }
    }

    /// The node of the graph for one of the message.
    pub(crate) fn node(&self, graph: &Graph, name: &str) -> Option<NodeId> {
        graph.find(self.names.get(name)?)
    }

    /// The output of the graph for one of the message that is not mapped.
    ///
    /// # Errors
    /// The message has no such output.
    pub(crate) fn find(&self, graph: &Graph, name: &str, index: c_int) -> Result<Output, Failure> {
        let missing = || {
            Failure::invalid(format!(
                "the graph that is imported has no output '{name}:{index}' to return"
            ))
        };
        let id = self.node(graph, name).ok_or_else(missing)?;
        let output = u32::try_from(index).map_err(|_| missing())?;
        match (output as usize) < graph.node(id).outputs().len() {
            true => Ok(Output::new(id, output)),
            false => Err(missing()),
        }
    }

    /// Checks that the nodes to return are in the message.
    pub(crate) fn check_returns(
        &self,
        plan: &Plan,
        outputs: &[(String, c_int)],
        operations: &[String],
    ) -> Result<(), Failure> {
        let outputs =
            outputs.iter().filter(|of| !plan.inputs.contains_key(of)).map(|(name, _)| name);
        match outputs.chain(operations).find(|name| !self.names.contains_key(*name)) {
            None => Ok(()),
            Some(name) => Err(Failure::invalid(format!(
                "the graph that is imported has no node '{name}' to return"
            ))),
        }
    }

    /// Checks that the outputs to return exist.
    pub(crate) fn check_outputs(
        &self,
        graph: &Graph,
        plan: &Plan,
        outputs: &[(String, c_int)],
    ) -> Result<(), Failure> {
        let mut unmapped = outputs.iter().filter(|of| !plan.inputs.contains_key(of));
        unmapped.try_for_each(|(name, index)| self.find(graph, name, *index).map(drop))
    }

    /// The mapped inputs that no node read and that the message does not have.
    pub(crate) fn missing(&self, graph: &Graph, plan: &Plan) -> Vec<(String, c_int)> {
        let unused = plan.inputs.keys().filter(|key| !self.used.contains(*key));
        let has = |(name, index): &(String, c_int)| {
            let id = self.node(graph, name);
            id.is_some_and(|_| *index < 0 || self.find(graph, name, *index).is_ok())
        };
        unused.filter(|key| !has(key)).cloned().collect()
    }
}
