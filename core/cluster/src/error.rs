//! Why a server cannot start, or a session on one fails.

use std::{io, net::SocketAddr};
use tenon_framework::{
    Code,
    text::{cut, cut_message},
};
use tenon_proto::convert::ConvertError;
use tenon_runtime::SessionError;
use thiserror::Error;

/// Why a server cannot start, or a session on one fails.
#[derive(Debug, Error)]
pub enum ClusterError {
    /// The server cannot listen at the address.
    #[error(
        "cannot listen on {listen}: {source}; expected an address of this machine with a port that is free (port 0 takes \
         one)"
    )]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A text that is not the specification of a cluster.
    #[error(
        "expected a JSON object with a list of addresses (host:port) for each job, such as \
         {{\"worker\": [\"localhost:2222\"]}}, found {}", cut(.found)
    )]
    Spec {
        /// What was found.
        found: String,
    },
    /// A task that a cluster does not have.
    #[error("the cluster has no task {job}/{task}: it has {}", cut_message(.there), job = cut(.job))]
    NoTask {
        /// The job.
        job: String,
        /// The number of the task.
        task: u32,
        /// The tasks of the cluster.
        there: String,
    },
    /// The address of a task whose host is not known.
    #[error("address '{address}': {why}; expected the name or address of a host", address = cut(.address))]
    Host {
        /// The address.
        address: String,
        /// The error of the system.
        why: String,
    },
    /// The threads of the server, or of a session, cannot be started.
    #[error("cannot start the threads: {0}")]
    Threads(io::Error),
    /// A target of another form.
    #[error("target '{target}': expected grpc://HOST:PORT", target = cut(.target))]
    Target {
        /// The target.
        target: String,
    },
    /// A value that has no message, or whose message is wrong.
    #[error(transparent)]
    Value(ConvertError),
    /// The error of the server.
    #[error("{}", cut_message(.message))]
    Refused {
        /// The canonical code.
        code: Code,
        /// The message.
        message: String,
    },
}

impl ClusterError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            ClusterError::Listen { source, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => Code::ALREADY_EXISTS,
                io::ErrorKind::PermissionDenied => Code::PERMISSION_DENIED,
                _ => Code::INVALID_ARGUMENT,
            },
            ClusterError::Threads(_) => Code::RESOURCE_EXHAUSTED,
            ClusterError::Target { .. } | ClusterError::Spec { .. } => Code::INVALID_ARGUMENT,
            ClusterError::NoTask { .. } => Code::NOT_FOUND,
            ClusterError::Host { .. } => Code::UNAVAILABLE,
            ClusterError::Value(error) => error.code(),
            ClusterError::Refused { code, .. } => *code,
        }
    }
}

impl From<ClusterError> for SessionError {
    fn from(error: ClusterError) -> SessionError {
        SessionError::new(error.code(), error.to_string())
    }
}
