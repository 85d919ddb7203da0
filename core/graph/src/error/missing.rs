//! The part of an error that lists unregistered ops which a step needs.

use std::fmt;
use tenon_framework::text;

/// The maximum number of nodes listed per op.
const MAX_LISTED_NODES: usize = 3;

/// An unregistered op that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOp {
    /// The name of the op.
    pub op: String,
    /// Some of the nodes of this op that the step needs.
    pub nodes: Vec<String>,
    /// The number of all such nodes.
    pub count: usize,
    /// Similar names, as text for the message; may be empty.
    pub near: String,
}

/// The unregistered ops that a step needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingOps {
    /// The first ops, in the order of their nodes.
    pub ops: Vec<MissingOp>,
    /// The number of further ops, which are not listed.
    pub more: usize,
}

impl MissingOp {
    /// Counts a node of this op, and lists it if the list is not full.
    pub(crate) fn add(&mut self, node: &str) {
        self.count += 1;
        if self.nodes.len() < MAX_LISTED_NODES {
            self.nodes.push(node.to_owned());
        }
    }
}

impl fmt::Display for MissingOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = text::some_of(self.nodes.iter().map(String::as_str), MAX_LISTED_NODES);
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
        let ops: Vec<String> = self.ops.iter().map(MissingOp::to_string).collect();
        let more = match self.more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        write!(
            f,
            "needed ops are not registered: {}{more}; load the plugins that define them \
             (--plugin FILE, or their folder in TENON_PLUGIN_PATH), and refresh a session that is open",
            ops.join(", ")
        )
    }
}
