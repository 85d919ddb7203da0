//! The deadline and the cancellation token of a run.
//!
//! Both apply from the start of the run: while its plan is compiled, while another thread compiles
//! it, and while the step runs.

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

/// The limits after which a run must end, finished or not. The default has none.
#[derive(Clone, Default)]
pub(crate) struct RunLimits {
    until: Option<Instant>,
    token: Option<CancelToken>,
}

/// No limits.
pub(crate) static UNLIMITED: RunLimits = RunLimits { until: None, token: None };

/// The interval at which a thread that waits for another checks the token.
const POLL: Duration = Duration::from_millis(2);

impl RunLimits {
    /// The limits of a run that starts now.
    pub fn from_now(options: Option<&RunOptions>) -> RunLimits {
        let Some(options) = options else { return RunLimits::default() };
        let until = options.deadline.and_then(|limit| Instant::now().checked_add(limit));
        RunLimits { until, token: options.cancel.clone() }
    }

    /// The remaining time, if there is a deadline.
    pub fn left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// The reason why the run must end now, if it must.
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

    /// Checks that the run may go on.
    ///
    /// # Errors
    /// The run must end now.
    pub fn check(&self) -> Result<(), RuntimeError> {
        self.ended().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The error for a failed graph: that of the run if it must end now, otherwise the graph's own.
    pub fn reason(&self, error: GraphError) -> RuntimeError {
        match (error, self.ended()) {
            (GraphError::Cancelled, Some(ended)) => ended.into(),
            (error, _) => error.into(),
        }
    }

    /// The time to wait for another thread before checking the limits; `None` if there are no
    /// limits.
    pub fn slice(&self) -> Option<Duration> {
        let poll = self.token.as_ref().map(|_| POLL);
        match (self.left(), poll) {
            (Some(left), Some(poll)) => Some(left.min(poll)),
            (left, poll) => left.or(poll),
        }
    }

    /// Connects the token, if there is one, to `cancellation` until the result is dropped.
    pub fn watch(&self, cancellation: &Arc<Cancellation>) -> Option<Watched> {
        let token = self.token.clone()?;
        let shared = Arc::new(StepShared::new(Arc::clone(cancellation), None));
        token.attach(&shared);
        Some(Watched { token, shared })
    }
}

/// A cancellation, outside a step, that a token controls.
pub(crate) struct Watched {
    token: CancelToken,
    shared: Arc<StepShared>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.token.detach(&self.shared);
    }
}
