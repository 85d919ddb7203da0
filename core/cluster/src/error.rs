//! Why a server cannot start, or a session on one fails.

use std::{io, net::SocketAddr, path::PathBuf};
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
    /// Shared memory is required between tasks, and cannot be had.
    #[error("no shared memory for tensors of other tasks: {0}; use --data-plane auto or tcp")]
    SharedMemory(io::Error),
    /// The threads of the server, or of a session, cannot be started.
    #[error("cannot start the threads: {0}")]
    Threads(io::Error),
    /// A target of another form.
    #[error("target '{target}': expected grpc://HOST:PORT, or grpcs://HOST:PORT for TLS", target = cut(.target))]
    Target {
        /// The target.
        target: String,
    },
    /// A file of tokens.
    #[error("tokens of {}: {reason}", file.display(), reason = cut_message(.reason))]
    Tokens {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A certificate or a key.
    #[error("{}: {reason}", file.display(), reason = cut_message(.reason))]
    TlsFile {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The program has no TLS.
    #[error("this program is built without TLS: it needs feature `tls` of tenon-cluster")]
    NoTls,
    /// A target with TLS, and no authority to check the server's certificate with.
    #[error("target '{target}': TLS needs the authority of the server's certificate: give its file (--tls-ca)", target = cut(.target))]
    NoAuthority {
        /// The target.
        target: String,
    },
    /// A server that others could reach without showing who they are.
    #[error(
        "{listen} can be reached from other machines{lack}; --insecure serves there all the same"
    )]
    Exposed {
        /// The address.
        listen: SocketAddr,
        /// What is lacking, and what to do.
        lack: &'static str,
    },
    /// An environment that does not say the place of a task.
    #[error("the environment of {launcher}: {reason}", reason = cut_message(.reason))]
    Launcher {
        /// What started the process.
        launcher: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Tasks of a cluster with TLS that cannot check each other's certificates.
    #[error(
        "a cluster with TLS needs the authority of its tasks' certificates: give its file (--tls-ca)"
    )]
    ClusterAuthority,
    /// A log that cannot be written.
    #[error("{}: cannot be written: {source}", file.display())]
    Audit {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
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
            ClusterError::Threads(_) | ClusterError::SharedMemory(_) => Code::RESOURCE_EXHAUSTED,
            ClusterError::Target { .. } | ClusterError::Spec { .. } => Code::INVALID_ARGUMENT,
            ClusterError::NoTask { .. } => Code::NOT_FOUND,
            ClusterError::Tokens { .. }
            | ClusterError::TlsFile { .. }
            | ClusterError::NoAuthority { .. }
            | ClusterError::Launcher { .. }
            | ClusterError::ClusterAuthority => Code::INVALID_ARGUMENT,
            ClusterError::NoTls => Code::UNIMPLEMENTED,
            ClusterError::Exposed { .. } => Code::FAILED_PRECONDITION,
            ClusterError::Audit { .. } => Code::UNAVAILABLE,
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

/// An error with its causes.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
