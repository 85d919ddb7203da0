//! What a client and a master say to each other: requests and responses of `MasterService`.

use super::config::ConfigProto;
use super::device::DeviceAttributes;
use super::graph::GraphDef;
use super::run::{CallableOptions, RunMetadata, RunOptions};
use super::tensor::{NamedTensorProto, TensorProto};

/// Opens a session over a graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateSessionRequest {
    /// The graph, with its library of functions.
    #[prost(message, optional, tag = "1")]
    pub graph_def: Option<GraphDef>,
    /// Options of the session.
    #[prost(message, optional, tag = "2")]
    pub config: Option<ConfigProto>,
    /// The address that the client was told.
    #[prost(string, tag = "3")]
    pub target: String,
}

/// A session that is open.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateSessionResponse {
    /// What later requests name the session by.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// Version of its graph; the next extension names it.
    #[prost(int64, tag = "2")]
    pub graph_version: i64,
}

/// Appends nodes to a session's graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExtendSessionRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// The nodes; their names are new.
    #[prost(message, optional, tag = "2")]
    pub graph_def: Option<GraphDef>,
    /// The version that the client extends.
    #[prost(int64, tag = "3")]
    pub current_graph_version: i64,
}

/// A graph that was extended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExtendSessionResponse {
    /// Its version now.
    #[prost(int64, tag = "4")]
    pub new_graph_version: i64,
}

/// Runs a step, or a part of one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunStepRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// Values by tensor name.
    #[prost(message, repeated, tag = "2")]
    pub feed: Vec<NamedTensorProto>,
    /// Names of the tensors that are wanted.
    #[prost(string, repeated, tag = "3")]
    pub fetch: Vec<String>,
    /// Names of nodes that run without being fetched.
    #[prost(string, repeated, tag = "4")]
    pub target: Vec<String>,
    /// Options of the step.
    #[prost(message, optional, tag = "5")]
    pub options: Option<RunOptions>,
    /// The partial run that this belongs to; empty for a whole step.
    #[prost(string, tag = "6")]
    pub partial_run_handle: String,
    /// Whether an error of the step is told in the response's body: it may be longer than a header holds.
    #[prost(bool, tag = "7")]
    pub store_errors_in_response_body: bool,
    /// A number that no other request has; 0 where the client does not number them.
    #[prost(int64, tag = "8")]
    pub request_id: i64,
}

/// What a step gives.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunStepResponse {
    /// The fetched values, under the names that they were asked by.
    #[prost(message, repeated, tag = "1")]
    pub tensor: Vec<NamedTensorProto>,
    /// What else was asked to be told.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<RunMetadata>,
    /// Canonical code of the step's error; 0 for none.
    #[prost(int32, tag = "3")]
    pub status_code: i32,
    /// Message of the step's error.
    #[prost(string, tag = "4")]
    pub status_error_message: String,
}

/// Prepares a step that is fed and fetched in several requests.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PartialRunSetupRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// Names of all tensors that the requests will feed.
    #[prost(string, repeated, tag = "2")]
    pub feed: Vec<String>,
    /// Names of all tensors that they will fetch.
    #[prost(string, repeated, tag = "3")]
    pub fetch: Vec<String>,
    /// Names of nodes that run without being fetched.
    #[prost(string, repeated, tag = "4")]
    pub target: Vec<String>,
    /// A number that no other request has; 0 where the client does not number them.
    #[prost(int64, tag = "5")]
    pub request_id: i64,
}

/// A partial run that is prepared.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PartialRunSetupResponse {
    /// What the requests name it by.
    #[prost(string, tag = "1")]
    pub partial_run_handle: String,
}

/// Closes a session.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CloseSessionRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
}

/// A session that is closed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CloseSessionResponse {}

/// Forgets the values that outlive sessions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResetRequest {
    /// Containers; none is the default one.
    #[prost(string, repeated, tag = "1")]
    pub container: Vec<String>,
    /// The devices whose values are forgotten; none is all.
    #[prost(string, repeated, tag = "2")]
    pub device_filters: Vec<String>,
}

/// Values that are forgotten.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResetResponse {}

/// Asks for the devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListDevicesRequest {
    /// The session whose devices are meant; empty for all of the master.
    #[prost(string, tag = "1")]
    pub session_handle: String,
}

/// The devices.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListDevicesResponse {
    /// Those of the master's own process.
    #[prost(message, repeated, tag = "1")]
    pub local_device: Vec<DeviceAttributes>,
    /// Those of other processes.
    #[prost(message, repeated, tag = "2")]
    pub remote_device: Vec<DeviceAttributes>,
}

/// Prepares a step that is run by number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MakeCallableRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// What it feeds, fetches and runs.
    #[prost(message, optional, tag = "2")]
    pub options: Option<CallableOptions>,
    /// A number that no other request has; 0 where the client does not number them.
    #[prost(int64, tag = "3")]
    pub request_id: i64,
}

/// A step that is prepared.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MakeCallableResponse {
    /// Its number.
    #[prost(int64, tag = "1")]
    pub handle: i64,
}

/// Runs a step by number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunCallableRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// The number.
    #[prost(int64, tag = "2")]
    pub handle: i64,
    /// Values, in the order of the callable's feeds.
    #[prost(message, repeated, tag = "3")]
    pub feed: Vec<TensorProto>,
    /// A number that no other request has; 0 where the client does not number them.
    #[prost(int64, tag = "4")]
    pub request_id: i64,
}

/// What the step gives.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RunCallableResponse {
    /// Values, in the order of the callable's fetches.
    #[prost(message, repeated, tag = "1")]
    pub fetch: Vec<TensorProto>,
    /// What else was asked to be told.
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<RunMetadata>,
}

/// Gives a callable back.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReleaseCallableRequest {
    /// The session.
    #[prost(string, tag = "1")]
    pub session_handle: String,
    /// The number.
    #[prost(int64, tag = "2")]
    pub handle: i64,
}

/// A callable that is gone.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReleaseCallableResponse {}
