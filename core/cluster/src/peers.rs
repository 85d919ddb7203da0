//! The other tasks of a cluster, over gRPC.
//!
//! A task has two connections: one for calls, and one for tensors, so that a large tensor does not keep a call waiting. They
//! are made at their first use, and again after they broke. A call to a task that cannot be reached fails at once.

use crate::{
    clock,
    codec::ProtobufCodec,
    dial::{Dialer, Link, broken as causes},
    health::{Ask, Told},
    methods::{self, RECV_TENSOR, Remote},
    refusal::Refusal,
    spec::ClusterSpec,
    traffic::Traffic,
    transport::{Abandon, Asked, Done, Transport, Wanted},
    wire::{self, Answer, AnswerReader},
};
use http::uri::PathAndQuery;
use std::{
    collections::{BTreeMap, HashMap},
    future::{Future, poll_fn},
    sync::Arc,
    time::Duration,
};
use tenon_framework::{
    Code, Tensor,
    device::DeviceName,
    sync::{Mutex, rank},
};
use tenon_proto::{
    ClusterDef, CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest,
    CompleteInstanceResponse, GetStatusRequest, MAX_MESSAGE_BYTES, MarkRecvFinishedRequest,
    RecvBufRequest, RecvBufResponse, RecvTensorRequest,
};
use tokio::{runtime::Handle, task::AbortHandle};
use tonic::{Request, Status, client::Grpc};
use tower_service::Service;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Bytes that a peer may send before they are taken: of one answer, and on the whole connection.
pub(crate) const STREAM_WINDOW: u32 = 16 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 32 << 20;
/// The maximum number of bytes of one frame.
pub(crate) const FRAME: u32 = 1 << 20;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    Calls,
    Tensors,
}

/// The other tasks of a cluster.
pub(crate) struct Peers {
    threads: Handle,
    /// Addresses as `host:port`, by task, such as `/job:ps/replica:0/task:0`.
    addresses: BTreeMap<String, String>,
    channels: Mutex<HashMap<(String, Use), Link>>,
    dialer: Dialer,
    traffic: Traffic,
}

/// The name of a task of a job.
pub(crate) fn task_name(job: &str, task: u32) -> String {
    DeviceName::of_task(job, task).to_string()
}

impl Peers {
    /// The tasks of a cluster; their calls run on these threads.
    pub fn new(threads: &Handle, cluster: &ClusterSpec, dialer: Dialer) -> Peers {
        let tasks = cluster.jobs.iter().flat_map(|(job, tasks)| {
            tasks.iter().map(|(&task, address)| (task_name(job, task), address.clone()))
        });
        let channels = Mutex::ranked(rank::LEAF, HashMap::new());
        Peers {
            threads: threads.clone(),
            addresses: tasks.collect(),
            channels,
            dialer,
            traffic: Traffic::default(),
        }
    }

    /// What came from each task.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The names of the tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &String> {
        self.addresses.keys()
    }

    /// A connection to a task; the first one is not made yet.
    fn channel(&self, task: &str, for_what: Use) -> Result<Link, Refusal> {
        let address = self.addresses.get(task).ok_or_else(|| {
            let there: Vec<&str> = self.addresses.keys().map(String::as_str).collect();
            let message = format!("the cluster has no task {task}: it has {}", there.join(", "));
            Refusal::new(Code::UNAVAILABLE, message)
        })?;
        let key = (address.clone(), for_what);
        if let Some(channel) = self.channels.lock().get(&key) {
            return Ok(channel.clone());
        }
        let endpoint =
            self.dialer.endpoint(address).map_err(|why| Refusal::unreachable(task, &why))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME);
        let _threads = self.threads.enter();
        let channel = self.dialer.lazy(&endpoint);
        Ok(self.channels.lock().entry(key).or_insert(channel).clone())
    }

    /// Calls a method of a task's worker; `done` gets the answer, unless the call is abandoned.
    pub fn start<M: Remote>(
        &self,
        task: &str,
        request: M::Request,
        limit: Option<Duration>,
        done: impl FnOnce(Result<M::Response, Refusal>) + Send + 'static,
    ) -> AbortHandle {
        let channel = self.channel(task, Use::Calls);
        let task = task.to_owned();
        self.spawn(async move {
            let answer = match channel {
                Ok(channel) => within(limit, &task, call::<M>(channel, request, &task)).await,
                Err(refusal) => Err(refusal),
            };
            done(answer);
        })
    }

    /// Calls a method that may wait for other tasks, without a limit of its own.
    fn ask<M: Remote>(&self, task: &str, request: M::Request, done: Asked<M::Response>) -> Abandon {
        let handle = self.start::<M>(task, request, None, done);
        Box::new(move || handle.abort())
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.threads.spawn(work).abort_handle()
    }
}

/// Ends a call after its time.
async fn within<T>(
    limit: Option<Duration>,
    task: &str,
    call: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let Some(limit) = limit else { return call.await };
    clock::within(limit, call).await.unwrap_or_else(|| {
        let message = format!("{task} did not answer within {limit:?}");
        Err(Refusal::new(Code::DEADLINE_EXCEEDED, message))
    })
}

async fn call<M: Remote>(
    channel: Link,
    request: M::Request,
    task: &str,
) -> Result<M::Response, Refusal> {
    let mut grpc = Grpc::new(channel)
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let ready = grpc.ready().await;
    ready.map_err(|error| Refusal::unreachable(task, &causes(&error)))?;
    let codec = ProtobufCodec::<M::Request, M::Response>::default();
    let path = PathAndQuery::from_static(M::PATH);
    let answer = grpc.unary(Request::new(request), path, codec).await;
    Ok(answer.map_err(|status| Refusal::of_status(&status, task))?.into_inner())
}

impl Ask for Peers {
    fn knows(&self, task: &str) -> bool {
        self.addresses.contains_key(task)
    }

    fn status(&self, task: &str, limit: Duration, told: Told) {
        self.start::<methods::GetStatus>(task, GetStatusRequest {}, Some(limit), told);
    }

    /// Calls that are on their way end by their own limits.
    fn renew(&self, task: &str) {
        let Some(address) = self.addresses.get(task) else { return };
        let uses = [Use::Calls, Use::Tensors].map(|it| (address.clone(), it));
        let mut channels = self.channels.lock();
        let gone = uses.map(|key| channels.remove(&key));
        drop(channels);
        drop(gone);
    }
}

impl Transport for Peers {
    fn recv_tensor(&self, wanted: Wanted, done: Done) -> Abandon {
        let (channel, calls) =
            (self.channel(&wanted.task, Use::Tensors), self.channel(&wanted.task, Use::Calls));
        let waiting = self.traffic.wait_for(&wanted.task);
        let handle = self.spawn(async move {
            let request_id = crate::handles::new_request();
            let answer = match channel {
                Ok(channel) => recv_tensor(channel, &wanted, request_id).await,
                Err(refusal) => Err(refusal),
            };
            if answer.as_ref().is_ok_and(|answer| answer.must_confirm)
                && let Ok(calls) = calls
            {
                let finished = MarkRecvFinishedRequest { request_id };
                tokio::spawn(confirm(calls, finished, wanted.task.clone()));
            }
            if let Ok(answer) = &answer {
                let bytes = answer.tensor.as_ref().map_or(0, Tensor::byte_len);
                waiting.received(bytes);
            }
            drop(waiting);
            done(answer.map_err(|refusal| {
                let what = wanted.key.split(';').nth(3).unwrap_or_default();
                let message = format!("tensor '{what}' of {}: {}", wanted.task, refusal.message);
                Refusal { message, ..refusal }
            }));
        });
        Box::new(move || handle.abort())
    }

    fn complete_group(
        &self,
        leader: &str,
        request: CompleteGroupRequest,
        done: Asked<CompleteGroupResponse>,
    ) -> Abandon {
        self.ask::<methods::CompleteGroup>(leader, request, done)
    }

    fn complete_instance(
        &self,
        leader: &str,
        request: CompleteInstanceRequest,
        done: Asked<CompleteInstanceResponse>,
    ) -> Abandon {
        self.ask::<methods::CompleteInstance>(leader, request, done)
    }

    fn recv_buf(
        &self,
        task: &str,
        request: RecvBufRequest,
        done: Asked<RecvBufResponse>,
    ) -> Abandon {
        self.ask::<methods::RecvBuf>(task, request, done)
    }

    fn leader(&self) -> Option<String> {
        let of_job = |job: &str| {
            let job = format!("/job:{job}/");
            self.addresses.keys().find(|task| task.starts_with(&job))
        };
        let named = ["chief", "master", "worker"].into_iter().find_map(of_job);
        named.or_else(|| self.addresses.keys().next()).cloned()
    }

    fn of_cluster(&self, cluster: &ClusterDef) -> Arc<dyn Transport> {
        let tasks = cluster.job.iter().flat_map(|job| {
            job.tasks.iter().filter_map(move |(&task, address)| {
                Some((task_name(&job.name, u32::try_from(task).ok()?), address.clone()))
            })
        });
        let channels = Mutex::ranked(rank::LEAF, HashMap::new());
        let (threads, dialer) = (self.threads.clone(), self.dialer.clone());
        let traffic = self.traffic.clone();
        Arc::new(Peers { threads, addresses: tasks.collect(), channels, dialer, traffic })
    }
}

/// Confirms that a tensor has come.
async fn confirm(calls: Link, finished: MarkRecvFinishedRequest, task: String) {
    // A task that does not hear it forgets the answer at the end of the step.
    let call = call::<methods::MarkRecvFinished>(calls, finished, &task);
    let _ = within(Some(CONNECT), &task, call).await;
}

/// Asks for a tensor, and reads it into its memory.
async fn recv_tensor(
    mut channel: Link,
    wanted: &Wanted,
    request_id: i64,
) -> Result<Answer, Refusal> {
    let task = &wanted.task;
    let broken = |status: Status| Refusal::of_status(&status, task);
    let request = RecvTensorRequest {
        step_id: wanted.step,
        rendezvous_key: wanted.key.clone(),
        dma_ok: true,
        request_id,
        ..RecvTensorRequest::default()
    };
    let body = wire::request_body(&request).map_err(broken)?;
    let request = http::Request::post(RECV_TENSOR)
        .version(http::Version::HTTP_2)
        .header(http::header::TE, "trailers")
        .header(http::header::CONTENT_TYPE, wire::CONTENT_TYPE)
        .body(body)
        .map_err(|error| broken(Status::internal(error.to_string())))?;
    let unreachable = |error| Refusal::unreachable(task, &causes(&error));
    poll_fn(|context| channel.poll_ready(context)).await.map_err(unreachable)?;
    let response = channel.call(request).await.map_err(unreachable)?;
    let (head, mut body) = response.into_parts();
    // An answer without a message has its status in the head.
    if let Some(status) = Status::from_header_map(&head.headers).filter(is_error) {
        return Err(broken(status));
    }
    let mut reader = AnswerReader::default();
    while let Some(frame) = wire::next_frame(&mut body).await {
        let frame = frame.map_err(|status| Refusal::unreachable(task, &causes(&status)))?;
        match frame.into_data() {
            Ok(data) => reader.take(&data).map_err(broken)?,
            Err(frame) => {
                let end = frame.trailers_ref().and_then(Status::from_header_map);
                if let Some(status) = end.filter(is_error) {
                    return Err(broken(status));
                }
            }
        }
    }
    reader.finish().map_err(broken)
}

fn is_error(status: &Status) -> bool {
    status.code() != tonic::Code::Ok
}
