//! The record by which the edits of a pass that fails are undone.

use crate::{Node, NodeId, Output};
use std::sync::Arc;
use tenon_framework::infer::ValueInfo;

/// What stood there before an edit.
#[derive(Debug)]
pub(super) enum Undo {
    /// The node.
    Node(NodeId, Arc<Node>),
    /// What one data input of it was.
    Input(NodeId, u32, Output),
    /// A control input of it, and where that stood.
    ControlGone(NodeId, u32, NodeId),
    /// It waited for one less: the last of its control inputs was not there.
    ControlAdded(NodeId),
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
