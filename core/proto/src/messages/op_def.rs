//! Op definitions as signatures on the wire.

use super::data_type::DataType;
use super::graph::AttrValue;
use super::tensor::DtypeAndShape;

/// An op's signature.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpDef {
    /// CamelCase name; a leading underscore marks an internal op.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Inputs in order.
    #[prost(message, repeated, tag = "2")]
    pub input_arg: Vec<ArgDef>,
    /// Outputs in order.
    #[prost(message, repeated, tag = "3")]
    pub output_arg: Vec<ArgDef>,
    /// Attributes in order.
    #[prost(message, repeated, tag = "4")]
    pub attr: Vec<AttrDef>,
    /// One line of documentation.
    #[prost(string, tag = "5")]
    pub summary: String,
    /// Longer documentation.
    #[prost(string, tag = "6")]
    pub description: String,
    /// `OpDeprecation` as encoded bytes: since which version and why.
    #[prost(bytes = "vec", optional, tag = "8")]
    pub deprecation: Option<Vec<u8>>,
    /// Accepts any number of inputs of one type and sums them in any grouping.
    #[prost(bool, tag = "16")]
    pub is_aggregate: bool,
    /// Has or uses state, so that equal nodes must not be merged.
    #[prost(bool, tag = "17")]
    pub is_stateful: bool,
    /// `op(a, b)` equals `op(b, a)` for all inputs.
    #[prost(bool, tag = "18")]
    pub is_commutative: bool,
    /// Accepts a variable that was never assigned.
    #[prost(bool, tag = "19")]
    pub allows_uninitialized_input: bool,
    /// Names of the control outputs, for the signature of a function.
    #[prost(string, repeated, tag = "20")]
    pub control_output: Vec<String>,
    /// Communicates with other tasks, so that errors of those tasks must abort it.
    #[prost(bool, tag = "21")]
    pub is_distributed_communication: bool,
}

/// One named input or output.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArgDef {
    /// Name, unique among the inputs or outputs.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Documentation.
    #[prost(string, tag = "2")]
    pub description: String,
    /// The dtype when it is fixed, else DT_INVALID.
    #[prost(enumeration = "DataType", tag = "3")]
    pub r#type: i32,
    /// Attribute that gives the dtype.
    #[prost(string, tag = "4")]
    pub type_attr: String,
    /// Attribute that gives the number of tensors of the argument, all of one dtype.
    #[prost(string, tag = "5")]
    pub number_attr: String,
    /// Attribute that lists the dtypes of a heterogeneous argument.
    #[prost(string, tag = "6")]
    pub type_list_attr: String,
    /// The types and shapes behind a resource argument's handle.
    #[prost(message, repeated, tag = "7")]
    pub handle_data: Vec<DtypeAndShape>,
    /// The tensor is passed by reference.
    #[prost(bool, tag = "16")]
    pub is_ref: bool,
    /// `FullTypeDef` as encoded bytes.
    #[prost(bytes = "vec", optional, tag = "17")]
    pub experimental_full_type: Option<Vec<u8>>,
}

/// One attribute an op accepts.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttrDef {
    /// Name, unique in the op.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Kind in TensorFlow's notation, such as `int`, `type` or `list(shape)`.
    #[prost(string, tag = "2")]
    pub r#type: String,
    /// Used when a node leaves it out; without one the attribute is required.
    #[prost(message, optional, tag = "3")]
    pub default_value: Option<AttrValue>,
    /// Documentation.
    #[prost(string, tag = "4")]
    pub description: String,
    /// Whether `minimum` counts.
    #[prost(bool, tag = "5")]
    pub has_minimum: bool,
    /// Least value of an int, or least length of a list.
    #[prost(int64, tag = "6")]
    pub minimum: i64,
    /// A list of the values accepted, for strings and types.
    #[prost(message, optional, tag = "7")]
    pub allowed_values: Option<AttrValue>,
}

/// Several op definitions.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OpList {
    /// The definitions.
    #[prost(message, repeated, tag = "1")]
    pub op: Vec<OpDef>,
}
