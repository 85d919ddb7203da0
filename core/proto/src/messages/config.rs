//! Options of sessions and servers.

use std::collections::BTreeMap;

use super::cluster::ClusterDef;
use super::gpu_options::GPUOptions;

/// Options of a session or server.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConfigProto {
    /// Most devices to use, by device type.
    #[prost(btree_map = "string, int32", tag = "1")]
    pub device_count: BTreeMap<String, i32>,
    /// Threads inside one kernel; 0 lets the system choose.
    #[prost(int32, tag = "2")]
    pub intra_op_parallelism_threads: i32,
    /// Steps between placements of new nodes.
    #[prost(int32, tag = "3")]
    pub placement_period: i32,
    /// Partial names of the devices that may be used; empty allows all.
    #[prost(string, repeated, tag = "4")]
    pub device_filters: Vec<String>,
    /// Threads between kernels; 0 lets the system choose.
    #[prost(int32, tag = "5")]
    pub inter_op_parallelism_threads: i32,
    /// Options of GPU devices.
    #[prost(message, optional, tag = "6")]
    pub gpu_options: Option<GPUOptions>,
    /// Place a node elsewhere when its device has no kernel for it.
    #[prost(bool, tag = "7")]
    pub allow_soft_placement: bool,
    /// Log where each node is placed.
    #[prost(bool, tag = "8")]
    pub log_device_placement: bool,
    /// Give the session threads of its own.
    #[prost(bool, tag = "9")]
    pub use_per_session_threads: bool,
    /// Options of graph construction and optimisation.
    #[prost(message, optional, tag = "10")]
    pub graph_options: Option<GraphOptions>,
    /// Deadline of every blocking operation in milliseconds; 0 means none.
    #[prost(int64, tag = "11")]
    pub operation_timeout_in_ms: i64,
    /// `ThreadPoolOptionProto` as encoded bytes, one per pool.
    #[prost(bytes = "vec", repeated, tag = "12")]
    pub session_inter_op_thread_pool: Vec<Vec<u8>>,
    /// `RPCOptions` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "13")]
    pub rpc_options: Option<Vec<u8>>,
    /// The cluster, for an in-process session.
    #[prost(message, optional, tag = "14")]
    pub cluster_def: Option<ClusterDef>,
    /// Keep variables apart from other sessions of the server.
    #[prost(bool, tag = "15")]
    pub isolate_session_state: bool,
    /// Options that may change.
    #[prost(message, optional, tag = "16")]
    pub experimental: Option<ConfigProtoExperimental>,
    /// Let worker sessions see the devices of the whole cluster.
    #[prost(bool, tag = "17")]
    pub share_cluster_devices_in_session: bool,
    /// Options of pluggable devices.
    #[prost(message, optional, tag = "18")]
    pub pluggable_device_options: Option<GPUOptions>,
}

/// Options of a session that may change.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConfigProtoExperimental {
    /// Task that leads collective operations.
    #[prost(string, tag = "1")]
    pub collective_group_leader: String,
    /// Name of the executor to run graphs with.
    #[prost(string, tag = "3")]
    pub executor_type: String,
    /// Longest message in bytes when receiving buffers; 0 for the default, negative for no limit.
    #[prost(int32, tag = "4")]
    pub recv_buf_max_chunk: i32,
    /// Keep threads and memory of a device on its NUMA node.
    #[prost(bool, tag = "5")]
    pub use_numa_affinity: bool,
    /// Run collectives one by one in a fixed order.
    #[prost(bool, tag = "6")]
    pub collective_deterministic_sequential_execution: bool,
    /// Use NCCL for collectives on GPUs.
    #[prost(bool, tag = "7")]
    pub collective_nccl: bool,
    /// Share variables although a cluster was given with the session.
    #[prost(bool, tag = "8")]
    pub share_session_state_in_clusterspec_propagation: bool,
    /// Let idle threads sleep at once.
    #[prost(bool, tag = "9")]
    pub disable_thread_spinning: bool,
    /// Older place of the option of the same name.
    #[prost(bool, tag = "10")]
    pub share_cluster_devices_in_session: bool,
    /// `SessionMetadata` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "11")]
    pub session_metadata: Option<Vec<u8>>,
    /// The graph never changes after it was given, which frees its memory.
    #[prost(bool, tag = "12")]
    pub optimize_for_static_graph: bool,
    /// Compile for XLA through the MLIR form of the bridge.
    #[prost(bool, tag = "13")]
    pub enable_mlir_bridge: bool,
    /// Never return partitioned graphs.
    #[prost(bool, tag = "14")]
    pub disable_output_partition_graphs: bool,
    /// Batches to run before XLA's fusion tuner starts; 0 for never.
    #[prost(int64, tag = "15")]
    pub xla_fusion_autotuner_thresh: i64,
    /// Run graph optimisations written in MLIR.
    #[prost(bool, tag = "16")]
    pub enable_mlir_graph_optimization: bool,
    /// `MlirBridgeRollout`: 0 unspecified, 1 enabled, 2 disabled.
    #[prost(int32, tag = "17")]
    pub mlir_bridge_rollout: i32,
    /// Run on TFRT.
    #[prost(bool, tag = "18")]
    pub use_tfrt: bool,
    /// Keep functional control flow as it is.
    #[prost(bool, tag = "21")]
    pub disable_functional_ops_lowering: bool,
    /// Compile as few clusters as possible.
    #[prost(bool, tag = "22")]
    pub xla_prefer_single_graph_cluster: bool,
    /// `CoordinationServiceConfig` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "23")]
    pub coordination_config: Option<Vec<u8>>,
    /// Keep the graph although it never changes.
    #[prost(bool, tag = "24")]
    pub disable_optimize_for_static_graph: bool,
    /// Send eager operations one by one.
    #[prost(bool, tag = "26")]
    pub disable_eager_executor_streaming_enqueue: bool,
    /// Let TFRT use several hosts.
    #[prost(bool, tag = "27")]
    pub enable_multi_host: bool,
    /// Port of TFRT's backend server.
    #[prost(int32, tag = "28")]
    pub backend_server_port: i32,
    /// TFRT runs on TPUs.
    #[prost(bool, tag = "29")]
    pub target_tpu: bool,
    /// TFRT runs on GPUs.
    #[prost(bool, tag = "30")]
    pub target_gpu: bool,
    /// Greatest cost of a stream that TFRT merges with another.
    #[prost(int32, tag = "31")]
    pub stream_merge_threshold: i32,
    /// TFRT runs through IFRT.
    #[prost(bool, tag = "32")]
    pub tfrt_use_ifrt: bool,
    /// Free the function library once the session is set up.
    #[prost(bool, tag = "33")]
    pub finalize_function_library_runtime: bool,
    /// Forbid new resources once the session is set up.
    #[prost(bool, tag = "34")]
    pub finalize_resource_manager: bool,
    /// Folder for dumps of the compiler bridge.
    #[prost(string, tag = "35")]
    pub tf2xla_dump_dir: String,
    /// Measure costs of nodes while the session runs.
    #[prost(bool, tag = "36")]
    pub online_cost_analysis: bool,
}

/// Options of graph construction and optimisation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphOptions {
    /// Order receives by the critical path.
    #[prost(bool, tag = "2")]
    pub enable_recv_scheduling: bool,
    /// `OptimizerOptions` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub optimizer_options: Option<Vec<u8>>,
    /// Steps to measure before a cost model is built; 0 for never.
    #[prost(int64, tag = "4")]
    pub build_cost_model: i64,
    /// Annotate nodes with inferred shapes.
    #[prost(bool, tag = "5")]
    pub infer_shapes: bool,
    /// Prune first, then place only what runs.
    #[prost(bool, tag = "6")]
    pub place_pruned_graph: bool,
    /// Send float32 between tasks as bfloat16.
    #[prost(bool, tag = "7")]
    pub enable_bfloat16_sendrecv: bool,
    /// Record a timeline every `timeline_step` steps; 0 for never.
    #[prost(int32, tag = "8")]
    pub timeline_step: i32,
    /// Steps to skip before measuring.
    #[prost(int64, tag = "9")]
    pub build_cost_model_after: i64,
    /// `RewriterConfig` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "10")]
    pub rewrite_options: Option<Vec<u8>>,
}
