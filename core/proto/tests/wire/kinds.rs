//! Every message type under its TensorFlow name.

use std::collections::BTreeMap;

use prost::Name;
use tenon_proto::*;

/// Decodes bytes as one message type and encodes the result.
pub type RoundTrip = fn(&[u8]) -> Result<Vec<u8>, ProtoError>;

fn round_trip<M: Name + Default + Clone + PartialEq>(bytes: &[u8]) -> Result<Vec<u8>, ProtoError> {
    let message: M = decode(bytes)?;
    let written = encode(&message)?;
    assert_eq!(written.len(), message.encoded_len(), "{}", M::full_name());
    Ok(written)
}

macro_rules! kinds {
    ($($message:ident),+ $(,)?) => {
        /// The round trip of each message, by name without package.
        pub fn kinds() -> BTreeMap<&'static str, RoundTrip> {
            BTreeMap::from([$((<$message as Name>::NAME, round_trip::<$message> as RoundTrip),)+])
        }
    };
}

kinds! {
    TensorProto,
    VariantTensorDataProto,
    TensorShapeProto,
    Dim,
    ResourceHandleProto,
    DtypeAndShape,
    NamedTensorProto,
    GraphDef,
    NodeDef,
    ExperimentalDebugInfo,
    AttrValue,
    ListValue,
    NameAttrList,
    VersionDef,
    OpDef,
    ArgDef,
    AttrDef,
    OpList,
    FunctionDefLibrary,
    FunctionDef,
    ArgAttrs,
    GradientDef,
    DeviceAttributes,
    DeviceLocality,
    VariableDef,
    SaveSliceInfoDef,
    SaverDef,
    BundleHeaderProto,
    BundleEntryProto,
    MetaGraphDef,
    MetaInfoDef,
    CollectionDef,
    NodeList,
    BytesList,
    Int64List,
    FloatList,
    AnyList,
    SignatureDef,
    TensorInfo,
    CooSparse,
    CompositeTensor,
    SavedModel,
    ClusterDef,
    JobDef,
    ServerDef,
    RunOptions,
    RunOptionsExperimental,
    RunHandlerPoolOptions,
    RunMetadata,
    FunctionGraphs,
    CallableOptions,
    ConfigProto,
    ConfigProtoExperimental,
    GraphOptions,
    GPUOptions,
    GPUOptionsExperimental,
    VirtualDevices,
    StreamMergeOptions,
    StepStats,
    DeviceStepStats,
    NodeExecStats,
    MemoryStats,
    AllocatorMemoryUsed,
    NodeOutput,
    CreateSessionRequest,
    CreateSessionResponse,
    ExtendSessionRequest,
    ExtendSessionResponse,
    RunStepRequest,
    RunStepResponse,
    PartialRunSetupRequest,
    PartialRunSetupResponse,
    CloseSessionRequest,
    CloseSessionResponse,
    ResetRequest,
    ResetResponse,
    ListDevicesRequest,
    ListDevicesResponse,
    MakeCallableRequest,
    MakeCallableResponse,
    RunCallableRequest,
    RunCallableResponse,
    ReleaseCallableRequest,
    ReleaseCallableResponse,
    Event,
    SourceMetadata,
    LogMessage,
    SessionLog,
    TaggedRunMetadata,
    Summary,
    SummaryValue,
    SummaryImage,
    SummaryAudio,
    SummaryMetadata,
    PluginData,
    HistogramProto,
}
