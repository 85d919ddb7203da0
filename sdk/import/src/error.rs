//! Errors of importing models.

use crate::start::Stage;
use std::{io, path::PathBuf};
use tenon_bundle::BundleError;
use tenon_framework::{
    Code,
    tensor::TensorError,
    text::{cut, cut_message, cut_text, some_of},
};
use tenon_proto::{ProtoError, convert::ConvertError};
use tenon_runtime::{RuntimeError, SessionError};
use thiserror::Error;

/// The most names that a message lists.
const LISTED: usize = 32;

/// Why a model cannot be read, loaded or run.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// The folder has no model.
    #[error("{}: expected a folder with saved_model.pb, found none: name the folder that TensorFlow or Keras saved the model in", .0.display())]
    NoModel(PathBuf),
    /// The model is in a form that is not read.
    #[error("{}: {form}, which is not read: {instead}", file.display())]
    Form {
        /// The file.
        file: PathBuf,
        /// What it is.
        form: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// The file is larger than a message may be.
    #[error("{}: expected at most {limit} bytes, found {found}", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit.
        limit: u64,
        /// The size of the file.
        found: u64,
    },
    /// The file is not a SavedModel.
    #[error("{}: {source}", file.display())]
    Message {
        /// The file.
        file: PathBuf,
        /// The problem.
        source: ProtoError,
    },
    /// The message lacks a part, or a part makes no sense.
    #[error("{}: {}", folder.display(), cut_text(.what))]
    Malformed {
        /// The folder.
        folder: PathBuf,
        /// What was expected, and what was found.
        what: String,
    },
    /// No graph of the model has the tags.
    #[error("{}: no graph has the tags {asked}; there are {}", folder.display(), cut_text(.have))]
    Tags {
        /// The folder.
        folder: PathBuf,
        /// The tags that were asked for, as text.
        asked: String,
        /// The tags of each graph, as text.
        have: String,
    },
    /// The type, the shape or the default of an argument makes no sense.
    #[error("signature '{}', '{}': {source}", cut(.signature), cut(.argument))]
    Argument {
        /// The signature.
        signature: String,
        /// The argument or the result.
        argument: String,
        /// The problem.
        source: ConvertError,
    },
    /// An asset has a name that leads out of the folder.
    #[error("{}: asset '{}': expected the name of a file in the folder assets, without '..' and not absolute", folder.display(), cut(.name))]
    AssetName {
        /// The folder.
        folder: PathBuf,
        /// The name.
        name: String,
    },
    /// An asset is missing.
    #[error("{}: the model needs this asset, and the file is not there: copy the whole folder of the model", .0.display())]
    NoAsset(PathBuf),
    /// The values of the variables are missing.
    #[error(
        "{}: the graph has {variables} variables, and their values are not there: copy the whole folder of the model",
        index.display()
    )]
    NoValues {
        /// The index that was looked for.
        index: PathBuf,
        /// The number of variables.
        variables: usize,
    },
    /// The checkpoint of the variables cannot be read.
    #[error("the model's variables: {}", cut_message(&.0.to_string()))]
    Variables(#[from] BundleError),
    /// Ops that are needed are not registered.
    #[error(
        "{what} needs ops that are not registered: {}; load the plugins that define them (--plugin FILE, or their folder in TENON_PLUGIN_PATH)",
        some_of(ops.iter().map(String::as_str), LISTED)
    )]
    MissingOps {
        /// What needs them.
        what: String,
        /// All of them.
        ops: Vec<String>,
    },
    /// A stage of loading failed.
    #[error("{stage}: {}", cut_message(&.source.message))]
    Stage {
        /// The stage.
        stage: Stage,
        /// The problem.
        source: SessionError,
    },
    /// No signature has the key.
    #[error("no signature '{}'; there are {}", cut(.key), some_of(.have.iter().map(String::as_str), LISTED))]
    NoSignature {
        /// The key.
        key: String,
        /// The keys of all signatures.
        have: Vec<String>,
    },
    /// A signature has no argument of a name.
    #[error("signature '{}' has no input '{}'; its inputs are {}", cut(.signature), cut(.name), some_of(.have.iter().map(String::as_str), LISTED))]
    UnknownInput {
        /// The signature.
        signature: String,
        /// The name.
        name: String,
        /// The inputs of the signature.
        have: Vec<String>,
    },
    /// A signature has no result of a name.
    #[error("signature '{}' has no result '{}'; its results are {}", cut(.signature), cut(.name), some_of(.have.iter().map(String::as_str), LISTED))]
    UnknownOutput {
        /// The signature.
        signature: String,
        /// The name.
        name: String,
        /// The results of the signature.
        have: Vec<String>,
    },
    /// An argument was given twice.
    #[error("signature '{}': input '{}' was given twice", cut(.signature), cut(.name))]
    InputTwice {
        /// The signature.
        signature: String,
        /// The argument.
        name: String,
    },
    /// Arguments were not given and have no default.
    #[error("signature '{}': expected a value for each input, found none for {}", cut(.signature), some_of(.names.iter().map(String::as_str), LISTED))]
    MissingInputs {
        /// The signature.
        signature: String,
        /// The arguments.
        names: Vec<String>,
    },
    /// A tensor cannot be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A session, or a step of a signature.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl ImportError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            ImportError::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Code::NOT_FOUND,
                io::ErrorKind::PermissionDenied => Code::PERMISSION_DENIED,
                _ => Code::UNAVAILABLE,
            },
            ImportError::NoModel(_)
            | ImportError::Tags { .. }
            | ImportError::NoAsset(_)
            | ImportError::NoValues { .. }
            | ImportError::MissingOps { .. }
            | ImportError::NoSignature { .. } => Code::NOT_FOUND,
            ImportError::Form { .. } => Code::UNIMPLEMENTED,
            ImportError::Message { source, .. } => source.code(),
            ImportError::Argument { source, .. } => source.code(),
            ImportError::Variables(error) => error.code(),
            ImportError::Stage { source, .. } => source.code,
            ImportError::Tensor(error) => error.code(),
            ImportError::Runtime(error) => error.code(),
            ImportError::TooLarge { .. }
            | ImportError::Malformed { .. }
            | ImportError::AssetName { .. }
            | ImportError::UnknownInput { .. }
            | ImportError::UnknownOutput { .. }
            | ImportError::InputTwice { .. }
            | ImportError::MissingInputs { .. } => Code::INVALID_ARGUMENT,
        }
    }
}
