//! The methods of the worker's service: their paths, messages, and who answers them.

use crate::{call::Call, refusal::Refusal, worker::WorkerService};
use prost::Message;
use tenon_proto::{
    CleanupAllRequest, CleanupAllResponse, CleanupGraphRequest, CleanupGraphResponse,
    CreateWorkerSessionRequest, CreateWorkerSessionResponse, DeleteWorkerSessionRequest,
    DeleteWorkerSessionResponse, DeregisterGraphRequest, DeregisterGraphResponse, GetStatusRequest,
    GetStatusResponse, LoggingRequest, LoggingResponse, RegisterGraphRequest,
    RegisterGraphResponse, RunGraphRequest, RunGraphResponse,
};

/// The beginning of the path of every method.
pub(crate) const WORKER: &str = "/tensorflow.WorkerService/";
/// The method whose answer has a tensor, which is written and read apart.
pub(crate) const RECV_TENSOR: &str = "/tensorflow.WorkerService/RecvTensor";

/// A method of the worker's service.
pub(crate) trait Method: 'static {
    const PATH: &'static str;
    type Request: Message + Default + 'static;
    type Response: Message + Default + 'static;

    /// Answers a call at a worker of this process. It blocks.
    fn answer(
        service: &WorkerService,
        call: Call<Self::Request>,
    ) -> Result<Self::Response, Refusal>;
}

macro_rules! methods {
    ($($name:ident($request:ident) -> $response:ident = $function:ident),+ $(,)?) => {$(
        pub(crate) struct $name;

        impl Method for $name {
            const PATH: &'static str = concat!("/tensorflow.WorkerService/", stringify!($name));
            type Request = $request;
            type Response = $response;

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
}

/// Why a method of the service is not there.
pub(crate) fn missing(name: &str) -> Option<&'static str> {
    match name {
        "GetStepSequence" | "CompleteGroup" | "CompleteInstance" | "RecvBuf" => Some(
            "collective operations are not there: average gradients by variables or accumulators",
        ),
        "Tracing" => Some("ask for the times of nodes by RunOptions.trace_level"),
        "MarkRecvFinished" => {
            Some("answers are not kept to be sent again, and need no confirmation")
        }
        _ => None,
    }
}
