//! Steps whose feeds may have other shapes than the graph says of them, as in TensorFlow, which does not compare them.
//!
//! What follows from the shapes in the graph is worth keeping for the feeds that have them. So a step has two forms: the first
//! is that of the graph's shapes; the second is compiled when a feed comes that does not fit the first, and finds the shapes
//! that follow from its feeds in each step.

use super::{Callable, Inner, Session};
use crate::{
    error::RuntimeError,
    options::{CallableOptions, Metadata, RunOptions},
    run_limits::RunLimits,
    worker::CallerOptions,
};
use std::sync::{Arc, OnceLock};
use tenon_framework::Tensor;

/// A prepared run whose feeds may have other shapes than the graph says. Several threads may run it at once.
pub struct AnyShapeCallable {
    session: Arc<Inner>,
    options: CallableOptions,
    fitting: Callable,
    other: OnceLock<Callable>,
}

fn of_any_shape(options: &CallableOptions) -> CallableOptions {
    CallableOptions { feeds_of_any_shape: true, ..options.clone() }
}

impl Session {
    /// Like [`Session::run`], with feeds of any shape, in the order of the signature.
    ///
    /// # Errors
    /// As [`Session::run`], but for shapes of feeds.
    pub fn run_any_shape(
        &self,
        signature: &CallableOptions,
        feeds: &[Tensor],
        options: &RunOptions,
    ) -> Result<(Vec<Tensor>, Metadata), RuntimeError> {
        let run_limits = RunLimits::from_now(Some(options));
        let (mut executable, mut compile_ns) = self.inner.found_or_made(signature, &run_limits)?;
        if let Err(RuntimeError::FeedShape { .. }) = executable.feeds.check(feeds) {
            let other = self.inner.found_or_made(&of_any_shape(signature), &run_limits)?;
            (executable, compile_ns) = (other.0, compile_ns.saturating_add(other.1));
        }
        let mut fetched = Vec::with_capacity(signature.fetches.len());
        let caller = CallerOptions { options, run_limits: &run_limits };
        self.inner.step(&executable, feeds, &mut fetched, Some(caller))?;
        Ok((fetched, Metadata { nodes: Arc::clone(&executable.registered.report), compile_ns }))
    }

    /// Like [`Session::callable`], for feeds of any shape.
    ///
    /// # Errors
    /// As [`Session::callable`].
    pub fn any_shape_callable(
        &self,
        options: CallableOptions,
    ) -> Result<AnyShapeCallable, RuntimeError> {
        let fitting = self.callable(options.clone())?;
        let (session, other) = (Arc::clone(&self.inner), OnceLock::new());
        Ok(AnyShapeCallable { session, options, fitting, other })
    }
}

impl AnyShapeCallable {
    /// Runs a step, with a deadline, a token or a trace if there are options. `feeds` are in the order of the signature;
    /// `fetched` is cleared and filled. Returns the form of the step that ran.
    ///
    /// # Errors
    /// As [`Callable::run`], but for shapes of feeds.
    pub fn run(
        &self,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        options: Option<&RunOptions>,
    ) -> Result<&Callable, RuntimeError> {
        let run = |callable: &Callable, fetched: &mut Vec<Tensor>| match options {
            Some(options) => callable.run_with(feeds, fetched, options),
            None => callable.run(feeds, fetched),
        };
        let known = self.other.get();
        if known.is_none() || self.fitting.fits(feeds)? {
            match run(&self.fitting, fetched) {
                Err(RuntimeError::FeedShape { .. }) => {}
                done => return done.map(|()| &self.fitting),
            }
        }
        let other = match known {
            Some(other) => other,
            None => {
                let made = Callable::new(Arc::clone(&self.session), of_any_shape(&self.options))?;
                self.other.get_or_init(|| made)
            }
        };
        run(other, fetched).map(|()| other)
    }
}
