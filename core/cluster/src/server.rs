//! A server: listens, answers, and stops.
//!
//! # States
//! *Ready* from [`Server::start`] on; *draining* after [`Server::stop`]: no new sessions and no new steps, while the steps
//! in flight may end, also those of other tasks that take tensors from here; *stopped* once they have ended, or were cancelled
//! when the time for draining was over.

#[cfg(all(test, feature = "tls"))]
mod tests;

use crate::{
    audit::{Audit, AuditOptions},
    client::Connection,
    clock,
    dial::Dialer,
    error::ClusterError,
    gate::{Gate, Served},
    grpc::Services,
    health::{BEAT, Health},
    limits::{ClientLimits, Usage},
    listener::{Doors, accept, check_exposure},
    master::{Leavings, Limits, Master, Place},
    peers::{CONNECTION_WINDOW, FRAME, Peers, STREAM_WINDOW},
    plane::{Hub, Serve, admit},
    rendezvous::task_of,
    spec::ClusterSpec,
    tls::{Acceptor, ClientTls, Connector, ServerTls},
    tokens::{Role, Tokens},
    traffic::LinkFigures,
    turns::Turns,
    way::DataPlane,
    worker::WorkerService,
};
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tenon_runtime::Worker;
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::{Builder, Handle, Runtime},
    sync::{mpsc, watch},
    task::JoinHandle,
    time::sleep,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport;

/// Threads that read requests and write answers; steps run on others.
const IO_THREADS: usize = 2;
/// How often a silent connection is asked whether its client is there, and how long the client may take to say so. A machine
/// that lost its power closes no connections.
const ASK: Duration = Duration::from_secs(60);
const ASKED: Duration = Duration::from_secs(60);
/// How often the server looks at sessions whose clients are away, and asks whether the tasks that it uses are there.
const COLLECT: Duration = BEAT;
/// Connections that wait for their first request.
const CONNECTIONS: usize = 64;
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
    /// TLS, with the certificates of clients if it has an authority for them.
    pub tls: Option<ServerTls>,
    /// A file of tokens, one of which each request has to bring.
    pub token_file: Option<PathBuf>,
    /// Listens where other machines reach it, too, when it does not require both TLS and a token or a certificate.
    pub insecure: bool,
    /// Limits on the use by each client.
    pub clients: ClientLimits,
    /// The audit log.
    pub audit: Option<AuditOptions>,
    /// Which way tensors take between this task and others of Tenon.
    pub data_plane: DataPlane,
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
            tls: None,
            token_file: None,
            insecure: false,
            clients: ClientLimits::default(),
            audit: None,
            data_plane: DataPlane::Auto,
        }
    }
}

/// A server of TensorFlow's `MasterService` and `WorkerService`.
pub struct Server {
    address: SocketAddr,
    services: Services,
    peers: Arc<Peers>,
    acceptor: Option<Arc<Acceptor>>,
    stop: watch::Sender<bool>,
    /// Dropped last, since its threads serve.
    threads: Option<Runtime>,
    served: Option<JoinHandle<Result<(), transport::Error>>>,
}

impl Server {
    /// Starts to listen. Sessions of clients are on this worker.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine; others would reach it without showing who they are; a file of
    /// certificates or tokens is wrong; the threads cannot be started.
    pub fn start(worker: Worker, options: &ServerOptions) -> Result<Server, ClusterError> {
        Server::begin(worker, None, options)
    }

    /// Takes the address of a server that starts later ([`Server::start_on`]). Clients that connect wait until then.
    ///
    /// # Errors
    /// The address is taken, or not one of this machine; others would reach it without showing who they are.
    pub fn bind(options: &ServerOptions) -> Result<std::net::TcpListener, ClusterError> {
        let listen = options.listen;
        check_exposure(
            listen,
            options.tls.as_ref(),
            options.token_file.is_some(),
            options.insecure,
        )?;
        std::net::TcpListener::bind(listen)
            .map_err(|source| ClusterError::Listen { listen, source })
    }

    /// As [`Server::start`], at the address that a listener has; that of the options is not used.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_on(
        listener: std::net::TcpListener,
        worker: Worker,
        options: &ServerOptions,
    ) -> Result<Server, ClusterError> {
        Server::begin(worker, Some(listener), options)
    }

    fn begin(
        worker: Worker,
        bound: Option<std::net::TcpListener>,
        options: &ServerOptions,
    ) -> Result<Server, ClusterError> {
        let asked = options.listen;
        let not_there = |source| ClusterError::Listen { listen: asked, source };
        let own = bound.as_ref().map(std::net::TcpListener::local_addr);
        let listen = own.transpose().map_err(not_there)?.unwrap_or(asked);
        let has_tokens = options.token_file.is_some();
        check_exposure(listen, options.tls.as_ref(), has_tokens, options.insecure)?;
        let secured = Secured::read(options)?;
        let acceptor = secured.acceptor.clone();
        let threads = threads_of(options).map_err(ClusterError::Threads)?;
        let listener = threads.block_on(listener_at(listen, bound)).map_err(not_there)?;
        let address = listener.local_addr().map_err(not_there)?;
        let Begun { services, peers, door } =
            secured.services(worker, threads.handle(), options)?;
        let (stop, stopped) = watch::channel(false);
        let (calls, connections) = mpsc::channel(CONNECTIONS);
        let (gate, data) = (Arc::clone(&services.gate), Arc::clone(&services.hub));
        let doors = Doors { acceptor: acceptor.clone(), gate, calls, data };
        threads.spawn(accept(listener, doors, stopped.clone()));
        if let Some(door) = door {
            threads.spawn(admit(Arc::clone(&services.hub), door, stopped.clone()));
        }
        let connections = ReceiverStream::new(connections);
        let served = threads.spawn(serve(connections, services.clone(), stopped.clone()));
        threads.spawn(collect(services.clone(), options.limits.away, stopped));
        Ok(Server {
            address,
            services,
            peers,
            acceptor,
            stop,
            threads: Some(threads),
            served: Some(served),
        })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What others may look at while it serves.
    pub fn watch(&self) -> ServerWatch {
        ServerWatch {
            master: Arc::clone(&self.services.master),
            peers: Arc::clone(&self.peers),
            gate: Arc::clone(&self.services.gate),
            turns: Arc::clone(&self.services.turns),
        }
    }

    /// Reads the files of certificates and tokens again, if they have changed. A server looks at them at least once a second
    /// while connections and requests come.
    pub fn reload(&self) {
        if let Some(acceptor) = &self.acceptor {
            acceptor.reload();
        }
        self.services.gate.reload();
    }

    /// Stops: refuses new sessions and steps, waits until the steps in flight have ended, for at most this long, cancels the
    /// rest, and closes all sessions.
    pub fn stop(mut self, patience: Duration) {
        self.drain(patience);
    }

    fn drain(&mut self, patience: Duration) {
        let Some(threads) = self.threads.take() else { return };
        let Services { master, worker, hub, turns, .. } = self.services.clone();
        turns.drain();
        let is_busy = || !turns.are_free() || master.is_busy() || worker.is_busy();
        threads.block_on(async {
            let end = Instant::now() + patience;
            while is_busy() && Instant::now() < end {
                sleep(DRAIN).await;
            }
        });
        let _ = self.stop.send(true);
        self.services.master.close_all();
        self.services.worker.close_all();
        hub.stop();
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

/// A server as probes and figures see it.
#[derive(Clone)]
pub struct ServerWatch {
    master: Arc<Master>,
    peers: Arc<Peers>,
    gate: Arc<Gate>,
    turns: Arc<Turns>,
}

impl ServerWatch {
    /// Whether the server takes requests.
    ///
    /// # Errors
    /// Why not.
    pub fn ready(&self) -> Result<(), String> {
        match self.turns.is_draining() {
            true => Err("the server stops: steps in flight may end".to_owned()),
            false => Ok(()),
        }
    }

    /// Open sessions.
    pub fn sessions(&self) -> usize {
        self.master.sessions()
    }

    /// How many steps of clients have ended, and how many parts of steps for the masters of other tasks.
    pub fn served(&self) -> (u64, u64) {
        let served = &self.gate.served;
        (served.steps.load(Ordering::Relaxed), served.parts.load(Ordering::Relaxed))
    }

    /// How often members of collective operations, at this task and others, have asked it as the leader of their groups.
    pub fn questions(&self) -> u64 {
        self.master.questions()
    }

    /// What came from each of the other tasks.
    pub fn links(&self) -> Vec<LinkFigures> {
        self.peers.traffic().figures()
    }
}

/// The threads of a server.
fn threads_of(options: &ServerOptions) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(IO_THREADS)
        .max_blocking_threads(Turns::threads(options.limits.steps, options.limits.parts))
        .thread_name("tenon-serve")
        .enable_all()
        .build()
}

/// A listener at an address, or the one that has it.
async fn listener_at(
    listen: SocketAddr,
    bound: Option<std::net::TcpListener>,
) -> io::Result<TcpListener> {
    let Some(bound) = bound else { return TcpListener::bind(listen).await };
    bound.set_nonblocking(true)?;
    TcpListener::from_std(bound)
}

async fn serve(
    connections: ReceiverStream<io::Result<Connection>>,
    services: Services,
    stopped: watch::Receiver<bool>,
) -> Result<(), transport::Error> {
    transport::Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .http2_keepalive_interval(Some(ASK))
        .http2_keepalive_timeout(Some(ASKED))
        .serve_with_incoming_shutdown(services, connections, until(stopped))
        .await
}

/// The services of a server, and what they need of it.
struct Begun {
    services: Services,
    peers: Arc<Peers>,
    /// Where tasks on this host get shared memory.
    door: Option<UnixListener>,
}

/// What a server read from files before it listens.
struct Secured {
    acceptor: Option<Arc<Acceptor>>,
    dialer: Dialer,
    tokens: Option<Arc<Tokens>>,
    audit: Option<Audit>,
}

impl Secured {
    fn read(options: &ServerOptions) -> Result<Secured, ClusterError> {
        let acceptor = options.tls.as_ref().map(Acceptor::new).transpose()?.map(Arc::new);
        let tokens = options.token_file.as_deref().map(Tokens::open).transpose()?;
        let audit = options.audit.as_ref().map(Audit::open).transpose()?;
        let tls = match &options.tls {
            Some(tls) => connector(tls, &options.cluster)?.map(Arc::new),
            None => None,
        };
        let sent = tokens.clone().map(|tokens| (tokens, Role::Worker));
        let dialer = Dialer { tls, tokens: sent, insecure: options.insecure };
        Ok(Secured { acceptor, dialer, tokens, audit })
    }

    /// The services of a server; calls to other tasks run on these threads.
    fn services(
        self,
        worker: Worker,
        threads: &Handle,
        options: &ServerOptions,
    ) -> Result<Begun, ClusterError> {
        let devices = worker.runtime().devices().devices();
        let task = devices.first().map_or("", |device| task_of(device.full_name())).to_owned();
        let tasks = options.cluster.by_name();
        let (hub, door) = Hub::new(threads, options.data_plane, &task, tasks.clone())
            .map_err(ClusterError::SharedMemory)?;
        let peers = Peers::new(threads, tasks, self.dialer, &hub);
        let health = Health::new(peers.clone());
        let of_masters = Some(Arc::clone(&health));
        let own = Arc::new(WorkerService::new(worker.clone(), &task, peers.clone(), of_masters));
        let served: Arc<dyn Serve> = own.clone();
        hub.serve(Arc::downgrade(&served));
        let place = Place {
            own: Arc::clone(&own),
            task: Arc::clone(own.task()),
            cluster: None,
            peers: Arc::clone(&peers),
            health,
            leavings: Leavings::new(),
            absent: options.absent,
        };
        let usage = Usage::new(options.clients);
        let gate = Arc::new(Gate {
            tokens: self.tokens,
            usage,
            audit: self.audit,
            served: Served::default(),
        });
        let master = Arc::new(Master::new(worker, place, options.limits));
        let turns = Arc::new(Turns::new(options.limits.steps, options.limits.parts));
        Ok(Begun { services: Services { master, worker: own, gate, hub, turns }, peers, door })
    }
}

/// How a server with TLS reaches the other tasks of its cluster.
fn connector(tls: &ServerTls, cluster: &ClusterSpec) -> Result<Option<Connector>, ClusterError> {
    match &tls.ca {
        Some(ca) => {
            let own = ClientTls { ca: ca.clone(), identity: Some(tls.identity.clone()) };
            Connector::new(&own).map(Some)
        }
        None if cluster.jobs.values().map(|tasks| tasks.len()).sum::<usize>() > 1 => {
            Err(ClusterError::ClusterAuthority)
        }
        None => Ok(None),
    }
}

/// The services of a server without TLS and tokens.
#[cfg(feature = "fuzzing")]
pub(crate) fn services(
    worker: Worker,
    threads: &Handle,
    options: &ServerOptions,
) -> Result<Services, ClusterError> {
    Ok(Secured::read(options)?.services(worker, threads, options)?.services)
}

/// Asks whether tasks are there, and closes sessions whose clients or masters have been away for too long. To close a session
/// takes seconds if one of its workers does not answer; the tasks are asked meanwhile.
async fn collect(services: Services, away: Duration, mut stopped: watch::Receiver<bool>) {
    let mut collecting: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            () = clock::sleep(COLLECT) => {}
        }
        let Services { master, worker, gate, .. } = services.clone();
        master.look_at_tasks();
        worker.look_at_masters();
        if collecting.as_ref().is_some_and(|it| !it.is_finished()) {
            continue;
        }
        let collect = move || {
            let now = clock::now();
            master.collect(now);
            worker.collect(now, away);
            gate.usage.forget_closed(|handle| master.has(handle));
        };
        collecting = Some(tokio::task::spawn_blocking(collect));
    }
}

async fn until(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}
