//! The master's methods for a client that was admitted: they keep to its limits, and are written to the audit log.

use crate::{
    call::{Call, Need},
    gate::{Gate, Who},
    limits::nodes,
    master::Master,
    refusal::Refusal,
};
use prost::Message;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};
use tenon_framework::Code;
use tenon_proto::{
    CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse,
    ExtendSessionRequest, ExtendSessionResponse, GraphDef, ListDevicesRequest, ListDevicesResponse,
    MakeCallableRequest, MakeCallableResponse, PartialRunSetupRequest, PartialRunSetupResponse,
    ReleaseCallableRequest, ReleaseCallableResponse, ResetRequest, ResetResponse,
    RunCallableRequest, RunCallableResponse, RunStepRequest, RunStepResponse,
};

type Answered<R> = Result<R, Refusal>;
type Facts = Vec<(&'static str, Value)>;

/// A master, and a client of it.
pub(crate) struct Admitted {
    pub master: Arc<Master>,
    pub gate: Arc<Gate>,
    pub who: Arc<Who>,
}

/// Ends a step's count when it is dropped.
struct Step<'s>(&'s Admitted);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.0.gate.served.steps.fetch_add(1, Ordering::Relaxed);
        self.0.gate.usage.end_step(&self.0.who.name);
    }
}

impl Admitted {
    /// Runs a method and records it. An answer may have an error in its body, which `in_body` finds.
    fn recorded<R>(
        &self,
        what: &'static str,
        facts: impl FnOnce() -> Facts,
        method: impl FnOnce() -> Answered<R>,
        in_body: impl FnOnce(&R) -> (Code, String),
    ) -> Answered<R> {
        if self.gate.audit.is_none() {
            return method();
        }
        let mut facts = facts();
        let begin = Instant::now();
        let answer = method();
        let (code, why) = match &answer {
            Ok(answer) => in_body(answer),
            Err(refusal) => (refusal.code, refusal.message.clone()),
        };
        let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        facts.push(("us", json!(took)));
        self.gate.record(&self.who, what, code, &why, &facts);
        answer
    }

    /// As [`Admitted::recorded`], for a method of a session.
    fn of_session<R>(
        &self,
        what: &'static str,
        session: &str,
        method: impl FnOnce() -> Answered<R>,
    ) -> Answered<R> {
        let session = json!(short(session));
        self.recorded(what, || vec![("session", session)], method, |_| fine())
    }

    /// What a step needs, as far as it is known. One that is recorded writes to a file.
    pub fn need(&self, request: &RunStepRequest) -> Need {
        match &self.gate.audit {
            Some(_) => Need::Thread,
            None => self.master.need(request),
        }
    }

    /// As [`Admitted::run_step`], for one that needs answers alone.
    pub async fn run_step_soon(
        self: Arc<Admitted>,
        call: Call<RunStepRequest>,
    ) -> Answered<RunStepResponse> {
        let _step = self.step()?;
        self.master.run_step_soon(call).await
    }

    fn step(&self) -> Answered<Step<'_>> {
        self.gate.usage.begin_step(&self.who.name)?;
        Ok(Step(self))
    }

    pub fn create_session(
        &self,
        call: Call<CreateSessionRequest>,
    ) -> Answered<CreateSessionResponse> {
        let graph = call.request.graph_def.as_ref();
        let (count, digest) = (nodes(graph), self.gate.audit.is_some().then(|| digest(graph)));
        let facts = || vec![("nodes", json!(count)), ("graph", json!(digest))];
        let open = || {
            let usage = &self.gate.usage;
            usage.open_session(&self.who.name, count, |handle| self.master.has(handle))?;
            let answer = self.master.create_session(call);
            let handle = answer.as_ref().ok().map(|answer| answer.session_handle.as_str());
            usage.opened(&self.who.name, count, handle);
            answer
        };
        self.recorded("CreateSession", facts, open, |_| fine())
    }

    pub fn extend_session(
        &self,
        call: Call<ExtendSessionRequest>,
    ) -> Answered<ExtendSessionResponse> {
        let handle = call.request.session_handle.clone();
        let graph = call.request.graph_def.as_ref();
        let (count, digest) = (nodes(graph), self.gate.audit.is_some().then(|| digest(graph)));
        let session = json!(short(&handle));
        let facts =
            || vec![("session", session), ("nodes", json!(count)), ("graph", json!(digest))];
        let extend = || {
            self.gate.usage.extend(&self.who.name, &handle, count)?;
            let answer = self.master.extend_session(call);
            if answer.is_err() {
                self.gate.usage.shrink(&handle, count);
            }
            answer
        };
        self.recorded("ExtendSession", facts, extend, |_| fine())
    }

    pub fn run_step(&self, call: Call<RunStepRequest>) -> Answered<RunStepResponse> {
        let session = json!(short(&call.request.session_handle));
        let run = || {
            let _step = self.step()?;
            self.master.run_step(call)
        };
        self.recorded(
            "RunStep",
            || vec![("session", session)],
            run,
            |answer| (Code(answer.status_code), answer.status_error_message.clone()),
        )
    }

    pub fn run_callable(&self, call: Call<RunCallableRequest>) -> Answered<RunCallableResponse> {
        let session = call.request.session_handle.clone();
        self.of_session("RunCallable", &session, || {
            let _step = self.step()?;
            self.master.run_callable(call)
        })
    }

    pub fn partial_run_setup(
        &self,
        call: Call<PartialRunSetupRequest>,
    ) -> Answered<PartialRunSetupResponse> {
        let session = call.request.session_handle.clone();
        self.of_session("PartialRunSetup", &session, || self.master.partial_run_setup(call))
    }

    pub fn make_callable(&self, call: Call<MakeCallableRequest>) -> Answered<MakeCallableResponse> {
        let session = call.request.session_handle.clone();
        self.of_session("MakeCallable", &session, || self.master.make_callable(call))
    }

    pub fn release_callable(
        &self,
        call: Call<ReleaseCallableRequest>,
    ) -> Answered<ReleaseCallableResponse> {
        self.master.release_callable(call)
    }

    pub fn close_session(&self, call: Call<CloseSessionRequest>) -> Answered<CloseSessionResponse> {
        let session = call.request.session_handle.clone();
        self.of_session("CloseSession", &session, || {
            let answer = self.master.close_session(call);
            self.gate.usage.closed(&session);
            answer
        })
    }

    pub fn list_devices(&self, call: Call<ListDevicesRequest>) -> Answered<ListDevicesResponse> {
        self.master.list_devices(call)
    }

    pub fn reset(&self, call: Call<ResetRequest>) -> Answered<ResetResponse> {
        self.recorded("Reset", Vec::new, || self.master.reset(call), |_| fine())
    }
}

fn fine() -> (Code, String) {
    (Code::OK, String::new())
}

/// The beginning of a handle. The whole of it would allow a reader of the log to use the session.
fn short(handle: &str) -> &str {
    &handle[..handle.floor_char_boundary(8)]
}

/// The digest of a graph.
fn digest(graph: Option<&GraphDef>) -> String {
    let bytes = graph.map(Message::encode_to_vec).unwrap_or_default();
    let digest = Sha256::digest(&bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
