//! Checks of the graphs that a session imports.

use crate::error::RuntimeError;
use std::ops::Range;
use tenon_graph::{Graph, NodeId};

/// Logs one warning for all attributes of new nodes that their ops do not declare.
pub(super) fn warn_of_ignored(graph: &Graph, new: Range<u32>) {
    if let Some(warning) = graph.ignored_attrs_warning(new) {
        tracing::warn!("{warning}");
    }
}

/// Checks that each node whose op was registered still has it in the graph imported again.
pub(super) fn check_still_there(was: &Graph, now: &Graph) -> Result<(), RuntimeError> {
    let both = was.nodes().zip(now.nodes());
    let gone = both.filter(|((_, was), (_, now))| !was.op.is_missing() && now.op.is_missing());
    let gone: Vec<NodeId> = gone.map(|((id, _), _)| id).collect();
    Ok(now.check_ops_of(&gone, None)?)
}
