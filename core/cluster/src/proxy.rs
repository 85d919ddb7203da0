//! A local endpoint without TLS for clients that speak neither TLS nor tokens, such as TensorFlow's own: requests go on to a
//! server over TLS, with a token, and answers come back as they arrive.
//!
//! # Invariants
//! - Bytes of requests and answers are passed on as they come; no message is decoded or kept.
//! - Each client's connection has a connection of its own to the server, which ends with it: the server sees that a client is
//!   gone, and cancels its steps.
//! - The proxy does not check requests. The server does.

use crate::{
    client::{Caller, Client, Connection},
    dial::{Access, Dialer, Link, Stream, broken},
    error::ClusterError,
};
use http::{HeaderName, header};
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tenon_framework::sync::{Mutex, rank};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
    sync::watch,
    time::interval,
};
use tokio_stream::{StreamExt, wrappers::TcpListenerStream};
use tonic::{Status, body::Body, transport::Endpoint};
use tower_service::Service;

/// Threads that pass bytes on.
const THREADS: usize = 2;
/// How long a connection to the server may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How often connections of clients that are gone are closed.
const COLLECT: Duration = Duration::from_secs(1);
/// Bytes of one request or answer that wait in the proxy, and of one connection.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// The options of a proxy.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// The address at which it listens; port 0 means any free port.
    pub listen: SocketAddr,
    /// The server, as `host:port`.
    pub to: String,
    /// The certificates and tokens for the server.
    pub access: Access,
    /// Connections of clients that are open at the same time.
    pub connections: usize,
    /// Requests of one connection that are passed on at the same time.
    pub requests: u32,
}

impl ProxyOptions {
    /// A proxy on any free port of the loopback address.
    pub fn to(server: &str, access: Access) -> ProxyOptions {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        ProxyOptions { listen, to: server.to_owned(), access, connections: 256, requests: 1024 }
    }
}

/// A proxy that runs until it is dropped.
pub struct Proxy {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    threads: Option<Runtime>,
}

impl Proxy {
    /// Starts to listen. The connection to the server is made when the first client comes.
    ///
    /// # Errors
    /// The address is taken, or not a loopback address; a file of `access` is wrong; the threads cannot be started.
    pub fn start(options: &ProxyOptions) -> Result<Proxy, ClusterError> {
        let listen = options.listen;
        let is_open = !listen.ip().is_loopback() && !options.access.insecure;
        if is_open {
            let lack = ", and whoever reaches it would use this proxy's token: listen on 127.0.0.1";
            return Err(ClusterError::Exposed { listen, lack });
        }
        let dialer = Dialer::of(&options.access)?;
        let endpoint = dialer
            .endpoint(&options.to)
            .map_err(|_| ClusterError::Target { target: options.to.clone() })?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let threads = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("tenon-proxy")
            .enable_all()
            .build()
            .map_err(ClusterError::Threads)?;
        let not_there = |source| ClusterError::Listen { listen, source };
        let listener = threads.block_on(TcpListener::bind(listen)).map_err(not_there)?;
        let address = listener.local_addr().map_err(not_there)?;
        let links = Mutex::ranked(rank::LEAF, Vec::new());
        let most = options.connections;
        let pass = Pass(Arc::new(Links { dialer, endpoint, to: options.to.clone(), links, most }));
        let (stop, stopped) = watch::channel(false);
        threads.spawn(serve(listener, pass.clone(), options.requests, stopped.clone()));
        threads.spawn(collect(pass, stopped));
        Ok(Proxy { address, stop, threads: Some(threads) })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

async fn serve(
    listener: TcpListener,
    pass: Pass,
    requests: u32,
    mut stopped: watch::Receiver<bool>,
) {
    let connections = TcpListenerStream::new(listener).map(|accepted| -> io::Result<Connection> {
        let stream = accepted?;
        stream.set_nodelay(true)?;
        let caller = Caller { address: stream.peer_addr().ok(), certified: None };
        Ok(Connection::new(Stream::Plain(stream), caller))
    });
    let stop = async move {
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let served = tonic::transport::Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(requests)
        .serve_with_incoming_shutdown(pass, connections, stop);
    if let Err(error) = served.await {
        tracing::warn!("the proxy ended with an error: {error}");
    }
}

/// Closes the connections of clients that are gone.
async fn collect(pass: Pass, mut stopped: watch::Receiver<bool>) {
    let mut turns = interval(COLLECT);
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = turns.tick() => pass.0.links.lock().retain(|(client, _)| client.is_there()),
        }
    }
}

/// The connections to the server, one for each client's.
struct Links {
    dialer: Dialer,
    endpoint: Endpoint,
    to: String,
    links: Mutex<Vec<(Client, Link)>>,
    most: usize,
}

impl Links {
    fn of(&self, client: &Client) -> Result<Link, Status> {
        let mut links = self.links.lock();
        if let Some((_, link)) = links.iter().find(|(other, _)| other.is(client)) {
            return Ok(link.clone());
        }
        links.retain(|(client, _)| client.is_there());
        if links.len() >= self.most {
            return Err(Status::resource_exhausted(format!(
                "the proxy has {} connections, its limit: close those that are not used, or start it with a larger --connections",
                self.most
            )));
        }
        let link = self.dialer.lazy(&self.endpoint);
        links.push((client.clone(), link.clone()));
        Ok(link)
    }
}

/// Passes requests on.
#[derive(Clone)]
struct Pass(Arc<Links>);

impl Service<http::Request<Body>> for Pass {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let links = Arc::clone(&self.0);
        Box::pin(async move { Ok(pass(&links, request).await.unwrap_or_else(Status::into_http)) })
    }
}

/// What belongs to one connection and is not passed on; a client's own token would hide the proxy's.
const OWN: [HeaderName; 3] = [header::HOST, header::CONNECTION, header::AUTHORIZATION];

async fn pass(links: &Links, request: http::Request<Body>) -> Result<http::Response<Body>, Status> {
    let client = request.extensions().get::<Client>().cloned();
    let client = client.ok_or_else(|| Status::internal("a request without a connection"))?;
    let mut link = links.of(&client)?;
    let (head, body) = request.into_parts();
    let mut passed = http::Request::new(body);
    *passed.method_mut() = head.method;
    *passed.version_mut() = http::Version::HTTP_2;
    *passed.uri_mut() = head.uri;
    *passed.headers_mut() = head.headers;
    OWN.iter().for_each(|name| drop(passed.headers_mut().remove(name)));
    let failed = |error: tonic::transport::Error| {
        let to = &links.to;
        Status::unavailable(format!(
            "the proxy's server {to} cannot be reached: {}",
            broken(&error)
        ))
    };
    poll_fn(|context| link.poll_ready(context)).await.map_err(failed)?;
    link.call(passed).await.map_err(failed)
}
