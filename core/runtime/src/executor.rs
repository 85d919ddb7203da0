//! The executor: runs plans.
//!
//! The thread that called `run` drives the step. Cheap kernels run inline on the thread that made
//! them ready. A costly kernel, judged by the running mean of its measured cost, goes to the pool
//! if another costly one is ready at the same time. Asynchronous calls and transfers complete
//! through the step's inbox ([`shared::StepShared`]).
//!
//! Everything that follows the completion of a node is behind one trait, [`propagate::Propagate`]:
//! the acyclic form counts predecessors, the form with control flow (`frames`) runs the iterations
//! of loops and propagates dead values. A [`partition::PartitionState`] is pooled with its step: in
//! steady state, a step allocates nothing except fetched outputs that the client still holds.

mod call;
mod callable;
mod callee;
mod dispatch;
mod failure;
mod frame;
mod frames;
mod function;
mod lanes;
mod part;
mod partition;
mod propagate;
mod read;
mod recorder;
mod sample;
mod select;
mod shared;
mod slots;
mod step;
mod streams;
mod transfer;

pub(crate) use callee::Callees;
pub(crate) use function::{Function, Functions};
pub(crate) use shared::StepShared;
pub(crate) use step::{
    Failed, StepState, StepWiring, cancelled_error, deadline_error, deadline_ns,
};
