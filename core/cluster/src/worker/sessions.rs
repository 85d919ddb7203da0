//! The sessions of masters at a worker.
//!
//! Masters that do not open sessions share one, which is made at its first use.

use super::{
    Answered, WorkerService,
    answers::{Answers, Keeper},
    members::Way,
};
use crate::{
    client::{Client, Presence},
    handles::new_handle,
    health::{Health, Used},
    keys::in_task,
    options::Options,
    refusal::{Mark, Refusal},
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    device::DeviceName,
    sync::{Mutex, rank},
    text::cut,
};
use tenon_proto::{CreateWorkerSessionRequest, GraphDef, StepStats};
use tenon_runtime::{SessionOptions, Worker, WorkerGraph, WorkerSession};

/// Sessions that are open at the same time.
const MOST_SESSIONS: usize = 10_000;
/// Graphs of a session.
const MOST_GRAPHS: usize = 100_000;
/// How long a master may not answer before its steps are ended.
const LOST: Duration = Duration::from_secs(5);

/// The place of a session among the tasks.
pub(super) struct Place {
    /// The way to the other tasks.
    pub way: Way,
    /// Whether it has a cluster of its own, so that this task may have another name there.
    pub is_renamed: bool,
    /// The task of its master, if that is another one of the cluster.
    pub master: Option<Used>,
    /// What asks the tasks of a cluster of its own.
    pub health: Option<Arc<Health>>,
    /// The answers to requests for tensors.
    pub answers: Arc<Answers>,
}

/// A session.
pub(super) struct OpenSession {
    session: WorkerSession,
    graphs: Mutex<HashMap<String, Arc<WorkerGraph>>>,
    /// The other tasks.
    pub way: Way,
    /// Whether they, and this one, have names of the session alone.
    is_renamed: bool,
    /// The master's task and its incarnation.
    master: (String, i64),
    used: Option<Used>,
    /// What asks the tasks of a cluster of its own.
    health: Option<Arc<Health>>,
    /// Keeps answers for requests that come again, if the session wants that.
    _keeper: Option<Keeper>,
    presence: Presence,
}

/// What a worker does not have.
fn lost(what: &str, handle: &str) -> Refusal {
    let message = format!(
        "{what} handle is not found: {}. Possibly this worker (\"tenon serve\") was just restarted, or the session was closed",
        cut(handle)
    );
    Refusal::new(Code::ABORTED, message).marked(Mark::Restarted)
}

impl OpenSession {
    fn new(
        worker: &Worker,
        mut options: SessionOptions,
        master: (String, i64),
        Place { way, is_renamed, master: used, health, answers }: Place,
        keeps_answers: bool,
    ) -> OpenSession {
        options.task = DeviceName::parse(&way.task).ok().filter(|_| is_renamed);
        let _keeper = keeps_answers.then(|| answers.keeper());
        let graphs = Mutex::ranked(rank::LEAF, HashMap::new());
        let session = worker.session(options);
        // One with values of its own has the collective operations of the server too.
        session.worker().resources().share_collectives(worker.resources().collectives());
        let presence = Presence::default();
        OpenSession { session, graphs, way, is_renamed, master, used, health, _keeper, presence }
    }

    /// A refusal with the names of the session's cluster, for what `task` did, as this one is called elsewhere.
    pub fn told(&self, task: &str, refusal: Refusal) -> Refusal {
        if !self.is_renamed || *task == *self.way.task {
            return refusal;
        }
        Refusal { message: refusal.message.replace(task, &self.way.task), ..refusal }
    }

    /// The times of a part with the names of the session's cluster.
    pub fn timed(&self, mut stats: StepStats) -> StepStats {
        for device in stats.dev_stats.iter_mut().filter(|_| self.is_renamed) {
            device.device = format!("{}{}", self.way.task, in_task(&device.device));
        }
        stats
    }

    /// The worker with the values of the session.
    pub fn worker(&self) -> &Worker {
        self.session.worker()
    }

    /// Registers a graph; returns its handle.
    pub fn register(&self, graph: GraphDef) -> Answered<String> {
        if self.graphs.lock().len() >= MOST_GRAPHS {
            return Err(Refusal::new(
                Code::RESOURCE_EXHAUSTED,
                format!(
                    "the session has {MOST_GRAPHS} graphs, its limit: drop those that are not used"
                ),
            ));
        }
        let graph = Arc::new(self.session.register(graph)?);
        let handle = new_handle();
        self.graphs.lock().insert(handle.clone(), graph);
        Ok(handle)
    }

    /// The graph of a handle.
    pub fn graph(&self, handle: &str) -> Answered<Arc<WorkerGraph>> {
        let graph = self.graphs.lock().get(handle).cloned();
        graph.ok_or_else(|| lost("Graph", handle))
    }

    /// Drops a graph; its steps go on.
    pub fn deregister(&self, handle: &str) -> Answered<()> {
        let gone = self.graphs.lock().remove(handle);
        gone.map(drop).ok_or_else(|| lost("Graph", handle))
    }

    /// Whether its master does not answer, so that no master waits for its steps.
    pub fn is_deserted(&self, now: Instant) -> bool {
        self.used.as_ref().is_some_and(|master| master.is_lost_for(now, LOST))
    }

    /// Cancels the steps.
    pub fn cancel(&self) {
        let graphs: Vec<_> = self.graphs.lock().values().cloned().collect();
        graphs.iter().for_each(|graph| graph.cancel());
    }

    /// Cancels the steps, and drops the graphs.
    fn close(&self) {
        let graphs = std::mem::take(&mut *self.graphs.lock());
        graphs.values().for_each(|graph| graph.cancel());
    }
}

/// The sessions, by handle.
pub(super) struct Sessions(Mutex<HashMap<String, Arc<OpenSession>>>);

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions(Mutex::ranked(rank::SERVER, HashMap::new()))
    }
}

impl Sessions {
    /// Opens a session. The sessions of an earlier incarnation of the same master are closed.
    pub fn open(
        &self,
        worker: &Worker,
        request: CreateWorkerSessionRequest,
        client: Option<&Client>,
        place: Place,
    ) -> Answered<()> {
        let config = request.server_def.and_then(|def| def.default_session_config);
        let options = Options::of(&config.unwrap_or_default())?;
        let keeps_answers = options.keeps_answers;
        let options = options.session;
        let isolate_state = request.isolate_session_state || options.isolate_state;
        let options = SessionOptions { isolate_state, soft_placement: Some(false), ..options };
        // Masters of different clusters may have the same name.
        let (mut name, transport) = (request.master_task, &place.way.transport);
        if let Some(address) = transport.address(&name).filter(|_| place.is_renamed) {
            name = format!("{name} at {address}");
        }
        let master = (name, request.master_incarnation);
        let mut sessions = self.0.lock();
        if sessions.len() >= MOST_SESSIONS {
            return Err(Refusal::new(
                Code::RESOURCE_EXHAUSTED,
                format!(
                    "the worker has {MOST_SESSIONS} sessions, its limit: close those that are not used"
                ),
            ));
        }
        if let Some(open) = sessions.get(&request.session_handle) {
            // The transport may send a request again; no other master has the same handle and incarnation.
            if !master.0.is_empty() && open.master == master {
                return Ok(());
            }
            let handle = cut(&request.session_handle).to_string();
            return Err(Refusal::new(
                Code::ALREADY_EXISTS,
                format!("session {handle} is open already: choose another handle"),
            ));
        }
        let is_earlier = |other: &OpenSession| {
            !master.0.is_empty() && other.master.0 == master.0 && other.master.1 != master.1
        };
        let mut gone = Vec::new();
        sessions.retain(|_, other| match is_earlier(other) {
            true => {
                gone.push(Arc::clone(other));
                false
            }
            false => true,
        });
        let session = Arc::new(OpenSession::new(worker, options, master, place, keeps_answers));
        session.presence.used_by(client);
        sessions.insert(request.session_handle, session);
        drop(sessions);
        gone.iter().for_each(|session| session.close());
        Ok(())
    }

    /// Closes a session, if it is open.
    pub fn close(&self, handle: &str) {
        let gone = self.0.lock().remove(handle);
        if let Some(session) = gone {
            session.close();
        }
    }

    /// Asks the tasks of clusters that sessions have for themselves.
    pub fn beat(&self) {
        let sessions = self.0.lock();
        let asked: Vec<_> = sessions.values().filter_map(|it| it.health.clone()).collect();
        drop(sessions);
        asked.iter().for_each(Health::beat);
    }

    pub fn close_all(&self) {
        let gone = std::mem::take(&mut *self.0.lock());
        gone.values().for_each(|session| session.close());
    }

    /// Closes the sessions whose masters have been away for so long, or were started anew.
    pub fn collect(&self, now: Instant, away: Duration) {
        let mut gone = Vec::new();
        self.0.lock().retain(|handle, session| {
            let since = session.presence.away_since();
            let is_away = since.is_some_and(|it| now.saturating_duration_since(it) >= away);
            let is_gone = is_away || session.used.as_ref().is_some_and(Used::is_restarted);
            if is_gone {
                gone.push((handle.clone(), Arc::clone(session)));
            }
            !is_gone
        });
        for (handle, session) in gone {
            tracing::info!(
                "worker session {handle} is closed: its master has been away for too long, or was started anew"
            );
            session.close();
        }
    }
}

impl WorkerService {
    /// The session of a handle; if it was never opened, the one that all such masters share.
    pub(super) fn session(
        &self,
        handle: &str,
        is_open: bool,
        client: Option<&Client>,
    ) -> Answered<Arc<OpenSession>> {
        let mut sessions = self.sessions.0.lock();
        let handle = if is_open { handle } else { "" };
        let found = match sessions.get(handle) {
            Some(session) => Arc::clone(session),
            None if is_open => return Err(lost("Session", handle)),
            None => {
                let way = self.way(None, None);
                let none = (String::new(), 0);
                let options = SessionOptions::default();
                let answers = Arc::clone(&self.steps.answers);
                let place = Place { way, is_renamed: false, master: None, health: None, answers };
                let shared = OpenSession::new(&self.worker, options, none, place, false);
                let shared = Arc::new(shared);
                sessions.insert(String::new(), Arc::clone(&shared));
                shared
            }
        };
        drop(sessions);
        found.presence.used_by(client);
        Ok(found)
    }
}
