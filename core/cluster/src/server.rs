//! A server: listens, answers, and stops.
//!
//! # States
//! *Ready* from [`Server::start`] on; *draining* after [`Server::stop`]: no new connections and no new steps, while the steps
//! in flight may end; *stopped* once they have ended, or were cancelled when the time for draining was over.

use crate::{
    client::Connection,
    error::ClusterError,
    grpc::Services,
    master::{Limits, Master, Place},
    peers::{CONNECTION_WINDOW, FRAME, Peers, STREAM_WINDOW},
    rendezvous::task_of,
    spec::ClusterSpec,
    worker::WorkerService,
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_runtime::Worker;
use tokio::{
    net::TcpListener,
    runtime::{Builder, Handle, Runtime},
    sync::watch,
    time::{interval, sleep},
};
use tokio_stream::{StreamExt, wrappers::TcpListenerStream};
use tonic::transport;

/// Threads that read requests and write answers; steps run on others.
const IO_THREADS: usize = 2;
/// Requests that run at the same time; others wait for their turn.
const RUNNING: usize = 1024;
/// How often a silent connection is asked whether its client is there, and how long the client may take to say so. A machine
/// that lost its power closes no connections.
const ASK: Duration = Duration::from_secs(60);
const ASKED: Duration = Duration::from_secs(60);
/// How often the server looks at sessions whose clients are away.
const COLLECT: Duration = Duration::from_secs(1);
/// How often a draining server checks whether steps run.
const DRAIN: Duration = Duration::from_millis(20);

/// The options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address at which it listens; port 0 means any free port.
    pub listen: SocketAddr,
    /// Limits on the use by clients.
    pub limits: Limits,
    /// The tasks of the cluster, of which the runtime's devices name one ([`RuntimeOptions::task`]); none for a server on its
    /// own. A session on any of them uses the devices of all.
    ///
    /// [`RuntimeOptions::task`]: tenon_runtime::RuntimeOptions::task
    pub cluster: ClusterSpec,
    /// How long tasks may be absent when a session is opened.
    pub absent: Duration,
}

/// How long tasks may be absent unless the options say otherwise.
const ABSENT: Duration = Duration::from_secs(60);

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            limits: Limits::default(),
            cluster: ClusterSpec::default(),
            absent: ABSENT,
        }
    }
}

/// A server of TensorFlow's `MasterService` and `WorkerService`.
pub struct Server {
    address: SocketAddr,
    services: Services,
    stop: watch::Sender<bool>,
    /// Dropped last, since its threads serve.
    threads: Option<Runtime>,
    served: Option<tokio::task::JoinHandle<Result<(), transport::Error>>>,
}

impl Server {
    /// Starts to listen. Sessions of clients are on this worker.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine; the threads cannot be started.
    pub fn start(worker: Worker, options: &ServerOptions) -> Result<Server, ClusterError> {
        let threads = Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .max_blocking_threads(RUNNING)
            .thread_name("tenon-serve")
            .enable_all()
            .build()
            .map_err(ClusterError::Threads)?;
        let listen = options.listen;
        let not_there = |source| ClusterError::Listen { listen, source };
        let listener = threads.block_on(TcpListener::bind(listen)).map_err(not_there)?;
        let address = listener.local_addr().map_err(not_there)?;
        let services = services(worker, threads.handle(), options);
        let (stop, stopped) = watch::channel(false);
        let served = threads.spawn(serve(listener, services.clone(), stopped.clone()));
        threads.spawn(collect(services.clone(), options.limits.away, stopped));
        Ok(Server { address, services, stop, threads: Some(threads), served: Some(served) })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: refuses new connections, waits until the steps in flight have ended, for at most this long, cancels the
    /// rest, and closes all sessions.
    pub fn stop(mut self, patience: Duration) {
        self.drain(patience);
    }

    fn drain(&mut self, patience: Duration) {
        let Some(threads) = self.threads.take() else { return };
        let _ = self.stop.send(true);
        let Services { master, worker } = self.services.clone();
        threads.block_on(async move {
            let end = Instant::now() + patience;
            while (master.is_busy() || worker.is_busy()) && Instant::now() < end {
                sleep(DRAIN).await;
            }
        });
        self.services.master.close_all();
        self.services.worker.close_all();
        // Connections that clients keep open are cut: their requests are answered.
        if let Some(served) = self.served.take() {
            let wait = async { tokio::time::timeout(DRAIN, served).await };
            if let Ok(Ok(Err(error))) = threads.block_on(wait) {
                tracing::warn!("the server ended with an error: {error}");
            }
        }
        threads.shutdown_timeout(patience.max(DRAIN));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.drain(Duration::ZERO);
    }
}

async fn serve(
    listener: TcpListener,
    services: Services,
    stopped: watch::Receiver<bool>,
) -> Result<(), transport::Error> {
    let connections = TcpListenerStream::new(listener).map(|stream| {
        stream.map(|stream| {
            // A client waits for a step's answer, which is small: it is sent at once.
            let _ = stream.set_nodelay(true);
            Connection::new(stream)
        })
    });
    transport::Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .http2_keepalive_interval(Some(ASK))
        .http2_keepalive_timeout(Some(ASKED))
        .serve_with_incoming_shutdown(services, connections, until(stopped))
        .await
}

/// The services of a server; calls to other tasks run on these threads.
pub(crate) fn services(worker: Worker, threads: &Handle, options: &ServerOptions) -> Services {
    let peers = Arc::new(Peers::new(threads, &options.cluster));
    let devices = worker.runtime().devices().devices();
    let task = devices.first().map_or("", |device| task_of(device.full_name())).to_owned();
    let own = Arc::new(WorkerService::new(worker.clone(), &task, peers.clone()));
    let place = Place { own: Arc::clone(&own), peers, absent: options.absent };
    Services { master: Arc::new(Master::new(worker, place, options.limits)), worker: own }
}

/// Closes sessions whose clients or masters have been away for too long.
async fn collect(services: Services, away: Duration, mut stopped: watch::Receiver<bool>) {
    let mut turns = interval(COLLECT);
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = turns.tick() => {}
        }
        let Services { master, worker } = services.clone();
        let collect = move || {
            let now = Instant::now();
            master.collect(now);
            worker.collect(now, away);
        };
        let _ = tokio::task::spawn_blocking(collect).await;
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
