//! What a session says of a graph that it takes.

use crate::error::RuntimeError;
use std::ops::Range;
use tenon_framework::text::cut;
use tenon_graph::{Graph, NodeId};

/// Warns, once for all of them, of attributes of new nodes that their ops do not have.
pub(super) fn warn_of_ignored(graph: &Graph, new: Range<u32>) {
    const SHOWN: usize = 3;
    let mut ignored = graph.ignored_attrs(new);
    let shown: Vec<String> = (ignored.by_ref().take(SHOWN))
        .map(|(node, attr)| {
            let (attr, name, op) = (cut(attr), cut(&node.name), cut(&node.op.name));
            format!("'{attr}' of node '{name}' (op '{op}')")
        })
        .collect();
    if shown.is_empty() {
        return;
    }
    let more = match ignored.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    tracing::warn!(
        "attributes that their ops do not have are ignored: {}{more}; the graph may be of a newer TensorFlow",
        shown.join(", ")
    );
}

/// Checks that each node whose op was registered still has it in the graph that is read anew.
pub(super) fn check_still_there(was: &Graph, now: &Graph) -> Result<(), RuntimeError> {
    let both = was.nodes().zip(now.nodes());
    let gone = both.filter(|((_, was), (_, now))| !was.op.is_missing() && now.op.is_missing());
    let gone: Vec<NodeId> = gone.map(|((id, _), _)| id).collect();
    Ok(now.check_ops_of(&gone, None)?)
}
