//! Training: variables, optimisers, checkpoints, and the loop that keeps a run alive.
//!
//! What it is: client code. One half adds nodes to a graph: variables, the updates of an optimiser, towers. The other half
//! runs steps over a session, local or on a server: it saves and restores, calls hooks, and recovers.
//!
//! What it is not: the kernels that update variables (`plugins/train`), those that read and write checkpoints
//! (`plugins/checkpoint`), and the gradients of ops (`tenon-gradient`). Nothing below this crate knows of it.
//!
//! # Invariants
//! - What this crate adds to a graph are ordinary nodes, with the names that TensorFlow gives them where it has any.
//! - A variable is restored and saved under its name, whichever optimiser or tower reads it.

mod error;
mod events;
mod initial;
mod nodes;
mod variables;

pub use error::TrainError;
pub use events::EventWriter;
pub use initial::Initial;
pub use variables::{Variable, VariableOptions, Variables};
