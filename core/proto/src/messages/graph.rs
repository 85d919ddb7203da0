//! Graphs, nodes and attribute values.

use std::collections::BTreeMap;

use super::data_type::DataType;
use super::function::FunctionDefLibrary;
use super::tensor::{TensorProto, TensorShapeProto};

/// A dataflow graph and the functions its nodes call.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphDef {
    /// Nodes in any order; edges are the nodes' `input` names.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeDef>,
    /// Functions that nodes may call by name as if they were ops.
    #[prost(message, optional, tag = "2")]
    pub library: Option<FunctionDefLibrary>,
    /// Superseded by `versions`; still written by old producers.
    #[prost(int32, tag = "3")]
    pub version: i32,
    /// Version of the producer and the oldest consumer it allows.
    #[prost(message, optional, tag = "4")]
    pub versions: Option<VersionDef>,
    /// `GraphDebugInfo` as encoded bytes: stack traces of the nodes' creation.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub debug_info: Option<Vec<u8>>,
}

/// One node: an op applied to inputs, with attributes and a device constraint.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeDef {
    /// Unique name in the graph.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Name of the op or of a function in the library.
    #[prost(string, tag = "2")]
    pub op: String,
    /// `node:output` per data input (output 0 may be left out), then `^node` per control input.
    #[prost(string, repeated, tag = "3")]
    pub input: Vec<String>,
    /// Full or partial device name; empty leaves the choice to the placer.
    #[prost(string, tag = "4")]
    pub device: String,
    /// Values of the op's attributes by name; defaults may be left out.
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
    /// Names of the nodes and functions from which this node was made.
    #[prost(message, optional, tag = "6")]
    pub experimental_debug_info: Option<ExperimentalDebugInfo>,
    /// `FullTypeDef` of the outputs as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "7")]
    pub experimental_type: Option<Vec<u8>>,
}

/// Origin of a node that a rewrite created.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExperimentalDebugInfo {
    /// Names of the nodes it replaces.
    #[prost(string, repeated, tag = "1")]
    pub original_node_names: Vec<String>,
    /// Functions that contained those nodes; empty for the top-level graph.
    #[prost(string, repeated, tag = "2")]
    pub original_func_names: Vec<String>,
}

/// The value of one attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttrValue {
    /// The kind of value; `None` when nothing was set.
    #[prost(oneof = "AttrValueKind", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub value: Option<AttrValueKind>,
}

/// The kinds of [`AttrValue`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AttrValueKind {
    /// A list; its only non-empty member gives the kind.
    #[prost(message, boxed, tag = "1")]
    List(Box<ListValue>),
    /// A string; not necessarily UTF-8.
    #[prost(bytes = "vec", tag = "2")]
    S(Vec<u8>),
    /// An integer.
    #[prost(int64, tag = "3")]
    I(i64),
    /// A float.
    #[prost(float, tag = "4")]
    F(f32),
    /// A boolean.
    #[prost(bool, tag = "5")]
    B(bool),
    /// A [`DataType`](super::DataType), kept as its number.
    #[prost(enumeration = "DataType", tag = "6")]
    Type(i32),
    /// A shape, possibly partial.
    #[prost(message, tag = "7")]
    Shape(TensorShapeProto),
    /// A tensor.
    #[prost(message, boxed, tag = "8")]
    Tensor(Box<TensorProto>),
    /// In a function body: the name of the function attribute whose value goes here.
    #[prost(string, tag = "9")]
    Placeholder(String),
    /// A function with its attributes.
    #[prost(message, tag = "10")]
    Func(NameAttrList),
}

/// A list of attribute values of one kind.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListValue {
    /// Strings.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub s: Vec<Vec<u8>>,
    /// Integers.
    #[prost(int64, repeated, tag = "3")]
    pub i: Vec<i64>,
    /// Floats.
    #[prost(float, repeated, tag = "4")]
    pub f: Vec<f32>,
    /// Booleans.
    #[prost(bool, repeated, tag = "5")]
    pub b: Vec<bool>,
    /// Data types, as numbers.
    #[prost(enumeration = "DataType", repeated, tag = "6")]
    pub r#type: Vec<i32>,
    /// Shapes.
    #[prost(message, repeated, tag = "7")]
    pub shape: Vec<TensorShapeProto>,
    /// Tensors.
    #[prost(message, repeated, tag = "8")]
    pub tensor: Vec<TensorProto>,
    /// Functions.
    #[prost(message, repeated, tag = "9")]
    pub func: Vec<NameAttrList>,
}

/// A function's name and the attributes that instantiate it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NameAttrList {
    /// Name of the function.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Attribute values by name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub attr: BTreeMap<String, AttrValue>,
}

/// The version of the writer, and the versions that may read the data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VersionDef {
    /// Version of the code that wrote it.
    #[prost(int32, tag = "1")]
    pub producer: i32,
    /// Oldest version allowed to read it.
    #[prost(int32, tag = "2")]
    pub min_consumer: i32,
    /// Versions that must refuse it although they are new enough.
    #[prost(int32, repeated, tag = "3")]
    pub bad_consumers: Vec<i32>,
}
