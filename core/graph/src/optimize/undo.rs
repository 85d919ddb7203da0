//! The record by which the edits of a pass that fails are undone.

use crate::{Node, NodeId};
use std::sync::Arc;
use tenon_framework::infer::ValueInfo;

/// What stood there before an edit.
#[derive(Debug)]
pub(super) enum Undo {
    /// The node.
    Node(NodeId, Arc<Node>),
    /// What was known of its outputs.
    Values(NodeId, Vec<ValueInfo>),
    /// Whether nothing upstream has an effect.
    Clean(NodeId, bool),
    /// It ran.
    Live(NodeId),
    /// It was to run for its effects.
    Effect(NodeId),
    /// It was not there.
    Added,
}
