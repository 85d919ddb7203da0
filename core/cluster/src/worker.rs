//! The worker's service: sessions of masters, their graphs, and the parts of steps that run here.
//!
//! | file | content |
//! |---|---|
//! | `sessions.rs` | the sessions, by handle, with their graphs |
//! | `steps.rs` | the steps, by number, each with its rendezvous |
//! | `run.rs` | the part of a step |
//! | `partial.rs` | the part of a step that is fed and fetched by several calls |
//! | `transfer.rs` | tensors that other tasks ask for |
//! | `answers.rs` | what was answered to them, for requests that come again |
//! | `served.rs` | what the task at the other end of a link gets |
//! | `collective.rs` | collective operations that this task leads, and their tensors |
//! | `members.rs` | members of collective operations at other tasks |
//! | `sequences.rs` | the numbers of steps on which masters agree |
//!
//! # Invariants
//! - A handle that the worker does not have is ABORTED, with the mark that it may have been started anew.
//! - A request that comes again is not run twice.
//! - A step that nobody cleans up goes when its master has been away for too long.

mod answers;
pub(crate) mod collective;
mod members;
mod partial;
mod run;
mod sequences;
mod served;
mod sessions;
#[cfg(test)]
mod simulation;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;

use crate::{
    call::Call,
    health::{Health, Used},
    refusal::Refusal,
    requests::Requests,
    transport::Transport,
};
use members::{Members, Way};
use sequences::Sequences;
use sessions::{Place, Sessions};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use steps::Steps;
use tenon_framework::{
    device::{DeviceName, base::DeviceBase},
    registry::Registry,
};
use tenon_host::{collective::Collectives, devices::PluginDevice};
use tenon_proto::{
    CleanupAllRequest, CleanupAllResponse, CleanupGraphRequest, CleanupGraphResponse, ClusterDef,
    ConfigProto, CreateWorkerSessionRequest, CreateWorkerSessionResponse,
    DeleteWorkerSessionRequest, DeleteWorkerSessionResponse, DeregisterGraphRequest,
    DeregisterGraphResponse, DeviceAttributes, GetStatusRequest, GetStatusResponse, LoggingRequest,
    LoggingResponse, RegisterGraphRequest, RegisterGraphResponse, RunGraphRequest,
    RunGraphResponse, ServerDef,
    convert::{DeviceSummary, device_to_proto},
};
use tenon_runtime::{Worker, rendezvous::Edges};

/// The numbers of requests that are remembered, as TensorFlow's workers remember them.
const REMEMBERED: usize = 100_000;
/// How long a step of which no part runs may wait to be cleaned up.
const FORGOTTEN: Duration = Duration::from_secs(600);

type Answered<R> = Result<R, Refusal>;

/// The service of one worker.
pub(crate) struct WorkerService {
    worker: Worker,
    /// The name of its task, such as `/job:ps/replica:0/task:0`.
    task: Arc<str>,
    /// The other tasks of the server's cluster.
    peers: Arc<dyn Transport>,
    /// Whether the tasks of masters are there; `None` without other tasks.
    health: Option<Arc<Health>>,
    sessions: Sessions,
    steps: Arc<Steps>,
    requests: Requests,
    collectives: Arc<Collectives>,
    /// The numbers of steps of graphs with collective operations.
    pub sequences: Sequences,
}

/// Bytes of the machine's memory, which a device that computes in the host's memory may use.
fn machine_memory() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram.saturating_mul(u64::from(system.mem_unit))
}

/// The description of a device.
pub(crate) fn describe(device: &Arc<PluginDevice>) -> DeviceAttributes {
    let mut summary = DeviceSummary::of(&**device);
    if summary.memory_limit == 0 {
        summary.memory_limit = machine_memory();
    }
    device_to_proto(&summary)
}

/// The task that leads the groups of a session, if its configuration says so.
pub(crate) fn leader_of(config: &ConfigProto) -> Option<String> {
    let leader = &config.experimental.as_ref()?.collective_group_leader;
    let name = DeviceName::parse(leader).ok().filter(|_| !leader.is_empty())?;
    Some(DeviceName::of_task(&name.job?, name.task?).to_string())
}

/// The cluster that a session has for itself, and where this task is in it.
fn own_cluster(def: &ServerDef) -> Option<(&ServerDef, &ClusterDef)> {
    let has_tasks = |cluster: &&ClusterDef| cluster.job.iter().any(|job| !job.tasks.is_empty());
    Some((def, def.cluster.as_ref().filter(has_tasks)?))
}

/// The name of the task that a definition is for.
fn name_in(def: &ServerDef) -> String {
    DeviceName::of_task(&def.job_name, u32::try_from(def.task_index).unwrap_or(0)).to_string()
}

impl WorkerService {
    pub fn new(
        worker: Worker,
        task: &str,
        peers: Arc<dyn Transport>,
        health: Option<Arc<Health>>,
    ) -> WorkerService {
        let task: Arc<str> = task.into();
        let collectives = Arc::clone(worker.resources().collectives());
        let steps = Arc::new(Steps::new(&collectives));
        collectives.connect(Arc::new(Members {
            steps: Arc::downgrade(&steps),
            collectives: Arc::downgrade(&collectives),
        }));
        WorkerService {
            worker,
            steps,
            collectives,
            sequences: Sequences::default(),
            task,
            peers,
            health,
            sessions: Sessions::default(),
            requests: Requests::remembering(REMEMBERED),
        }
    }

    /// The name of its task.
    pub fn task(&self) -> &Arc<str> {
        &self.task
    }

    /// The names of transfers.
    fn edges(&self) -> &Edges {
        self.worker.runtime().edges()
    }

    /// The registry of its process.
    pub fn registry(&self) -> Arc<Registry> {
        self.worker.runtime().registry()
    }

    /// The incarnation of its first device: one that was started anew has another.
    pub fn incarnation(&self) -> i64 {
        let devices = self.worker.runtime().devices().devices();
        devices.first().map_or(0, |device| device.incarnation().cast_signed())
    }

    /// The way of a session to other tasks: those of its own cluster, where this task has the name that it gives, or those of
    /// the server's.
    fn way(&self, own: Option<(&ServerDef, &ClusterDef)>, config: Option<&ConfigProto>) -> Way {
        let (transport, task) = match own {
            None => (Arc::clone(&self.peers), Arc::clone(&self.task)),
            Some((def, cluster)) => (self.peers.of_cluster(cluster), name_in(def).into()),
        };
        let leader = config.and_then(leader_of).or_else(|| transport.leader());
        Way { leader: leader.map_or_else(|| Arc::clone(&task), Into::into), transport, task }
    }

    pub fn get_status(&self, _: Call<GetStatusRequest>) -> Answered<GetStatusResponse> {
        Ok(self.status())
    }

    /// The devices. It does not block.
    pub fn status(&self) -> GetStatusResponse {
        let devices = self.worker.runtime().devices().devices();
        GetStatusResponse { device_attributes: devices.iter().map(describe).collect() }
    }

    /// The task of a master, if it is another one of the session's cluster, which is then asked whether it is there.
    fn master(&self, way: &Way, health: Option<&Arc<Health>>, of: (&str, i64)) -> Option<Used> {
        let (task, incarnation) = of;
        let is_other = |health: &&Arc<Health>| *task != *way.task && health.knows(task);
        Some(health.filter(is_other)?.using(task, incarnation.cast_unsigned()))
    }

    pub fn create_worker_session(
        &self,
        call: Call<CreateWorkerSessionRequest>,
    ) -> Answered<CreateWorkerSessionResponse> {
        let def = call.request.server_def.as_ref();
        let config = def.and_then(|def| def.default_session_config.as_ref());
        let own = def.and_then(own_cluster);
        let way = self.way(own, config);
        let health = own.map(|_| way.transport.asks().map(Health::new));
        let of = (call.request.master_task.as_str(), call.request.master_incarnation);
        let watch = health.as_ref().map_or(self.health.as_ref(), Option::as_ref);
        let master = self.master(&way, watch, of);
        let client = call.client.as_ref();
        let (is_renamed, answers) = (own.is_some(), Arc::clone(&self.steps.answers));
        let place = Place { way, is_renamed, master, health: health.flatten(), answers };
        self.sessions.open(&self.worker, call.request, client, place)?;
        Ok(CreateWorkerSessionResponse {})
    }

    pub fn delete_worker_session(
        &self,
        call: Call<DeleteWorkerSessionRequest>,
    ) -> Answered<DeleteWorkerSessionResponse> {
        self.sessions.close(&call.request.session_handle);
        Ok(DeleteWorkerSessionResponse {})
    }

    pub fn register_graph(
        &self,
        call: Call<RegisterGraphRequest>,
    ) -> Answered<RegisterGraphResponse> {
        let RegisterGraphRequest { session_handle, graph_def, .. } = call.request;
        let is_open = call.request.create_worker_session_called;
        let session = self.session(&session_handle, is_open, call.client.as_ref())?;
        let registered = session.register(graph_def.unwrap_or_default());
        let graph_handle = registered.map_err(|refusal| session.told(&self.task, refusal))?;
        Ok(RegisterGraphResponse { graph_handle })
    }

    pub fn deregister_graph(
        &self,
        call: Call<DeregisterGraphRequest>,
    ) -> Answered<DeregisterGraphResponse> {
        let DeregisterGraphRequest { graph_handle, session_handle, .. } = call.request;
        let is_open = call.request.create_worker_session_called;
        let session = self.session(&session_handle, is_open, call.client.as_ref())?;
        session.deregister(&graph_handle)?;
        Ok(DeregisterGraphResponse {})
    }

    pub fn run_graph(&self, call: Call<RunGraphRequest>) -> Answered<RunGraphResponse> {
        let in_body = call.request.store_errors_in_response_body;
        match run::run(self, call) {
            Err(refusal) if in_body => Ok(RunGraphResponse {
                status_code: refusal.code.0,
                status_error_message: refusal.message,
                ..RunGraphResponse::default()
            }),
            result => result,
        }
    }

    pub fn cleanup_graph(&self, call: Call<CleanupGraphRequest>) -> Answered<CleanupGraphResponse> {
        self.steps.clean_up(call.request.step_id);
        Ok(CleanupGraphResponse {})
    }

    pub fn cleanup_all(&self, call: Call<CleanupAllRequest>) -> Answered<CleanupAllResponse> {
        let named: Vec<&str> = call.request.container.iter().map(String::as_str).collect();
        self.worker.reset(if named.is_empty() { &[""] } else { &named });
        Ok(CleanupAllResponse {})
    }

    pub fn logging(&self, call: Call<LoggingRequest>) -> Answered<LoggingResponse> {
        Ok(self.steps.records.control(&call.request))
    }

    /// Asks the masters of sessions that have clusters of their own whether they are there. It does not block.
    pub fn look_at_masters(&self) {
        self.sessions.beat();
    }

    /// How often members of collective operations have asked here.
    pub fn questions(&self) -> u64 {
        self.collectives.groups.questions()
    }

    /// Whether a part of a step runs.
    pub fn is_busy(&self) -> bool {
        self.steps.are_running()
    }

    /// Drops what masters that are away have left: sessions after `away`, steps that are not cleaned up, and those of masters
    /// that are gone.
    pub fn collect(&self, now: Instant, away: Duration) {
        self.sessions.collect(now, away);
        self.steps.collect(now, FORGOTTEN.min(away));
    }

    /// Cancels all steps, and closes all sessions.
    pub fn close_all(&self) {
        self.sessions.close_all();
        self.steps.clean_up_all();
    }
}
