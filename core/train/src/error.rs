//! Errors of training.

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
            TrainError::Argument { .. } => Code::INVALID_ARGUMENT,
        }
    }
}
