//! What takes the place of TLS in a program that is built without it.

use super::{Certified, ClientTls, ServerTls};
use crate::error::ClusterError;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// There is none.
pub(crate) enum Acceptor {}

impl Acceptor {
    pub fn new(_: &ServerTls) -> Result<Acceptor, ClusterError> {
        Err(ClusterError::NoTls)
    }

    pub fn reload(&self) {
        match *self {}
    }

    pub async fn accept(&self, _: TcpStream) -> Result<(TlsStream, Option<Certified>), String> {
        match *self {}
    }
}

/// There is none.
pub(crate) enum Connector {}

impl Connector {
    pub fn new(_: &ClientTls) -> Result<Connector, ClusterError> {
        Err(ClusterError::NoTls)
    }

    pub async fn connect(&self, _: &str, _: TcpStream) -> io::Result<TlsStream> {
        match *self {}
    }

    pub async fn connect_data(&self, _: &str, _: TcpStream) -> io::Result<TlsStream> {
        match *self {}
    }
}

/// There is none.
pub(crate) enum TlsStream {}

/// Whether a stream is one of the data plane.
pub(crate) fn is_data(stream: &TlsStream) -> bool {
    match *stream {}
}

impl AsyncRead for TlsStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match *self {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}
