//! Why figures cannot be served.

use std::net::SocketAddr;
use tenon_framework::{Code, text::cut_text};
use thiserror::Error;

/// Why figures cannot be served where they were to be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The address is not of this machine alone.
    #[error(
        "runtime.monitor: '{found}': expected a port, or a loopback address with a port",
        found = cut_text(.found)
    )]
    Address {
        /// What was given.
        found: String,
    },
    /// The address cannot be listened at.
    #[error("runtime.monitor: {address}: {detail}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        detail: String,
    },
}

impl MonitorError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        Code::INVALID_ARGUMENT
    }
}
