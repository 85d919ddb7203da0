//! Shape inference over opaque handles.

use crate::{Attrs, Code, DType, Slot, Str};
use abi_stable::StableAbi;

/// One run of a shape function. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct ShapeCall {
    _opaque: [u8; 0],
}

/// A shape of one run.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShapeId(pub u32);

/// A dimension of one run. Two unknown dimensions with the same number are the same size.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct DimId(pub u32);

/// Services of a shape function. Filled by the host; every entry is there. An entry that returns a
/// [`Code`] has kept the message when the code is an error: return it.
#[repr(C)]
#[derive(StableAbi)]
pub struct ShapeTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Attributes of the node.
    pub attrs: Option<unsafe extern "C" fn(call: *mut ShapeCall) -> *const Attrs>,
    /// Number of inputs.
    pub input_count: Option<unsafe extern "C" fn(call: *mut ShapeCall) -> u32>,
    /// Number of outputs.
    pub output_count: Option<unsafe extern "C" fn(call: *mut ShapeCall) -> u32>,
    /// Shape of an input; the unknown shape when `input` is out of range.
    pub input: Option<unsafe extern "C" fn(call: *mut ShapeCall, input: u32) -> ShapeId>,
    /// Value of a constant input in host memory; null when it is not known.
    pub constant: Option<unsafe extern "C" fn(call: *mut ShapeCall, input: u32) -> *const Slot>,
    /// Reads a one-dimensional integer input as a shape, as far as its values are known
    /// ([`crate::UNKNOWN_DIM`] and unknown values are unknown dimensions).
    pub constant_as_shape: Option<
        unsafe extern "C" fn(call: *mut ShapeCall, input: u32, result: *mut ShapeId) -> Code,
    >,
    /// Rank; [`crate::UNKNOWN_RANK`] when it is unknown.
    pub rank: Option<unsafe extern "C" fn(call: *mut ShapeCall, shape: ShapeId) -> i32>,
    /// A dimension of a shape of known rank; a fresh unknown one otherwise or out of range.
    pub dim:
        Option<unsafe extern "C" fn(call: *mut ShapeCall, shape: ShapeId, index: u32) -> DimId>,
    /// Size; [`crate::UNKNOWN_DIM`] when it is unknown.
    pub value: Option<unsafe extern "C" fn(call: *mut ShapeCall, dim: DimId) -> i64>,
    /// A dimension of this size; [`crate::UNKNOWN_DIM`] is a fresh unknown one.
    pub make_dim: Option<unsafe extern "C" fn(call: *mut ShapeCall, value: i64) -> DimId>,
    /// A shape of these dimensions.
    pub make_shape: Option<
        unsafe extern "C" fn(call: *mut ShapeCall, dims: *const DimId, rank: u32) -> ShapeId,
    >,
    /// The shape of unknown rank.
    pub unknown_shape: Option<unsafe extern "C" fn(call: *mut ShapeCall) -> ShapeId>,
    /// Merges what is known of two shapes; refuses shapes that contradict each other.
    pub merge: Option<
        unsafe extern "C" fn(
            call: *mut ShapeCall,
            a: ShapeId,
            b: ShapeId,
            result: *mut ShapeId,
        ) -> Code,
    >,
    /// Merges what is known of two dimensions.
    pub merge_dim: Option<
        unsafe extern "C" fn(call: *mut ShapeCall, a: DimId, b: DimId, result: *mut DimId) -> Code,
    >,
    /// The shape with this rank; refuses another rank.
    pub with_rank: Option<
        unsafe extern "C" fn(
            call: *mut ShapeCall,
            shape: ShapeId,
            rank: u32,
            result: *mut ShapeId,
        ) -> Code,
    >,
    /// Sets the shape of an output.
    pub set_output:
        Option<unsafe extern "C" fn(call: *mut ShapeCall, output: u32, shape: ShapeId) -> Code>,
    /// Gives what is known of the value behind resource input `input`: element type and shape of its part
    /// `part`. Returns the number of known parts.
    pub input_handle: Option<
        unsafe extern "C" fn(
            call: *mut ShapeCall,
            input: u32,
            part: u32,
            dtype: *mut DType,
            shape: *mut ShapeId,
        ) -> u32,
    >,
    /// Adds a part to what is known of the value behind resource output `output`.
    pub add_output_handle: Option<
        unsafe extern "C" fn(
            call: *mut ShapeCall,
            output: u32,
            dtype: DType,
            shape: ShapeId,
        ) -> Code,
    >,
    /// Keeps a copy of `message` for the error and returns `code`.
    pub fail: Option<unsafe extern "C" fn(call: *mut ShapeCall, code: Code, message: Str) -> Code>,
}
