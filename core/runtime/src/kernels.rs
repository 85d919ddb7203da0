//! The kernels of a node: queries whether they support it, timing, and creation.
//!
//! This module knows a node by its partition op ([`tenon_graph::PartOp`]), not by its graph. The
//! front end uses it to choose kernels, a worker to create the chosen ones.

mod cache;
mod measured;
mod site;

pub(crate) use cache::KernelCache;
pub(crate) use measured::{can_be_measured, times};
pub(crate) use site::{Scope, Site, Tuned};
