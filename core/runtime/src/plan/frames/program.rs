//! Programs: the nodes of a frame in an order in which one thread runs them, without counting arrivals.
//!
//! A frame has a program if each of its nodes is done when its call returns: kernels that neither complete later nor
//! block, in host memory, without transfers, calls of functions and further frames inside. The program has one step for
//! each node. The executor runs it unless other threads could help, and propagates arrivals otherwise
//! (`executor::frames`).
//!
//! # Classes
//! Whether a node runs depends on the predicates of `Switch` nodes. Nodes that depend on the same ones have one *class*,
//! which is live or dead in an iteration; class [`ALWAYS`] is always live. A `Switch` makes a class for each of its
//! outputs, and switches with the same predicate share them. What a node does in a dead iteration of its class is left
//! out: [`Step::next`] is the first step after it that may be live.

mod build;
mod classes;

pub(in crate::plan) use build::{Input, Item, Source, program};

use super::Span;

/// The class that is live in every iteration.
pub(crate) const ALWAYS: u32 = 0;

/// What a step does if its class is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Runs the node.
    Node,
    /// Forwards the first input.
    Pass,
    /// Forwards the first input to the output that the second input selects, and makes the class of that output live:
    /// those of the outputs are consecutive, from this one on.
    Switch(u32),
    /// Forwards the first input whose class is live, and makes this class live.
    Merge {
        /// The classes of the inputs: positions in [`Program::merged`].
        inputs: Span,
        /// The class of the value.
        class: u32,
    },
    /// Forwards the value that enters the loop in the first iteration, and that of the iteration before in the others.
    Loop {
        /// The input that enters the loop.
        enter: u32,
        /// The input from the iteration before.
        next: u32,
    },
    /// Makes a class live if another one is live too. There is no node.
    Both {
        /// The other class.
        with: u32,
        /// The class that is live if both are.
        class: u32,
    },
}

/// A step of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The node.
    pub node: u32,
    /// The class of the node.
    pub class: u32,
    /// The first step after this one that may be live if the class is dead.
    pub next: u32,
    /// Whether the node, if it is dead, has inputs to release.
    pub releases: bool,
    /// What it does.
    pub task: Task,
}

/// The ends of an iteration of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The class that is live if another iteration follows.
    pub continues: u32,
    /// The nodes that lead to the next iteration.
    pub nexts: Box<[u32]>,
    /// The nodes that lead out of the loop.
    pub exits: Box<[u32]>,
}

/// The nodes of a frame in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub steps: Box<[Step]>,
    /// The classes of the inputs of `Merge` nodes.
    pub merged: Box<[u32]>,
    /// The number of classes.
    pub classes: u32,
    /// The class of each output of the plan; [`ALWAYS`] for those that no node of the frame writes.
    pub outputs: Box<[u32]>,
    /// The ends of an iteration; `None` for the root frame.
    pub turn: Option<Turn>,
}
