//! Control edges that say nothing: beside a data edge from the same node, and from a constant that waits for
//! nothing.

use super::{Draft, Pass, PassError};
use crate::{ControlFlow, NodeId};

/// Removal of control edges that order nothing.
pub(super) struct ControlEdges;

impl Pass for ControlEdges {
    fn name(&self) -> &str {
        "control_edges"
    }

    fn run(&self, draft: &mut Draft<'_>) -> Result<(), PassError> {
        for id in draft.order()? {
            let node = draft.node(id);
            if node.control_inputs.is_empty() {
                continue;
            }
            let needed = |&source: &NodeId| !says_nothing(draft, id, source);
            let kept: Vec<NodeId> = node.control_inputs.iter().copied().filter(needed).collect();
            let gone = node.control_inputs.len() - kept.len();
            if gone > 0 {
                draft.set_control(id, kept);
                draft.note(id, format!("waits for {gone} fewer: they said nothing"));
            }
        }
        Ok(())
    }
}

fn says_nothing(draft: &Draft<'_>, id: NodeId, source: NodeId) -> bool {
    let node = draft.node(id);
    let by_data = || {
        // A merge takes what comes first, and of a switch one output is dead.
        node.control_flow() != ControlFlow::Merge
            && draft.node(source).control_flow() != ControlFlow::Switch
            && node.inputs.iter().any(|&input| draft.source(input) == Some(source))
    };
    let constant = || {
        let source_node = draft.node(source);
        source_node.op.name == "Const" && source_node.control_inputs.is_empty()
    };
    by_data() || constant()
}
