//! Graphs with signatures, collections and saved models.

use std::collections::BTreeMap;

use super::checkpoint::SaverDef;
use super::data_type::DataType;
use super::graph::GraphDef;
use super::op_def::OpList;
use super::tensor::{TensorProto, TensorShapeProto};

/// A graph with its signatures, collections and saver.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetaGraphDef {
    /// Versions, tags and the ops the graph needs.
    #[prost(message, optional, tag = "1")]
    pub meta_info_def: Option<MetaInfoDef>,
    /// The graph.
    #[prost(message, optional, tag = "2")]
    pub graph_def: Option<GraphDef>,
    /// How its variables are saved.
    #[prost(message, optional, tag = "3")]
    pub saver_def: Option<SaverDef>,
    /// Named collections of things in the graph.
    #[prost(btree_map = "string, message", tag = "4")]
    pub collection_def: BTreeMap<String, CollectionDef>,
    /// Named ways to call the graph.
    #[prost(btree_map = "string, message", tag = "5")]
    pub signature_def: BTreeMap<String, SignatureDef>,
    /// Files that constants of the graph refer to.
    #[prost(message, repeated, tag = "6")]
    pub asset_file_def: Vec<AssetFileDef>,
    /// `SavedObjectGraph` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub object_graph_def: Option<Vec<u8>>,
}

/// Facts about a meta graph.
#[derive(Clone, PartialEq, prost::Message)]
pub struct MetaInfoDef {
    /// Version given by the user.
    #[prost(string, tag = "1")]
    pub meta_graph_version: String,
    /// Definitions of the ops used, without documentation.
    #[prost(message, optional, tag = "2")]
    pub stripped_op_list: Option<OpList>,
    /// `google.protobuf.Any` as encoded bytes, for the user.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub any_info: Option<Vec<u8>>,
    /// Tags by which a loader selects this graph.
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
    /// Version of TensorFlow that wrote it.
    #[prost(string, tag = "5")]
    pub tensorflow_version: String,
    /// Its source revision.
    #[prost(string, tag = "6")]
    pub tensorflow_git_version: String,
    /// True when attributes equal to their defaults were left out.
    #[prost(bool, tag = "7")]
    pub stripped_default_attrs: bool,
    /// For each function, the name the user knows it by.
    #[prost(btree_map = "string, string", tag = "8")]
    pub function_aliases: BTreeMap<String, String>,
}

/// A named collection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CollectionDef {
    /// Its contents.
    #[prost(oneof = "CollectionDefKind", tags = "1, 2, 3, 4, 5")]
    pub kind: Option<CollectionDefKind>,
}

/// The kinds of [`CollectionDef`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CollectionDefKind {
    /// Names of nodes or tensors.
    #[prost(message, tag = "1")]
    NodeList(NodeList),
    /// Strings or encoded messages.
    #[prost(message, tag = "2")]
    BytesList(BytesList),
    /// Integers.
    #[prost(message, tag = "3")]
    Int64List(Int64List),
    /// Floats.
    #[prost(message, tag = "4")]
    FloatList(FloatList),
    /// Messages of any type.
    #[prost(message, tag = "5")]
    AnyList(AnyList),
}

/// Names of nodes or tensors.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeList {
    /// The names.
    #[prost(string, repeated, tag = "1")]
    pub value: Vec<String>,
}

/// Strings or encoded messages.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BytesList {
    /// The values.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

/// Integers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Int64List {
    /// The values.
    #[prost(int64, repeated, tag = "1")]
    pub value: Vec<i64>,
}

/// Floats.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FloatList {
    /// The values.
    #[prost(float, repeated, tag = "1")]
    pub value: Vec<f32>,
}

/// Messages of any type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyList {
    /// Each a `google.protobuf.Any` as encoded bytes.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

/// One way to call a graph: which tensors to feed and to fetch.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SignatureDef {
    /// Tensors to feed, by argument name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, TensorInfo>,
    /// Tensors to fetch, by result name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, TensorInfo>,
    /// Kind of signature, such as `tensorflow/serving/predict`.
    #[prost(string, tag = "3")]
    pub method_name: String,
    /// Values of inputs that may be left out.
    #[prost(btree_map = "string, message", tag = "4")]
    pub defaults: BTreeMap<String, TensorProto>,
}

/// The place of a tensor in the graph, with type and shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorInfo {
    /// How it is encoded.
    #[prost(oneof = "TensorInfoEncoding", tags = "1, 4, 5")]
    pub encoding: Option<TensorInfoEncoding>,
    /// Element type.
    #[prost(enumeration = "DataType", tag = "2")]
    pub dtype: i32,
    /// Shape, possibly partial.
    #[prost(message, optional, tag = "3")]
    pub tensor_shape: Option<TensorShapeProto>,
}

/// The kinds of [`TensorInfo`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TensorInfoEncoding {
    /// A dense tensor, by name.
    #[prost(string, tag = "1")]
    Name(String),
    /// A sparse tensor in coordinate form.
    #[prost(message, tag = "4")]
    CooSparse(CooSparse),
    /// A composite tensor of any kind.
    #[prost(message, tag = "5")]
    CompositeTensor(CompositeTensor),
}

/// The three tensors that make up a sparse one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CooSparse {
    /// Values of the elements present.
    #[prost(string, tag = "1")]
    pub values_tensor_name: String,
    /// Their indices, one row each.
    #[prost(string, tag = "2")]
    pub indices_tensor_name: String,
    /// Shape of the dense form.
    #[prost(string, tag = "3")]
    pub dense_shape_tensor_name: String,
}

/// A tensor made of components.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CompositeTensor {
    /// `TypeSpecProto` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub type_spec: Option<Vec<u8>>,
    /// The components, flattened.
    #[prost(message, repeated, tag = "2")]
    pub components: Vec<TensorInfo>,
}

/// A file that a tensor of the graph names.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AssetFileDef {
    /// The tensor, a string, which is fed with the path of the file.
    #[prost(message, optional, tag = "1")]
    pub tensor_info: Option<TensorInfo>,
    /// The name of the file in the folder `assets` of the saved model.
    #[prost(string, tag = "2")]
    pub filename: String,
}

/// The contents of a saved model's file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SavedModel {
    /// Version of the layout.
    #[prost(int64, tag = "1")]
    pub saved_model_schema_version: i64,
    /// One or more graphs, distinguished by their tags.
    #[prost(message, repeated, tag = "2")]
    pub meta_graphs: Vec<MetaGraphDef>,
}
