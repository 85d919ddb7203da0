//! The kernels of a node: asked whether they take it, timed, and made.
//!
//! What is here knows a node by what a partition has of it ([`tenon_graph::PartOp`]), not by its graph: the front end
//! asks as it chooses kernels, a worker makes those that were chosen.

mod cache;
mod measured;
mod site;

pub(crate) use cache::KernelCache;
pub(crate) use measured::{can_be_measured, times};
pub(crate) use site::{Scope, Site, Tuned};
