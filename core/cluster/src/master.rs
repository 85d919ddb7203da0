//! The master: sessions by handle, and the methods of TensorFlow's `MasterService` on them.
//!
//! # Ownership
//! The sessions of a server are on one worker: variables and other values that outlive steps are shared by container and
//! name, unless a session asks for its own. A session lives until it is closed, until the containers are reset, or until
//! its last client has been away for the time that [`Limits`] says.
//!
//! # Invariants
//! - A handle is never given twice.
//! - A session that is looked up stays usable while the request runs, also when another request closes it: its steps are
//!   cancelled then, and say so.

mod cluster;
mod partial;
mod references;
mod session;
mod step;
mod values;

use crate::{
    call::{Call, Need},
    client::Client,
    refusal::Refusal,
    worker::describe,
};
pub(crate) use cluster::{Leavings, Place};
use session::MasterSession;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{
    Code,
    sync::{Mutex, rank},
};
use tenon_proto::{
    CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse,
    ExtendSessionRequest, ExtendSessionResponse, ListDevicesRequest, ListDevicesResponse,
    MakeCallableRequest, MakeCallableResponse, PartialRunSetupRequest, PartialRunSetupResponse,
    ReleaseCallableRequest, ReleaseCallableResponse, ResetRequest, ResetResponse,
    RunCallableRequest, RunCallableResponse, RunStepRequest, RunStepResponse,
};
use tenon_runtime::Worker;

/// Limits on the use of a server by its clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sessions that are open at the same time.
    pub sessions: usize,
    /// How long a session stays when none of its clients is connected.
    pub away: Duration,
    /// Steps of clients that run at the same time.
    pub steps: usize,
    /// Parts of steps for the masters of other tasks that run at the same time.
    pub parts: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { sessions: 1000, away: Duration::from_secs(3600), steps: 1024, parts: 2048 }
    }
}

/// The sessions of a server.
pub(crate) struct Master {
    worker: Worker,
    /// Where it is in its cluster.
    place: Place,
    limits: Limits,
    sessions: Mutex<HashMap<String, Arc<MasterSession>>>,
}

type Answered<R> = Result<R, Refusal>;

impl Master {
    pub fn new(worker: Worker, place: Place, limits: Limits) -> Master {
        Master { worker, place, limits, sessions: Mutex::ranked(rank::SERVER, HashMap::new()) }
    }

    /// The session of a handle, which this client uses now.
    fn session(&self, handle: &str, client: Option<&Client>) -> Answered<Arc<MasterSession>> {
        let session = self.sessions.lock().get(handle).cloned();
        let session = session.ok_or_else(|| Refusal::no_session(handle))?;
        session.used_by(client);
        Ok(session)
    }

    pub fn create_session(
        &self,
        call: Call<CreateSessionRequest>,
    ) -> Answered<CreateSessionResponse> {
        let full = || {
            let most = self.limits.sessions;
            Refusal::new(
                Code::RESOURCE_EXHAUSTED,
                format!("the server has {most} sessions, its limit: close those that are not used"),
            )
        };
        if self.sessions.lock().len() >= self.limits.sessions {
            return Err(full());
        }
        let session = MasterSession::new(&self.worker, &self.place, call.request, &call.cancel)?;
        let session = Arc::new(session);
        session.used_by(call.client.as_ref());
        let handle = session.handle().to_owned();
        let mut sessions = self.sessions.lock();
        if sessions.len() >= self.limits.sessions {
            drop(sessions);
            session.close();
            return Err(full());
        }
        sessions.insert(handle.clone(), session);
        Ok(CreateSessionResponse { session_handle: handle, graph_version: 0 })
    }

    pub fn extend_session(
        &self,
        call: Call<ExtendSessionRequest>,
    ) -> Answered<ExtendSessionResponse> {
        let request = call.request;
        let session = self.session(&request.session_handle, call.client.as_ref())?;
        let graph = request.graph_def.unwrap_or_default();
        let new_graph_version = session.extend(graph, request.current_graph_version)?;
        Ok(ExtendSessionResponse { new_graph_version })
    }

    /// What a step needs, as far as it is known.
    pub fn need(&self, request: &RunStepRequest) -> Need {
        let session = self.sessions.lock().get(&request.session_handle).cloned();
        session.map_or(Need::Thread, |session| session.need(request))
    }

    /// As [`Master::run_step`], for one that needs answers alone.
    pub async fn run_step_soon(&self, call: Call<RunStepRequest>) -> Answered<RunStepResponse> {
        let session = self.session(&call.request.session_handle, call.client.as_ref())?;
        session.run_step_soon(call.request, call.cancel).await
    }

    pub fn run_step(&self, call: Call<RunStepRequest>) -> Answered<RunStepResponse> {
        let session = self.session(&call.request.session_handle, call.client.as_ref())?;
        session.run_step(call.request, call.cancel)
    }

    pub fn partial_run_setup(
        &self,
        call: Call<PartialRunSetupRequest>,
    ) -> Answered<PartialRunSetupResponse> {
        let session = self.session(&call.request.session_handle, call.client.as_ref())?;
        let partial_run_handle = session.partial_run_setup(call.request)?;
        Ok(PartialRunSetupResponse { partial_run_handle })
    }

    pub fn make_callable(&self, call: Call<MakeCallableRequest>) -> Answered<MakeCallableResponse> {
        let session = self.session(&call.request.session_handle, call.client.as_ref())?;
        let handle = session.make_callable(call.request)?;
        Ok(MakeCallableResponse { handle })
    }

    pub fn run_callable(&self, call: Call<RunCallableRequest>) -> Answered<RunCallableResponse> {
        let session = self.session(&call.request.session_handle, call.client.as_ref())?;
        session.run_callable(call.request, call.cancel)
    }

    pub fn release_callable(
        &self,
        call: Call<ReleaseCallableRequest>,
    ) -> Answered<ReleaseCallableResponse> {
        let session = self.session(&call.request.session_handle, call.client.as_ref())?;
        session.release_callable(call.request.handle)?;
        Ok(ReleaseCallableResponse {})
    }

    pub fn close_session(&self, call: Call<CloseSessionRequest>) -> Answered<CloseSessionResponse> {
        let handle = &call.request.session_handle;
        let session = self.sessions.lock().remove(handle);
        session.ok_or_else(|| Refusal::no_session(handle))?.close();
        Ok(CloseSessionResponse {})
    }

    pub fn list_devices(&self, call: Call<ListDevicesRequest>) -> Answered<ListDevicesResponse> {
        let handle = &call.request.session_handle;
        let (mut local_device, mut remote_device) = (None, Vec::new());
        if !handle.is_empty() {
            let session = self.session(handle, call.client.as_ref());
            let session =
                session.map_err(|refusal| Refusal { code: Code::INVALID_ARGUMENT, ..refusal })?;
            (local_device, remote_device) = (session.local_devices(), session.remote_devices());
        }
        let devices = self.worker.runtime().devices().devices();
        let local_device = local_device.unwrap_or_else(|| devices.iter().map(describe).collect());
        Ok(ListDevicesResponse { local_device, remote_device })
    }

    /// Forgets the values of containers, and closes all sessions, as TensorFlow's servers do.
    pub fn reset(&self, call: Call<ResetRequest>) -> Answered<ResetResponse> {
        self.close_all();
        let named: Vec<&str> = call.request.container.iter().map(String::as_str).collect();
        let containers = if named.is_empty() { &[""][..] } else { &named };
        self.worker.reset(containers);
        self.place.reset(&call.request.container, &call.request.device_filters)?;
        Ok(ResetResponse {})
    }

    /// Closes all sessions; their steps are cancelled.
    pub fn close_all(&self) {
        let gone = std::mem::take(&mut *self.sessions.lock());
        gone.values().for_each(|session| session.close());
    }

    /// Asks the tasks that sessions use whether they are there, and makes workers drop what is over. It does not block.
    pub fn look_at_tasks(&self) {
        self.place.health.beat();
        self.place.leavings.send_again();
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        sessions.iter().for_each(|session| session.look_at_tasks());
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().len()
    }

    /// How often members of collective operations have asked this task as the leader of their groups.
    pub fn questions(&self) -> u64 {
        self.place.own.questions()
    }

    /// Whether there is a session of a handle.
    pub fn has(&self, handle: &str) -> bool {
        self.sessions.lock().contains_key(handle)
    }

    /// Whether a step runs.
    pub fn is_busy(&self) -> bool {
        self.sessions.lock().values().any(|session| session.is_busy())
    }

    /// Closes the sessions whose clients have been away for too long at this time.
    pub fn collect(&self, now: Instant) {
        let mut gone = Vec::new();
        self.sessions.lock().retain(|handle, session| {
            let away = session.away_since().map(|since| now.saturating_duration_since(since));
            let stays = away.is_none_or(|away| away < self.limits.away);
            if !stays {
                gone.push((handle.clone(), Arc::clone(session)));
            }
            stays
        });
        for (handle, session) in gone {
            tracing::info!("session {handle} is closed: its clients have been away for too long");
            session.close();
        }
    }
}
