//! A session of any kind: in this process, or on a server.
//!
//! Code that only runs steps, such as a training loop, is written against [`AnySession`]. [`Session`] implements it here;
//! the session on a server is in a crate above this one and implements it there.
//!
//! # Invariants
//! - An error keeps the canonical code and the whole message of the session that it comes from.
//! - [`AnySession::close_session`] may be called more than once; later calls do nothing.

use crate::{RunOptions, RuntimeError, Session};
use std::time::Duration;
use tenon_framework::{Code, KernelError, Tensor};
use tenon_proto::GraphDef;
use thiserror::Error;

/// Why a session of any kind did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SessionError {
    /// The canonical code.
    pub code: Code,
    /// What was expected, what was found, and what to do.
    pub message: String,
}

impl SessionError {
    /// An error with this code.
    pub fn new(code: Code, message: impl Into<String>) -> SessionError {
        SessionError { code, message: message.into() }
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        self.code
    }
}

impl From<RuntimeError> for SessionError {
    fn from(error: RuntimeError) -> SessionError {
        SessionError::new(error.code(), error.to_string())
    }
}

impl From<KernelError> for SessionError {
    fn from(error: KernelError) -> SessionError {
        SessionError { code: error.code, message: error.message }
    }
}

/// A session of any kind. All methods block, and steps may run concurrently.
///
/// ```no_run
/// use tenon_runtime::{AnySession, Runtime, RuntimeOptions, Session, SessionOptions};
///
/// fn loss(session: &dyn AnySession) -> Result<f32, Box<dyn std::error::Error>> {
///     let fetched = session.run_step(&[], &["loss"], &["train"], None)?;
///     Ok(fetched[0].as_slice::<f32>()?[0])
/// }
///
/// let (runtime, _) = Runtime::new(RuntimeOptions::default())?;
/// loss(&Session::new(&runtime, SessionOptions::default())?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AnySession: Send + Sync {
    /// Runs one step; the values are in the order of the fetches. Feeds and fetches name tensors (`x` or `x:0`), targets
    /// name nodes. A step that has a deadline fails with `DEADLINE_EXCEEDED` after that time.
    ///
    /// # Errors
    /// A name is not in the graph, a feed does not fit, or the step fails.
    fn run_step(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, SessionError>;

    /// Appends the nodes of a graph.
    ///
    /// # Errors
    /// The first invalid node; nothing is then appended.
    fn add_nodes(&self, graph: &GraphDef) -> Result<(), SessionError>;

    /// Cancels the steps in flight and refuses new ones. A session that is closed already stays closed.
    ///
    /// # Errors
    /// The place where the session is cannot be reached.
    fn close_session(&self) -> Result<(), SessionError>;
}

impl AnySession for Session {
    fn run_step(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, SessionError> {
        let options = RunOptions { deadline, ..RunOptions::default() };
        let (fetched, _) = self.run(feeds, fetches, targets, &options)?;
        Ok(fetched)
    }

    fn add_nodes(&self, graph: &GraphDef) -> Result<(), SessionError> {
        Ok(self.extend(graph)?)
    }

    fn close_session(&self) -> Result<(), SessionError> {
        self.close();
        Ok(())
    }
}
