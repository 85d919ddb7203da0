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

mod all_reduce;
mod average;
pub mod clip;
mod coordinator;
mod devices;
mod error;
mod events;
mod global_step;
mod hooks;
mod initial;
mod manager;
mod monitored;
mod nodes;
pub mod optimizer;
mod partition;
mod queue_runner;
mod replicas;
mod saver;
pub mod schedule;
mod target;
mod text;
mod towers;
mod variables;

pub use all_reduce::ReplicaGroup;
pub use average::{Averaged, ExponentialMovingAverage};
pub use coordinator::{Coordinator, GRACE, is_clean_end};
pub use devices::VariableDevices;
pub use error::TrainError;
pub use events::EventWriter;
pub use global_step::{GLOBAL_STEP, global_step};
pub use hooks::{
    CheckpointSaver, Every, Feed, GlobalStepWaiter, Hook, LoggingTensor, NanTensor, Progress,
    RunArgs, RunContext, StepCounter, StopAtStep, Summary, SummarySink, Timer,
};
pub use initial::Initial;
pub use manager::{ManagerOptions, Scaffold, SessionManager, is_lost, read_step};
pub use monitored::{LoopOptions, MonitoredSession};
pub use nodes::Scalar;
pub use partition::{PartitionedVariable, Partitioner};
pub use queue_runner::QueueRunner;
pub use replicas::{Replicated, SyncReplicas};
pub use saver::{
    CheckpointState, STATE_FILE, Saver, SaverOptions, add_collection, latest_checkpoint, meta_graph,
};
pub use target::{LocalTarget, Target};
pub use towers::{Tower, Towers, towers};
pub use variables::{Identity, Variable, VariableOptions, Variables};
