//! Tensors, shapes and resource handles as values on the wire.

use prost::bytes::Bytes;

use super::data_type::DataType;

/// A tensor's value: packed bytes in `tensor_content`, or elements in the list of its dtype.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// Element type; decides which list holds the elements.
    #[prost(enumeration = "DataType", tag = "1")]
    pub dtype: i32,
    /// Shape; a complete one for a value.
    #[prost(message, optional, tag = "2")]
    pub tensor_shape: Option<TensorShapeProto>,
    /// Version of this representation, 0 today.
    #[prost(int32, tag = "3")]
    pub version_number: i32,
    /// Elements in row-major order, little-endian, without gaps; empty when a typed list is used.
    #[prost(bytes = "bytes", tag = "4")]
    pub tensor_content: Bytes,
    /// Elements of DT_FLOAT. A list shorter than the shape repeats its last element, as in every
    /// list below.
    #[prost(float, repeated, tag = "5")]
    pub float_val: Vec<f32>,
    /// Elements of DT_DOUBLE.
    #[prost(double, repeated, tag = "6")]
    pub double_val: Vec<f64>,
    /// Elements of DT_INT32, DT_INT16, DT_INT8, DT_UINT16, DT_UINT8, the quantised and the narrow
    /// integer types.
    #[prost(int32, repeated, tag = "7")]
    pub int_val: Vec<i32>,
    /// Elements of DT_STRING.
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub string_val: Vec<Vec<u8>>,
    /// Elements of DT_COMPLEX64, real and imaginary parts in turn.
    #[prost(float, repeated, tag = "9")]
    pub scomplex_val: Vec<f32>,
    /// Elements of DT_INT64.
    #[prost(int64, repeated, tag = "10")]
    pub int64_val: Vec<i64>,
    /// Elements of DT_BOOL.
    #[prost(bool, repeated, tag = "11")]
    pub bool_val: Vec<bool>,
    /// Elements of DT_COMPLEX128, real and imaginary parts in turn.
    #[prost(double, repeated, tag = "12")]
    pub dcomplex_val: Vec<f64>,
    /// Bit patterns of DT_HALF and DT_BFLOAT16 in the low 16 bits.
    #[prost(int32, repeated, tag = "13")]
    pub half_val: Vec<i32>,
    /// Elements of DT_RESOURCE.
    #[prost(message, repeated, tag = "14")]
    pub resource_handle_val: Vec<ResourceHandleProto>,
    /// Elements of DT_VARIANT.
    #[prost(message, repeated, tag = "15")]
    pub variant_val: Vec<VariantTensorDataProto>,
    /// Elements of DT_UINT32.
    #[prost(uint32, repeated, tag = "16")]
    pub uint32_val: Vec<u32>,
    /// Elements of DT_UINT64.
    #[prost(uint64, repeated, tag = "17")]
    pub uint64_val: Vec<u64>,
    /// Bit patterns of the 8-bit float types, one byte each.
    #[prost(bytes = "vec", tag = "18")]
    pub float8_val: Vec<u8>,
}

/// One variant element: its type, opaque metadata and the tensors it holds.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VariantTensorDataProto {
    /// Name under which the decoder of this type is registered.
    #[prost(string, tag = "1")]
    pub type_name: String,
    /// The part that is not a tensor, encoded by the type itself.
    #[prost(bytes = "vec", tag = "2")]
    pub metadata: Vec<u8>,
    /// Tensors the variant holds.
    #[prost(message, repeated, tag = "3")]
    pub tensors: Vec<TensorProto>,
}

/// A shape, possibly partial.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// Dimensions, outermost first; must be empty when the rank is unknown.
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<Dim>,
    /// True when not even the number of dimensions is known.
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

/// One dimension of a shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dim {
    /// Number of elements along it, -1 when unknown.
    #[prost(int64, tag = "1")]
    pub size: i64,
    /// Optional label, not used in computation.
    #[prost(string, tag = "2")]
    pub name: String,
}

/// A handle to state that outlives a step, such as a variable or a table.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ResourceHandleProto {
    /// Full name of the device that owns the resource.
    #[prost(string, tag = "1")]
    pub device: String,
    /// Container in which the resource is kept.
    #[prost(string, tag = "2")]
    pub container: String,
    /// Name of the resource, unique in its container for its type.
    #[prost(string, tag = "3")]
    pub name: String,
    /// Hash of the resource's type; only comparable within one process.
    #[prost(uint64, tag = "4")]
    pub hash_code: u64,
    /// Readable type name, for messages.
    #[prost(string, tag = "5")]
    pub maybe_type_name: String,
    /// The types and shapes of the resource's contents, where they are known.
    #[prost(message, repeated, tag = "6")]
    pub dtypes_and_shapes: Vec<DtypeAndShape>,
}

/// Type and shape of one value held by a resource.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DtypeAndShape {
    /// Element type.
    #[prost(enumeration = "DataType", tag = "1")]
    pub dtype: i32,
    /// Shape, possibly partial.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A tensor with the name it is fed or fetched under.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NamedTensorProto {
    /// Name of the tensor in the graph.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value.
    #[prost(message, optional, tag = "2")]
    pub tensor: Option<TensorProto>,
}
