//! The error that a kernel, a shape function or a device returns.

use std::fmt;
pub use tenon_abi::Code;

/// A code and a message. The runtime adds op, node, device and plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelError {
    /// TensorFlow's canonical code; never `OK`.
    pub code: Code,
    /// Lower case: what was expected, what was found, what to do.
    pub message: String,
}

impl KernelError {
    /// An error with this code.
    pub fn new(code: Code, message: impl Into<String>) -> KernelError {
        KernelError { code, message: message.into() }
    }

    /// The caller gave something that is wrong whatever the state of the system.
    pub fn invalid_argument(message: impl Into<String>) -> KernelError {
        KernelError::new(Code::INVALID_ARGUMENT, message)
    }

    /// Not supported.
    pub fn unimplemented(message: impl Into<String>) -> KernelError {
        KernelError::new(Code::UNIMPLEMENTED, message)
    }

    /// An invariant is broken.
    pub fn internal(message: impl Into<String>) -> KernelError {
        KernelError::new(Code::INTERNAL, message)
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", crate::text::cut_message(&self.message))
    }
}

impl std::error::Error for KernelError {}
