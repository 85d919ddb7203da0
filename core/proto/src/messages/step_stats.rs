//! Timings and memory use of a traced step.

use std::collections::BTreeMap;

/// The measurements of a traced step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepStats {
    /// Measurements by device.
    #[prost(message, repeated, tag = "1")]
    pub dev_stats: Vec<DeviceStepStats>,
}

/// The measurements of one device.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeviceStepStats {
    /// Name of the device.
    #[prost(string, tag = "1")]
    pub device: String,
    /// Measurements by executed node.
    #[prost(message, repeated, tag = "2")]
    pub node_stats: Vec<NodeExecStats>,
    /// Names of the threads by number.
    #[prost(btree_map = "uint32, string", tag = "3")]
    pub thread_names: BTreeMap<u32, String>,
}

/// One execution of one node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeExecStats {
    /// Name of the node.
    #[prost(string, tag = "1")]
    pub node_name: String,
    /// When the executor took it up, in microseconds since the epoch.
    #[prost(int64, tag = "2")]
    pub all_start_micros: i64,
    /// When the kernel began, relative to `all_start_micros`.
    #[prost(int64, tag = "3")]
    pub op_start_rel_micros: i64,
    /// When the kernel returned, relative to `all_start_micros`.
    #[prost(int64, tag = "4")]
    pub op_end_rel_micros: i64,
    /// When the executor was done with it, relative to `all_start_micros`.
    #[prost(int64, tag = "5")]
    pub all_end_rel_micros: i64,
    /// Memory used by allocator.
    #[prost(message, repeated, tag = "6")]
    pub memory: Vec<AllocatorMemoryUsed>,
    /// Outputs produced.
    #[prost(message, repeated, tag = "7")]
    pub output: Vec<NodeOutput>,
    /// Text shown in a timeline.
    #[prost(string, tag = "8")]
    pub timeline_label: String,
    /// When it became ready, in microseconds since the epoch.
    #[prost(int64, tag = "9")]
    pub scheduled_micros: i64,
    /// Thread that ran it.
    #[prost(uint32, tag = "10")]
    pub thread_id: u32,
    /// `AllocationDescription` as encoded bytes, one per tensor it refers to.
    #[prost(bytes = "vec", repeated, tag = "11")]
    pub referenced_tensor: Vec<Vec<u8>>,
    /// Memory that it retains.
    #[prost(message, optional, tag = "12")]
    pub memory_stats: Option<MemoryStats>,
    /// As `all_start_micros`, in nanoseconds.
    #[prost(int64, tag = "13")]
    pub all_start_nanos: i64,
    /// As `op_start_rel_micros`, in nanoseconds.
    #[prost(int64, tag = "14")]
    pub op_start_rel_nanos: i64,
    /// As `op_end_rel_micros`, in nanoseconds.
    #[prost(int64, tag = "15")]
    pub op_end_rel_nanos: i64,
    /// As `all_end_rel_micros`, in nanoseconds.
    #[prost(int64, tag = "16")]
    pub all_end_rel_nanos: i64,
    /// As `scheduled_micros`, in nanoseconds.
    #[prost(int64, tag = "17")]
    pub scheduled_nanos: i64,
}

/// Memory that a node's kernel allocated for itself.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MemoryStats {
    /// Scratch memory in bytes.
    #[prost(int64, tag = "1")]
    pub temp_memory_size: i64,
    /// Scratch memory of the device in bytes; superseded by `temp_memory_size`.
    #[prost(int64, tag = "2")]
    pub device_temp_memory_size: i64,
    /// Memory kept between steps in bytes.
    #[prost(int64, tag = "3")]
    pub persistent_memory_size: i64,
    /// Memory of the device kept between steps in bytes; superseded by `persistent_memory_size`.
    #[prost(int64, tag = "4")]
    pub device_persistent_memory_size: i64,
    /// Allocations kept between steps.
    #[prost(int64, repeated, tag = "5")]
    pub persistent_tensor_alloc_ids: Vec<i64>,
    /// Allocations of the device kept between steps; superseded by `persistent_tensor_alloc_ids`.
    #[prost(int64, repeated, tag = "6")]
    pub device_persistent_tensor_alloc_ids: Vec<i64>,
}

/// A node's use of one allocator.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AllocatorMemoryUsed {
    /// Name of the allocator.
    #[prost(string, tag = "1")]
    pub allocator_name: String,
    /// All bytes allocated.
    #[prost(int64, tag = "2")]
    pub total_bytes: i64,
    /// Most bytes live at once.
    #[prost(int64, tag = "3")]
    pub peak_bytes: i64,
    /// Bytes live at the end.
    #[prost(int64, tag = "4")]
    pub live_bytes: i64,
    /// Total bytes that the allocator had allocated.
    #[prost(int64, tag = "5")]
    pub allocator_bytes_in_use: i64,
    /// `AllocationRecord` as encoded bytes, one per allocation and release.
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub allocation_records: Vec<Vec<u8>>,
}

/// One output of an executed node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeOutput {
    /// Its position.
    #[prost(int32, tag = "1")]
    pub slot: i32,
    /// `TensorDescription` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub tensor_description: Option<Vec<u8>>,
}
