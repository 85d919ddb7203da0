//! Errors of `tenon checkpoint`.

use std::path::PathBuf;
use tenon_bundle::BundleError;
use tenon_runtime::framework::{
    Code,
    tensor::TensorError,
    text::{cut, cut_message},
};
use tenon_testkit::npy::NpyError;
use thiserror::Error;

/// Why a checkpoint cannot be used.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A bundle, a V1 file or a file of safetensors.
    #[error("{}", cut_message(&.0.to_string()))]
    Bundle(#[from] BundleError),
    /// An archive.
    #[error(transparent)]
    Archive(#[from] NpyError),
    /// Elements that do not become a tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// No tensor has the name.
    #[error("{}: there is no tensor '{}': tenon checkpoint list prints all names", file.display(), cut(.name))]
    NoTensor {
        /// The checkpoint.
        file: PathBuf,
        /// The name, or a pattern.
        name: String,
    },
    /// The new form has no place for a tensor.
    #[error("tensor '{}' of type {dtype} has no place in {kind}: leave such tensors out with --skip", cut(.name))]
    NoPlace {
        /// The tensor.
        name: String,
        /// Its type.
        dtype: &'static str,
        /// The new form.
        kind: &'static str,
    },
    /// The new form is read only.
    #[error("{}: an .npy file is read, and not written: write an .npz archive, a safetensors file, or a bundle", .0.display())]
    ReadOnly(PathBuf),
    /// Two tensors would have one name.
    #[error("two tensors would be called '{}': give one of them another name with --rename", cut(.0))]
    Twice(String),
}

impl CheckpointError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            CheckpointError::Bundle(error) => error.code(),
            CheckpointError::Archive(error) => error.code(),
            CheckpointError::Tensor(error) => error.code(),
            CheckpointError::NoTensor { .. } => Code::NOT_FOUND,
            CheckpointError::NoPlace { .. } | CheckpointError::ReadOnly(_) => Code::UNIMPLEMENTED,
            CheckpointError::Twice(_) => Code::INVALID_ARGUMENT,
        }
    }
}
