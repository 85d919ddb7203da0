//! Sessions over several tasks: a worker for each, of which one is in this process.
//!
//! | file | content |
//! |---|---|
//! | `links.rs` | calls to workers, in this process or over gRPC |
//! | `discovery.rs` | which tasks a session uses, and their devices |
//! | `propagated.rs` | clusters that clients name for one session |
//! | `compiled.rs` | steps that are cut by task and registered at the workers |
//! | `run.rs` | one run of such a step |
//! | `partial.rs` | steps that are fed and fetched by several requests |
//! | `timeline.rs` | records of transfers for the timeline of a step |
//! | `leavings.rs` | what workers still have to drop |

mod compiled;
mod discovery;
mod leavings;
mod links;
mod partial;
mod propagated;
mod run;
mod timeline;

use super::Answered;
use crate::{
    call::Need,
    handles::new_step,
    health::{Health, Used},
    methods,
    options::Options,
    peers::Peers,
    refusal::Refusal,
    transport::Transport,
    worker::{WorkerService, leader_of},
};
use compiled::{Compiled, Registered};
pub(crate) use leavings::Leavings;
use links::{Link, together};
pub(super) use partial::TaskPartial;
pub(super) use run::{Outcome, Wish};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tenon_framework::{
    Tensor,
    device::DeviceName,
    sync::{Mutex, rank},
};
use tenon_graph::DeviceEntry;
use tenon_proto::{
    CleanupAllRequest, ClusterDef, ConfigProto, CreateWorkerSessionRequest, DeviceAttributes,
    GetStepSequenceRequest, GraphDef, ServerDef,
};
use tenon_runtime::{CallableOptions, CancelToken, RunOptions, RuntimeError, Session};
use tokio::task::block_in_place;

/// How long a worker may take to open a session, to register a graph, or to forget.
const CONTROL: Duration = Duration::from_secs(60);
/// How long the workers may take to close a session.
const CLOSE: Duration = Duration::from_secs(5);
/// Steps that are kept at the workers, at most.
const MOST_STEPS: usize = 256;

/// The place of a master in its cluster.
#[derive(Clone)]
pub(crate) struct Place {
    /// The worker of this process.
    pub own: Arc<WorkerService>,
    /// The name of its task.
    pub task: Arc<str>,
    /// The cluster, if it is one of a session alone.
    pub cluster: Option<Arc<ClusterDef>>,
    pub peers: Arc<Peers>,
    pub health: Arc<Health>,
    pub leavings: Arc<Leavings>,
    /// How long tasks may be absent when a session is opened.
    pub absent: Duration,
}

impl Place {
    /// Whether a session with this configuration and graph uses other tasks: their devices, or members of collective
    /// operations there.
    pub fn has_others(&self, config: &ConfigProto, graph: Option<&GraphDef>) -> Answered<bool> {
        let others = discovery::others(self, &config.device_filters)?;
        let is_collective = || {
            let mut nodes = graph.iter().flat_map(|graph| &graph.node);
            leader_of(config).is_some() || nodes.any(|node| node.op.starts_with("Collective"))
        };
        let is_other = self.cluster.is_some() || !others.is_empty();
        Ok(is_other || self.peers.tasks().count() > 1 && is_collective())
    }

    /// Makes the workers of other tasks forget the values of containers.
    pub fn reset(&self, containers: &[String], filters: &[String]) -> Answered<()> {
        let others = discovery::others(self, filters)?;
        let links = others.into_iter().map(|task| Link::other(&self.peers, task));
        let request = CleanupAllRequest { container: containers.to_vec() };
        let calls = links.map(|link| (link, request.clone())).collect();
        let answers = together::<methods::CleanupAll>(calls, CONTROL);
        answers.into_iter().try_for_each(|(_, answer)| answer.map(drop))
    }
}

/// A session over several tasks.
pub(super) struct ClusterSession {
    handle: String,
    /// The workers, by task.
    links: BTreeMap<String, Link>,
    /// The devices of the other tasks.
    remote: Vec<DeviceAttributes>,
    /// The task that leads groups of collective operations.
    leader: Link,
    own: Arc<WorkerService>,
    /// What asks the tasks of a cluster of its own.
    health: Option<Arc<Health>>,
    /// The devices of this task in such a cluster.
    local: Option<Vec<DeviceAttributes>>,
    /// The other tasks, which are asked whether they are there.
    used: BTreeMap<String, Used>,
    leavings: Arc<Leavings>,
    steps: Mutex<HashMap<CallableOptions, Arc<Compiled>>>,
    /// Cancelled when the session is closed.
    closing: CancelToken,
}

impl ClusterSession {
    /// Finds the tasks and their devices, and opens the session at each worker. The devices are added to `options`.
    pub fn open(
        place: &Place,
        handle: &str,
        config: &ConfigProto,
        options: &mut Options,
        cancel: &CancelToken,
    ) -> Answered<ClusterSession> {
        let others = discovery::others(place, &config.device_filters)?;
        let found = discovery::devices(place, others, cancel)?;
        let own = Link::own(place);
        let mut links = BTreeMap::from([(place.task.to_string(), own.clone())]);
        let (mut remote, mut used) = (Vec::new(), BTreeMap::new());
        for (task, devices) in found {
            let incarnation = devices.first().map_or(0, |device| device.incarnation);
            used.insert(task.clone(), place.health.using(&task, incarnation));
            place.health.heard(&task, &devices);
            links.insert(task.clone(), Link::other(&place.peers, task));
            remote.extend(devices);
        }
        let registry = place.own.registry();
        let entries = remote.iter().map(|device| discovery::entry(&registry, device));
        options.session.remote = entries.collect::<Answered<Vec<DeviceEntry>>>()?;
        let is_own = place.cluster.is_some();
        options.session.task = DeviceName::parse(&place.task).ok().filter(|_| is_own);
        let leader = leader_of(config).or_else(|| place.peers.leader());
        let leader = match leader.filter(|task| **task != *place.task) {
            Some(task) => Link::other(&place.peers, task),
            None => own,
        };
        let local = || discovery::named(place.own.status().device_attributes, &place.task);
        let session = ClusterSession {
            handle: handle.to_owned(),
            links,
            remote,
            leader,
            own: Arc::clone(&place.own),
            health: is_own.then(|| Arc::clone(&place.health)),
            local: is_own.then(local),
            used,
            leavings: Arc::clone(&place.leavings),
            steps: Mutex::ranked(rank::SERVER, HashMap::new()),
            closing: CancelToken::new(),
        };
        let opened = session.open_workers(place, config);
        if opened.is_err() {
            session.close();
        }
        opened.map(|()| session)
    }

    /// Opens the session at each worker.
    fn open_workers(&self, place: &Place, config: &ConfigProto) -> Answered<()> {
        let master_incarnation = place.own.incarnation();
        // A cluster of its own has values of its own, unless the client says otherwise, as in TensorFlow.
        let experimental = config.experimental.as_ref();
        let shares =
            experimental.is_some_and(|it| it.share_session_state_in_clusterspec_propagation);
        let isolates = place.cluster.is_some() || config.isolate_session_state;
        let request = |task: &str| -> Answered<CreateWorkerSessionRequest> {
            let (job_name, task_index) = discovery::job_and_number(task)?;
            let server_def = ServerDef {
                cluster: place.cluster.as_deref().cloned(),
                job_name,
                task_index,
                default_session_config: Some(discovery::for_workers(config)),
                protocol: "grpc".to_owned(),
                ..ServerDef::default()
            };
            Ok(CreateWorkerSessionRequest {
                session_handle: self.handle.clone(),
                server_def: Some(server_def),
                isolate_session_state: isolates && !shares,
                cluster_device_attributes: Vec::new(),
                master_task: place.task.to_string(),
                master_incarnation,
            })
        };
        let calls = self.links.iter().map(|(task, link)| Ok((link.clone(), request(task)?)));
        let calls = calls.collect::<Answered<Vec<_>>>()?;
        let answers = together::<methods::CreateWorkerSession>(calls, CONTROL);
        answers.into_iter().try_for_each(|(task, answer)| answer.map(drop).map_err(from(&task)))
    }

    /// The number of the next run of a step: that on which all masters agree, if it has collective operations.
    fn step_of(&self, compiled: &Compiled, options: &RunOptions) -> Answered<i64> {
        let (key, sequences) = (compiled.graph_key, &self.own.sequences);
        if key == 0 {
            return Ok(new_step());
        }
        if !self.leader.is_other() {
            return Ok(sequences.next(key));
        }
        if let Some(next) = sequences.known(key) {
            return Ok(next);
        }
        let request = GetStepSequenceRequest { graph_key: vec![key] };
        let calls = vec![(self.leader.clone(), request)];
        let limit = limit_of(options);
        let (task, answer) = together::<methods::GetStepSequence>(calls, limit).remove(0);
        let answer = answer.map_err(from(&task))?;
        let next = answer.step_sequence.iter().find(|it| it.graph_key == key);
        let next = next.map_or_else(new_step, |it| it.next_step_id);
        sequences.set(key, next);
        Ok(next)
    }

    /// Notes the end of a run. After a failed one the leader says anew which number is next.
    fn retire(&self, compiled: &Compiled, step: i64, is_ok: bool) {
        let (key, sequences) = (compiled.graph_key, &self.own.sequences);
        if key == 0 {
        } else if is_ok || !self.leader.is_other() {
            sequences.retire(key, step);
        } else {
            sequences.forget(key);
        }
    }

    /// The devices of the other tasks.
    pub fn remote(&self) -> &[DeviceAttributes] {
        &self.remote
    }

    /// The devices of this task, if they have other names in the session.
    pub fn local(&self) -> Option<&Vec<DeviceAttributes>> {
        self.local.as_ref()
    }

    /// Asks the tasks of a cluster of its own whether they are there.
    pub fn beat(&self) {
        if let Some(health) = &self.health {
            health.beat();
        }
    }

    /// Runs a step.
    pub fn run(
        &self,
        session: &Session,
        signature: &CallableOptions,
        wish: Wish<'_>,
    ) -> Answered<Outcome> {
        let find = |signature: &CallableOptions| self.compiled(session, signature, wish.options);
        let step = fitting(signature, wish.feeds, find)?;
        run::run(self, &step, wish)
    }

    /// What a step of a signature needs here, as far as it is known.
    pub fn need(&self, signature: &CallableOptions) -> Need {
        match self.steps.lock().get(signature) {
            Some(step) if step.is_idle => Need::Nothing,
            Some(step) if step.is_light() => Need::Answers,
            _ => Need::Thread,
        }
    }

    /// As [`ClusterSession::run`], without a thread if the step is one that needs none.
    pub async fn run_soon(
        &self,
        session: &Session,
        signature: &CallableOptions,
        wish: Wish<'_>,
    ) -> Answered<Outcome> {
        let find = |signature: &CallableOptions| {
            let known = self.steps.lock().get(signature).cloned();
            let make = || self.compiled(session, signature, wish.options);
            known.map_or_else(|| block_in_place(make), Ok)
        };
        let step = fitting(signature, wish.feeds, find)?;
        match step.is_light() {
            true => run::run_soon(self, &step, wish).await,
            false => block_in_place(|| run::run(self, &step, wish)),
        }
    }

    /// The step of a signature, registered at the workers.
    pub fn compiled(
        &self,
        session: &Session,
        signature: &CallableOptions,
        options: &RunOptions,
    ) -> Answered<Arc<Compiled>> {
        if let Some(step) = self.steps.lock().get(signature) {
            return Ok(Arc::clone(step));
        }
        let made = Arc::new(compiled::compile(self, session, signature, options)?);
        let mut steps = self.steps.lock();
        let mut gone = Vec::new();
        if steps.len() >= MOST_STEPS
            && let Some(any) = steps.keys().next().cloned()
        {
            gone.extend(steps.remove(&any));
        }
        // Of two threads that made it, the first one's is kept.
        let kept = Arc::clone(steps.entry(signature.clone()).or_insert(made));
        drop(steps);
        drop(gone);
        Ok(kept)
    }

    /// Whether a task is there, as far as is known.
    fn check_task(&self, task: &str) -> Answered<()> {
        self.used.get(task).map_or(Ok(()), Used::check)
    }

    /// Whether the tasks of these parts are there.
    fn check_tasks(&self, parts: &[Registered]) -> Answered<()> {
        parts.iter().try_for_each(|part| self.check_task(part.link.task()))
    }

    fn is_closed(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Cancels the steps, and closes the session at each worker.
    pub fn close(&self) {
        if self.is_closed() {
            return;
        }
        self.closing.cancel();
        let steps = std::mem::take(&mut *self.steps.lock());
        // The workers drop the graphs with the session.
        steps.values().for_each(|step| step.forget());
        self.leavings.close(&self.handle, self.links.values(), CLOSE);
    }
}

/// The step of a signature for these feeds, of those that `find` gives. For feeds of other shapes than the graph says there is
/// another form of it, as in a session of one task.
fn fitting(
    signature: &CallableOptions,
    feeds: &[Tensor],
    find: impl Fn(&CallableOptions) -> Answered<Arc<Compiled>>,
) -> Answered<Arc<Compiled>> {
    let step = find(signature)?;
    let step = match step.step.check(feeds) {
        Err(RuntimeError::FeedShape { .. }) => {
            find(&CallableOptions { feeds_of_any_shape: true, ..signature.clone() })?
        }
        _ => step,
    };
    step.step.check(feeds)?;
    Ok(step)
}

/// How long a worker may take to prepare something for a run.
fn limit_of(options: &RunOptions) -> Duration {
    options.deadline.map_or(CONTROL, |deadline| deadline.min(CONTROL))
}

/// Adds to an error the task that it comes from.
fn from(task: &str) -> impl Fn(Refusal) -> Refusal {
    move |refusal| Refusal { message: format!("From {task}:\n{}", refusal.message), ..refusal }
}
