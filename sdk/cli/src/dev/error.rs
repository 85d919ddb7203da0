//! Why there is nothing to develop.

use std::path::PathBuf;
use tenon_runtime::framework::Code;
use thiserror::Error;

/// The problem with the folder or the command line.
#[derive(Debug, Error)]
pub enum DevError {
    /// A path that is not a folder.
    #[error("{}: expected the folder of a plugin's source", folder.display())]
    NoFolder {
        /// The path.
        folder: PathBuf,
    },
    /// Nobody says how to build.
    #[error(
        "{}: expected a Cargo.toml or a Makefile: say how to build it by --build COMMAND --artifact FILE",
        folder.display()
    )]
    NoRecipe {
        /// The folder.
        folder: PathBuf,
    },
    /// Signals cannot be waited for.
    #[error("signals cannot be taken: {0}")]
    Signals(std::io::Error),
    /// No folder for builds.
    #[error("a temporary folder for builds cannot be made: {0}")]
    Scratch(std::io::Error),
}

impl DevError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            DevError::NoFolder { .. } | DevError::NoRecipe { .. } => Code::INVALID_ARGUMENT,
            DevError::Signals(_) | DevError::Scratch(_) => Code::UNAVAILABLE,
        }
    }
}
