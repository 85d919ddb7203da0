//! Errors in reading and writing messages.

use tenon_framework::Code;

/// Why bytes could not be read as a message, or a message could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtoError {
    /// The encoded form is longer than protobuf allows.
    #[error(
        "tensorflow.{message}: expected at most {limit} encoded bytes, found {found}; \
         keep large constants outside the graph, in variables or feeds"
    )]
    TooLarge {
        /// Name of the message, without package.
        message: &'static str,
        /// Most bytes allowed.
        limit: usize,
        /// Bytes found.
        found: usize,
    },
    /// The bytes are not a message of this kind.
    #[error(
        "tensorflow.{message}: expected its binary protobuf form, found an error at or before byte \
         {offset} of {length} ({reason}); check that the data is complete, binary and of this kind"
    )]
    Malformed {
        /// Name of the message, without package.
        message: &'static str,
        /// Offset up to which the decoder had read.
        offset: usize,
        /// Length of the data in bytes.
        length: usize,
        /// The decoder's message, with the path of fields.
        reason: prost::DecodeError,
    },
}

impl ProtoError {
    /// The canonical code.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::TooLarge { .. } | Self::Malformed { .. } => Code::INVALID_ARGUMENT,
        }
    }
}
