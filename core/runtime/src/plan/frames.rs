//! What the plan of a partition with control flow needs beyond the flat arrays.
//!
//! Such a partition has one [`super::Plan`] for each of its frames: the nodes that run in the frame, and the outputs
//! that belong to it. An `Enter` runs in the frame around and writes an output of the inner frame's plan, an
//! `Exit` the other way round; a `NextIteration` writes an output of its own frame's plan, in the next
//! iteration. Edges of such nodes lead to nodes of the plan in which their output lies.

mod build;
pub(crate) mod counts;

pub(super) use build::build;

use super::Span;
use std::sync::Arc;
use tenon_framework::Tensor;

/// What a node does when it is done, or dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Tells its successors.
    Plain,
    /// Runs even if all that it waits for is dead.
    Trigger,
    /// Passes its first input on to the output that its second names.
    Switch,
    /// Passes on the input that came first.
    Merge,
    /// Passes its input on.
    LoopCond,
    /// Brings its input into a frame.
    Enter {
        /// Position of the frame in [`super::Plan::inner`], from 1; 0 stands for the step itself.
        frame: u32,
        /// Whether into every iteration.
        constant: bool,
    },
    /// Brings its input into the frame around.
    Exit,
    /// Brings its input into the next iteration.
    NextIteration,
}

/// An edge to a node that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameEdge {
    /// Position among the outputs of the source; [`FrameEdge::CONTROL`] for a control edge.
    pub output: u32,
    /// The node, in the plan of the frame to which the source's outputs belong.
    pub node: u32,
    /// Position among its inputs.
    pub input: u32,
}

impl FrameEdge {
    /// Stands for an output.
    pub const CONTROL: u32 = u32::MAX;

    pub fn is_control(&self) -> bool {
        self.output == FrameEdge::CONTROL
    }
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameNode {
    pub role: Role,
    /// Positions in [`FramePlan::edges`].
    pub edges: Span,
    /// Data inputs.
    pub inputs: u32,
    /// First output, in the plan of the frame to which it belongs.
    pub output: u32,
    /// Its count before anything has arrived.
    pub count: u64,
}

/// What the plan of one frame needs beyond the flat arrays.
pub(crate) struct FramePlan {
    /// Name of the frame, for messages; empty for the step itself.
    pub name: String,
    /// Digest of the name: frames are numbered alike wherever they run.
    pub digest: u64,
    /// How many iterations may run at once.
    pub parallel: usize,
    /// Nodes that bring values into it.
    pub enters: u32,
    /// What each node does.
    pub nodes: Box<[FrameNode]>,
    pub edges: Box<[FrameEdge]>,
    /// The node that writes each output; [`FramePlan::NOBODY`] for a feed, and for a constant that does not run.
    pub writers: Box<[u32]>,
    /// The numbers that a `Merge` gives with its value.
    pub numbers: Arc<[Tensor]>,
}

impl FramePlan {
    /// See [`FramePlan::writers`].
    pub const NOBODY: u32 = u32::MAX;
}
