//! TLS of servers and of their clients, by rustls.
//!
//! Certificates and keys are PEM files, which are read again when they change: new connections use the new ones. Only TLS 1.3
//! is spoken, with HTTP/2.

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod files;
#[cfg(feature = "tls")]
mod reasons;
#[cfg(feature = "tls")]
mod rustls_streams;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{Acceptor, Connector, TlsStream, is_data};
#[cfg(feature = "tls")]
pub(crate) use rustls_streams::{Acceptor, Connector, TlsStream, is_data};

use crate::tokens::Roles;
use std::path::PathBuf;

/// The certificate and the key by which a server or a client shows who it is: PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, then those between it and its CA.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// TLS of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// The server's own certificate, which it also shows to the other tasks of its cluster.
    pub identity: Identity,
    /// The certificates of the authorities that sign those of clients and of the other tasks. If it is given, a client without
    /// such a certificate is refused.
    pub ca: Option<PathBuf>,
}

/// TLS of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// The certificates of the authorities that sign those of servers.
    pub ca: PathBuf,
    /// The client's own certificate, for a server that requires one.
    pub identity: Option<Identity>,
}

/// What a certificate says of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certified {
    /// The first of its alternative names.
    pub name: String,
    /// Its roles: those of its names `tenon:role:client` and `tenon:role:worker`; both if it has none of them.
    pub roles: Roles,
}
