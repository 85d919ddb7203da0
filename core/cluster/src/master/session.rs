//! A session of the master: a graph with versions, prepared steps by number, and partial runs.

use super::{
    cluster::{ClusterSession, Place, Wish},
    partial::PartialRuns,
    references::References,
    step, values,
};
use crate::{
    call::Need,
    client::{Client, Presence},
    clock,
    handles::new_handle,
    options::Options,
    refusal::Refusal,
    requests::Requests,
    stats::StepStatsSink,
};
use prost::Message;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Instant,
};
use tenon_framework::{
    Code,
    registry::Registry,
    sync::{Mutex, rank},
};
use tenon_proto::{
    CallableOptions, CreateSessionRequest, DeviceAttributes, GraphDef, MakeCallableRequest,
    PartialRunSetupRequest, RunCallableRequest, RunCallableResponse, RunOptions, RunStepRequest,
    RunStepResponse,
};
use tenon_runtime::{AnyShapeCallable, CancelToken, Runtime, Session, Worker};

/// The maximum number of callables of a session.
const MOST_CALLABLES: usize = 10_000;

/// Bytes of a request that is read by the thread which received it, at most.
const LIGHT: usize = 64 << 10;

/// The numbers of requests that are remembered, as TensorFlow's masters remember them.
const REMEMBERED: usize = 10_000;

/// A prepared step.
struct Prepared {
    /// `None` in a session over several tasks, whose workers have the step.
    callable: Option<AnyShapeCallable>,
    options: RunOptions,
    signature: tenon_runtime::CallableOptions,
}

/// A session of the master.
pub(super) struct MasterSession {
    handle: String,
    pub(super) session: Session,
    /// The workers, if it is over several tasks.
    pub(super) cluster: Option<ClusterSession>,
    pub(super) options: Options,
    /// Version of the graph.
    version: Mutex<i64>,
    callables: Mutex<HashMap<i64, Arc<Prepared>>>,
    next_callable: AtomicI64,
    pub(super) partial_runs: PartialRuns,
    pub(super) references: References,
    runtime: Runtime,
    requests: Requests,
    presence: Presence,
    /// Steps that run.
    running: AtomicUsize,
}

impl MasterSession {
    pub fn new(
        worker: &Worker,
        place: &Place,
        request: CreateSessionRequest,
        cancel: &CancelToken,
    ) -> Result<MasterSession, Refusal> {
        let config = request.config.unwrap_or_default();
        let mut options = Options::of(&config)?;
        let handle = new_handle();
        let place = place.in_session(&config, &request.target)?;
        let cluster = match place.has_others(&config, request.graph_def.as_ref())? {
            true => Some(ClusterSession::open(&place, &handle, &config, &mut options, cancel)?),
            false => None,
        };
        let graph = request.graph_def.unwrap_or_default();
        let opened = || {
            let session = Session::on(worker, options.session.clone())?;
            session.extend_owned(graph)?;
            Ok(session)
        };
        let session = opened().inspect_err(|_: &Refusal| {
            if let Some(cluster) = &cluster {
                cluster.close();
            }
        })?;
        Ok(MasterSession {
            handle,
            session,
            cluster,
            options,
            version: Mutex::ranked(rank::SERVER, 0),
            callables: Mutex::ranked(rank::LEAF, HashMap::new()),
            next_callable: AtomicI64::new(0),
            partial_runs: PartialRuns::default(),
            references: References::new(worker),
            runtime: worker.runtime().clone(),
            requests: Requests::remembering(REMEMBERED),
            presence: Presence::default(),
            running: AtomicUsize::new(0),
        })
    }

    pub fn handle(&self) -> &str {
        &self.handle
    }

    /// The ops, kernels and types of variants that the session may use.
    pub(super) fn registry(&self) -> Arc<Registry> {
        self.runtime.registry()
    }

    /// Records a request and its connection.
    pub fn used_by(&self, client: Option<&Client>) {
        self.presence.used_by(client);
    }

    /// The devices of other tasks that it uses.
    pub fn remote_devices(&self) -> Vec<DeviceAttributes> {
        self.cluster.as_ref().map_or_else(Vec::new, |cluster| cluster.remote().to_vec())
    }

    /// The devices of this task, if they have other names in the session than the server has for them.
    pub fn local_devices(&self) -> Option<Vec<DeviceAttributes>> {
        self.cluster.as_ref()?.local().cloned()
    }

    /// Asks the tasks of a cluster of its own whether they are there. It does not block.
    pub fn look_at_tasks(&self) {
        if let Some(cluster) = &self.cluster {
            cluster.beat();
        }
    }

    /// The time since which no client of the session is connected; `None` while one is, or while a step runs.
    pub fn away_since(&self) -> Option<Instant> {
        self.presence.away_since().filter(|_| !self.is_busy())
    }

    pub fn is_busy(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0
    }

    /// Appends nodes to the graph, if it has the version that the client means; returns the new version.
    pub fn extend(&self, graph: GraphDef, current: i64) -> Result<i64, Refusal> {
        let mut version = self.version.lock();
        if *version != current {
            let found = *version;
            return Err(Refusal::new(
                Code::ABORTED,
                format!(
                    "the graph has version {found}, and the request extends version {current}: another client extended \
                     it meanwhile"
                ),
            ));
        }
        self.session.extend_owned(graph)?;
        *version += 1;
        Ok(*version)
    }

    /// What a step needs, as far as it is known.
    pub fn need(&self, request: &RunStepRequest) -> Need {
        let asked = request.options.as_ref();
        let is_plain =
            asked.is_none_or(|asked| !asked.output_partition_graphs && asked.trace_level == 0);
        let is_whole = request.partial_run_handle.is_empty();
        if !is_plain || !is_whole || request.encoded_len() > LIGHT {
            return Need::Thread;
        }
        let has_limit =
            asked.is_some_and(|asked| asked.timeout_in_ms != 0) || self.options.timeout.is_some();
        let signature = tenon_runtime::CallableOptions {
            feeds: request.feed.iter().map(|feed| feed.name.clone()).collect(),
            fetches: request.fetch.clone(),
            targets: request.target.clone(),
            ..tenon_runtime::CallableOptions::default()
        };
        match &self.cluster {
            Some(cluster) => match cluster.need(&signature) {
                Need::Nothing if has_limit || !request.feed.is_empty() => Need::Answers,
                need => need,
            },
            None if has_limit || !request.feed.is_empty() => Need::Thread,
            None if self.session.is_idle(&signature) => Need::Nothing,
            None => Need::Thread,
        }
    }

    pub fn run_step(
        &self,
        request: RunStepRequest,
        cancel: CancelToken,
    ) -> Result<RunStepResponse, Refusal> {
        self.requests.note(request.request_id)?;
        let in_body = request.store_errors_in_response_body;
        let _running = self.running();
        let result = match request.partial_run_handle.is_empty() {
            true => step::run(self, request, cancel),
            false => self.partial_runs.run(self, request, cancel),
        };
        told(result, in_body)
    }

    /// As [`MasterSession::run_step`], for one that needs [answers](Need::Answers) alone.
    pub async fn run_step_soon(
        &self,
        request: RunStepRequest,
        cancel: CancelToken,
    ) -> Result<RunStepResponse, Refusal> {
        self.requests.note(request.request_id)?;
        let in_body = request.store_errors_in_response_body;
        let _running = self.running();
        let result = match &self.cluster {
            Some(cluster) => step::run_soon(self, cluster, request, cancel).await,
            None => tokio::task::block_in_place(|| step::run(self, request, cancel)),
        };
        told(result, in_body)
    }

    pub fn partial_run_setup(&self, request: PartialRunSetupRequest) -> Result<String, Refusal> {
        self.requests.note(request.request_id)?;
        self.partial_runs.set_up(self, request)
    }

    pub fn make_callable(&self, request: MakeCallableRequest) -> Result<i64, Refusal> {
        self.requests.note(request.request_id)?;
        let CallableOptions { feed, fetch, target, run_options, tensor_connection, .. } =
            request.options.unwrap_or_default();
        if !tensor_connection.is_empty() {
            return Err(Refusal::new(
                Code::UNIMPLEMENTED,
                "tensor connections are not there: fetch the tensor and feed it",
            ));
        }
        values::check_once(feed.iter().map(String::as_str), "fed")?;
        if self.callables.lock().len() >= MOST_CALLABLES {
            return Err(Refusal::new(
                Code::RESOURCE_EXHAUSTED,
                format!(
                    "the session has {MOST_CALLABLES} callables, its limit: release those that are done"
                ),
            ));
        }
        let signature = tenon_runtime::CallableOptions {
            feeds: feed,
            fetches: fetch,
            targets: target,
            ..tenon_runtime::CallableOptions::default()
        };
        let callable = match &self.cluster {
            None => Some(self.session.any_shape_callable(signature.clone())?),
            Some(cluster) => {
                let options = tenon_runtime::RunOptions::default();
                cluster.compiled(&self.session, &signature, &options).map(|_| None)?
            }
        };
        let handle = self.next_callable.fetch_add(1, Ordering::Relaxed);
        let prepared = Prepared { callable, options: run_options.unwrap_or_default(), signature };
        self.callables.lock().insert(handle, Arc::new(prepared));
        Ok(handle)
    }

    pub fn run_callable(
        &self,
        request: RunCallableRequest,
        cancel: CancelToken,
    ) -> Result<RunCallableResponse, Refusal> {
        self.requests.note(request.request_id)?;
        let prepared = self.callables.lock().get(&request.handle).cloned();
        let prepared = prepared.ok_or_else(|| no_callable(request.handle))?;
        let feeds: Result<Vec<_>, _> =
            request.feed.iter().map(|feed| self.read_tensor(feed)).collect();
        let feeds = feeds?;
        let _running = self.running();
        let stats = StepStatsSink::wanted(&prepared.options);
        let options = step::options(self, &prepared.options, cancel, stats.as_ref());
        if let Some(cluster) = &self.cluster {
            let (began, timeline) = (clock::now(), stats.is_some());
            let wish = Wish { feeds: &feeds, options: &options, began, timeline };
            let outcome = cluster.run(&self.session, &prepared.signature, wish)?;
            let (asked, signature) = (&prepared.options, &prepared.signature);
            let metadata = step::metadata_of_tasks(self, asked, signature, outcome.stats)?;
            return Ok(RunCallableResponse { fetch: outcome.fetched, metadata });
        }
        let callable = prepared.callable.as_ref().ok_or_else(|| no_callable(request.handle))?;
        let mut fetched = Vec::new();
        let callable = callable.run(&feeds, &mut fetched, Some(&options))?;
        let fetch: Result<Vec<_>, _> =
            fetched.iter().map(|tensor| self.write_tensor(tensor)).collect();
        let nodes = callable.nodes()?;
        let metadata = step::metadata(self, &prepared.options, &prepared.signature, stats, &nodes)?;
        Ok(RunCallableResponse { fetch: fetch?, metadata })
    }

    pub fn release_callable(&self, handle: i64) -> Result<(), Refusal> {
        let released = self.callables.lock().remove(&handle);
        released.map(drop).ok_or_else(|| no_callable(handle))
    }

    /// Cancels the steps that run, and refuses new ones.
    pub fn close(&self) {
        self.partial_runs.cancel(self.cluster.as_ref());
        if let Some(cluster) = &self.cluster {
            cluster.close();
        }
        self.session.close();
    }

    /// Counts a step that runs, until the result is dropped.
    fn running(&self) -> impl Drop + use<'_> {
        self.running.fetch_add(1, Ordering::AcqRel);
        Running(&self.running)
    }
}

struct Running<'s>(&'s AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The answer of a step, whose error may be in its body.
fn told(
    result: Result<RunStepResponse, Refusal>,
    in_body: bool,
) -> Result<RunStepResponse, Refusal> {
    match result {
        Err(refusal) if in_body => Ok(RunStepResponse {
            status_code: refusal.code.0,
            status_error_message: refusal.message,
            ..RunStepResponse::default()
        }),
        result => result,
    }
}

fn no_callable(handle: i64) -> Refusal {
    Refusal::invalid(format!(
        "the session has no callable {handle}: it was released, or never made"
    ))
}
