//! Errors of files of checkpoints.

use tenon_sdk::{Code, DType, KernelError};
use thiserror::Error;

/// Why a checkpoint cannot be read or written.
#[derive(Debug, Error)]
pub enum BundleError {
    /// The system or the access of graphs refuses a file, or there is no memory.
    #[error("{}", .0.message)]
    Refused(KernelError),
    /// The bytes of a file do not follow its format.
    #[error("file '{file}' is damaged at byte {offset}: {what}")]
    Damaged {
        /// The file.
        file: String,
        /// Where the wrong part begins.
        offset: u64,
        /// What was expected there, and what was found.
        what: String,
    },
    /// A data file ends before a tensor does.
    #[error(
        "file '{file}': expected {expected} bytes from byte {offset}, found the end at byte {found}"
    )]
    Short {
        /// The file.
        file: String,
        /// Where the tensor begins.
        offset: u64,
        /// The size of the tensor.
        expected: u64,
        /// The size of the file.
        found: u64,
    },
    /// No file begins with the prefix, or has the name.
    #[error("failed to find any matching files for '{0}': expected a checkpoint's prefix or file")]
    NoCheckpoint(String),
    /// A checkpoint has none of some tensors.
    #[error("{} not found in checkpoint '{checkpoint}'", keys(.names))]
    Missing {
        /// The prefix or the file.
        checkpoint: String,
        /// All names that are missing.
        names: Vec<String>,
    },
    /// A tensor has another type.
    #[error(
        "tensor_name = {name}; expected dtype {expected} does not equal original dtype {found} of checkpoint '{checkpoint}'"
    )]
    Type {
        /// The prefix or the file.
        checkpoint: String,
        /// The tensor.
        name: String,
        /// The type that was asked for.
        expected: DType,
        /// The type in the file.
        found: DType,
    },
    /// A tensor has another shape, or not the part that was asked for.
    #[error("tensor_name = {name}; {what} (checkpoint '{checkpoint}')")]
    Part {
        /// The prefix or the file.
        checkpoint: String,
        /// The tensor.
        name: String,
        /// What was expected, and what was found.
        what: String,
    },
    /// The caller asked for something that no checkpoint can have.
    #[error("{0}")]
    Argument(String),
    /// A caller's mistake that no graph and no file can cause.
    #[error("{0}")]
    Internal(String),
    /// The format has no place for it, or this crate does not read it.
    #[error("{0}")]
    Unsupported(String),
    /// Another process publishes in the same folder, and does not end.
    #[error(
        "folder of '{0}': another writer has had its lock for {1} s: wait for that save, then try again"
    )]
    Busy(String, u64),
}

/// `Key a` or `Keys a, b`.
fn keys(names: &[String]) -> String {
    match names {
        [one] => format!("Key {one}"),
        several => format!("Keys {}", several.join(", ")),
    }
}

impl BundleError {
    /// TensorFlow's code for the error.
    pub fn code(&self) -> Code {
        match self {
            BundleError::Refused(error) => error.code,
            BundleError::Damaged { .. } => Code::DATA_LOSS,
            BundleError::Short { .. } => Code::OUT_OF_RANGE,
            BundleError::NoCheckpoint(_) | BundleError::Missing { .. } => Code::NOT_FOUND,
            BundleError::Type { .. } | BundleError::Part { .. } | BundleError::Argument(_) => {
                Code::INVALID_ARGUMENT
            }
            BundleError::Internal(_) => Code::INTERNAL,
            BundleError::Unsupported(_) => Code::UNIMPLEMENTED,
            BundleError::Busy(..) => Code::UNAVAILABLE,
        }
    }
}

impl From<KernelError> for BundleError {
    fn from(error: KernelError) -> BundleError {
        BundleError::Refused(error)
    }
}

impl From<BundleError> for KernelError {
    fn from(error: BundleError) -> KernelError {
        match error {
            BundleError::Refused(error) => error,
            error => KernelError::new(error.code(), error.to_string()),
        }
    }
}
