//! The connected clients, as the server's listener sees them.

use crate::{clock, dial::Stream, tls::Certified};
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, LazyLock, Weak},
    task::{Context, Poll},
    time::Instant,
};
use tenon_framework::sync::{Mutex, rank};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

/// The connection of a request: it shows whether it is still open.
#[derive(Debug, Clone)]
pub(crate) struct Client(Weak<Caller>);

/// The other end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// `None` for this process.
    pub address: Option<SocketAddr>,
    /// What its certificate says; `None` without one.
    pub certified: Option<Certified>,
}

impl Client {
    /// Whether the connection is open.
    pub fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// The caller in this process, which is always there.
    pub fn of_this_process() -> Client {
        static HERE: LazyLock<Arc<Caller>> = LazyLock::new(Arc::default);
        Client(Arc::downgrade(&HERE))
    }

    /// The other end; `None` once the connection is closed.
    pub fn caller(&self) -> Option<Arc<Caller>> {
        self.0.upgrade()
    }

    /// Whether both are the same connection.
    pub fn is(&self, other: &Client) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// The clients of a session.
pub(crate) struct Presence(Mutex<Clients>);

struct Clients {
    /// The open connections through which requests came.
    connected: Vec<Client>,
    /// When the last one came.
    used: Instant,
}

impl Default for Presence {
    fn default() -> Presence {
        let clients = Clients { connected: Vec::new(), used: clock::now() };
        Presence(Mutex::ranked(rank::LEAF, clients))
    }
}

impl Presence {
    /// Records a request and its connection.
    pub fn used_by(&self, client: Option<&Client>) {
        let mut clients = self.0.lock();
        clients.used = clock::now();
        if let Some(client) = client
            && !clients.connected.iter().any(|it| it.is(client))
        {
            clients.connected.retain(Client::is_there);
            clients.connected.push(client.clone());
        }
    }

    /// The time since which no client is connected; `None` while one is.
    pub fn away_since(&self) -> Option<Instant> {
        let clients = self.0.lock();
        let away = !clients.connected.iter().any(Client::is_there);
        away.then_some(clients.used)
    }
}

/// A stream whose end the owners of its [`Client`] see.
pub(crate) struct Connection {
    stream: Stream,
    open: Arc<Caller>,
}

impl Connection {
    pub fn new(stream: Stream, caller: Caller) -> Connection {
        Connection { stream, open: Arc::new(caller) }
    }
}

impl Connected for Connection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Client {
        Client(Arc::downgrade(&self.open))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
