//! Why nothing is measured.

use crate::{record::RecordError, wanted::TargetError};
use std::{io, path::PathBuf};
use tenon_framework::text::{cut, cut_text};
use tenon_framework::{Code, op::OpError};
use tenon_runtime::{RuntimeError, graph::GraphError};
use tenon_testkit::TestkitError;
use thiserror::Error;

/// Why nothing is measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// An invalid target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An op that is not registered.
    #[error(
        "op '{op}' is not registered{}: `tenon list` shows those that are, --plugin FILE loads more",
        suggestion(.near), op = cut(.op)
    )]
    UnknownOp {
        /// The op.
        op: String,
        /// A name like it.
        near: Option<String>,
    },
    /// What was asked for does not fit the op.
    #[error("op '{op}': {problem}", op = cut(.op), problem = cut_text(.problem))]
    Wish {
        /// The op.
        op: String,
        /// The problem, and what to do.
        problem: String,
    },
    /// Attributes or inputs that the op's definition does not allow.
    #[error(transparent)]
    Op(#[from] OpError),
    /// A graph that cannot be recorded.
    #[error("graph {}: {problem}", file.display(), problem = cut_text(.problem))]
    Graph {
        /// The file.
        file: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
    /// A graph of one op, made to time its dispatch.
    #[error(transparent)]
    Built(#[from] GraphError),
    /// The runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// Inputs that cannot be made, or no oracle.
    #[error(transparent)]
    Testkit(#[from] TestkitError),
    /// A file of records.
    #[error("{}: {source}", file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// The problem.
        source: RecordError,
    },
    /// A file that cannot be written.
    #[error("{}: cannot be written: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// No kernel is left.
    #[error("nothing to measure: {text}", text = cut_text(.0))]
    Nothing(String),
}

fn suggestion(name: &Option<String>) -> String {
    name.as_ref().map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"))
}

impl BenchError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            BenchError::Target(TargetError::NoFile(_)) | BenchError::UnknownOp { .. } => {
                Code::NOT_FOUND
            }
            BenchError::Op(error) => error.code(),
            BenchError::Built(error) => error.code(),
            BenchError::Runtime(error) => error.code(),
            BenchError::Testkit(error) => error.code(),
            BenchError::Write { .. } => Code::UNAVAILABLE,
            BenchError::Nothing(_) => Code::FAILED_PRECONDITION,
            _ => Code::INVALID_ARGUMENT,
        }
    }

    pub(crate) fn wish(op: &str, problem: impl Into<String>) -> BenchError {
        BenchError::Wish { op: op.to_owned(), problem: problem.into() }
    }
}
