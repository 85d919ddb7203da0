//! Removal of redundant control edges: those parallel to a data edge from the same node, and those
//! from constants without control inputs; and of gates that order nothing ([`gates`]).

use crate::{Draft, Pass, PassError, gates};
use std::collections::HashSet;
use tenon_graph::{ControlFlow, NodeId};

/// Removal of redundant control edges.
pub(crate) struct ControlEdges;

impl Pass for ControlEdges {
    fn name(&self) -> &str {
        "control_edges"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        let order = draft.order()?;
        for &id in &order {
            if draft.is_stopped() {
                break;
            }
            let node = draft.node(id);
            if node.control_inputs.is_empty() {
                continue;
            }
            let read = read_by(draft, id);
            let needed = |source: &NodeId| !read.contains(source) && !is_constant(draft, *source);
            let kept: Vec<NodeId> = node.control_inputs.iter().copied().filter(needed).collect();
            let gone = node.control_inputs.len() - kept.len();
            if gone > 0 {
                draft.set_control(id, kept);
                draft.note(id, format!("loses {gone} redundant control inputs"));
            }
        }
        gates::open(draft, &order)
    }
}

/// The nodes whose values a node always reads when it runs.
fn read_by(draft: &Draft<'_>, id: NodeId) -> HashSet<NodeId> {
    let node = draft.node(id);
    // A `Merge` reads only its first value, and one output of a `Switch` is dead.
    if node.control_flow() == ControlFlow::Merge {
        return HashSet::new();
    }
    draft.spend(node.inputs.len() + node.control_inputs.len());
    let sources = node.inputs.iter().filter_map(|&input| draft.source(input));
    sources.filter(|&source| draft.node(source).control_flow() != ControlFlow::Switch).collect()
}

/// Whether a node is a constant without control inputs.
fn is_constant(draft: &Draft<'_>, id: NodeId) -> bool {
    let node = draft.node(id);
    node.op.is_constant() && node.control_inputs.is_empty()
}
