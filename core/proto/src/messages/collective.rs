//! Requests and responses of `WorkerService` about collective operations.

use super::device::{DeviceAttributes, DeviceLocality};
use super::tensor::TensorShapeProto;

/// Asks a worker for a buffer of a collective operation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RecvBufRequest {
    /// The step.
    #[prost(int64, tag = "1")]
    pub step_id: i64,
    /// The key of the buffer.
    #[prost(string, tag = "2")]
    pub buf_rendezvous_key: String,
    /// Its length.
    #[prost(int64, tag = "3")]
    pub num_bytes: i64,
    /// Where it goes, for transports that write there.
    #[prost(fixed64, tag = "4")]
    pub buf_ptr: u64,
    /// The place of the receiving device.
    #[prost(message, optional, tag = "5")]
    pub client_locality: Option<DeviceLocality>,
    /// The place of the sending device.
    #[prost(message, optional, tag = "6")]
    pub server_locality: Option<DeviceLocality>,
    /// `Any` as encoded bytes: options of the transport.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub transport_options: Option<Vec<u8>>,
    /// The sending device.
    #[prost(string, tag = "8")]
    pub src_device: String,
    /// The receiving device.
    #[prost(string, tag = "9")]
    pub dst_device: String,
    /// A number that no other request has; 0 if requests are not numbered.
    #[prost(int64, tag = "10")]
    pub request_id: i64,
    /// The incarnation of the sending device.
    #[prost(uint64, tag = "11")]
    pub src_incarnation: u64,
}

/// A buffer of a collective operation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RecvBufResponse {
    /// Where it is, for transports that read there.
    #[prost(fixed64, tag = "1")]
    pub buf_ptr: u64,
    /// Its length.
    #[prost(int64, tag = "2")]
    pub num_bytes: i64,
    /// Whether it is dead.
    #[prost(bool, tag = "3")]
    pub is_dead: bool,
    /// `Any` as encoded bytes: the content.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub transport_options: Option<Vec<u8>>,
    /// When it was there, in microseconds since the epoch.
    #[prost(int64, tag = "5")]
    pub send_start_micros: i64,
    /// Whether the receiver has to confirm that it has it.
    #[prost(bool, tag = "6")]
    pub require_ack: bool,
}

/// Joins a group of devices for collective operations.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompleteGroupRequest {
    /// The group.
    #[prost(int32, tag = "1")]
    pub group_key: i32,
    /// The number of its devices.
    #[prost(int32, tag = "2")]
    pub group_size: i32,
    /// Their type.
    #[prost(string, tag = "3")]
    pub device_type: String,
    /// The kind of operation.
    #[prost(int32, tag = "5")]
    pub collective_type: i32,
    /// The device that joins.
    #[prost(message, optional, tag = "6")]
    pub device_attributes: Option<DeviceAttributes>,
}

/// A complete group.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompleteGroupResponse {
    /// The group.
    #[prost(int32, tag = "1")]
    pub group_key: i32,
    /// The number of its devices.
    #[prost(int32, tag = "2")]
    pub group_size: i32,
    /// Their type.
    #[prost(string, tag = "3")]
    pub device_type: String,
    /// The number of its tasks.
    #[prost(int32, tag = "4")]
    pub num_tasks: i32,
    /// The key of the group's communicator.
    #[prost(bytes = "vec", tag = "7")]
    pub communicator_key: Vec<u8>,
    /// Its devices, in order.
    #[prost(message, repeated, tag = "8")]
    pub device_attributes: Vec<DeviceAttributes>,
}

/// Joins one collective operation of a group.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompleteInstanceRequest {
    /// The node.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The kind of operation.
    #[prost(int32, tag = "2")]
    pub r#type: i32,
    /// The type of the elements.
    #[prost(int32, tag = "3")]
    pub data_type: i32,
    /// The shape.
    #[prost(message, optional, tag = "4")]
    pub shape: Option<TensorShapeProto>,
    /// The group.
    #[prost(int32, tag = "5")]
    pub group_key: i32,
    /// The number of its devices.
    #[prost(int32, tag = "6")]
    pub group_size: i32,
    /// The operation.
    #[prost(int32, tag = "7")]
    pub instance_key: i32,
    /// The type of the devices.
    #[prost(string, tag = "8")]
    pub device_type: String,
    /// Where its parts begin.
    #[prost(int32, repeated, tag = "9")]
    pub subdiv_offset: Vec<i32>,
    /// The device.
    #[prost(string, tag = "10")]
    pub device: String,
    /// Whether the device is the source of a broadcast.
    #[prost(bool, tag = "11")]
    pub is_source: bool,
    /// The step.
    #[prost(int64, tag = "12")]
    pub step_id: i64,
}

/// An operation that all devices of the group have joined.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompleteInstanceResponse {
    /// The operation.
    #[prost(int32, tag = "1")]
    pub instance_key: i32,
    /// The rank of a broadcast's source.
    #[prost(int32, tag = "2")]
    pub source_rank: i32,
}

/// Asks for the numbers of the next steps of graphs with collective operations.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetStepSequenceRequest {
    /// The graphs.
    #[prost(int64, repeated, tag = "1")]
    pub graph_key: Vec<i64>,
}

/// The number of a graph's next step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct StepSequence {
    /// The graph.
    #[prost(int64, tag = "1")]
    pub graph_key: i64,
    /// The number.
    #[prost(int64, tag = "2")]
    pub next_step_id: i64,
}

/// The numbers of the next steps.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetStepSequenceResponse {
    /// By graph.
    #[prost(message, repeated, tag = "1")]
    pub step_sequence: Vec<StepSequence>,
}
