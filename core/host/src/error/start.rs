//! Why a host does not start.

use super::words::list;
use tenon_abi::Code;
use tenon_framework::{knob::KnobError, registry::RegistryError};
use thiserror::Error;

/// Why a host could not be started: an error in linked registrations, or in the settings.
#[derive(Debug, Clone, Error)]
pub enum StartError {
    /// Linked registrations are invalid.
    #[error("what is linked into the host: {}", list(.errors))]
    Linked {
        /// All errors.
        errors: Vec<RegistryError>,
    },
    /// A setting of the host's own knobs is invalid.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

impl StartError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            StartError::Linked { errors, .. } => {
                errors.first().map_or(Code::INTERNAL, RegistryError::code)
            }
            StartError::Knob(error) => error.code(),
        }
    }
}
