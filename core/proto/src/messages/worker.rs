//! What a master and a worker, and two workers, say to each other: requests and responses of `WorkerService`.

use super::cluster::ServerDef;
use super::config::{ConfigProto, GraphOptions};
use super::device::{DeviceAttributes, DeviceLocality};
use super::graph::GraphDef;
use super::step_stats::StepStats;
use super::tensor::{NamedTensorProto, TensorProto};

/// Asks a task for its devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetStatusRequest {}

/// The devices of a task.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetStatusResponse {
    /// Their descriptions.
    #[prost(message, repeated, tag = "1")]
    pub device_attributes: Vec<DeviceAttributes>,
}

/// Opens a session of a master at a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateWorkerSessionRequest {
    /// The handle that the master chose; later requests name the session by it.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// The worker's task; with a cluster, the tasks of this session alone.
    #[prost(message, optional, tag = "2")]
    pub server_def: Option<ServerDef>,
    /// Whether variables are kept apart from other sessions of the worker.
    #[prost(bool, tag = "3")]
    pub isolate_session_state: bool,
    /// The devices of the cluster, if the session shares them.
    #[prost(message, repeated, tag = "4")]
    pub cluster_device_attributes: Vec<DeviceAttributes>,
    /// The name of the master's task.
    #[prost(string, tag = "5")]
    pub master_task: String,
    /// The incarnation of the master's first device: a master that was started anew has another one.
    #[prost(int64, tag = "6")]
    pub master_incarnation: i64,
}

/// A session that is open at a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateWorkerSessionResponse {}

/// Closes a session at a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeleteWorkerSessionRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
}

/// A session that is closed at a worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeleteWorkerSessionResponse {}

/// Gives a worker its part of a step's graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RegisterGraphRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// The part: its nodes name devices of the worker.
    #[prost(message, optional, tag = "2")]
    pub graph_def: Option<GraphDef>,
    /// Whether it has nodes of control flow; newer workers find out themselves.
    #[prost(bool, tag = "3")]
    pub has_control_flow: bool,
    /// How the graph is optimised.
    #[prost(message, optional, tag = "4")]
    pub graph_options: Option<GraphOptions>,
    /// `DebugOptions` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub debug_options: Option<Vec<u8>>,
    /// Whether the session was opened at the worker; otherwise it is the one that all such masters share.
    #[prost(bool, tag = "6")]
    pub create_worker_session_called: bool,
    /// The number of the graph among those with collective operations; 0 for others.
    #[prost(int64, tag = "7")]
    pub collective_graph_key: i64,
    /// The options of the session.
    #[prost(message, optional, tag = "8")]
    pub config_proto: Option<ConfigProto>,
}

/// A registered graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RegisterGraphResponse {
    /// What later requests name it by.
    #[prost(string, tag = "1")]
    pub graph_handle: String,
}

/// Drops a registered graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeregisterGraphRequest {
    /// The graph.
    #[prost(string, tag = "1")]
    pub graph_handle: String,
    /// The session.
    #[prost(string, tag = "2")]
    pub session_handle: String,
    /// As in the request that registered it.
    #[prost(bool, tag = "3")]
    pub create_worker_session_called: bool,
}

/// A graph that is dropped.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeregisterGraphResponse {}

/// Forgets the values of containers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CleanupAllRequest {
    /// The containers; none means the default one.
    #[prost(string, repeated, tag = "1")]
    pub container: Vec<String>,
}

/// Values that are forgotten.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CleanupAllResponse {}

/// What a worker records of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutorOpts {
    /// The costs of nodes.
    #[prost(bool, tag = "1")]
    pub record_costs: bool,
    /// The times of nodes.
    #[prost(bool, tag = "3")]
    pub record_timeline: bool,
    /// The graphs that ran.
    #[prost(bool, tag = "4")]
    pub record_partition_graphs: bool,
    /// The allocations, if memory runs out.
    #[prost(bool, tag = "5")]
    pub report_tensor_allocations_upon_oom: bool,
}

/// Runs a registered graph as a part of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunGraphRequest {
    /// The graph.
    #[prost(string, tag = "1")]
    pub graph_handle: String,
    /// The number of the step, the same at all workers.
    #[prost(int64, tag = "2")]
    pub step_id: i64,
    /// Values by the keys under which the graph receives them.
    #[prost(message, repeated, tag = "3")]
    pub send: Vec<NamedTensorProto>,
    /// The keys under which the graph sends what the master fetches.
    #[prost(string, repeated, tag = "4")]
    pub recv_key: Vec<String>,
    /// What is recorded.
    #[prost(message, optional, tag = "5")]
    pub exec_opts: Option<ExecutorOpts>,
    /// Whether the step is fed and fetched in several requests.
    #[prost(bool, tag = "6")]
    pub is_partial: bool,
    /// Whether this is the last one of them.
    #[prost(bool, tag = "7")]
    pub is_last_partial_run: bool,
    /// The session.
    #[prost(string, tag = "8")]
    pub session_handle: String,
    /// Whether an error of the step is in the body of the response, where it may be longer than in a header.
    #[prost(bool, tag = "9")]
    pub store_errors_in_response_body: bool,
    /// As in the request that registered the graph.
    #[prost(bool, tag = "10")]
    pub create_worker_session_called: bool,
    /// A number that no other request has; 0 if requests are not numbered.
    #[prost(int64, tag = "11")]
    pub request_id: i64,
}

/// The result of a part of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunGraphResponse {
    /// The fetched values by their keys.
    #[prost(message, repeated, tag = "1")]
    pub recv: Vec<NamedTensorProto>,
    /// The times of nodes.
    #[prost(message, optional, tag = "2")]
    pub step_stats: Option<StepStats>,
    /// `CostGraphDef` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub cost_graph: Option<Vec<u8>>,
    /// The graphs that ran.
    #[prost(message, repeated, tag = "4")]
    pub partition_graph: Vec<GraphDef>,
    /// The canonical code of the step's error; 0 for none.
    #[prost(int32, tag = "5")]
    pub status_code: i32,
    /// The message of the step's error.
    #[prost(string, tag = "6")]
    pub status_error_message: String,
}

/// Forgets the state of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CleanupGraphRequest {
    /// The step.
    #[prost(int64, tag = "1")]
    pub step_id: i64,
}

/// A step whose state is forgotten.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CleanupGraphResponse {}

/// Asks the worker that sends a tensor for it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RecvTensorRequest {
    /// The step.
    #[prost(int64, tag = "1")]
    pub step_id: i64,
    /// The key of the transfer.
    #[prost(string, tag = "2")]
    pub rendezvous_key: String,
    /// Whether the value may come by another way than the response.
    #[prost(bool, tag = "3")]
    pub dma_ok: bool,
    /// The place of the receiving device.
    #[prost(message, optional, tag = "4")]
    pub client_locality: Option<DeviceLocality>,
    /// The place of the sending device.
    #[prost(message, optional, tag = "5")]
    pub server_locality: Option<DeviceLocality>,
    /// `Any` as encoded bytes: options of the transport.
    #[prost(bytes = "vec", optional, tag = "6")]
    pub transport_options: Option<Vec<u8>>,
    /// A number that no other request has; 0 if requests are not numbered.
    #[prost(int64, tag = "7")]
    pub request_id: i64,
}

/// A tensor of a transfer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RecvTensorResponse {
    /// The value.
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorProto>,
    /// Whether the value is dead: of a branch that was not taken.
    #[prost(bool, tag = "2")]
    pub is_dead: bool,
    /// When the value was there, in microseconds since the epoch.
    #[prost(int64, tag = "3")]
    pub send_start_micros: i64,
    /// `Any` as encoded bytes: what the transport adds.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub transport_options: Option<Vec<u8>>,
    /// Whether the receiver has to confirm that it has the value.
    #[prost(bool, tag = "5")]
    pub require_ack: bool,
}

/// Confirms that a tensor has arrived.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MarkRecvFinishedRequest {
    /// The number of the request for it.
    #[prost(int64, tag = "1")]
    pub request_id: i64,
}

/// An arrival that is noted.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MarkRecvFinishedResponse {}

/// Controls the records of transfers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LoggingRequest {
    /// Begin to record.
    #[prost(bool, tag = "1")]
    pub enable_rpc_logging: bool,
    /// Forget what was recorded.
    #[prost(bool, tag = "2")]
    pub clear: bool,
    /// The steps whose records are fetched, and forgotten.
    #[prost(int64, repeated, tag = "3")]
    pub fetch_step_id: Vec<i64>,
    /// Stop to record.
    #[prost(bool, tag = "4")]
    pub disable_rpc_logging: bool,
}

/// The records of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LabeledStepStats {
    /// The step.
    #[prost(int64, tag = "1")]
    pub step_id: i64,
    /// Its records.
    #[prost(message, optional, tag = "2")]
    pub step_stats: Option<StepStats>,
}

/// The records that were asked for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LoggingResponse {
    /// By step.
    #[prost(message, repeated, tag = "1")]
    pub step: Vec<LabeledStepStats>,
}

/// What a trace records.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TraceOpts {
    /// Its length in seconds.
    #[prost(double, tag = "1")]
    pub duration: f64,
    /// The times of nodes.
    #[prost(bool, tag = "2")]
    pub use_step_profiler: bool,
    /// The times of kernels.
    #[prost(bool, tag = "3")]
    pub use_kernel_profiler: bool,
    /// More of them.
    #[prost(bool, tag = "4")]
    pub use_extended_profiler: bool,
    /// Those of GPUs.
    #[prost(bool, tag = "5")]
    pub use_gpu_profiler: bool,
    /// Samples.
    #[prost(bool, tag = "6")]
    pub use_sample_profiler: bool,
}

/// Begins a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracingRequest {
    /// What it records.
    #[prost(message, optional, tag = "1")]
    pub options: Option<TraceOpts>,
}

/// A trace that has begun.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracingResponse {}
