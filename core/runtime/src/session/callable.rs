//! A prepared run: feeds and fetches resolved once.

use super::{Inner, executable::Executable};
use crate::{
    error::RuntimeError,
    options::{CallableOptions, NodeReport, RunOptions},
    patience::{ENDLESS, Patience},
    worker::Asked,
};
use arc_swap::{ArcSwap, Guard};
use std::sync::{Arc, atomic::Ordering};
use tenon_framework::Tensor;

/// What a callable runs, and for which generation of the session.
struct Prepared {
    generation: u64,
    executable: Arc<Executable>,
}

/// A prepared run of a session. It follows the session's `refresh`, and keeps its compiled step, whatever else the
/// session compiles. May be called from several threads.
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
        let executable = session.executable(&options, &ENDLESS)?;
        let current = ArcSwap::from_pointee(Prepared { generation, executable });
        Ok(Callable { session, options, current })
    }

    fn prepared(&self, patience: &Patience) -> Result<Guard<Arc<Prepared>>, RuntimeError> {
        let generation = self.session.generation.load(Ordering::Acquire);
        let current = self.current.load();
        if current.generation == generation {
            return Ok(current);
        }
        let executable = self.session.executable(&self.options, patience)?;
        self.current.store(Arc::new(Prepared { generation, executable }));
        Ok(self.current.load())
    }

    /// Runs a step: `feeds` in the order of the options; `fetched` is cleared and filled.
    ///
    /// # Errors
    /// Feeds that do not fit, and what the step fails with.
    pub fn run(&self, feeds: &[Tensor], fetched: &mut Vec<Tensor>) -> Result<(), RuntimeError> {
        let prepared = self.prepared(&ENDLESS)?;
        self.session.step(&prepared.executable, feeds, fetched, None)
    }

    /// As [`Callable::run`], with a deadline, a token or a trace.
    ///
    /// # Errors
    /// As [`Callable::run`].
    pub fn run_with(
        &self,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        options: &RunOptions,
    ) -> Result<(), RuntimeError> {
        let patience = Patience::from_now(Some(options));
        let prepared = self.prepared(&patience)?;
        let asked = Asked { options, patience: &patience };
        self.session.step(&prepared.executable, feeds, fetched, Some(asked))
    }

    /// The nodes of the plan: where each runs, and by which kernel.
    ///
    /// # Errors
    /// As compiling the plan anew.
    pub fn nodes(&self) -> Result<Arc<Vec<NodeReport>>, RuntimeError> {
        Ok(Arc::clone(&self.prepared(&ENDLESS)?.executable.registered.report))
    }

    /// Calls of each node since the plan was compiled; empty unless the session counts them.
    ///
    /// # Errors
    /// As compiling the plan anew.
    pub fn calls(&self) -> Result<Vec<(String, u64)>, RuntimeError> {
        Ok(self.prepared(&ENDLESS)?.executable.registered.calls())
    }
}
