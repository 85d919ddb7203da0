//! The messages, split by topic.

mod checkpoint;
mod cluster;
mod collective;
mod config;
mod data_type;
mod device;
mod event;
mod function;
mod gpu_options;
mod graph;
mod master;
mod meta_graph;
mod names;
mod op_def;
mod run;
mod step_stats;
mod tensor;
mod worker;

pub use checkpoint::{
    BundleEntryProto, BundleHeaderProto, QueueRunnerDef, SaveSliceInfoDef, SaverDef, VariableDef,
};
pub use cluster::{ClusterDef, JobDef, ServerDef};
pub use collective::{
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
    GetStepSequenceRequest, GetStepSequenceResponse, RecvBufRequest, RecvBufResponse, StepSequence,
};
pub use config::{ConfigProto, ConfigProtoExperimental, GraphOptions};
pub use data_type::DataType;
pub use device::{DeviceAttributes, DeviceLocality};
pub use event::{
    Event, EventKind, HistogramProto, LogMessage, PluginData, SessionLog, SessionStatus,
    SourceMetadata, Summary, SummaryAudio, SummaryImage, SummaryMetadata, SummaryValue,
    SummaryValueKind, TaggedRunMetadata,
};
pub use function::{ArgAttrs, FunctionDef, FunctionDefLibrary, GradientDef};
pub use gpu_options::{GPUOptions, GPUOptionsExperimental, StreamMergeOptions, VirtualDevices};
pub use graph::{
    AttrValue, AttrValueKind, ExperimentalDebugInfo, GraphDef, ListValue, NameAttrList, NodeDef,
    VersionDef,
};
pub use master::{
    CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse,
    ExtendSessionRequest, ExtendSessionResponse, ListDevicesRequest, ListDevicesResponse,
    MakeCallableRequest, MakeCallableResponse, PartialRunSetupRequest, PartialRunSetupResponse,
    ReleaseCallableRequest, ReleaseCallableResponse, ResetRequest, ResetResponse,
    RunCallableRequest, RunCallableResponse, RunStepRequest, RunStepResponse,
};
pub use meta_graph::{
    AnyList, AssetFileDef, BytesList, CollectionDef, CollectionDefKind, CompositeTensor, CooSparse,
    FloatList, Int64List, MetaGraphDef, MetaInfoDef, NodeList, SavedModel, SignatureDef,
    TensorInfo, TensorInfoEncoding,
};
pub use op_def::{ArgDef, AttrDef, OpDef, OpList};
pub use run::{
    CallableOptions, FunctionGraphs, RunHandlerPoolOptions, RunMetadata, RunOptions,
    RunOptionsExperimental,
};
pub use step_stats::{
    AllocatorMemoryUsed, DeviceStepStats, MemoryStats, NodeExecStats, NodeOutput, StepStats,
};
pub use tensor::{
    Dim, DtypeAndShape, NamedTensorProto, ResourceHandleProto, TensorProto, TensorShapeProto,
    VariantTensorDataProto,
};
pub use worker::{
    CleanupAllRequest, CleanupAllResponse, CleanupGraphRequest, CleanupGraphResponse,
    CreateWorkerSessionRequest, CreateWorkerSessionResponse, DeleteWorkerSessionRequest,
    DeleteWorkerSessionResponse, DeregisterGraphRequest, DeregisterGraphResponse, ExecutorOpts,
    GetStatusRequest, GetStatusResponse, LabeledStepStats, LoggingRequest, LoggingResponse,
    MarkRecvFinishedRequest, MarkRecvFinishedResponse, RecvTensorRequest, RecvTensorResponse,
    RegisterGraphRequest, RegisterGraphResponse, RunGraphRequest, RunGraphResponse, TraceOpts,
    TracingRequest, TracingResponse,
};
