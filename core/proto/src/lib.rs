//! TensorFlow's wire messages.
//!
//! What it is: the messages that a TensorFlow client puts on the wire (package `tensorflow`,
//! proto3): graphs, tensors, functions, checkpoint entries, session options and step statistics.
//! They are plain structs with public fields; [`decode`] reads and [`encode`] writes them, and
//! [`convert`] leads to and from the framework's types. A nested message has its own name where
//! that is unique (`AttrValue.ListValue` is [`ListValue`]) and the name of its parent before it
//! otherwise ([`ConfigProtoExperimental`]); [`prost::Name`] gives TensorFlow's.
//!
//! What it is not: a check of graphs. A decoded message is well formed, and no more; `tenon-graph`
//! decides whether a graph makes sense.
//!
//! # Invariants
//! - A message keeps every field of TensorFlow 2.21's. Fields that are newer are dropped on
//!   reading.
//! - Messages that the runtime does not look into (`FullTypeDef`, `RewriterConfig`, ...) are fields
//!   of type bytes that hold them encoded: the wire form is the same. If a writer splits such a
//!   message over two occurrences of its field, which protobuf allows and TensorFlow does not do,
//!   only the last one is kept.
//! - Enumerations are kept as numbers, so that unknown values survive; [`DataType`] names the
//!   numbers of element types.
//! - Maps are ordered by key, so that equal messages are written as equal bytes. A default key or
//!   value of a map entry is left out when written, and read back as the default.
//! - A single float of negative zero is written as zero, which is left out. It matters for none of
//!   the fields concerned; attribute values and tensors keep it.
//! - Reading never panics, whatever the bytes are.
//!
//! ```
//! use tenon_proto::{GraphDef, NodeDef, decode, encode};
//!
//! let node = NodeDef { name: "x".into(), op: "Placeholder".into(), ..NodeDef::default() };
//! let bytes = encode(&GraphDef { node: vec![node], ..GraphDef::default() })?;
//! let graph: GraphDef = decode(&bytes)?;
//! assert_eq!(graph.node[0].op, "Placeholder");
//! # Ok::<(), tenon_proto::ProtoError>(())
//! ```

pub mod checksum;
mod codec;
pub mod convert;
mod error;
pub mod event_file;
#[doc(hidden)]
pub mod fuzzing;
mod library;
mod messages;
pub mod records;
mod stream;
pub mod versions;

pub use codec::{MAX_MESSAGE_BYTES, decode, decode_graph_def, encode};
pub use error::ProtoError;
pub use library::FunctionLibrary;
pub use messages::{
    AllocatorMemoryUsed, AnyList, ArgAttrs, ArgDef, AssetFileDef, AttrDef, AttrValue,
    AttrValueKind, BundleEntryProto, BundleHeaderProto, BytesList, CallableOptions,
    CleanupAllRequest, CleanupAllResponse, CleanupGraphRequest, CleanupGraphResponse,
    CloseSessionRequest, CloseSessionResponse, ClusterDef, CollectionDef, CollectionDefKind,
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
    CompositeTensor, ConfigProto, ConfigProtoExperimental, CooSparse, CreateSessionRequest,
    CreateSessionResponse, CreateWorkerSessionRequest, CreateWorkerSessionResponse, DataType,
    DeleteWorkerSessionRequest, DeleteWorkerSessionResponse, DeregisterGraphRequest,
    DeregisterGraphResponse, DeviceAttributes, DeviceLocality, DeviceStepStats, Dim, DtypeAndShape,
    Event, EventKind, ExecutorOpts, ExperimentalDebugInfo, ExtendSessionRequest,
    ExtendSessionResponse, FloatList, FunctionDef, FunctionDefLibrary, FunctionGraphs, GPUOptions,
    GPUOptionsExperimental, GetStatusRequest, GetStatusResponse, GetStepSequenceRequest,
    GetStepSequenceResponse, GradientDef, GraphDef, GraphOptions, HistogramProto, Int64List,
    JobDef, LabeledStepStats, ListDevicesRequest, ListDevicesResponse, ListValue, LogMessage,
    LoggingRequest, LoggingResponse, MakeCallableRequest, MakeCallableResponse,
    MarkRecvFinishedRequest, MarkRecvFinishedResponse, MemoryStats, MetaGraphDef, MetaInfoDef,
    NameAttrList, NamedTensorProto, NodeDef, NodeExecStats, NodeList, NodeOutput, OpDef, OpList,
    PartialRunSetupRequest, PartialRunSetupResponse, PluginData, QueueRunnerDef, RecvBufRequest,
    RecvBufResponse, RecvTensorRequest, RecvTensorResponse, RegisterGraphRequest,
    RegisterGraphResponse, ReleaseCallableRequest, ReleaseCallableResponse, ResetRequest,
    ResetResponse, ResourceHandleProto, RunCallableRequest, RunCallableResponse, RunGraphRequest,
    RunGraphResponse, RunHandlerPoolOptions, RunMetadata, RunOptions, RunOptionsExperimental,
    RunStepRequest, RunStepResponse, SaveSliceInfoDef, SavedModel, SaverDef, ServerDef, SessionLog,
    SessionStatus, SignatureDef, SourceMetadata, StepSequence, StepStats, StreamMergeOptions,
    Summary, SummaryAudio, SummaryImage, SummaryMetadata, SummaryValue, SummaryValueKind,
    TaggedRunMetadata, TensorInfo, TensorInfoEncoding, TensorProto, TensorShapeProto, TraceOpts,
    TracingRequest, TracingResponse, VariableDef, VariantTensorDataProto, VersionDef,
    VirtualDevices,
};
pub use stream::read_graph_def;
