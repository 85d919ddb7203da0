//! Connections of a simulated network.

use http::Uri;
use hyper_util::rt::TokioIo;
use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

/// A stream of bytes in both directions.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Bytes for T {}

pub(crate) type Duplex = Pin<Box<dyn Bytes>>;
pub(crate) type Connecting<T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send>>;

/// Makes connections to addresses, `host:port`.
pub(crate) trait Reach: Send + Sync {
    fn connect(&self, address: String) -> Connecting<Duplex>;
}

/// Makes connections for `tonic`.
#[derive(Clone)]
pub(super) struct Dial(pub Arc<dyn Reach>);

impl Service<Uri> for Dial {
    type Response = TokioIo<Duplex>;
    type Error = io::Error;
    type Future = Connecting<TokioIo<Duplex>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let address = to.authority().map_or_else(String::new, ToString::to_string);
        let connecting = self.0.connect(address);
        Box::pin(async move { connecting.await.map(TokioIo::new) })
    }
}
