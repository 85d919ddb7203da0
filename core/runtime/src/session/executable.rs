//! A compiled step of a session: its registration at the worker, and the specification of its
//! feeds.

use crate::{feeds::FeedSpecs, worker::Registered};

/// A compiled step.
pub(super) struct Executable {
    pub registered: Registered,
    pub feeds: FeedSpecs,
    pub compile_ns: u64,
}
