//! Problems with golden data, or with a harness.

use crate::npy::NpyError;
use std::path::PathBuf;
use tenon_framework::{Code, DType};
use tenon_runtime::host::LoadError;
use thiserror::Error;

/// Why golden data cannot be read or a harness cannot be made.
#[derive(Debug, Clone, Error)]
pub enum TestkitError {
    /// A file that cannot be read.
    #[error("golden file {}: {detail}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        detail: String,
    },
    /// An index that is not what the format says.
    #[error("golden index {}: {place}: expected {expected}, found {found}", .path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// Case and field.
        place: String,
        /// What the format says.
        expected: String,
        /// The value that was found.
        found: String,
    },
    /// An array that is missing or another than its index says.
    #[error("archive {}: array '{array}': expected {expected}, found {found}", .path.display())]
    Array {
        /// The archive.
        path: PathBuf,
        /// Name of the array.
        array: String,
        /// What the index says.
        expected: String,
        /// What the archive has.
        found: String,
    },
    /// An archive that cannot be read, or an array of it.
    #[error(transparent)]
    Archive(#[from] NpyError),
    /// Exceptions that are not what the form says.
    #[error("exceptions {}: {detail}", .path.display())]
    Exceptions {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        detail: String,
    },
    /// A reproducer that cannot be read or written.
    #[error("reproducer {}: {detail}", .path.display())]
    Reproducer {
        /// The file.
        path: PathBuf,
        /// The problem.
        detail: String,
    },
    /// A plugin that cannot be looked at, before anything of it runs.
    #[error(transparent)]
    Plugin(#[from] LoadError),
    /// A worker that cannot be started.
    #[error("worker {}: {detail}", .program.display())]
    Worker {
        /// The program.
        program: PathBuf,
        /// The system's message.
        detail: String,
    },
    /// A reproducer that cannot be run.
    #[error("{unit}: {detail}")]
    Again {
        /// Kernel, device type or plugin.
        unit: String,
        /// Why not.
        detail: String,
    },
    /// Nothing to check.
    #[error("{}: nothing to check: {detail}", .plugin.display())]
    Nothing {
        /// The plugin's file.
        plugin: PathBuf,
        /// What was asked for, and what there is.
        detail: String,
    },
    /// No device to run on.
    #[error(
        "no device of type {wanted}: the devices are {found}; load the plugin that registers it"
    )]
    NoDevice {
        /// Type that was asked for.
        wanted: String,
        /// Devices there are.
        found: String,
    },
    /// An input of which no elements can be made.
    #[error("case '{case}': input {input} of {dtype} cannot be made: {detail}")]
    Input {
        /// The case.
        case: String,
        /// Position.
        input: usize,
        /// Element type.
        dtype: DType,
        /// Why.
        detail: String,
    },
}

impl TestkitError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            TestkitError::File { .. } | TestkitError::NoDevice { .. } => Code::NOT_FOUND,
            TestkitError::Index { .. } | TestkitError::Array { .. } => Code::DATA_LOSS,
            TestkitError::Archive(error) => error.code(),
            TestkitError::Exceptions { .. } | TestkitError::Reproducer { .. } => {
                Code::INVALID_ARGUMENT
            }
            TestkitError::Input { .. } => Code::UNIMPLEMENTED,
            TestkitError::Plugin(error) => error.code(),
            TestkitError::Worker { .. } => Code::UNAVAILABLE,
            TestkitError::Nothing { .. } | TestkitError::Again { .. } => Code::NOT_FOUND,
        }
    }
}
