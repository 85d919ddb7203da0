//! Conversions between messages and the framework's types.
//!
//! [`Decoder`] reads values: it has the functions that an attribute may name, and a limit on the
//! bytes to which a graph may expand beyond its encoding (a `TensorProto` of a few bytes can claim
//! any number of equal elements). Writing uses free functions. `tensor_content` is little-endian,
//! as are the machines that Tenon runs on.

mod attr;
mod decoder;
mod device;
mod error;
mod op_def;
mod shape;
mod tensor;

#[cfg(test)]
mod tests;

pub use attr::{attr_to_proto, call_of_function};
pub use decoder::{Decoder, MAX_EXPANSION_BYTES, tensor_from_proto};
pub use device::{DeviceSummary, device_from_proto, device_to_proto};
pub use error::ConvertError;
pub use op_def::{attr_def_to_proto, function_op_from_proto, op_def_to_proto};
pub use shape::{
    dtype_from_proto, dtype_to_proto, full_shape_from_proto, shape_from_proto, shape_to_proto,
};
pub use tensor::{is_plain, tensor_to_proto};

#[cfg(target_endian = "big")]
compile_error!("tensor_content is little-endian and is copied as it is");
