//! How long the caller of a step waits for it.
//!
//! Deadline and token hold from the moment when the run is asked for: while its plan is compiled, while another thread
//! compiles it, and while the step runs.

use crate::{
    error::{RuntimeError, StepError},
    executor::{StepShared, cancelled_error, deadline_error},
    options::{CancelToken, RunOptions},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_graph::GraphError;
use tenon_host::call::Cancellation;

/// When a run ends, whether it is done or not. By default never.
#[derive(Clone, Default)]
pub(crate) struct Patience {
    until: Option<Instant>,
    token: Option<CancelToken>,
}

/// Of a run that may take any time.
pub(crate) static ENDLESS: Patience = Patience { until: None, token: None };

/// How often a token is looked at by a thread that waits for another.
const POLL: Duration = Duration::from_millis(2);

impl Patience {
    /// Of a run that is asked for now.
    pub fn from_now(options: Option<&RunOptions>) -> Patience {
        let Some(options) = options else { return Patience::default() };
        let until = options.deadline.and_then(|limit| Instant::now().checked_add(limit));
        Patience { until, token: options.cancel.clone() }
    }

    /// The time that is left, where there is a deadline.
    pub fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// Why the run ends now, if it does.
    pub fn ended(&self) -> Option<StepError> {
        if self.token.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Some(cancelled_error());
        }
        self.is_late().then(deadline_error)
    }

    /// Whether the deadline passed.
    pub fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// # Errors
    /// The run ends now.
    pub fn check(&self) -> Result<(), RuntimeError> {
        self.ended().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The error of a graph that was given up, or that was found wrong.
    pub fn reason(&self, error: GraphError) -> RuntimeError {
        match (error, self.ended()) {
            (GraphError::Cancelled, Some(ended)) => ended.into(),
            (error, _) => error.into(),
        }
    }

    /// How long to wait for another thread before looking again; `None` is until it is done.
    pub fn slice(&self) -> Option<Duration> {
        let poll = self.token.as_ref().map(|_| POLL);
        match (self.left(), poll) {
            (Some(left), Some(poll)) => Some(left.min(poll)),
            (left, poll) => left.or(poll),
        }
    }

    /// Lets the token, if there is one, cancel what runs under `cancellation`, until the result is dropped.
    pub fn watch(&self, cancellation: &Arc<Cancellation>) -> Option<Watched> {
        let token = self.token.clone()?;
        let shared = Arc::new(StepShared::new(Arc::clone(cancellation)));
        token.attach(&shared);
        Some(Watched { token, shared })
    }
}

/// Kernels that a token cancels outside of a step.
pub(crate) struct Watched {
    token: CancelToken,
    shared: Arc<StepShared>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.token.detach(&self.shared);
    }
}
