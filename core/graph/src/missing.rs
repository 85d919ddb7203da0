//! Nodes whose ops nobody registered. They may be in a graph; no step may need them.

use crate::{Graph, GraphError, Node, NodeId, Subgraph, import::near_names};
use std::{
    collections::{HashMap, HashSet},
    fmt,
};
use tenon_framework::{registry::Registry, text};

/// Most ops that an error names.
const MOST_OPS: usize = 8;

/// Most nodes of each that it names.
const MOST_NODES: usize = 3;

/// An op that a step needs and nobody registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOp {
    /// Its name.
    pub op: String,
    /// Whether it is a function of the graph's library.
    pub is_function: bool,
    /// Some of the nodes of this op that the step needs.
    pub nodes: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// Names that it may have been meant as, in words; may be empty.
    pub near: String,
}

/// The ops that a step needs and nobody registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOps {
    /// The first of them, in the order of their nodes.
    pub ops: Vec<MissingOp>,
    /// How many there are besides.
    pub more: usize,
}

impl MissingOps {
    /// Whether all are functions of the graph's library.
    pub fn are_functions(&self) -> bool {
        self.more == 0 && self.ops.iter().all(|op| op.is_function)
    }

    /// Counts the ops of these nodes.
    fn of<'g>(nodes: impl Iterator<Item = &'g Node>, graph: &Graph) -> MissingOps {
        let functions: HashSet<&str> = graph.function_names().collect();
        let mut missing = MissingOps { ops: Vec::new(), more: 0 };
        let mut places: HashMap<&str, Option<usize>> = HashMap::new();
        for node in nodes {
            let op = node.op.name.as_str();
            let place = *places.entry(op).or_insert_with(|| missing.place(op, &functions));
            if let Some(known) = place.map(|at| &mut missing.ops[at]) {
                known.count += 1;
                if known.nodes.len() < MOST_NODES {
                    known.nodes.push(node.name.clone());
                }
            }
        }
        missing
    }

    /// A place for a further op, while there is one.
    fn place(&mut self, op: &str, functions: &HashSet<&str>) -> Option<usize> {
        if self.ops.len() == MOST_OPS {
            self.more += 1;
            return None;
        }
        self.ops.push(MissingOp {
            op: op.to_owned(),
            is_function: functions.contains(op),
            nodes: Vec::new(),
            count: 0,
            near: String::new(),
        });
        Some(self.ops.len() - 1)
    }
}

impl fmt::Display for MissingOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = text::some_of(self.nodes.iter().map(String::as_str), MOST_NODES);
        let more = match self.count - self.nodes.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let nodes = if self.count == 1 { "node" } else { "nodes" };
        write!(f, "'{}' ({nodes} {some}{more}{})", text::cut(&self.op), self.near)
    }
}

impl fmt::Display for MissingOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |functions: bool| {
            let ops = self.ops.iter().filter(|op| op.is_function == functions);
            ops.map(MissingOp::to_string).collect::<Vec<_>>().join(", ")
        };
        let (ops, functions) = (list(false), list(true));
        let more = match self.more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !ops.is_empty() || self.more > 0 {
            write!(
                f,
                "needed ops are not registered: {ops}{more}; load the plugins that define them \
                 (--plugin FILE, or their folder in TENON_PLUGIN_PATH), and refresh a session that is open"
            )?;
        }
        if functions.is_empty() {
            return Ok(());
        }
        let and = if ops.is_empty() { "" } else { "; " };
        write!(
            f,
            "{and}the step calls functions of the graph's library: {functions}; calling functions comes later: \
             write a graph whose functions are inlined"
        )
    }
}

impl Graph {
    /// The nodes that cannot run, since they are, or need, a node whose op nobody registered; with each such a node.
    pub fn blocked(&self) -> HashMap<NodeId, NodeId> {
        let missing = self.nodes().filter(|(_, node)| node.op.is_missing());
        let mut blocked: HashMap<NodeId, NodeId> = missing.map(|(id, _)| (id, id)).collect();
        if blocked.is_empty() {
            return blocked;
        }
        let mut users = vec![Vec::new(); self.len()];
        for (id, node) in self.nodes() {
            let data = node.inputs.iter().map(|input| input.node);
            let sources = data.chain(node.control_inputs.iter().copied());
            sources.for_each(|source| users[source.index()].push(id));
        }
        let mut stack: Vec<(NodeId, NodeId)> = blocked.iter().map(|(a, b)| (*a, *b)).collect();
        stack.sort_unstable();
        while let Some((id, missing)) = stack.pop() {
            for &user in &users[id.index()] {
                blocked.entry(user).or_insert_with(|| {
                    stack.push((user, missing));
                    missing
                });
            }
        }
        blocked
    }

    /// Checks that the ops of all nodes that a step needs are registered.
    ///
    /// # Errors
    /// [`GraphError::MissingOps`] names those that are not, with names of the registry that are near.
    pub fn check_ops(&self, sub: &Subgraph, registry: &Registry) -> Result<(), GraphError> {
        self.check_ops_of(&sub.order, Some(registry))
    }

    /// As [`Graph::check_ops`], of any nodes.
    ///
    /// # Errors
    /// As [`Graph::check_ops`].
    pub fn check_ops_of(
        &self,
        nodes: &[NodeId],
        registry: Option<&Registry>,
    ) -> Result<(), GraphError> {
        let nodes = nodes.iter().map(|&id| self.node(id)).filter(|node| node.op.is_missing());
        let mut missing = MissingOps::of(nodes, self);
        if missing.ops.is_empty() {
            return Ok(());
        }
        for op in missing.ops.iter_mut().filter(|op| !op.is_function) {
            let known = registry.into_iter().flat_map(Registry::ops);
            op.near = near_names(&op.op, known.map(|op| op.name.as_str()));
        }
        Err(GraphError::MissingOps { ops: Box::new(missing) })
    }
}
