//! Why a request is refused: a canonical code and a message.

use tenon_framework::{Code, KernelError, text::cut_message};
use tenon_graph::GraphError;
use tenon_proto::convert::ConvertError;
use tenon_runtime::RuntimeError;
use tonic::Status;

/// Most bytes of a message in a header; longer ones are cut, as TensorFlow's servers cut them.
pub(crate) const HEADER_BYTES: usize = 3072;

/// Why a request is refused.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub code: Code,
    pub message: String,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }

    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::INVALID_ARGUMENT, message)
    }

    /// A session that the master does not have. The code tells clients to open a new one.
    pub fn no_session(handle: &str) -> Refusal {
        let handle = cut_message(handle);
        Refusal::new(
            Code::ABORTED,
            format!(
                "Session {handle} is not found: it was closed or reset, its client was away for too long, or the server \
                 was started anew; open a new session"
            ),
        )
    }
}

impl From<RuntimeError> for Refusal {
    fn from(error: RuntimeError) -> Refusal {
        // The server is not closed, the session is: for its client it is gone.
        let code = match &error {
            RuntimeError::Closed => Code::CANCELLED,
            other => other.code(),
        };
        Refusal::new(code, error.to_string())
    }
}

impl From<KernelError> for Refusal {
    fn from(error: KernelError) -> Refusal {
        Refusal::new(error.code, error.message)
    }
}

impl From<GraphError> for Refusal {
    fn from(error: GraphError) -> Refusal {
        Refusal::new(error.code(), error.to_string())
    }
}

impl From<ConvertError> for Refusal {
    fn from(error: ConvertError) -> Refusal {
        Refusal::new(error.code(), error.to_string())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let mut message = refusal.message;
        if message.len() > HEADER_BYTES {
            message.truncate(message.floor_char_boundary(HEADER_BYTES));
        }
        Status::new(tonic::Code::from_i32(refusal.code.0), message)
    }
}
