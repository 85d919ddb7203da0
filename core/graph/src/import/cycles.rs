//! Checks that new nodes form no cycle other than through the back edge of a loop.

use crate::{ControlFlow, GraphError, Node, NodeId, order::topological};

/// Checks the new nodes, whose numbers begin at `first`. Older nodes do not depend on them.
pub(crate) fn check(nodes: &[Node], first: u32) -> Result<(), GraphError> {
    let order = topological(nodes.len(), |at| sources(nodes, first, at));
    if order.len() == nodes.len() {
        return Ok(());
    }
    let mut stuck = vec![true; nodes.len()];
    for at in order {
        stuck[at] = false;
    }
    Err(GraphError::Cycle { nodes: find(nodes, first, &stuck) })
}

/// The positions of the new nodes that a node depends on within an iteration.
fn sources(nodes: &[Node], first: u32, at: usize) -> impl Iterator<Item = usize> {
    let node = &nodes[at];
    let is_merge = node.control_flow() == ControlFlow::Merge;
    let new = move |id: NodeId| id.0.checked_sub(first).map(|at| at as usize);
    let data = node.inputs.iter().filter_map(move |input| {
        let source = new(input.node)?;
        let back = is_merge && nodes[source].control_flow() == ControlFlow::NextIteration;
        (!back).then_some(source)
    });
    data.chain(node.control_inputs.iter().filter_map(move |&id| new(id)))
}

/// The names along one cycle. Every node in `stuck` has a source in `stuck`.
fn find(nodes: &[Node], first: u32, stuck: &[bool]) -> Vec<String> {
    let Some(mut at) = stuck.iter().position(|&stuck| stuck) else { return Vec::new() };
    let mut place = vec![None; nodes.len()];
    let mut path = Vec::new();
    while place[at].is_none() {
        place[at] = Some(path.len());
        path.push(at);
        match sources(nodes, first, at).find(|&source| stuck[source]) {
            Some(source) => at = source,
            None => break,
        }
    }
    // The path follows sources, so data flows from its end to its start.
    let start = place[at].unwrap_or(0);
    path[start..].iter().rev().map(|&at| nodes[at].name.clone()).collect()
}
