//! Nodes of unregistered ops. They may be in a graph, but no step may need them.

use crate::{Graph, GraphError, MissingOp, MissingOps, Node, NodeId, Subgraph, names::near_names};
use std::collections::HashMap;
use tenon_framework::registry::Registry;

/// The maximum number of ops that an error lists.
const MAX_LISTED_OPS: usize = 8;

/// Lists and counts the ops of these nodes.
fn count<'g>(nodes: impl Iterator<Item = &'g Node>) -> MissingOps {
    let mut missing = MissingOps { ops: Vec::new(), more: 0 };
    let mut places: HashMap<&str, Option<usize>> = HashMap::new();
    for node in nodes {
        let op = node.op.name.as_str();
        let place = *places.entry(op).or_insert_with(|| place(&mut missing, op));
        if let Some(known) = place.map(|at| &mut missing.ops[at]) {
            known.add(&node.name);
        }
    }
    missing
}

/// Adds an entry for a further op and returns its position, or only counts the op if the list is
/// full.
fn place(missing: &mut MissingOps, op: &str) -> Option<usize> {
    if missing.ops.len() == MAX_LISTED_OPS {
        missing.more += 1;
        return None;
    }
    missing.ops.push(MissingOp {
        op: op.to_owned(),
        nodes: Vec::new(),
        count: 0,
        near: String::new(),
    });
    Some(missing.ops.len() - 1)
}

impl Graph {
    /// The nodes that cannot run because they are, or depend on, a node of an unregistered op. The
    /// value is one such node.
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
    /// [`GraphError::MissingOps`] lists the unregistered ops, with similar names from the registry.
    pub fn check_ops(&self, sub: &Subgraph, registry: &Registry) -> Result<(), GraphError> {
        self.check_ops_of(&sub.order, Some(registry))
    }

    /// Like [`Graph::check_ops`], for any nodes.
    ///
    /// # Errors
    /// As [`Graph::check_ops`].
    pub fn check_ops_of(
        &self,
        nodes: &[NodeId],
        registry: Option<&Registry>,
    ) -> Result<(), GraphError> {
        let nodes = nodes.iter().map(|&id| self.node(id)).filter(|node| node.op.is_missing());
        let mut missing = count(nodes);
        if missing.ops.is_empty() {
            return Ok(());
        }
        for op in &mut missing.ops {
            let known = registry.into_iter().flat_map(Registry::ops);
            op.near = near_names(&op.op, known.map(|op| op.name.as_str()));
        }
        Err(GraphError::MissingOps { ops: Box::new(missing) })
    }
}
