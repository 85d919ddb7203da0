//! The undo record for the edits of a failed pass.

use std::sync::Arc;
use tenon_framework::infer::ValueInfo;
use tenon_graph::{Node, NodeId, Output};

/// The state before an edit.
#[derive(Debug)]
pub(crate) enum Undo {
    /// The node.
    Node(NodeId, Arc<Node>),
    /// A former data input of a node: slot and source.
    Input(NodeId, u32, Output),
    /// A removed control input of a node: slot and source.
    ControlGone(NodeId, u32, NodeId),
    /// A control input was added at the end.
    ControlAdded(NodeId),
    /// The former inferred values of a node's outputs.
    Values(NodeId, Vec<ValueInfo>),
    /// The former cleanliness of a node.
    Clean(NodeId, bool),
    /// The node was live.
    Live(NodeId),
    /// The node was to run for its effects.
    Effect(NodeId),
    /// The node did not exist.
    Added,
}
