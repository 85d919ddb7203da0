//! Errors of serving metrics.

use std::net::SocketAddr;
use tenon_framework::{Code, text::cut_text};
use thiserror::Error;

/// The reason why metrics cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The address is not a loopback address.
    #[error(
        "runtime.monitor: '{found}': expected a port, or a loopback address with a port",
        found = cut_text(.found)
    )]
    Address {
        /// The setting as given.
        found: String,
    },
    /// The server cannot listen at the address.
    #[error("runtime.monitor: {address}: {detail}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        detail: String,
    },
}

impl MonitorError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        Code::INVALID_ARGUMENT
    }
}
