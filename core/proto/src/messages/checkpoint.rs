//! Variables, savers, threads that fill queues, and the entries of checkpoint bundles.

use super::data_type::DataType;
use super::graph::VersionDef;
use super::tensor::TensorShapeProto;

/// A variable and the nodes that serve it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VariableDef {
    /// Name of the variable's tensor.
    #[prost(string, tag = "1")]
    pub variable_name: String,
    /// Op that initialises it.
    #[prost(string, tag = "2")]
    pub initializer_name: String,
    /// Tensor that reads it.
    #[prost(string, tag = "3")]
    pub snapshot_name: String,
    /// Its place in a partitioned variable.
    #[prost(message, optional, tag = "4")]
    pub save_slice_info_def: Option<SaveSliceInfoDef>,
    /// True for a resource variable, false for a reference variable.
    #[prost(bool, tag = "5")]
    pub is_resource: bool,
    /// Tensor of the initial value.
    #[prost(string, tag = "6")]
    pub initial_value_name: String,
    /// Whether optimisers should change it.
    #[prost(bool, tag = "7")]
    pub trainable: bool,
    /// `VariableSynchronization`: 0 auto, 1 none, 2 on write, 3 on read.
    #[prost(int32, tag = "8")]
    pub synchronization: i32,
    /// `VariableAggregation`: 0 none, 1 sum, 2 mean, 3 only the first replica.
    #[prost(int32, tag = "9")]
    pub aggregation: i32,
}

/// A slice's place in the full tensor it is saved as part of.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SaveSliceInfoDef {
    /// Name of the full tensor in the checkpoint.
    #[prost(string, tag = "1")]
    pub full_name: String,
    /// Shape of the full tensor.
    #[prost(int64, repeated, tag = "2")]
    pub full_shape: Vec<i64>,
    /// First element of the slice along each dimension.
    #[prost(int64, repeated, tag = "3")]
    pub var_offset: Vec<i64>,
    /// Shape of the slice.
    #[prost(int64, repeated, tag = "4")]
    pub var_shape: Vec<i64>,
}

/// How a graph saves and restores its variables.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SaverDef {
    /// Tensor fed with the file name.
    #[prost(string, tag = "1")]
    pub filename_tensor_name: String,
    /// Tensor to fetch in order to save.
    #[prost(string, tag = "2")]
    pub save_tensor_name: String,
    /// Op to run in order to restore.
    #[prost(string, tag = "3")]
    pub restore_op_name: String,
    /// Checkpoints kept; 0 keeps all.
    #[prost(int32, tag = "4")]
    pub max_to_keep: i32,
    /// One file per device.
    #[prost(bool, tag = "5")]
    pub sharded: bool,
    /// Hours after which a checkpoint is kept for good.
    #[prost(float, tag = "6")]
    pub keep_checkpoint_every_n_hours: f32,
    /// `CheckpointFormatVersion`: 0 legacy, 1 V1, 2 V2.
    #[prost(int32, tag = "7")]
    pub version: i32,
}

/// Threads that fill a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct QueueRunnerDef {
    /// Name of the queue.
    #[prost(string, tag = "1")]
    pub queue_name: String,
    /// Ops that enqueue, one for each thread.
    #[prost(string, repeated, tag = "2")]
    pub enqueue_op_name: Vec<String>,
    /// Op that closes the queue.
    #[prost(string, tag = "3")]
    pub close_op_name: String,
    /// Op that closes the queue and cancels the enqueues that wait.
    #[prost(string, tag = "4")]
    pub cancel_op_name: String,
    /// `error.Code` of the errors with which the input ends; none means `OUT_OF_RANGE`.
    #[prost(int32, repeated, tag = "5")]
    pub queue_closed_exception_types: Vec<i32>,
}

/// Header of a V2 checkpoint's index.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BundleHeaderProto {
    /// Number of data files.
    #[prost(int32, tag = "1")]
    pub num_shards: i32,
    /// `Endianness` of the data: 0 little, 1 big.
    #[prost(int32, tag = "2")]
    pub endianness: i32,
    /// Versions of the format.
    #[prost(message, optional, tag = "3")]
    pub version: Option<VersionDef>,
}

/// The place of one tensor in a V2 checkpoint's data files.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BundleEntryProto {
    /// Element type.
    #[prost(enumeration = "DataType", tag = "1")]
    pub dtype: i32,
    /// Full shape.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
    /// Number of the data file.
    #[prost(int32, tag = "3")]
    pub shard_id: i32,
    /// First byte in that file.
    #[prost(int64, tag = "4")]
    pub offset: i64,
    /// Length in bytes.
    #[prost(int64, tag = "5")]
    pub size: i64,
    /// Masked CRC-32C of those bytes.
    #[prost(fixed32, tag = "6")]
    pub crc32c: u32,
    /// `TensorSliceProto` as encoded bytes, one per slice of a partitioned tensor.
    #[prost(bytes = "vec", repeated, tag = "7")]
    pub slices: Vec<Vec<u8>>,
}
