//! Options and metadata of one step.

use std::collections::BTreeMap;

use super::graph::GraphDef;
use super::step_stats::StepStats;

/// Options of one step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunOptions {
    /// `TraceLevel`: 0 none, 1 software, 2 hardware, 3 full.
    #[prost(int32, tag = "1")]
    pub trace_level: i32,
    /// Deadline of the step in milliseconds; 0 means none.
    #[prost(int64, tag = "2")]
    pub timeout_in_ms: i64,
    /// Which of the session's pools to use; negative runs in the caller's thread.
    #[prost(int32, tag = "3")]
    pub inter_op_thread_pool: i32,
    /// Return the partitioned graphs in the metadata.
    #[prost(bool, tag = "5")]
    pub output_partition_graphs: bool,
    /// `DebugOptions` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "6")]
    pub debug_options: Option<Vec<u8>>,
    /// List live tensors when memory runs out.
    #[prost(bool, tag = "7")]
    pub report_tensor_allocations_upon_oom: bool,
    /// Options that may change.
    #[prost(message, optional, tag = "8")]
    pub experimental: Option<RunOptionsExperimental>,
}

/// Options of a step that may change.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunOptionsExperimental {
    /// Distinguishes concurrent collective graphs.
    #[prost(int64, tag = "1")]
    pub collective_graph_key: i64,
    /// Share threads between steps by their order of arrival.
    #[prost(bool, tag = "2")]
    pub use_run_handler_pool: bool,
    /// How that pool treats the step.
    #[prost(message, optional, tag = "3")]
    pub run_handler_pool_options: Option<RunHandlerPoolOptions>,
}

/// A step's place in the shared pool.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunHandlerPoolOptions {
    /// Higher runs first.
    #[prost(int64, tag = "1")]
    pub priority: i64,
}

/// The report of a step, besides its results.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunMetadata {
    /// Timings, when tracing was asked for.
    #[prost(message, optional, tag = "1")]
    pub step_stats: Option<StepStats>,
    /// `CostGraphDef` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub cost_graph: Option<Vec<u8>>,
    /// The graphs that ran, one per device.
    #[prost(message, repeated, tag = "3")]
    pub partition_graphs: Vec<GraphDef>,
    /// The graphs of the functions that ran.
    #[prost(message, repeated, tag = "4")]
    pub function_graphs: Vec<FunctionGraphs>,
    /// `SessionMetadata` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub session_metadata: Option<Vec<u8>>,
}

/// The graphs of one function that ran.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FunctionGraphs {
    /// Its graphs, one per device.
    #[prost(message, repeated, tag = "1")]
    pub partition_graphs: Vec<GraphDef>,
    /// Before optimisation.
    #[prost(message, optional, tag = "2")]
    pub pre_optimization_graph: Option<GraphDef>,
    /// After optimisation.
    #[prost(message, optional, tag = "3")]
    pub post_optimization_graph: Option<GraphDef>,
}

/// The parameters of a callable.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CallableOptions {
    /// Tensors fed, in the order of the arguments.
    #[prost(string, repeated, tag = "1")]
    pub feed: Vec<String>,
    /// Tensors fetched, in the order of the results.
    #[prost(string, repeated, tag = "2")]
    pub fetch: Vec<String>,
    /// Nodes to run without fetching.
    #[prost(string, repeated, tag = "3")]
    pub target: Vec<String>,
    /// Options of every step.
    #[prost(message, optional, tag = "4")]
    pub run_options: Option<RunOptions>,
    /// `TensorConnection` as encoded bytes, each of which replaces one tensor by another.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub tensor_connection: Vec<Vec<u8>>,
    /// Device of a fed tensor, by tensor name.
    #[prost(btree_map = "string, string", tag = "6")]
    pub feed_devices: BTreeMap<String, String>,
    /// Device on which a fetched tensor is to stay, by tensor name.
    #[prost(btree_map = "string, string", tag = "7")]
    pub fetch_devices: BTreeMap<String, String>,
    /// Return fetched device tensors before the device has computed them.
    #[prost(bool, tag = "8")]
    pub fetch_skip_sync: bool,
}
