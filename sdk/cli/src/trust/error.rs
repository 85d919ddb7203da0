//! What can go wrong with the list.

use std::path::PathBuf;
use tenon_runtime::{framework::Code, host::trust::TrustError};
use thiserror::Error;

/// Why a list cannot be shown or changed.
#[derive(Debug, Error)]
pub enum ListError {
    /// No place for it.
    #[error(
        "there is no folder for the list: give --file, or set XDG_CONFIG_HOME or HOME to an absolute path"
    )]
    NoHome,
    /// A file that is not a list.
    #[error("trust file {}: {source}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The problem.
        source: TrustError,
    },
    /// Nothing to add.
    #[error("no plugin was found: name its file, or its folder in TENON_PLUGIN_PATH")]
    NothingFound,
    /// Nothing to remove.
    #[error(
        "trust file {}: no entry fits '{what}': expected four or more digits of a digest, a plugin's name, \
         or its file; see `tenon trust list`",
        file.display()
    )]
    NoEntry {
        /// The file.
        file: PathBuf,
        /// What was asked for.
        what: String,
    },
    /// More than one entry to remove.
    #[error(
        "'{what}' fits {} entries, expected one: {}; give more of the digest, or --all",
        fitting.len(),
        fitting.join(", ")
    )]
    Ambiguous {
        /// What was asked for.
        what: String,
        /// The entries, as digest and name.
        fitting: Vec<String>,
    },
}

impl ListError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            ListError::NoHome | ListError::Malformed { .. } => Code::FAILED_PRECONDITION,
            ListError::NoEntry { .. } | ListError::NothingFound => Code::NOT_FOUND,
            ListError::Ambiguous { .. } => Code::INVALID_ARGUMENT,
        }
    }
}
