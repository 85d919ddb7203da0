//! Sessions on a server, from Rust.

use crate::{
    codec::ProtobufCodec,
    dial::{Access, Dialer, Link, broken},
    error::ClusterError,
    placeholders::Placeholders,
};
use http::uri::PathAndQuery;
use prost::Message;
use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use tenon_framework::{
    Code, Tensor,
    sync::{Mutex, rank},
};
use tenon_graph::Graph;
use tenon_proto::{
    CloseSessionRequest, CloseSessionResponse, ConfigProto, CreateSessionRequest,
    CreateSessionResponse, DeviceAttributes, ExtendSessionRequest, ExtendSessionResponse, GraphDef,
    ListDevicesRequest, ListDevicesResponse, MAX_MESSAGE_BYTES, NamedTensorProto,
    PartialRunSetupRequest, PartialRunSetupResponse, RunOptions, RunStepRequest, RunStepResponse,
    convert::{tensor_from_proto, tensor_to_proto},
};
use tenon_runtime::{AnySession, CallableOptions, SessionError};
use tokio::runtime::{Builder, Runtime};
use tonic::{Request, client::Grpc};

/// How long a server may take to answer when a session is opened.
const CONNECT: Duration = Duration::from_secs(20);
/// How long one may take to close a session.
const CLOSE: Duration = Duration::from_secs(5);

/// A session on a server, such as `tenon serve` or one of TensorFlow's. Its methods block, and may be called from several
/// threads. The session is closed when it is dropped.
///
/// ```no_run
/// use tenon_cluster::Session;
/// use tenon_framework::Tensor;
/// use tenon_proto::GraphDef;
///
/// let session = Session::connect("grpc://127.0.0.1:2222", GraphDef::default())?;
/// let x = Tensor::from_slice(&[2], &[1f32, 2.0])?;
/// let fetched = session.run(&[("x", x)], &["y"], &[], None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    channel: Link,
    handle: String,
    /// Version of the graph.
    version: Mutex<i64>,
    placeholders: Mutex<Placeholders>,
    threads: Runtime,
    /// Whether the server need not be notified of the end.
    ended: AtomicBool,
}

fn status(status: &tonic::Status) -> ClusterError {
    // Only what the connection itself reports has a source: the server gave no answer.
    match status.source() {
        None => ClusterError::Refused {
            code: Code(status.code() as i32),
            message: status.message().to_owned(),
        },
        Some(_) => ClusterError::Refused {
            code: Code::UNAVAILABLE,
            message: format!("the connection to the server broke: {}", broken(status)),
        },
    }
}

/// How a target is reached, and its address.
fn dialer<'t>(target: &'t str, access: &Access) -> Result<(Dialer, &'t str), ClusterError> {
    let bad_target = || ClusterError::Target { target: target.to_owned() };
    let (address, is_secure) =
        match (target.strip_prefix("grpc://"), target.strip_prefix("grpcs://")) {
            (Some(address), _) => (address, false),
            (None, Some(address)) => (address, true),
            (None, None) => return Err(bad_target()),
        };
    if Dialer::plain().endpoint(address).is_err() {
        return Err(bad_target());
    }
    let access = match (is_secure, &access.tls) {
        (true, None) => return Err(ClusterError::NoAuthority { target: target.to_owned() }),
        (true, Some(_)) => access.clone(),
        (false, _) => Access { tls: None, ..access.clone() },
    };
    Ok((Dialer::of(&access)?, address))
}

/// Calls a method of the master.
async fn call<Q, R>(
    channel: Link,
    method: &'static str,
    request: Q,
    deadline: Option<Duration>,
) -> Result<R, ClusterError>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let mut grpc = Grpc::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let answer = async {
        grpc.ready().await.map_err(|error| ClusterError::Refused {
            code: Code::UNAVAILABLE,
            message: format!("the server cannot be reached: {}", broken(&error)),
        })?;
        let path = PathAndQuery::from_static(method);
        let codec = ProtobufCodec::<Q, R>::default();
        grpc.unary(Request::new(request), path, codec).await.map_err(|error| status(&error))
    };
    let answer = match deadline {
        None => answer.await,
        Some(deadline) => tokio::time::timeout(deadline, answer).await.unwrap_or_else(|_| {
            let message = format!("the server did not answer within {deadline:?}");
            Err(ClusterError::Refused { code: Code::DEADLINE_EXCEEDED, message })
        }),
    };
    Ok(answer?.into_inner())
}

impl Session {
    /// Opens a session with this graph on the server at a target such as `grpc://127.0.0.1:2222`.
    ///
    /// # Errors
    /// The target has another form, no server listens there, or the server refuses the graph.
    pub fn connect(target: &str, graph: GraphDef) -> Result<Session, ClusterError> {
        Session::connect_with(target, graph, ConfigProto::default())
    }

    /// As [`Session::connect`], with options of the session.
    ///
    /// # Errors
    /// As [`Session::connect`].
    pub fn connect_with(
        target: &str,
        graph: GraphDef,
        config: ConfigProto,
    ) -> Result<Session, ClusterError> {
        Session::connect_as(target, graph, config, &Access::default())
    }

    /// As [`Session::connect_with`], with certificates and tokens: a target `grpcs://HOST:PORT` is a server with TLS.
    ///
    /// # Errors
    /// As [`Session::connect`]; a file of `access` is wrong; a target with TLS without [`Access::tls`].
    pub fn connect_as(
        target: &str,
        graph: GraphDef,
        config: ConfigProto,
        access: &Access,
    ) -> Result<Session, ClusterError> {
        let (dialer, address) = dialer(target, access)?;
        let refused = |message| ClusterError::Refused { code: Code::INVALID_ARGUMENT, message };
        let endpoint = dialer.endpoint(address).map_err(refused)?;
        let endpoint = endpoint.connect_timeout(CONNECT).tcp_nodelay(true);
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tenon-session")
            .enable_all()
            .build()
            .map_err(ClusterError::Threads)?;
        let connect = async { dialer.connect(&endpoint).await };
        let channel = threads.block_on(connect).map_err(|error| ClusterError::Refused {
            code: Code::UNAVAILABLE,
            message: format!("{target} cannot be reached: {}; is the server up?", broken(&error)),
        })?;
        let placeholders = Mutex::ranked(rank::LEAF, Placeholders::of(&graph));
        let request = CreateSessionRequest {
            graph_def: Some(graph),
            config: Some(config),
            target: target.to_owned(),
        };
        let opened: CreateSessionResponse = threads.block_on(call(
            channel.clone(),
            "/tensorflow.MasterService/CreateSession",
            request,
            Some(CONNECT),
        ))?;
        let version = Mutex::ranked(rank::SERVER, opened.graph_version);
        let ended = AtomicBool::new(false);
        let handle = opened.session_handle;
        Ok(Session { channel, handle, version, placeholders, threads, ended })
    }

    fn call<Q, R>(
        &self,
        method: &'static str,
        request: Q,
        deadline: Option<Duration>,
    ) -> Result<R, ClusterError>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
    {
        self.threads.block_on(call(self.channel.clone(), method, request, deadline))
    }

    /// Appends the nodes of a graph.
    ///
    /// # Errors
    /// The server refuses the graph; `ABORTED` if another client has extended the graph in the meantime.
    pub fn extend(&self, graph: GraphDef) -> Result<(), ClusterError> {
        let placeholders = Placeholders::of(&graph);
        let mut version = self.version.lock();
        let request = ExtendSessionRequest {
            session_handle: self.handle.clone(),
            graph_def: Some(graph),
            current_graph_version: *version,
        };
        let extended: ExtendSessionResponse =
            self.call("/tensorflow.MasterService/ExtendSession", request, None)?;
        *version = extended.new_graph_version;
        self.placeholders.lock().add(placeholders);
        Ok(())
    }

    /// As [`Session::extend`], with a graph that was built in code.
    ///
    /// # Errors
    /// As [`Session::extend`]; a node has an attribute that has no message.
    pub fn extend_graph(&self, graph: &Graph) -> Result<(), ClusterError> {
        let graph = graph.to_graph_def().map_err(|error| ClusterError::Refused {
            code: error.code(),
            message: error.to_string(),
        })?;
        self.extend(graph)
    }

    /// Runs one step; the values are in the order of the fetches. `deadline` is the step's; `None` waits for any time.
    ///
    /// # Errors
    /// A feed does not have the shape of its placeholder; the error of the step; the server is gone.
    pub fn run(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, ClusterError> {
        self.placeholders.lock().check(feeds)?;
        self.run_any_shape(feeds, fetches, targets, deadline)
    }

    /// As [`Session::run`], but a placeholder is fed with tensors of any shape, as TensorFlow's clients do.
    ///
    /// # Errors
    /// The error of the step; the server is gone.
    pub fn run_any_shape(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, ClusterError> {
        let target = targets.iter().map(|&name| name.to_owned()).collect();
        self.step(RunStepRequest { target, ..RunStepRequest::default() }, feeds, fetches, deadline)
    }

    /// Begins a step whose feeds and fetches come in parts; returns its handle, which ends with the step or the session.
    ///
    /// # Errors
    /// The server has no such tensors or nodes, or no partial runs; the server is gone.
    pub fn set_up_partial_run(&self, names: &CallableOptions) -> Result<String, ClusterError> {
        let request = PartialRunSetupRequest {
            session_handle: self.handle.clone(),
            feed: names.feeds.clone(),
            fetch: names.fetches.clone(),
            target: names.targets.clone(),
            ..PartialRunSetupRequest::default()
        };
        let prepared: PartialRunSetupResponse =
            self.call("/tensorflow.MasterService/PartialRunSetup", request, None)?;
        Ok(prepared.partial_run_handle)
    }

    /// Feeds and fetches a part of a step that [`Session::set_up_partial_run`] began.
    ///
    /// # Errors
    /// As [`Session::run`]; the step is done, or was not set up with these names.
    pub fn run_part(
        &self,
        handle: &str,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, ClusterError> {
        self.placeholders.lock().check(feeds)?;
        self.run_part_any_shape(handle, feeds, fetches, deadline)
    }

    /// As [`Session::run_part`], with feeds of any shape.
    ///
    /// # Errors
    /// As [`Session::run_any_shape`]; the step is done, or was not set up with these names.
    pub fn run_part_any_shape(
        &self,
        handle: &str,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, ClusterError> {
        let partial_run_handle = handle.to_owned();
        let request = RunStepRequest { partial_run_handle, ..RunStepRequest::default() };
        self.step(request, feeds, fetches, deadline)
    }

    /// Runs a step, or a part of one, of which `request` has the rest.
    fn step(
        &self,
        request: RunStepRequest,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, ClusterError> {
        let feed = feeds.iter().map(|(name, tensor)| {
            let tensor = Some(tensor_to_proto(tensor).map_err(ClusterError::Value)?);
            Ok(NamedTensorProto { name: (*name).to_owned(), tensor })
        });
        let milliseconds = deadline
            .map_or(0, |deadline| i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX).max(1));
        let request = RunStepRequest {
            session_handle: self.handle.clone(),
            feed: feed.collect::<Result<_, ClusterError>>()?,
            fetch: fetches.iter().map(|&name| name.to_owned()).collect(),
            options: Some(RunOptions { timeout_in_ms: milliseconds, ..RunOptions::default() }),
            store_errors_in_response_body: true,
            ..request
        };
        // The server ends the step at its deadline. A server that does not answer is given up a little later.
        let patience = deadline.and_then(|deadline| deadline.checked_add(CLOSE));
        let answer: RunStepResponse =
            self.call("/tensorflow.MasterService/RunStep", request, patience)?;
        if answer.status_code != 0 {
            let message = answer.status_error_message;
            return Err(ClusterError::Refused { code: Code(answer.status_code), message });
        }
        fetches.iter().map(|name| fetched(&answer.tensor, name)).collect()
    }

    /// The devices on which the session's steps run.
    ///
    /// # Errors
    /// The server is gone, or no longer has the session.
    pub fn devices(&self) -> Result<Vec<DeviceAttributes>, ClusterError> {
        let request = ListDevicesRequest { session_handle: self.handle.clone() };
        let listed: ListDevicesResponse =
            self.call("/tensorflow.MasterService/ListDevices", request, Some(CONNECT))?;
        Ok(listed.local_device.into_iter().chain(listed.remote_device).collect())
    }

    /// Closes the session; steps that run are cancelled.
    ///
    /// # Errors
    /// The server no longer has the session.
    pub fn close(self) -> Result<(), ClusterError> {
        self.ended.store(true, Ordering::Relaxed);
        self.end()
    }

    /// Drops the session without a message to the server, as a client that dies does.
    pub fn forget(self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn end(&self) -> Result<(), ClusterError> {
        let request = CloseSessionRequest { session_handle: self.handle.clone() };
        let closed: Result<CloseSessionResponse, _> =
            self.call("/tensorflow.MasterService/CloseSession", request, Some(CLOSE));
        closed.map(drop)
    }
}

/// The value of a fetch.
fn fetched(tensors: &[NamedTensorProto], name: &str) -> Result<Tensor, ClusterError> {
    let found = tensors.iter().find(|tensor| tensor.name == name);
    let proto = found.and_then(|found| found.tensor.as_ref()).ok_or_else(|| {
        let message = format!("the server did not answer with fetch '{name}'");
        ClusterError::Refused { code: Code::INTERNAL, message }
    })?;
    tensor_from_proto(proto).map_err(ClusterError::Value)
}

impl AnySession for Session {
    fn run_step(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        deadline: Option<Duration>,
    ) -> Result<Vec<Tensor>, SessionError> {
        Ok(self.run(feeds, fetches, targets, deadline)?)
    }

    fn add_nodes(&self, graph: &GraphDef) -> Result<(), SessionError> {
        Ok(self.extend(graph.clone())?)
    }

    fn close_session(&self) -> Result<(), SessionError> {
        if self.ended.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        Ok(self.end()?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Relaxed) {
            // A server that is gone has nothing left to close.
            let _ = self.end();
        }
    }
}
