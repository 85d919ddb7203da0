//! Errors of training.

use std::{io, path::PathBuf, time::Duration};
use tenon_framework::Code;
use tenon_runtime::SessionError;
use thiserror::Error;

/// Why a part of a training graph cannot be built, or a training loop cannot go on.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The graph refuses a node.
    #[error(transparent)]
    Graph(Box<tenon_graph::GraphError>),
    /// A gradient cannot be made.
    #[error(transparent)]
    Gradient(Box<tenon_gradient::GradientError>),
    /// A value cannot be made.
    #[error(transparent)]
    Tensor(#[from] tenon_framework::tensor::TensorError),
    /// A shape is invalid.
    #[error(transparent)]
    Shape(#[from] tenon_framework::shape::ShapeError),
    /// An argument does not fit.
    #[error("{what}: expected {expected}, found {found}")]
    Argument {
        /// What the argument is.
        what: String,
        /// What was expected.
        expected: String,
        /// What was found, and what to do.
        found: String,
    },
    /// A session did not do what it was asked.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A message cannot be read or written.
    #[error(transparent)]
    Proto(#[from] tenon_proto::ProtoError),
    /// A file of checkpoints or events cannot be read or written.
    #[error("{what}, {}: {source}; expected a folder that this process may read and write", path.display())]
    File {
        /// What the file is.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A state file of another form.
    #[error(
        "{}, line {line}: expected {expected}, found {found}; remove the file, or write it anew with the checkpoints that \
         the folder has",
        path.display()
    )]
    State {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// The system has no thread left.
    #[error("cannot start thread '{name}': {source}")]
    Thread {
        /// The name of the thread.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Threads did not end when they were asked to.
    #[error(
        "expected all threads to end within {grace:?} after the stop, found that these still run: {}; let them look at \
         Coordinator::should_stop",
        threads.join(", ")
    )]
    Threads {
        /// The names of the threads.
        threads: Vec<String>,
        /// How long they had.
        grace: Duration,
    },
    /// A value of a training is not finite.
    #[error(
        "tensor '{tensor}': expected finite values, found {value} as element {element}: lower the learning rate, clip the \
         gradients, or look for a division by zero"
    )]
    NotFinite {
        /// The name of the tensor.
        tensor: String,
        /// The number of the first such element.
        element: usize,
        /// The element.
        value: String,
    },
}

impl From<tenon_graph::GraphError> for TrainError {
    fn from(error: tenon_graph::GraphError) -> TrainError {
        TrainError::Graph(Box::new(error))
    }
}

impl From<tenon_gradient::GradientError> for TrainError {
    fn from(error: tenon_gradient::GradientError) -> TrainError {
        TrainError::Gradient(Box::new(error))
    }
}

impl From<TrainError> for SessionError {
    fn from(error: TrainError) -> SessionError {
        SessionError::new(error.code(), error.to_string())
    }
}

impl TrainError {
    /// An argument that does not fit.
    pub(crate) fn argument(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> TrainError {
        TrainError::Argument { what: what.into(), expected: expected.into(), found: found.into() }
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
        source: io::Error,
    ) -> TrainError {
        TrainError::File { what, path: path.into(), source }
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            TrainError::Graph(error) => error.code(),
            TrainError::Gradient(error) => error.code(),
            TrainError::Tensor(error) => error.code(),
            TrainError::Shape(error) => error.code(),
            TrainError::Argument { .. } | TrainError::NotFinite { .. } => Code::INVALID_ARGUMENT,
            TrainError::Session(error) => error.code,
            TrainError::Proto(error) => error.code(),
            TrainError::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Code::NOT_FOUND,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Code::PERMISSION_DENIED
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Code::RESOURCE_EXHAUSTED
                }
                _ => Code::FAILED_PRECONDITION,
            },
            TrainError::State { .. } => Code::DATA_LOSS,
            TrainError::Thread { .. } => Code::RESOURCE_EXHAUSTED,
            TrainError::Threads { .. } => Code::DEADLINE_EXCEEDED,
        }
    }
}
