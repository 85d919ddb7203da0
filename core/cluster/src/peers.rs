//! The other tasks of a cluster.
//!
//! Calls go over gRPC. Tensors go over the [data plane](crate::plane) to tasks that have one, and else over gRPC too: a task
//! then has a second connection, so that a large tensor does not keep a call waiting. Connections are made at their first use,
//! and again after they broke. A call to a task that cannot be reached fails at once.

mod tensors;

use crate::{
    clock,
    codec::ProtobufCodec,
    dial::{Dialer, Link, broken as causes},
    health::{Ask, Told},
    methods::{self, Remote},
    plane::{Hub, Request as DataRequest},
    refusal::Refusal,
    traffic::Traffic,
    transport::{Abandon, Asked, Done, End, Pusher, Sender, Transport, Wanted, Withdraw},
    way::Way,
    wire::Answer,
    worker::transfer,
};
use http::uri::PathAndQuery;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::Future,
    sync::{Arc, Weak},
    time::Duration,
};
use tenon_framework::{
    Code, DType, Tensor,
    device::DeviceName,
    sync::{Mutex, rank},
};
use tenon_proto::{
    ClusterDef, CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest,
    CompleteInstanceResponse, GetStatusRequest, MAX_MESSAGE_BYTES, RecvBufRequest,
    RecvTensorRequest,
};
use tenon_runtime::rendezvous::{Key, Parcel};
use tensors::{bytes_of, elements};
use tokio::{runtime::Handle, sync::oneshot, task::AbortHandle};
use tonic::{Request, client::Grpc};

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
    hub: Arc<Hub>,
    /// The addresses of the server's own cluster, if these are the tasks of another one.
    guest_of: Option<Arc<BTreeSet<String>>>,
    /// Where tensors for tasks of such a cluster may be pushed: a link is the one of a task that has asked over it.
    askers: Mutex<HashMap<String, Weak<dyn Pusher>>>,
    own: Weak<Peers>,
}

/// The name of a task of a job.
pub(crate) fn task_name(job: &str, task: u32) -> String {
    DeviceName::of_task(job, task).to_string()
}

impl Peers {
    /// The tasks of a cluster; their calls run on these threads.
    pub fn new(
        threads: &Handle,
        addresses: BTreeMap<String, String>,
        dialer: Dialer,
        hub: &Arc<Hub>,
    ) -> Arc<Peers> {
        Arc::new_cyclic(|own| Peers {
            threads: threads.clone(),
            addresses,
            channels: Mutex::ranked(rank::LEAF, HashMap::new()),
            dialer,
            traffic: Traffic::default(),
            hub: Arc::clone(hub),
            guest_of: None,
            askers: Mutex::ranked(rank::LEAF, HashMap::new()),
            own: own.clone(),
        })
    }

    /// The same way to tasks of other names and addresses.
    pub fn with(&self, addresses: BTreeMap<String, String>) -> Arc<Peers> {
        let known = || Arc::new(self.addresses.values().cloned().collect());
        let guest_of = Some(self.guest_of.clone().unwrap_or_else(known));
        Arc::new_cyclic(|own| Peers {
            threads: self.threads.clone(),
            addresses,
            channels: Mutex::ranked(rank::LEAF, HashMap::new()),
            dialer: self.dialer.clone(),
            traffic: self.traffic.clone(),
            hub: Arc::clone(&self.hub),
            guest_of,
            askers: Mutex::ranked(rank::LEAF, HashMap::new()),
            own: own.clone(),
        })
    }

    /// What makes connections to an address. One that a client has named gets the server's token only if it is of the server's
    /// own cluster, or has a certificate.
    fn dialer_for(&self, address: &str) -> Dialer {
        let is_stranger = self.guest_of.as_ref().is_some_and(|known| !known.contains(address));
        let tokens =
            self.dialer.tokens.clone().filter(|_| !is_stranger || self.dialer.tls.is_some());
        Dialer { tokens, ..self.dialer.clone() }
    }

    /// The address of a task.
    fn address_of(&self, task: &str) -> Result<&String, Refusal> {
        self.addresses.get(task).ok_or_else(|| {
            let there: Vec<&str> = self.addresses.keys().map(String::as_str).collect();
            let message = format!("the cluster has no task {task}: it has {}", there.join(", "));
            Refusal::new(Code::UNAVAILABLE, message)
        })
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
        let address = self.address_of(task)?;
        let key = (address.clone(), for_what);
        if let Some(channel) = self.channels.lock().get(&key) {
            return Ok(channel.clone());
        }
        let dialer = self.dialer_for(address);
        let endpoint = dialer.endpoint(address).map_err(|why| Refusal::unreachable(task, &why))?;
        let endpoint = endpoint
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME);
        let _threads = self.threads.enter();
        let channel = dialer.lazy(&endpoint);
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

    /// Runs what blocks on a thread of the server; it is dropped if the server stops.
    pub fn run_blocking(&self, work: impl FnOnce() + Send + 'static) {
        drop(self.threads.spawn_blocking(work));
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
    fn recv_tensor(&self, wanted: Wanted, done: Done) -> Withdraw {
        let waiting = self.traffic.wait_for(&wanted.task);
        let request = RecvTensorRequest {
            step_id: wanted.step,
            rendezvous_key: wanted.key,
            dma_ok: true,
            request_id: crate::handles::new_request(),
            ..RecvTensorRequest::default()
        };
        let key = request.rendezvous_key.clone();
        let task = wanted.task.clone();
        let link = self.addresses.get(&task).and_then(|address| self.hub.link(address));
        let way = link.as_ref().map(|link| link.way());
        let done: Done = Box::new(move |answer| {
            if let (Some(way), Ok(answer)) = (way, &answer) {
                waiting.received(way, bytes_of(answer));
            }
            drop(waiting);
            done(answer.map_err(|refusal| {
                let what = key.split(';').nth(3).unwrap_or_default();
                let message = format!("tensor '{what}' of {task}: {}", refusal.message);
                Refusal { message, ..refusal }
            }));
        });
        if let Some(link) = link {
            return link.ask(&DataRequest::Tensor(request), done);
        }
        let Some(own) = self.own.upgrade() else { return Box::new(|_| ()) };
        let task = wanted.task;
        let (end, ended) = oneshot::channel();
        self.spawn(async move {
            let over_grpc = own.tensor_by_grpc(&task, &request);
            let counted = |way, answer: &Answer| own.traffic.received(&task, way, bytes_of(answer));
            let request = DataRequest::Tensor(request.clone());
            own.fetch(&task, &request, done, over_grpc, ended, counted).await;
        });
        Box::new(move |why| {
            // It has ended already if nobody takes it.
            let _ = end.send(why);
        })
    }

    fn push(&self, task: &str, step: i64, key: &Key, parcel: &Parcel) -> bool {
        // What the tasks are called here, and their addresses, are the session's; a task is known by what it has asked for.
        if self.guest_of.is_some() {
            let asker = self.askers.lock().get(task).and_then(Weak::upgrade);
            return asker.is_some_and(|asker| {
                let answer = transfer::answer(parcel.clone());
                asker.push_value(step, &crate::keys::text(key), &answer)
            });
        }
        let link = self.addresses.get(task).and_then(|address| self.hub.link(address));
        let Some(link) = link else { return false };
        let answer = transfer::answer(parcel.clone());
        link.push(step, &crate::keys::text(key), &answer)
    }

    fn came(&self, task: &str, way: Way, bytes: usize) {
        self.traffic.pushed(task, way, bytes);
    }

    fn is_from(&self, task: &str, sender: &Sender) -> bool {
        match sender {
            Sender::Named => self.guest_of.is_none(),
            Sender::At(address) => self.addresses.get(task).is_some_and(|it| **it == **address),
        }
    }

    fn asked_by(&self, task: &str, by: &Arc<dyn Pusher>) {
        if self.guest_of.is_some() && self.addresses.contains_key(task) {
            self.askers.lock().insert(task.to_owned(), Arc::downgrade(by));
        }
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
        dtype: DType,
        done: Asked<Tensor>,
    ) -> Abandon {
        let from = task.to_owned();
        let done: Done = Box::new(move |answer| {
            done(answer.and_then(|answer| elements(&from, dtype, answer)));
        });
        let Some(own) = self.own.upgrade() else { return Box::new(|| ()) };
        let task = task.to_owned();
        let link = self.addresses.get(&task).and_then(|address| self.hub.link(address));
        if let Some(link) = link {
            let way = link.way();
            let counted: Done = Box::new(move |answer| {
                if let Ok(answer) = &answer {
                    own.traffic.received(&task, way, bytes_of(answer));
                }
                done(answer);
            });
            let withdraw = link.ask(&DataRequest::Buffer(request), counted);
            return Box::new(move || withdraw(End::GivenUp));
        }
        let (end, ended) = oneshot::channel();
        self.spawn(async move {
            let over_grpc = own.buffer_by_grpc(&task, request.clone(), dtype);
            let counted = |way, answer: &Answer| own.traffic.received(&task, way, bytes_of(answer));
            let request = DataRequest::Buffer(request.clone());
            own.fetch(&task, &request, done, over_grpc, ended, counted).await;
        });
        Box::new(move || {
            let _ = end.send(End::GivenUp);
        })
    }

    fn leader(&self) -> Option<String> {
        let of_job = |job: &str| {
            let job = format!("/job:{job}/");
            self.addresses.keys().find(|task| task.starts_with(&job))
        };
        let named = ["chief", "master", "worker"].into_iter().find_map(of_job);
        named.or_else(|| self.addresses.keys().next()).cloned()
    }

    fn address(&self, task: &str) -> Option<String> {
        self.addresses.get(task).cloned()
    }

    fn asks(&self) -> Option<Arc<dyn Ask>> {
        self.own.upgrade().map(|own| own as Arc<dyn Ask>)
    }

    fn of_cluster(&self, cluster: &ClusterDef) -> Arc<dyn Transport> {
        let tasks = cluster.job.iter().flat_map(|job| {
            job.tasks.iter().filter_map(move |(&task, address)| {
                Some((task_name(&job.name, u32::try_from(task).ok()?), address.clone()))
            })
        });
        self.with(tasks.collect())
    }
}
