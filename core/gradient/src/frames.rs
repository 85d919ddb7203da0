//! Gradients of loops that are made of `Enter`, `Merge`, `Switch`, `NextIteration` and `Exit`.
//!
//! The gradient of a frame is a frame of as many iterations. The forward frame gets a counter, and a stack for each value
//! of an iteration that the gradient reads: each iteration pushes, and each iteration of the gradient pops. A push or a pop
//! of one iteration comes after those of the iteration before, since the counter waits for it. A value of a branch that
//! was not taken is neither pushed nor popped. The stacks of an inner frame are made in each iteration of the outer one,
//! which pushes their handles on a stack of its own.

mod backward;
mod context;
mod find;
mod stack;

pub(crate) use context::Contexts;
pub(crate) use find::Loops;

use std::collections::HashMap;
use tenon_framework::attr::{AttrMap, AttrValue};
use tenon_graph::{FrameId, NodeId, Output};

/// A frame of a gradient whose nodes are being added.
#[derive(Debug)]
pub(crate) struct Scope {
    /// The forward frame.
    pub frame: FrameId,
    /// Name of the frame of the gradient.
    pub name: String,
    pub parallel: i64,
    /// Runs in each iteration.
    pub pivot: NodeId,
    /// Makes the count for the next iteration.
    pub next_count: NodeId,
    /// Values of the forward frame, and of frames around, in this one.
    pub here: HashMap<Output, Output>,
    /// Nodes that run if a branch of the forward frame was taken.
    pub branches: HashMap<(Output, u32), NodeId>,
    /// The branch that each value of the forward frame is in.
    pub contexts: Contexts,
}

/// What was added to a forward frame.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub pivot: NodeId,
    pub next_count: NodeId,
    /// The number of iterations, in the frame around.
    pub total: Output,
}

/// The attributes of an `Enter`.
pub(crate) fn enter_attrs(name: &str, parallel: i64, is_constant: bool) -> AttrMap {
    AttrMap::from([
        ("frame_name".to_owned(), AttrValue::from(name)),
        ("parallel_iterations".to_owned(), AttrValue::Int(parallel)),
        ("is_constant".to_owned(), AttrValue::Bool(is_constant)),
    ])
}
