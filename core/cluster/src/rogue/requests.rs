//! Arbitrary requests, and what their answers tell.

use super::{
    choices::Choices,
    graphs::{self, TARGETS, TENSORS},
    worker::{self, Told},
};
use prost::Message;
use std::collections::BTreeSet;
use tenon_framework::Code;
use tenon_proto::{
    CallableOptions, CloseSessionRequest, CloseSessionResponse, ConfigProto, CreateSessionRequest,
    CreateSessionResponse, DataType, Dim, ExtendSessionRequest, ExtendSessionResponse,
    ListDevicesRequest, ListDevicesResponse, MakeCallableRequest, MakeCallableResponse,
    NamedTensorProto, PartialRunSetupRequest, PartialRunSetupResponse, ReleaseCallableRequest,
    ReleaseCallableResponse, ResetRequest, ResetResponse, RunCallableRequest, RunCallableResponse,
    RunOptions, RunStepRequest, RunStepResponse, TensorProto, TensorShapeProto,
};

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    CreateSession,
    ExtendSession,
    RunStep,
    PartialRunSetup,
    MakeCallable,
    RunCallable,
    ReleaseCallable,
    CloseSession,
    ListDevices,
    Reset,
    /// One of a worker.
    OfWorker(&'static str),
    /// One that the service does not have.
    Unknown,
}

impl Method {
    pub fn path(self) -> &'static str {
        match self {
            Method::CreateSession => "/tensorflow.MasterService/CreateSession",
            Method::ExtendSession => "/tensorflow.MasterService/ExtendSession",
            Method::RunStep => "/tensorflow.MasterService/RunStep",
            Method::PartialRunSetup => "/tensorflow.MasterService/PartialRunSetup",
            Method::MakeCallable => "/tensorflow.MasterService/MakeCallable",
            Method::RunCallable => "/tensorflow.MasterService/RunCallable",
            Method::ReleaseCallable => "/tensorflow.MasterService/ReleaseCallable",
            Method::CloseSession => "/tensorflow.MasterService/CloseSession",
            Method::ListDevices => "/tensorflow.MasterService/ListDevices",
            Method::Reset => "/tensorflow.MasterService/Reset",
            Method::OfWorker(method) => worker::path(method),
            Method::Unknown => "/tensorflow.MasterService/Unheard",
        }
    }
}

/// The methods, as often as they are called.
#[rustfmt::skip]
const METHODS: [Method; 24] = [
    Method::RunStep, Method::RunStep, Method::RunStep, Method::RunStep, Method::RunStep, Method::RunStep,
    Method::RunStep, Method::RunStep, Method::CreateSession, Method::CreateSession, Method::CreateSession,
    Method::ExtendSession, Method::ExtendSession, Method::PartialRunSetup, Method::PartialRunSetup,
    Method::MakeCallable, Method::MakeCallable, Method::RunCallable, Method::RunCallable,
    Method::ReleaseCallable, Method::CloseSession, Method::ListDevices, Method::Reset, Method::Unknown,
];

/// A request that is sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub method: Method,
    pub message: Vec<u8>,
}

/// What answers told.
#[derive(Default)]
pub(super) struct Known {
    /// Whether most requests are those of masters to a worker, instead of those of clients to a master.
    is_of_worker: bool,
    sessions: Vec<String>,
    partial_runs: Vec<String>,
    callables: Vec<i64>,
    worker: Told,
    /// Paths of the methods that were answered without a refusal.
    pub answered: BTreeSet<&'static str>,
}

pub(super) fn read<M: Message + Default>(answer: &[u8]) -> Result<M, String> {
    M::decode(answer).map_err(|error| format!("the answer is not its message: {error}"))
}

/// Reads an answer that tells nothing.
fn is<M: Message + Default>(answer: &[u8]) -> Result<(), String> {
    read::<M>(answer).map(|_| ())
}

impl Known {
    pub fn new(is_of_worker: bool) -> Known {
        Known { is_of_worker, ..Known::default() }
    }

    /// Reads an answer, and keeps the handles in it; the refusal that is in its body, if there is one.
    pub fn learn(
        &mut self,
        method: Method,
        answer: &[u8],
    ) -> Result<Option<(Code, String)>, String> {
        match method {
            Method::CreateSession => {
                self.sessions.push(read::<CreateSessionResponse>(answer)?.session_handle);
            }
            Method::PartialRunSetup => {
                let told: PartialRunSetupResponse = read(answer)?;
                self.partial_runs.push(told.partial_run_handle);
            }
            Method::MakeCallable => {
                self.callables.push(read::<MakeCallableResponse>(answer)?.handle);
            }
            Method::RunStep => {
                let RunStepResponse { status_code, status_error_message, .. } = read(answer)?;
                return Ok((status_code != 0).then_some((Code(status_code), status_error_message)));
            }
            Method::ExtendSession => is::<ExtendSessionResponse>(answer)?,
            Method::RunCallable => is::<RunCallableResponse>(answer)?,
            Method::ReleaseCallable => is::<ReleaseCallableResponse>(answer)?,
            Method::CloseSession => is::<CloseSessionResponse>(answer)?,
            Method::ListDevices => is::<ListDevicesResponse>(answer)?,
            Method::Reset => is::<ResetResponse>(answer)?,
            Method::OfWorker(method) => return self.worker.learn(method, answer),
            Method::Unknown => return Err("an unknown method is answered".to_owned()),
        }
        Ok(None)
    }

    /// The handle of a session, mostly the last one.
    fn session(&self, choices: &mut Choices<'_>) -> String {
        handle(choices, &self.sessions)
    }
}

fn handle(choices: &mut Choices<'_>, known: &[String]) -> String {
    match (choices.below(16), known) {
        (15, _) => String::from_utf8_lossy(&choices.bytes()).into_owned(),
        (12.., [_, ..]) => known[choices.below(known.len().min(256))].clone(),
        (_, [.., last]) => last.clone(),
        (_, []) => "0123456789abcdef".to_owned(),
    }
}

/// A value of any type and shape, which may contradict itself.
pub(super) fn tensor(choices: &mut Choices<'_>) -> TensorProto {
    let dims = match choices.below(8) {
        0 | 1 => vec![],
        2 | 3 => vec![2],
        4 => vec![choices.number()],
        5 => vec![choices.number(), choices.number()],
        6 => (0..choices.below(12)).map(|_| i64::from(choices.byte() % 3)).collect(),
        _ => vec![0],
    };
    let dim = dims.into_iter().map(|size| Dim { size, ..Dim::default() }).collect();
    let shape = TensorShapeProto { dim, unknown_rank: choices.one_in(32) };
    let mut tensor = TensorProto { tensor_shape: Some(shape), ..TensorProto::default() };
    let count = choices.of(&[1, 1, 1, 2, 0, 5]);
    match choices.below(8) {
        0..=2 => {
            tensor.dtype = DataType::Float as i32;
            tensor.float_val = vec![1.5; count];
        }
        3 => {
            tensor.dtype = DataType::Int32 as i32;
            tensor.int_val = (0..count).map(|_| choices.number() as i32).collect();
        }
        4 => {
            tensor.dtype = DataType::String as i32;
            tensor.string_val = (0..count).map(|_| choices.bytes()).collect();
        }
        5 => {
            tensor.dtype = DataType::Float as i32;
            tensor.tensor_content = choices.bytes().into();
        }
        6 => {
            tensor.dtype = choices.number() as i32;
            tensor.tensor_content = choices.bytes().into();
        }
        _ => tensor.tensor_shape = None,
    }
    tensor
}

/// Feeds and fetches that belong together.
const PLAIN: [(&[&str], &[&str]); 5] = [
    (&["x"], &["y"]),
    (&[], &["two"]),
    (&["x"], &["called", "y"]),
    (&[], &["size"]),
    (&["x"], &["endless"]),
];

/// What a step feeds, fetches and runs: names that belong together, or any.
struct Names {
    feed: Vec<String>,
    fetch: Vec<String>,
    target: Vec<String>,
}

impl Names {
    fn choose(choices: &mut Choices<'_>) -> Names {
        if choices.one_in(2) {
            return Names {
                feed: choices.some(2, &TENSORS),
                fetch: choices.some(3, &TENSORS),
                target: choices.some(2, &TARGETS),
            };
        }
        let (feed, fetch) = choices.of(&PLAIN);
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Names { feed: own(feed), fetch: own(fetch), target: choices.some(1, &TARGETS[..2]) }
    }
}

/// A value that most feeds take, or any.
fn fed(choices: &mut Choices<'_>) -> TensorProto {
    if choices.one_in(3) {
        return tensor(choices);
    }
    TensorProto {
        dtype: DataType::Float as i32,
        tensor_shape: Some(TensorShapeProto::default()),
        float_val: vec![1.5],
        ..TensorProto::default()
    }
}

fn run_options(choices: &mut Choices<'_>) -> Option<RunOptions> {
    (!choices.one_in(2)).then(|| RunOptions {
        trace_level: choices.of(&[0, 0, 3, 1, -7, i32::MAX]),
        timeout_in_ms: choices.of(&[0, 0, 1, 5, -1, i64::MAX, i64::MIN]),
        output_partition_graphs: choices.one_in(4),
        ..RunOptions::default()
    })
}

/// A number of a request; a small one comes again.
pub(super) fn request_id(choices: &mut Choices<'_>) -> i64 {
    if choices.one_in(8) { choices.number() } else { 0 }
}

fn config(choices: &mut Choices<'_>) -> Option<ConfigProto> {
    choices.one_in(2).then(|| ConfigProto {
        allow_soft_placement: choices.one_in(2),
        isolate_session_state: choices.one_in(2),
        log_device_placement: choices.one_in(8),
        operation_timeout_in_ms: choices.of(&[0, 0, 3, -1, i64::MAX]),
        session_inter_op_thread_pool: vec![Vec::new(); choices.below(16) / 15],
        ..ConfigProto::default()
    })
}

fn step(choices: &mut Choices<'_>, known: &Known) -> RunStepRequest {
    let Names { feed, fetch, target } = Names::choose(choices);
    let feed = feed
        .into_iter()
        .map(|name| NamedTensorProto { name, tensor: (!choices.one_in(32)).then(|| fed(choices)) });
    RunStepRequest {
        feed: feed.collect(),
        session_handle: known.session(choices),
        fetch,
        target,
        options: run_options(choices),
        partial_run_handle: match choices.one_in(4) {
            true => handle(choices, &known.partial_runs),
            false => String::new(),
        },
        store_errors_in_response_body: choices.one_in(2),
        request_id: request_id(choices),
    }
}

fn callable(choices: &mut Choices<'_>) -> CallableOptions {
    let Names { feed, fetch, target } = Names::choose(choices);
    CallableOptions {
        feed,
        fetch,
        target,
        run_options: run_options(choices),
        tensor_connection: vec![Vec::new(); choices.below(16) / 15],
        ..CallableOptions::default()
    }
}

/// The number of a callable, mostly one that was made.
fn callable_handle(choices: &mut Choices<'_>, known: &Known) -> i64 {
    match (choices.one_in(8), known.callables.as_slice()) {
        (false, [.., last]) => *last,
        _ => choices.number(),
    }
}

fn create(choices: &mut Choices<'_>) -> CreateSessionRequest {
    CreateSessionRequest {
        graph_def: (!choices.one_in(16)).then(|| graphs::make(choices)),
        config: config(choices),
        target: String::new(),
    }
}

fn extend(choices: &mut Choices<'_>, known: &Known) -> ExtendSessionRequest {
    ExtendSessionRequest {
        session_handle: known.session(choices),
        graph_def: (!choices.one_in(16)).then(|| graphs::make(choices)),
        current_graph_version: choices.of(&[0, 0, 0, 1, 2, -1, i64::MAX]),
    }
}

fn partial_run(choices: &mut Choices<'_>, known: &Known) -> PartialRunSetupRequest {
    let Names { feed, fetch, target } = Names::choose(choices);
    PartialRunSetupRequest {
        session_handle: known.session(choices),
        feed,
        fetch,
        target,
        request_id: request_id(choices),
    }
}

fn call(choices: &mut Choices<'_>, known: &Known) -> RunCallableRequest {
    RunCallableRequest {
        session_handle: known.session(choices),
        handle: callable_handle(choices, known),
        feed: (0..choices.of(&[1, 1, 0, 2])).map(|_| fed(choices)).collect(),
        request_id: request_id(choices),
    }
}

/// The message of a method.
fn message(choices: &mut Choices<'_>, known: &Known, method: Method) -> Vec<u8> {
    match method {
        Method::CreateSession => create(choices).encode_to_vec(),
        Method::ExtendSession => extend(choices, known).encode_to_vec(),
        Method::RunStep => step(choices, known).encode_to_vec(),
        Method::PartialRunSetup => partial_run(choices, known).encode_to_vec(),
        Method::MakeCallable => MakeCallableRequest {
            session_handle: known.session(choices),
            options: (!choices.one_in(16)).then(|| callable(choices)),
            request_id: request_id(choices),
        }
        .encode_to_vec(),
        Method::RunCallable => call(choices, known).encode_to_vec(),
        Method::ReleaseCallable => ReleaseCallableRequest {
            session_handle: known.session(choices),
            handle: callable_handle(choices, known),
        }
        .encode_to_vec(),
        Method::CloseSession => {
            CloseSessionRequest { session_handle: known.session(choices) }.encode_to_vec()
        }
        Method::ListDevices => {
            ListDevicesRequest { session_handle: known.session(choices) }.encode_to_vec()
        }
        Method::Reset => ResetRequest {
            container: choices.some(2, &["", "other", "no"]),
            device_filters: choices.some(1, &["/device:CPU:0"]),
        }
        .encode_to_vec(),
        Method::OfWorker(method) => worker::message(choices, &known.worker, method),
        Method::Unknown => choices.bytes(),
    }
}

/// The next request: of a method, or with bytes that are nearly its message, or of none.
pub(super) fn make(choices: &mut Choices<'_>, known: &Known) -> Sent {
    let is_other = choices.one_in(8);
    let method = match known.is_of_worker != is_other {
        true => Method::OfWorker(known.worker.method(choices)),
        // Nothing happens without a session.
        false if known.sessions.is_empty() && !choices.one_in(8) => Method::CreateSession,
        false => choices.of(&METHODS),
    };
    let mut message = message(choices, known, method);
    match choices.below(16) {
        15 => message = choices.bytes(),
        14 => message.truncate(message.len() * choices.below(256) / 256),
        13 => {
            for _ in 0..=choices.below(4) {
                let at = choices.word() as usize % message.len().max(1);
                if let Some(byte) = message.get_mut(at) {
                    *byte = choices.byte();
                }
            }
        }
        _ => {}
    }
    Sent { method, message }
}
