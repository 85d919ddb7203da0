//! TensorFlow's names of the messages, for errors and for `Any` type addresses.

use prost::Name;

use super::checkpoint::{
    BundleEntryProto, BundleHeaderProto, QueueRunnerDef, SaveSliceInfoDef, SaverDef, VariableDef,
};
use super::cluster::{ClusterDef, JobDef, ServerDef};
use super::collective::{
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
    GetStepSequenceRequest, GetStepSequenceResponse, RecvBufRequest, RecvBufResponse, StepSequence,
};
use super::config::{ConfigProto, ConfigProtoExperimental, GraphOptions};
use super::device::{DeviceAttributes, DeviceLocality};
use super::event::{
    Event, HistogramProto, LogMessage, PluginData, SessionLog, SourceMetadata, Summary,
    SummaryAudio, SummaryImage, SummaryMetadata, SummaryValue, TaggedRunMetadata,
};
use super::function::{ArgAttrs, FunctionDef, FunctionDefLibrary, GradientDef};
use super::gpu_options::{GPUOptions, GPUOptionsExperimental, StreamMergeOptions, VirtualDevices};
use super::graph::{
    AttrValue, ExperimentalDebugInfo, GraphDef, ListValue, NameAttrList, NodeDef, VersionDef,
};
use super::master::{
    CloseSessionRequest, CloseSessionResponse, CreateSessionRequest, CreateSessionResponse,
    ExtendSessionRequest, ExtendSessionResponse, ListDevicesRequest, ListDevicesResponse,
    MakeCallableRequest, MakeCallableResponse, PartialRunSetupRequest, PartialRunSetupResponse,
    ReleaseCallableRequest, ReleaseCallableResponse, ResetRequest, ResetResponse,
    RunCallableRequest, RunCallableResponse, RunStepRequest, RunStepResponse,
};
use super::meta_graph::{
    AnyList, AssetFileDef, BytesList, CollectionDef, CompositeTensor, CooSparse, FloatList,
    Int64List, MetaGraphDef, MetaInfoDef, NodeList, SavedModel, SignatureDef, TensorInfo,
};
use super::op_def::{ArgDef, AttrDef, OpDef, OpList};
use super::run::{
    CallableOptions, FunctionGraphs, RunHandlerPoolOptions, RunMetadata, RunOptions,
    RunOptionsExperimental,
};
use super::step_stats::{
    AllocatorMemoryUsed, DeviceStepStats, MemoryStats, NodeExecStats, NodeOutput, StepStats,
};
use super::tensor::{
    Dim, DtypeAndShape, NamedTensorProto, ResourceHandleProto, TensorProto, TensorShapeProto,
    VariantTensorDataProto,
};
use super::worker::{
    CleanupAllRequest, CleanupAllResponse, CleanupGraphRequest, CleanupGraphResponse,
    CreateWorkerSessionRequest, CreateWorkerSessionResponse, DeleteWorkerSessionRequest,
    DeleteWorkerSessionResponse, DeregisterGraphRequest, DeregisterGraphResponse, ExecutorOpts,
    GetStatusRequest, GetStatusResponse, LabeledStepStats, LoggingRequest, LoggingResponse,
    MarkRecvFinishedRequest, MarkRecvFinishedResponse, RecvTensorRequest, RecvTensorResponse,
    RegisterGraphRequest, RegisterGraphResponse, RunGraphRequest, RunGraphResponse, TraceOpts,
    TracingRequest, TracingResponse,
};

macro_rules! names {
    ($($message:ident = $name:literal),+ $(,)?) => {
        $(impl Name for $message {
            const NAME: &'static str = $name;
            const PACKAGE: &'static str = "tensorflow";
        })+
    };
}

names! {
    TensorProto = "TensorProto",
    VariantTensorDataProto = "VariantTensorDataProto",
    TensorShapeProto = "TensorShapeProto",
    Dim = "TensorShapeProto.Dim",
    ResourceHandleProto = "ResourceHandleProto",
    DtypeAndShape = "ResourceHandleProto.DtypeAndShape",
    NamedTensorProto = "NamedTensorProto",
    GraphDef = "GraphDef",
    NodeDef = "NodeDef",
    ExperimentalDebugInfo = "NodeDef.ExperimentalDebugInfo",
    AttrValue = "AttrValue",
    ListValue = "AttrValue.ListValue",
    NameAttrList = "NameAttrList",
    VersionDef = "VersionDef",
    OpDef = "OpDef",
    ArgDef = "OpDef.ArgDef",
    AttrDef = "OpDef.AttrDef",
    OpList = "OpList",
    FunctionDefLibrary = "FunctionDefLibrary",
    FunctionDef = "FunctionDef",
    ArgAttrs = "FunctionDef.ArgAttrs",
    GradientDef = "GradientDef",
    DeviceAttributes = "DeviceAttributes",
    DeviceLocality = "DeviceLocality",
    VariableDef = "VariableDef",
    SaveSliceInfoDef = "SaveSliceInfoDef",
    SaverDef = "SaverDef",
    QueueRunnerDef = "QueueRunnerDef",
    BundleHeaderProto = "BundleHeaderProto",
    BundleEntryProto = "BundleEntryProto",
    MetaGraphDef = "MetaGraphDef",
    MetaInfoDef = "MetaGraphDef.MetaInfoDef",
    CollectionDef = "CollectionDef",
    NodeList = "CollectionDef.NodeList",
    BytesList = "CollectionDef.BytesList",
    Int64List = "CollectionDef.Int64List",
    FloatList = "CollectionDef.FloatList",
    AnyList = "CollectionDef.AnyList",
    SignatureDef = "SignatureDef",
    TensorInfo = "TensorInfo",
    CooSparse = "TensorInfo.CooSparse",
    CompositeTensor = "TensorInfo.CompositeTensor",
    SavedModel = "SavedModel",
    AssetFileDef = "AssetFileDef",
    ClusterDef = "ClusterDef",
    JobDef = "JobDef",
    ServerDef = "ServerDef",
    RunOptions = "RunOptions",
    RunOptionsExperimental = "RunOptions.Experimental",
    RunHandlerPoolOptions = "RunOptions.Experimental.RunHandlerPoolOptions",
    RunMetadata = "RunMetadata",
    FunctionGraphs = "RunMetadata.FunctionGraphs",
    CallableOptions = "CallableOptions",
    ConfigProto = "ConfigProto",
    ConfigProtoExperimental = "ConfigProto.Experimental",
    GraphOptions = "GraphOptions",
    GPUOptions = "GPUOptions",
    GPUOptionsExperimental = "GPUOptions.Experimental",
    VirtualDevices = "GPUOptions.Experimental.VirtualDevices",
    StreamMergeOptions = "GPUOptions.Experimental.StreamMergeOptions",
    StepStats = "StepStats",
    DeviceStepStats = "DeviceStepStats",
    NodeExecStats = "NodeExecStats",
    MemoryStats = "MemoryStats",
    AllocatorMemoryUsed = "AllocatorMemoryUsed",
    NodeOutput = "NodeOutput",
    CreateSessionRequest = "CreateSessionRequest",
    CreateSessionResponse = "CreateSessionResponse",
    ExtendSessionRequest = "ExtendSessionRequest",
    ExtendSessionResponse = "ExtendSessionResponse",
    RunStepRequest = "RunStepRequest",
    RunStepResponse = "RunStepResponse",
    PartialRunSetupRequest = "PartialRunSetupRequest",
    PartialRunSetupResponse = "PartialRunSetupResponse",
    CloseSessionRequest = "CloseSessionRequest",
    CloseSessionResponse = "CloseSessionResponse",
    ResetRequest = "ResetRequest",
    ResetResponse = "ResetResponse",
    ListDevicesRequest = "ListDevicesRequest",
    ListDevicesResponse = "ListDevicesResponse",
    MakeCallableRequest = "MakeCallableRequest",
    MakeCallableResponse = "MakeCallableResponse",
    RunCallableRequest = "RunCallableRequest",
    RunCallableResponse = "RunCallableResponse",
    ReleaseCallableRequest = "ReleaseCallableRequest",
    ReleaseCallableResponse = "ReleaseCallableResponse",
    Event = "Event",
    SourceMetadata = "SourceMetadata",
    LogMessage = "LogMessage",
    SessionLog = "SessionLog",
    TaggedRunMetadata = "TaggedRunMetadata",
    Summary = "Summary",
    SummaryValue = "Summary.Value",
    SummaryImage = "Summary.Image",
    SummaryAudio = "Summary.Audio",
    SummaryMetadata = "SummaryMetadata",
    PluginData = "SummaryMetadata.PluginData",
    HistogramProto = "HistogramProto",
    GetStatusRequest = "GetStatusRequest",
    GetStatusResponse = "GetStatusResponse",
    CreateWorkerSessionRequest = "CreateWorkerSessionRequest",
    CreateWorkerSessionResponse = "CreateWorkerSessionResponse",
    DeleteWorkerSessionRequest = "DeleteWorkerSessionRequest",
    DeleteWorkerSessionResponse = "DeleteWorkerSessionResponse",
    RegisterGraphRequest = "RegisterGraphRequest",
    RegisterGraphResponse = "RegisterGraphResponse",
    DeregisterGraphRequest = "DeregisterGraphRequest",
    DeregisterGraphResponse = "DeregisterGraphResponse",
    CleanupAllRequest = "CleanupAllRequest",
    CleanupAllResponse = "CleanupAllResponse",
    ExecutorOpts = "ExecutorOpts",
    RunGraphRequest = "RunGraphRequest",
    RunGraphResponse = "RunGraphResponse",
    CleanupGraphRequest = "CleanupGraphRequest",
    CleanupGraphResponse = "CleanupGraphResponse",
    RecvTensorRequest = "RecvTensorRequest",
    RecvTensorResponse = "RecvTensorResponse",
    MarkRecvFinishedRequest = "MarkRecvFinishedRequest",
    MarkRecvFinishedResponse = "MarkRecvFinishedResponse",
    LoggingRequest = "LoggingRequest",
    LabeledStepStats = "LabeledStepStats",
    LoggingResponse = "LoggingResponse",
    TraceOpts = "TraceOpts",
    TracingRequest = "TracingRequest",
    TracingResponse = "TracingResponse",
    RecvBufRequest = "RecvBufRequest",
    RecvBufResponse = "RecvBufResponse",
    CompleteGroupRequest = "CompleteGroupRequest",
    CompleteGroupResponse = "CompleteGroupResponse",
    CompleteInstanceRequest = "CompleteInstanceRequest",
    CompleteInstanceResponse = "CompleteInstanceResponse",
    GetStepSequenceRequest = "GetStepSequenceRequest",
    StepSequence = "StepSequence",
    GetStepSequenceResponse = "GetStepSequenceResponse",
}
