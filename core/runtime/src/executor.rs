//! The executor: runs plans.
//!
//! One step is driven by the thread that called `run`. Cheap kernels run in line on the thread that made
//! them ready; a costly one, by the running mean of its measured cost, goes to the pool when another costly
//! one is ready beside it. Asynchronous calls and transfers come back through the step's inbox
//! ([`shared::StepShared`]).
//!
//! What happens when a node is done is behind one trait, [`propagate::Propagate`]: the acyclic form counts
//! predecessors, the form with control flow (`frames`) runs iterations of loops and
//! carries dead values. A [`partition::PartitionState`] is pooled with its step: in steady state a step allocates nothing but
//! fetched outputs that the client still holds.

mod check;
mod dispatch;
mod frame;
mod frames;
mod part;
mod partition;
mod propagate;
mod replay;
mod sample;
mod select;
mod shared;
mod step;
mod streams;
mod transfer;

pub(crate) use shared::StepShared;
pub(crate) use step::{
    Failed, StepState, StepWiring, cancelled_error, deadline_error, deadline_ns,
};
