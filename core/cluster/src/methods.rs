//! The methods of the worker's service: their paths, messages, and who answers them.

use crate::{
    call::Call,
    plane::{GREET, GreetRequest, GreetResponse},
    refusal::Refusal,
    worker::WorkerService,
};
use prost::Message;
use tenon_proto::{
    CleanupAllRequest, CleanupAllResponse, CleanupGraphRequest, CleanupGraphResponse,
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
    CreateWorkerSessionRequest, CreateWorkerSessionResponse, DeleteWorkerSessionRequest,
    DeleteWorkerSessionResponse, DeregisterGraphRequest, DeregisterGraphResponse, GetStatusRequest,
    GetStatusResponse, GetStepSequenceRequest, GetStepSequenceResponse, LoggingRequest,
    LoggingResponse, MarkRecvFinishedRequest, MarkRecvFinishedResponse, RecvBufRequest,
    RecvBufResponse, RegisterGraphRequest, RegisterGraphResponse, RunGraphRequest,
    RunGraphResponse,
};

/// The beginning of the path of every method.
pub(crate) const WORKER: &str = "/tensorflow.WorkerService/";
/// The method whose answer has a tensor, which is written and read apart.
pub(crate) const RECV_TENSOR: &str = "/tensorflow.WorkerService/RecvTensor";

/// A method of the worker's service, as its caller sees it.
pub(crate) trait Remote: 'static {
    const PATH: &'static str;
    type Request: Message + Default + 'static;
    type Response: Message + Default + 'static;
}

/// A method whose answer takes a thread. The others wait without one.
pub(crate) trait Method: Remote {
    /// Answers a call at a worker of this process. It blocks.
    fn answer(
        service: &WorkerService,
        call: Call<Self::Request>,
    ) -> Result<Self::Response, Refusal>;
}

macro_rules! remote {
    ($name:ident($request:ident) -> $response:ident) => {
        impl Remote for $name {
            const PATH: &'static str = concat!("/tensorflow.WorkerService/", stringify!($name));
            type Request = $request;
            type Response = $response;
        }
    };
}

macro_rules! methods {
    ($($name:ident($request:ident) -> $response:ident = $function:ident),+ $(,)?) => {$(
        pub(crate) struct $name;

        remote!($name($request) -> $response);

        impl Method for $name {
            fn answer(
                service: &WorkerService,
                call: Call<$request>,
            ) -> Result<$response, Refusal> {
                service.$function(call)
            }
        }
    )+};
}

methods! {
    GetStatus(GetStatusRequest) -> GetStatusResponse = get_status,
    CreateWorkerSession(CreateWorkerSessionRequest) -> CreateWorkerSessionResponse = create_worker_session,
    DeleteWorkerSession(DeleteWorkerSessionRequest) -> DeleteWorkerSessionResponse = delete_worker_session,
    RegisterGraph(RegisterGraphRequest) -> RegisterGraphResponse = register_graph,
    DeregisterGraph(DeregisterGraphRequest) -> DeregisterGraphResponse = deregister_graph,
    RunGraph(RunGraphRequest) -> RunGraphResponse = run_graph,
    CleanupGraph(CleanupGraphRequest) -> CleanupGraphResponse = cleanup_graph,
    CleanupAll(CleanupAllRequest) -> CleanupAllResponse = cleanup_all,
    Logging(LoggingRequest) -> LoggingResponse = logging,
    MarkRecvFinished(MarkRecvFinishedRequest) -> MarkRecvFinishedResponse = mark_recv_finished,
    GetStepSequence(GetStepSequenceRequest) -> GetStepSequenceResponse = get_step_sequence,
}

/// Asks for a link of the data plane.
pub(crate) struct Greet;

impl Remote for Greet {
    const PATH: &'static str = GREET;
    type Request = GreetRequest;
    type Response = GreetResponse;
}

/// Joins a group of devices.
pub(crate) struct CompleteGroup;
/// Joins a collective operation.
pub(crate) struct CompleteInstance;
/// Takes a tensor of a collective operation.
pub(crate) struct RecvBuf;

remote!(CompleteGroup(CompleteGroupRequest) -> CompleteGroupResponse);
remote!(CompleteInstance(CompleteInstanceRequest) -> CompleteInstanceResponse);
remote!(RecvBuf(RecvBufRequest) -> RecvBufResponse);

/// Why a method of the service is not there.
pub(crate) fn missing(name: &str) -> Option<&'static str> {
    match name {
        "Tracing" => Some("ask for the times of nodes by RunOptions.trace_level"),
        _ => None,
    }
}
