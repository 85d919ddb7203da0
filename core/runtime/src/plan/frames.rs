//! Additional plan data for a partition with control flow.
//!
//! Such a partition has one [`super::Plan`] for each of its frames, with the nodes that run in the
//! frame and the outputs that belong to it. An `Enter` runs in the parent frame and writes an
//! output of the inner frame's plan; an `Exit` does the opposite. A `NextIteration` writes an
//! output of its own frame's plan, in the next iteration. The edges of such a node lead to nodes of
//! the plan that has its output.

mod build;
pub(crate) mod counts;
pub(crate) mod program;

pub(super) use build::{build, is_steady};

use super::Span;
use std::sync::Arc;
use tenon_framework::Tensor;

/// The action when a node is done or dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Notifies the successors.
    Plain,
    /// Runs even if everything that it waits for is dead.
    Trigger,
    /// Forwards its first input to the output that its second input selects.
    Switch,
    /// Forwards the input that arrived first.
    Merge,
    /// Forwards its input.
    LoopCond,
    /// Forwards its input into a frame.
    Enter {
        /// The position of the frame in [`super::Plan::inner`], from 1; 0 is the root frame.
        frame: u32,
        /// Whether the value enters every iteration.
        constant: bool,
    },
    /// Forwards its input to the parent frame.
    Exit,
    /// Forwards its input to the next iteration.
    NextIteration,
}

/// An edge to a node that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameEdge {
    /// The position among the outputs of the source; [`FrameEdge::CONTROL`] for a control edge.
    pub output: u32,
    /// The node, in the plan of the frame to which the source's outputs belong.
    pub node: u32,
    /// The position among the inputs of the node.
    pub input: u32,
    /// The number of inputs of the node if it is a `Merge`; else 0.
    pub merged: u32,
    /// Whether the node runs even if what it waits for is dead.
    pub triggers: bool,
}

impl FrameEdge {
    /// The output number of a control edge.
    pub const CONTROL: u32 = u32::MAX;

    pub fn is_control(&self) -> bool {
        self.output == FrameEdge::CONTROL
    }
}

/// The additional data of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameNode {
    pub role: Role,
    /// The outgoing edges: positions in [`FramePlan::edges`].
    pub edges: Span,
    /// The inputs of a node that forwards: positions in [`FramePlan::inputs`].
    pub inputs: Span,
    /// The first output, in the plan of the frame to which it belongs.
    pub output: u32,
}

/// An input of a node that forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameInput {
    /// The output that it reads.
    pub output: u32,
    /// Whether that output counts its readers.
    pub counted: bool,
}

/// The additional plan data of one frame.
pub(crate) struct FramePlan {
    /// The name of the frame, for messages; empty for the root frame.
    pub name: String,
    /// A digest of the name: frames have the same number on every worker.
    pub digest: u64,
    /// The maximum number of iterations that run at once.
    pub parallel: usize,
    /// The number of nodes that bring values into the frame.
    pub enters: u32,
    /// What each node does.
    pub nodes: Box<[FrameNode]>,
    pub edges: Box<[FrameEdge]>,
    pub inputs: Box<[FrameInput]>,
    /// The initial count of each node.
    pub counts: Box<[u64]>,
    /// The count of each node once the values that enter every iteration have arrived.
    pub steady_counts: Box<[u64]>,
    /// The nodes that wait for nothing but those values.
    pub steady_roots: Box<[u32]>,
    /// The outputs that have those values.
    pub steady: Box<[u32]>,
    /// The nodes of role [`Role::Exit`].
    pub exits: Box<[u32]>,
    /// The nodes that do more than forward.
    pub calls: Box<[u32]>,
    /// The node that writes each output; [`FramePlan::NONE`] for a feed, and for a constant that
    /// does not run.
    pub writers: Box<[u32]>,
    /// The index values that a `Merge` outputs with its value.
    pub numbers: Arc<[Tensor]>,
    /// The nodes in order, if one thread can run them so.
    pub program: Option<program::Program>,
}

impl FramePlan {
    /// See [`FramePlan::writers`].
    pub const NONE: u32 = u32::MAX;
}
