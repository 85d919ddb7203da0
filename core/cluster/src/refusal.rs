//! Why a request is refused: a canonical code and a message.

use prost::{Message, bytes::Bytes};
use std::collections::BTreeMap;
use tenon_framework::{Code, KernelError, text::cut_message};
use tenon_graph::GraphError;
use tenon_proto::convert::ConvertError;
use tenon_runtime::RuntimeError;
use tonic::Status;

/// Most bytes of a message in a header; longer ones are cut, as TensorFlow's servers cut them.
pub(crate) const HEADER_BYTES: usize = 3072;

/// What a master has to know of an error besides its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mark {
    /// Nothing.
    #[default]
    None,
    /// It follows from an error of another task.
    Derived,
    /// The worker does not have what the request names: it may have been started anew.
    Restarted,
}

/// The keys of the marks, as TensorFlow has them.
const DERIVED: &str = "type.googleapis.com/tensorflow.DerivedStatus";
const RESTARTED: &str =
    "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted";

/// The details of a status: TensorFlow's `GrpcPayloadContainer`.
#[derive(Clone, PartialEq, Message)]
struct Payloads {
    #[prost(btree_map = "string, bytes", tag = "1")]
    payloads: BTreeMap<String, Bytes>,
}

impl Mark {
    fn details(self) -> Bytes {
        let key = match self {
            Mark::None => return Bytes::new(),
            Mark::Derived => DERIVED,
            Mark::Restarted => RESTARTED,
        };
        let payloads = BTreeMap::from([(key.to_owned(), Bytes::new())]);
        Payloads { payloads }.encode_to_vec().into()
    }

    fn of(details: &[u8]) -> Mark {
        let payloads = Payloads::decode(details).unwrap_or_default().payloads;
        match (payloads.contains_key(DERIVED), payloads.contains_key(RESTARTED)) {
            (true, _) => Mark::Derived,
            (false, true) => Mark::Restarted,
            (false, false) => Mark::None,
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub code: Code,
    pub message: String,
    pub mark: Mark,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), mark: Mark::None }
    }

    /// The same with a mark.
    pub fn marked(self, mark: Mark) -> Refusal {
        Refusal { mark, ..self }
    }

    /// What another task answered instead of a result.
    pub fn of_status(status: &Status, task: &str) -> Refusal {
        // Only what the connection itself reports has a source: the task gave no answer.
        match std::error::Error::source(status) {
            None => {
                let code = Code(status.code() as i32);
                Refusal::new(code, status.message()).marked(Mark::of(status.details()))
            }
            Some(_) => Refusal::unreachable(task, &crate::dial::broken(status)),
        }
    }

    /// A task whose connection broke, or cannot be made.
    pub fn unreachable(task: &str, why: &str) -> Refusal {
        Refusal::new(
            Code::UNAVAILABLE,
            format!(
                "{task} cannot be reached: {why}; is it up, and is its address that of the cluster?"
            ),
        )
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
        let code = tonic::Code::from_i32(refusal.code.0);
        match refusal.mark {
            Mark::None => Status::new(code, message),
            mark => Status::with_details(code, message, mark.details()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_travel_with_a_status() {
        for mark in [Mark::None, Mark::Derived, Mark::Restarted] {
            let status = Status::from(Refusal::new(Code::ABORTED, "gone").marked(mark));
            let read = Refusal::of_status(&status, "/job:ps/replica:0/task:0");
            assert_eq!(
                (read.code, read.message.as_str(), read.mark),
                (Code::ABORTED, "gone", mark)
            );
        }
    }
}
