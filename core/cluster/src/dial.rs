//! Connections to servers: plain or with TLS, with or without a token.

use crate::{
    error::{ClusterError, causes},
    tls::{ClientTls, Connector, TlsStream},
    tokens::{Role, Tokens},
};
use http::{HeaderValue, Uri, header::AUTHORIZATION};
use hyper_util::rt::TokioIo;
use std::{
    future::Future,
    io,
    net::IpAddr,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::net::TcpStream;
use tonic::{
    body::Body,
    transport::{Channel, Endpoint, Error},
};
use tower_service::Service;

/// How a client knows servers, and shows who it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// TLS; required for targets `grpcs://`.
    pub tls: Option<ClientTls>,
    /// A file of tokens, of which the first one for clients is sent.
    pub token_file: Option<PathBuf>,
    /// Sends the token without TLS, too, when the server is on another machine. Whoever sees the packets then has the token.
    pub insecure: bool,
}

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub tls: Option<Arc<Connector>>,
    /// Whose first token with this role is sent.
    pub tokens: Option<(Arc<Tokens>, Role)>,
    pub insecure: bool,
}

impl Dialer {
    /// Connections without TLS and tokens.
    pub fn plain() -> Dialer {
        Dialer { tls: None, tokens: None, insecure: false }
    }

    /// Connections of a client.
    pub fn of(access: &Access) -> Result<Dialer, ClusterError> {
        let tls = access.tls.as_ref().map(Connector::new).transpose()?.map(Arc::new);
        let tokens = access.token_file.as_deref().map(Tokens::open).transpose()?;
        let tokens = tokens.map(|tokens| (tokens, Role::Client));
        Ok(Dialer { tls, tokens, insecure: access.insecure })
    }

    /// The endpoint of an address, `host:port`; or what is wrong with it.
    pub fn endpoint(&self, address: &str) -> Result<Endpoint, String> {
        let told = |error: &dyn std::fmt::Display| format!("{address}: {error}");
        let endpoint =
            Channel::from_shared(format!("http://{address}")).map_err(|error| told(&error))?;
        let host = host(endpoint.uri());
        if self.tls.is_none() && self.tokens.is_some() && !self.insecure && !is_loopback(&host) {
            return Err(format!(
                "{address}: a token is sent to another machine only with TLS: give certificates, or --insecure"
            ));
        }
        if self.tls.is_none() {
            return Ok(endpoint);
        }
        let origin = format!("https://{address}").parse::<Uri>().map_err(|error| told(&error))?;
        Ok(endpoint.origin(origin))
    }

    /// A connection that is made at its first use, and again after it broke.
    pub fn lazy(&self, endpoint: &Endpoint) -> Link {
        let channel = match self.dial() {
            None => endpoint.connect_lazy(),
            Some(dial) => endpoint.connect_with_connector_lazy(dial),
        };
        self.link(channel)
    }

    /// A connection that is made now.
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Link, Error> {
        let channel = match self.dial() {
            None => endpoint.connect().await,
            Some(dial) => endpoint.connect_with_connector(dial).await,
        };
        Ok(self.link(channel?))
    }

    fn dial(&self) -> Option<Dial> {
        self.tls.clone().map(Dial)
    }

    fn link(&self, channel: Channel) -> Link {
        Link { channel, tokens: self.tokens.clone() }
    }
}

/// The name or address of a host, without the brackets of IPv6.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn host(uri: &Uri) -> String {
    bare(uri.host().unwrap_or_default()).to_owned()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A connection to a server, which adds the token to each request.
#[derive(Clone)]
pub(crate) struct Link {
    channel: Channel,
    tokens: Option<(Arc<Tokens>, Role)>,
}

impl Service<http::Request<Body>> for Link {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = <Channel as Service<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Service::<http::Request<Body>>::poll_ready(&mut self.channel, context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let token: Option<HeaderValue> =
            self.tokens.as_ref().and_then(|(tokens, role)| tokens.header(*role));
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        self.channel.call(request)
    }
}

/// Makes streams with TLS for `tonic`.
#[derive(Clone)]
struct Dial(Arc<Connector>);

impl Service<Uri> for Dial {
    type Response = TokioIo<TlsStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<TlsStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connector = Arc::clone(&self.0);
        Box::pin(async move {
            let host = host(&to);
            let port = to.port_u16().unwrap_or(443);
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(connector.connect(&host, stream).await?))
        })
    }
}

/// What a client says of a connection that was not made, or broke: an error with its causes, and what the alerts of TLS in
/// it mean.
pub(crate) fn broken(error: &dyn std::error::Error) -> String {
    let text = causes(error);
    let unknown = "the server does not know the authority that signed this side's certificate";
    let known = [
        (
            "CertificateRequired",
            "the server requires a certificate: give one by --tls-cert and --tls-key",
        ),
        ("UnknownCA", unknown),
        ("DecryptError", unknown),
        (
            "CertificateExpired",
            "the server says that this side's certificate has expired: renew it",
        ),
        ("BadCertificate", "the server refuses this side's certificate"),
    ];
    let meant =
        known.iter().find(|(alert, _)| text.contains(&format!("received fatal alert: {alert}")));
    // It comes first: texts are cut at their end.
    meant.map_or_else(|| text.clone(), |(_, meaning)| format!("{meaning} ({text})"))
}

/// A stream of bytes, plain or with TLS.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

macro_rules! both {
    ($stream:expr, $it:ident => $call:expr) => {
        match $stream {
            Stream::Plain($it) => {
                let $it = Pin::new($it);
                $call
            }
            Stream::Tls($it) => {
                let $it = Pin::new(&mut **$it);
                $call
            }
        }
    };
}

impl tokio::io::AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        both!(&mut *self, it => it.poll_read(context, buffer))
    }
}

impl tokio::io::AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        both!(&mut *self, it => it.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        both!(&mut *self, it => it.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        both!(&mut *self, it => it.poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        both!(&mut *self, it => it.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leaves_the_machine_only_with_tls() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "0123456789abcdef").unwrap();
        let mut access = Access { token_file: Some(file), ..Access::default() };
        let dialer = Dialer::of(&access).unwrap();
        for here in ["127.0.0.1:1", "localhost:1", "[::1]:1"] {
            assert!(dialer.endpoint(here).is_ok(), "{here}");
        }
        let error = dialer.endpoint("10.1.2.3:1").err().unwrap();
        assert!(error.contains("only with TLS"), "{error}");
        assert!(Dialer::plain().endpoint("10.1.2.3:1").is_ok());
        access.insecure = true;
        assert!(Dialer::of(&access).unwrap().endpoint("10.1.2.3:1").is_ok());
    }
}
