//! Arbitrary requests of masters and other tasks to a worker, and what their answers tell.

use super::{
    choices::Choices,
    graphs,
    requests::{read, request_id, tensor},
};
use prost::Message;
use tenon_framework::Code;
use tenon_proto::{
    CleanupAllRequest, CleanupGraphRequest, CompleteGroupRequest, CompleteInstanceRequest,
    ConfigProto, CreateWorkerSessionRequest, DeleteWorkerSessionRequest, DeregisterGraphRequest,
    DeviceAttributes, ExecutorOpts, GetStatusRequest, GetStatusResponse, GetStepSequenceRequest,
    GraphDef, LoggingRequest, MarkRecvFinishedRequest, NamedTensorProto, RecvBufRequest,
    RecvTensorRequest, RegisterGraphRequest, RegisterGraphResponse, RunGraphRequest,
    RunGraphResponse, ServerDef,
};

/// The device of a worker on its own.
const DEVICE: &str = "/job:localhost/replica:0/task:0/device:CPU:0";
/// Handles of sessions that masters choose, mostly the first one, so that its requests meet.
const SESSIONS: [&str; 8] = ["one", "one", "one", "one", "one", "one", "two", ""];
/// Numbers of steps.
const STEPS: [i64; 4] = [1, 1, 1, 77];
/// Names of transfers.
const TENSORS: [&str; 3] = ["edge_1_x", "edge_1_x", "x:0"];

/// The methods of a worker, as often as they are called.
#[rustfmt::skip]
const METHODS: [&str; 24] = [
    "GetStatus", "CreateWorkerSession", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "RegisterGraph",
    "RegisterGraph", "DeregisterGraph", "RunGraph", "RunGraph", "RunGraph", "RunGraph", "RunGraph", "CleanupGraph",
    "CleanupAll", "RecvTensor", "RecvTensor", "MarkRecvFinished", "Logging", "GetStepSequence", "CompleteGroup",
    "CompleteInstance", "RecvBuf", "Tracing",
];

/// The path of a method.
pub(super) fn path(method: &'static str) -> &'static str {
    match method {
        "GetStatus" => "/tensorflow.WorkerService/GetStatus",
        "CreateWorkerSession" => "/tensorflow.WorkerService/CreateWorkerSession",
        "DeleteWorkerSession" => "/tensorflow.WorkerService/DeleteWorkerSession",
        "RegisterGraph" => "/tensorflow.WorkerService/RegisterGraph",
        "DeregisterGraph" => "/tensorflow.WorkerService/DeregisterGraph",
        "RunGraph" => "/tensorflow.WorkerService/RunGraph",
        "CleanupGraph" => "/tensorflow.WorkerService/CleanupGraph",
        "CleanupAll" => "/tensorflow.WorkerService/CleanupAll",
        "RecvTensor" => "/tensorflow.WorkerService/RecvTensor",
        "MarkRecvFinished" => "/tensorflow.WorkerService/MarkRecvFinished",
        "Logging" => "/tensorflow.WorkerService/Logging",
        "GetStepSequence" => "/tensorflow.WorkerService/GetStepSequence",
        "CompleteGroup" => "/tensorflow.WorkerService/CompleteGroup",
        "CompleteInstance" => "/tensorflow.WorkerService/CompleteInstance",
        "RecvBuf" => "/tensorflow.WorkerService/RecvBuf",
        _ => "/tensorflow.WorkerService/Tracing",
    }
}

/// What answers of a worker told.
#[derive(Default)]
pub(super) struct Told {
    graphs: Vec<String>,
    /// That of its device; 0 before it said so.
    incarnation: u64,
    has_session: bool,
}

impl Told {
    /// The next method to call. Nothing happens without a session, and no tensor is found without the incarnation.
    pub fn method(&self, choices: &mut Choices<'_>) -> &'static str {
        match self {
            Told { incarnation: 0, .. } if !choices.one_in(8) => "GetStatus",
            Told { has_session: false, .. } if !choices.one_in(8) => "CreateWorkerSession",
            _ => choices.of(&METHODS),
        }
    }

    /// Reads an answer, and keeps what is in it; the refusal in its body, if there is one.
    pub fn learn(&mut self, method: &str, answer: &[u8]) -> Result<Option<(Code, String)>, String> {
        match method {
            "GetStatus" => {
                let status: GetStatusResponse = read(answer)?;
                let first = status.device_attributes.first().ok_or("no device")?;
                self.incarnation = first.incarnation;
            }
            "CreateWorkerSession" => self.has_session = true,
            "DeleteWorkerSession" => self.has_session = false,
            "RegisterGraph" => {
                self.graphs.push(read::<RegisterGraphResponse>(answer)?.graph_handle);
            }
            "RunGraph" => {
                let RunGraphResponse { status_code, status_error_message, .. } = read(answer)?;
                return Ok((status_code != 0).then_some((Code(status_code), status_error_message)));
            }
            "Tracing" => return Err("Tracing is answered".to_owned()),
            _ => {}
        }
        Ok(None)
    }

    fn graph(&self, choices: &mut Choices<'_>) -> String {
        match self.graphs.last() {
            Some(last) if !choices.one_in(8) => last.clone(),
            _ => String::from_utf8_lossy(&choices.bytes()).into_owned(),
        }
    }

    /// The key of a transfer, which may be none.
    fn key(&self, choices: &mut Choices<'_>) -> String {
        if choices.one_in(16) {
            return String::from_utf8_lossy(&choices.bytes()).into_owned();
        }
        let other = "/job:localhost/replica:0/task:1/device:CPU:0";
        let source = if choices.one_in(8) { other } else { DEVICE };
        let incarnation = if choices.one_in(8) { choices.word() } else { self.incarnation };
        let (tensor, frame) = (choices.of(&TENSORS), choices.of(&["0:0", "0:0", "0:0", "5:1", ""]));
        format!("{source};{incarnation:016x};{DEVICE};{tensor};{frame}")
    }
}

/// A part of a step: its nodes name this worker's device, mostly.
fn part(choices: &mut Choices<'_>) -> GraphDef {
    let mut graph = graphs::make(choices);
    for node in &mut graph.node {
        DEVICE.clone_into(&mut node.device);
        if choices.one_in(64) {
            node.device = String::from_utf8_lossy(&choices.bytes()).into_owned();
        }
    }
    graph
}

fn step(choices: &mut Choices<'_>) -> i64 {
    if choices.one_in(8) { choices.number() } else { choices.of(&STEPS) }
}

fn session(choices: &mut Choices<'_>) -> String {
    choices.of(&SESSIONS).to_owned()
}

fn open(choices: &mut Choices<'_>) -> CreateWorkerSessionRequest {
    let config = ConfigProto {
        rpc_options: choices.one_in(4).then(|| choices.bytes()),
        isolate_session_state: choices.one_in(4),
        ..ConfigProto::default()
    };
    let def = ServerDef { default_session_config: Some(config), ..ServerDef::default() };
    CreateWorkerSessionRequest {
        session_handle: session(choices),
        server_def: (!choices.one_in(4)).then_some(def),
        isolate_session_state: choices.one_in(4),
        master_task: choices.of(&["", "/job:localhost/replica:0/task:0", "nobody"]).to_owned(),
        master_incarnation: choices.of(&[0, 1, 2, -1]),
        ..CreateWorkerSessionRequest::default()
    }
}

fn run(choices: &mut Choices<'_>, told: &Told) -> RunGraphRequest {
    let mut send = Vec::new();
    for _ in 0..choices.below(3) {
        let name = told.key(choices);
        let tensor = (!choices.one_in(16)).then(|| tensor(choices));
        send.push(NamedTensorProto { name, tensor });
    }
    let is_partial = choices.one_in(4);
    RunGraphRequest {
        send,
        graph_handle: told.graph(choices),
        step_id: step(choices),
        recv_key: if choices.one_in(4) { vec![told.key(choices)] } else { Vec::new() },
        exec_opts: choices
            .one_in(4)
            .then(|| ExecutorOpts { record_timeline: true, ..ExecutorOpts::default() }),
        is_partial,
        is_last_partial_run: is_partial && choices.one_in(2),
        session_handle: session(choices),
        store_errors_in_response_body: choices.one_in(2),
        create_worker_session_called: !choices.one_in(4),
        request_id: request_id(choices),
    }
}

fn member(choices: &mut Choices<'_>) -> DeviceAttributes {
    DeviceAttributes {
        name: choices.of(&[DEVICE, "", "/job:x"]).to_owned(),
        device_type: choices.of(&["CPU", "GPU", ""]).to_owned(),
        incarnation: choices.word(),
        ..DeviceAttributes::default()
    }
}

fn instance(choices: &mut Choices<'_>) -> CompleteInstanceRequest {
    CompleteInstanceRequest {
        name: choices.of(&["0:0", "", "1:x"]).to_owned(),
        r#type: choices.number() as i32,
        data_type: choices.number() as i32,
        group_key: choices.of(&[1, 2, -1]),
        group_size: choices.number() as i32,
        instance_key: choices.of(&[1, 2]),
        device: choices.of(&[DEVICE, ""]).to_owned(),
        is_source: choices.one_in(2),
        step_id: step(choices),
        ..CompleteInstanceRequest::default()
    }
}

fn buffer(choices: &mut Choices<'_>, told: &Told) -> RecvBufRequest {
    RecvBufRequest {
        step_id: step(choices),
        buf_rendezvous_key: choices.of(&["", "collective;1;2;3:4;0;1;9;a:b", "x;y"]).to_owned(),
        src_device: choices.of(&[DEVICE, ""]).to_owned(),
        src_incarnation: told.incarnation,
        num_bytes: choices.number(),
        request_id: request_id(choices),
        ..RecvBufRequest::default()
    }
}

fn logging(choices: &mut Choices<'_>) -> LoggingRequest {
    LoggingRequest {
        enable_rpc_logging: choices.one_in(2),
        clear: choices.one_in(2),
        fetch_step_id: (0..choices.below(3)).map(|_| step(choices)).collect(),
        disable_rpc_logging: choices.one_in(4),
    }
}

/// The message of a method.
pub(super) fn message(choices: &mut Choices<'_>, told: &Told, method: &str) -> Vec<u8> {
    match method {
        "GetStatus" => GetStatusRequest {}.encode_to_vec(),
        "CreateWorkerSession" => open(choices).encode_to_vec(),
        "DeleteWorkerSession" => {
            DeleteWorkerSessionRequest { session_handle: session(choices) }.encode_to_vec()
        }
        "RegisterGraph" => RegisterGraphRequest {
            session_handle: session(choices),
            graph_def: (!choices.one_in(16)).then(|| part(choices)),
            create_worker_session_called: !choices.one_in(4),
            ..RegisterGraphRequest::default()
        }
        .encode_to_vec(),
        "DeregisterGraph" => DeregisterGraphRequest {
            graph_handle: told.graph(choices),
            session_handle: session(choices),
            create_worker_session_called: !choices.one_in(4),
        }
        .encode_to_vec(),
        "RunGraph" => run(choices, told).encode_to_vec(),
        "CleanupGraph" => CleanupGraphRequest { step_id: step(choices) }.encode_to_vec(),
        "CleanupAll" => {
            CleanupAllRequest { container: choices.some(2, &["", "other"]) }.encode_to_vec()
        }
        "RecvTensor" => RecvTensorRequest {
            step_id: step(choices),
            rendezvous_key: told.key(choices),
            request_id: request_id(choices),
            ..RecvTensorRequest::default()
        }
        .encode_to_vec(),
        "MarkRecvFinished" => {
            MarkRecvFinishedRequest { request_id: choices.number() }.encode_to_vec()
        }
        "Logging" => logging(choices).encode_to_vec(),
        "GetStepSequence" => {
            GetStepSequenceRequest { graph_key: vec![choices.number()] }.encode_to_vec()
        }
        "CompleteGroup" => CompleteGroupRequest {
            group_key: choices.of(&[1, 2, -1]),
            group_size: choices.of(&[1, 1, 2, 0, -1, i32::MAX]),
            device_type: choices.of(&["CPU", ""]).to_owned(),
            collective_type: choices.of(&[0, 1, -1]),
            device_attributes: (!choices.one_in(8)).then(|| member(choices)),
        }
        .encode_to_vec(),
        "CompleteInstance" => instance(choices).encode_to_vec(),
        "RecvBuf" => buffer(choices, told).encode_to_vec(),
        _ => choices.bytes(),
    }
}
