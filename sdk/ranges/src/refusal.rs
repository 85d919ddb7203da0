//! Why a profiler that the environment names is not used.

use std::{
    error::Error,
    path::{Path, PathBuf},
};
use tenon_framework::Code;

/// Why a profiler that the environment names is not used. The program goes on without its ranges.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Its library cannot be opened.
    #[error("no ranges for the profiler that {variable} names: {}: cannot be opened: {reason}", file.display())]
    Open {
        /// The variable that names it.
        variable: &'static str,
        /// The library.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The library is something else.
    #[error(
        "no ranges for the profiler that {variable} names: {}: expected the function {function}, which is not there: \
         unset the variable, or let the profiler set it",
        file.display()
    )]
    NoEntry {
        /// The variable that names it.
        variable: &'static str,
        /// The library.
        file: PathBuf,
        /// What it ought to have.
        function: &'static str,
    },
    /// The profiler says no.
    #[error(
        "no ranges for the profiler that {variable} names: {}: its function {function} says that it cannot begin",
        file.display()
    )]
    Declined {
        /// The variable that names it.
        variable: &'static str,
        /// The library.
        file: PathBuf,
        /// What was called.
        function: &'static str,
    },
    /// The profiler has begun, and does not ask for ranges.
    #[error(
        "no ranges for the profiler that {variable} names: {}: it takes none: is their collection turned on?",
        file.display()
    )]
    NoRanges {
        /// The variable that names it.
        variable: &'static str,
        /// The library.
        file: PathBuf,
    },
}

impl Refusal {
    /// What the dynamic linker says, where there is more than which call failed.
    pub(crate) fn open(variable: &'static str, file: &Path, error: &libloading::Error) -> Refusal {
        let cause = error.source().map_or_else(|| error.to_string(), <dyn Error>::to_string);
        Refusal::Open { variable, file: file.to_owned(), reason: cause }
    }

    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            Refusal::Open { .. } => Code::UNAVAILABLE,
            Refusal::NoEntry { .. } => Code::INVALID_ARGUMENT,
            Refusal::Declined { .. } | Refusal::NoRanges { .. } => Code::FAILED_PRECONDITION,
        }
    }
}
