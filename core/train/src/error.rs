//! Errors of training.

use std::{
    io::{self, ErrorKind},
    path::PathBuf,
};
use tenon_framework::Code;
use thiserror::Error;

/// Why a part of a training graph cannot be built, or a training loop cannot go on.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The graph refuses a node.
    #[error(transparent)]
    Graph(#[from] tenon_graph::GraphError),
    /// A gradient cannot be made.
    #[error(transparent)]
    Gradient(#[from] tenon_gradient::GradientError),
    /// A value cannot be made.
    #[error(transparent)]
    Tensor(#[from] tenon_framework::tensor::TensorError),
    /// A shape is invalid.
    #[error(transparent)]
    Shape(#[from] tenon_framework::shape::ShapeError),
    /// A message cannot be read or written.
    #[error(transparent)]
    Proto(#[from] tenon_proto::ProtoError),
    /// A file or folder cannot be written.
    #[error("file '{}': {error}; check that its folder can be written and has room", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
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

    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            TrainError::Graph(error) => error.code(),
            TrainError::Gradient(error) => error.code(),
            TrainError::Tensor(error) => error.code(),
            TrainError::Shape(error) => error.code(),
            TrainError::Proto(error) => error.code(),
            TrainError::File { error, .. } => file_code(error.kind()),
            TrainError::Argument { .. } => Code::INVALID_ARGUMENT,
        }
    }
}

/// TensorFlow's code for the system's error of a file.
fn file_code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::NotFound => Code::NOT_FOUND,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Code::PERMISSION_DENIED,
        ErrorKind::AlreadyExists => Code::ALREADY_EXISTS,
        ErrorKind::NotADirectory | ErrorKind::IsADirectory => Code::FAILED_PRECONDITION,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Code::RESOURCE_EXHAUSTED,
        _ => Code::UNKNOWN,
    }
}
