//! A step that a session has compiled: what is registered at its worker, and what its feeds have to be.

use crate::{step_graph::FeedSpecs, worker::Registered};

/// A compiled step.
pub(super) struct Executable {
    pub registered: Registered,
    pub feeds: FeedSpecs,
    pub compile_ns: u64,
}
