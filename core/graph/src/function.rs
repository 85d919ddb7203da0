//! Functions: graphs with a signature, which nodes call.
//!
//! A graph's library has definitions; a node names one in an attribute, or is itself named after it.
//! [`expand`] replaces the calls in a step's graph by what they run:
//! - a call by a copy of the function's body;
//! - `If` and `Case` by `Switch` and `Merge` around a copy of each branch;
//! - `While` by a frame around a copy of its condition and of its body.
//!
//! A call stays a node if the function calls itself, asks not to be inlined, or would make the graph
//! too large. [`callee`] gives the graph that such a node runs.
//!
//! | file | content |
//! |---|---|
//! | `ops.rs` | which functions a node calls, and how |
//! | `body.rs` | a definition with the attributes of a call: a graph with arguments and results |
//! | `define.rs` | functions that are built in code |
//! | `expand.rs` | which calls are replaced, in which order |
//! | `assembly.rs` | copying bodies, and the nodes around them |
//! | `branches.rs`, `loops.rs` | conditionals, loops |
//!
//! # Invariants
//! - What a body does besides computing results (its *effects*: nodes with state, and the control
//!   outputs of its definition) happens before any reader of the call's outputs, and before the
//!   nodes that wait for the call.
//! - A node of a body without inputs runs only if the call runs: on a branch, it waits for the
//!   branch to be taken; in a loop, it runs in each iteration. A constant is there once: on a branch
//!   before it is taken, in a loop before the first iteration.
//! - A copy of a node has its name behind that of the call, and frames and colocation groups are
//!   renamed alike.

mod assembly;
mod body;
mod branches;
mod define;
mod expand;
mod loops;
mod ops;

pub use body::FunctionKey;
pub use expand::{Callee, Expanded, callee, definition, expand};
pub use ops::called;
