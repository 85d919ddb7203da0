//! A prepared run: feeds and fetches are resolved once.

use super::{Inner, executable::Executable};
use crate::{
    error::RuntimeError,
    options::{CallableOptions, NodeReport, RunOptions},
    run_limits::{RunLimits, UNLIMITED},
    worker::CallerOptions,
};
use arc_swap::{ArcSwap, Guard};
use std::sync::{Arc, atomic::Ordering};
use tenon_framework::Tensor;

/// The compiled step of a callable, with the session's generation that it was compiled for.
struct Prepared {
    generation: u64,
    executable: Arc<Executable>,
}

/// A prepared run of a session. It follows the session's `refresh`, and keeps its compiled step
/// whatever else the session compiles. Several threads may run it at once.
pub struct Callable {
    session: Arc<Inner>,
    options: CallableOptions,
    current: ArcSwap<Prepared>,
}

impl Callable {
    pub(super) fn new(
        session: Arc<Inner>,
        options: CallableOptions,
    ) -> Result<Callable, RuntimeError> {
        let generation = session.generation.load(Ordering::Acquire);
        let executable = session.executable(&options, &UNLIMITED)?;
        let current = ArcSwap::from_pointee(Prepared { generation, executable });
        Ok(Callable { session, options, current })
    }

    fn prepared(&self, run_limits: &RunLimits) -> Result<Guard<Arc<Prepared>>, RuntimeError> {
        let generation = self.session.generation.load(Ordering::Acquire);
        let current = self.current.load();
        if current.generation == generation {
            return Ok(current);
        }
        let executable = self.session.executable(&self.options, run_limits)?;
        self.current.store(Arc::new(Prepared { generation, executable }));
        Ok(self.current.load())
    }

    /// Runs a step. `feeds` are in the order of the options; `fetched` is cleared and filled.
    ///
    /// # Errors
    /// A feed does not fit, or the step fails.
    pub fn run(&self, feeds: &[Tensor], fetched: &mut Vec<Tensor>) -> Result<(), RuntimeError> {
        let prepared = self.prepared(&UNLIMITED)?;
        self.session.step(&prepared.executable, feeds, fetched, None)
    }

    /// Like [`Callable::run`], with a deadline, a token or a trace.
    ///
    /// # Errors
    /// As [`Callable::run`].
    pub fn run_with(
        &self,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        options: &RunOptions,
    ) -> Result<(), RuntimeError> {
        let run_limits = RunLimits::from_now(Some(options));
        let prepared = self.prepared(&run_limits)?;
        let caller = CallerOptions { options, run_limits: &run_limits };
        self.session.step(&prepared.executable, feeds, fetched, Some(caller))
    }

    /// Whether the feeds have the shapes that the graph says of them. Other errors of theirs are those of the step.
    pub(super) fn fits(&self, feeds: &[Tensor]) -> Result<bool, RuntimeError> {
        let checked = self.prepared(&UNLIMITED)?.executable.feeds.check(feeds);
        Ok(!matches!(checked, Err(RuntimeError::FeedShape { .. })))
    }

    /// The nodes of the plan, with the device and the kernel of each.
    ///
    /// # Errors
    /// As compiling the plan again.
    pub fn nodes(&self) -> Result<Arc<Vec<NodeReport>>, RuntimeError> {
        Ok(Arc::clone(&self.prepared(&UNLIMITED)?.executable.registered.report))
    }

    /// The calls of each node since the plan was compiled; empty unless the session counts them.
    ///
    /// # Errors
    /// As compiling the plan again.
    pub fn calls(&self) -> Result<Vec<(String, u64)>, RuntimeError> {
        Ok(self.prepared(&UNLIMITED)?.executable.registered.calls())
    }
}
