//! Hooks: what a training loop does besides its steps.
//!
//! A [`MonitoredSession`](crate::MonitoredSession) calls each hook in the order in which they were added: `begin` once,
//! `after_create_session` for every session (a new one after a loss), `before_run` and `after_run` around every step, and
//! `end` once if no step failed.

mod checkpoint;
mod progress;
mod steps;
mod summary;
mod timer;
mod values;

pub use checkpoint::CheckpointSaver;
pub use progress::Progress;
pub use steps::{GlobalStepWaiter, StepCounter, StopAtStep};
pub use summary::{Summary, SummarySink};
pub use timer::{Every, Timer};
pub use values::{Feed, LoggingTensor, NanTensor};

use crate::{Coordinator, Scaffold, TrainError};
use std::sync::Arc;
use tenon_framework::Tensor;
use tenon_runtime::AnySession;

/// What a hook adds to a step.
#[derive(Debug, Clone, Default)]
pub struct RunArgs {
    /// Tensors that are fed.
    pub feeds: Vec<(String, Tensor)>,
    /// Tensors that are fetched.
    pub fetches: Vec<String>,
}

impl RunArgs {
    /// Fetches these tensors.
    pub fn fetch(names: &[String]) -> RunArgs {
        RunArgs { fetches: names.to_vec(), ..RunArgs::default() }
    }
}

/// The session of a step, for its hooks.
pub struct RunContext<'s> {
    session: &'s Arc<dyn AnySession>,
    coordinator: &'s Coordinator,
    is_stopped: bool,
}

impl<'s> RunContext<'s> {
    pub(crate) fn new(
        session: &'s Arc<dyn AnySession>,
        coordinator: &'s Coordinator,
    ) -> RunContext<'s> {
        RunContext { session, coordinator, is_stopped: false }
    }

    /// The session. A hook may run steps of its own; hooks are not called for these.
    pub fn session(&self) -> &'s dyn AnySession {
        &**self.session
    }

    /// The session, for a hook that runs steps on threads of its own.
    pub fn shared_session(&self) -> Arc<dyn AnySession> {
        Arc::clone(self.session)
    }

    /// What stops the threads of the session, for hooks that wait.
    pub fn coordinator(&self) -> &'s Coordinator {
        self.coordinator
    }

    /// Ends the training after this step.
    pub fn request_stop(&mut self) {
        self.is_stopped = true;
    }

    /// Whether a hook has ended the training.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

/// What a training loop does besides its steps.
///
/// An error of a hook ends the step with it. `ABORTED` and `UNAVAILABLE` mean that the session is lost: the loop opens a new
/// one and runs the step again.
pub trait Hook: Send {
    /// Called once, before the first session is opened.
    ///
    /// # Errors
    /// The graph lacks what the hook needs.
    fn begin(&mut self, _scaffold: &Scaffold) -> Result<(), TrainError> {
        Ok(())
    }

    /// Called for every new session, once its variables have values.
    ///
    /// # Errors
    /// A step of the hook fails.
    fn after_create_session(&mut self, _run: &mut RunContext<'_>) -> Result<(), TrainError> {
        Ok(())
    }

    /// Called before every step.
    ///
    /// # Errors
    /// A step of the hook fails, or the hook has nothing to feed.
    fn before_run(&mut self, _run: &mut RunContext<'_>) -> Result<RunArgs, TrainError> {
        Ok(RunArgs::default())
    }

    /// Called after every step, with the values of the fetches that the hook has added, in their order.
    ///
    /// # Errors
    /// A value is not what the hook expects, or a step of it fails.
    fn after_run(
        &mut self,
        _run: &mut RunContext<'_>,
        _values: &[Tensor],
    ) -> Result<(), TrainError> {
        Ok(())
    }

    /// Called once at the end of a training in which no step failed.
    ///
    /// # Errors
    /// A step of the hook fails.
    fn end(&mut self, _session: &dyn AnySession) -> Result<(), TrainError> {
        Ok(())
    }
}
