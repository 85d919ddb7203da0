//! Handshakes, and the streams after them.

use super::{Certified, ClientTls, ServerTls, files, reasons};
use crate::{error::ClusterError, tokens::Roles, watched::Watched};
use rustls::{
    ClientConfig, ServerConfig,
    pki_types::{CertificateDer, ServerName},
};
use std::{io, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a refused client has to read the reason, and how much it may send meanwhile.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: u64 = 1 << 20;
/// The name of a role in a certificate.
const ROLE: &str = "tenon:role:";

/// An encrypted stream.
pub(crate) type TlsStream = tokio_rustls::TlsStream<TcpStream>;

/// The side of a server.
pub(crate) struct Acceptor(Watched<ServerConfig>);

impl Acceptor {
    /// Reads the files.
    pub fn new(tls: &ServerTls) -> Result<Acceptor, ClusterError> {
        let own = tls.clone();
        let read = move || files::server(&own);
        Ok(Acceptor(Watched::new(files::of_server(tls), read)?))
    }

    /// Looks now whether the files have changed.
    pub fn reload(&self) {
        self.0.reload();
    }

    /// The stream after the handshake, and what the client's certificate says; or why there is none.
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> Result<(TlsStream, Option<Certified>), String> {
        let acceptor = tokio_rustls::TlsAcceptor::from(self.0.current());
        let shaken = timeout(HANDSHAKE, acceptor.accept(stream).into_fallible());
        let shaken = shaken.await.map_err(|_| {
            format!("the client did not end the handshake of TLS within {HANDSHAKE:?}")
        })?;
        let stream = match shaken {
            Ok(stream) => stream,
            Err((error, stream)) => {
                tokio::spawn(linger(stream));
                return Err(reasons::at_server(&error));
            }
        };
        let chain = stream.get_ref().1.peer_certificates();
        let certified = chain.and_then(|chain| chain.first()).map(certified);
        Ok((stream.into(), certified))
    }
}

/// Keeps a refused connection until the client has closed it: if the server closed it first, the client's system would drop the
/// alert that says why.
async fn linger(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut rest = stream.take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

/// What a certificate says of its owner.
fn certified(certificate: &CertificateDer<'_>) -> Certified {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
        return Certified { name: "certificate".to_owned(), roles: Roles::BOTH };
    };
    let (mut roles, mut has_roles, mut name) =
        (Roles { client: false, worker: false }, false, None);
    for uri in parsed.valid_uri_names() {
        match uri.strip_prefix(ROLE) {
            Some(role) => {
                has_roles = true;
                roles.client |= role == "client";
                roles.worker |= role == "worker";
            }
            None => name = name.or(Some(uri)),
        }
    }
    let name = name.or_else(|| parsed.valid_dns_names().next()).unwrap_or("certificate").to_owned();
    Certified { name, roles: if has_roles { roles } else { Roles::BOTH } }
}

/// The side of a client.
pub(crate) struct Connector(Watched<ClientConfig>);

impl Connector {
    /// Reads the files.
    pub fn new(tls: &ClientTls) -> Result<Connector, ClusterError> {
        let own = tls.clone();
        let read = move || files::client(&own);
        Ok(Connector(Watched::new(files::of_client(tls), read)?))
    }

    /// The stream after the handshake with a server that has to have a certificate for this host.
    pub async fn connect(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream> {
        shake(self.0.current(), host, stream).await
    }

    /// The same, for the data plane.
    pub async fn connect_data(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream> {
        let mut config = ClientConfig::clone(&self.0.current());
        config.alpn_protocols = vec![files::DATA.to_vec()];
        shake(Arc::new(config), host, stream).await
    }
}

/// Makes the handshake of a client.
async fn shake(config: Arc<ClientConfig>, host: &str, stream: TcpStream) -> io::Result<TlsStream> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let shaken = timeout(HANDSHAKE, tokio_rustls::TlsConnector::from(config).connect(name, stream));
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the handshake of TLS took too long");
    let stream = shaken.await.map_err(late)?;
    let stream =
        stream.map_err(|error| io::Error::new(error.kind(), reasons::at_client(&error, host)))?;
    Ok(stream.into())
}

/// Whether the client of a stream has chosen the data plane.
pub(crate) fn is_data(stream: &TlsStream) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(files::DATA)
}
