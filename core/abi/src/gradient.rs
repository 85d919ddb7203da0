//! Gradients of ops: functions that add nodes to a graph.

use crate::{Attrs, Code, DType, ExtHeader, Host, PassAttr, Slot, Str, Strs};
use abi_stable::StableAbi;

/// One run of the gradient of one node. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct GradientCall {
    _opaque: [u8; 0],
}

/// A tensor of the graph during one run. Only the host knows what the number means; 0 means that there is none.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GraphValue(pub u64);

impl GraphValue {
    /// No tensor.
    pub const NONE: GraphValue = GraphValue(0);
}

/// The form of a gradient.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct GradientKind(pub u32);

impl GradientKind {
    /// No gradient.
    pub const NONE: GradientKind = GradientKind(0);
    /// A tensor of the shape of the value that it belongs to.
    pub const DENSE: GradientKind = GradientKind(1);
    /// Slices of such a tensor along its first axis; slices with the same index add up, and all others are zero.
    pub const SLICES: GradientKind = GradientKind(2);
}

/// The gradient of a value. Filled by the side that gives it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct GradientParts {
    /// Form.
    pub kind: GradientKind,
    /// Zero.
    pub reserved: u32,
    /// The tensor, or the slices, one after the other.
    pub values: GraphValue,
    /// Of slices: the index of each, a vector of int32 or int64; otherwise none.
    pub indices: GraphValue,
    /// Of slices: the shape of the whole, a vector of int32 or int64; may be none.
    pub dense_shape: GraphValue,
}

/// A node that a gradient adds. Filled by the plugin; the host copies it.
#[repr(C)]
#[derive(StableAbi)]
pub struct GradientNode {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The op.
    pub op: Str,
    /// What the name of the node ends with; empty for the name of the op.
    pub name: Str,
    /// Data inputs, in flat order.
    pub inputs: *const GraphValue,
    /// How many.
    pub input_count: usize,
    /// Values whose nodes run before this one.
    pub control: *const GraphValue,
    /// How many.
    pub control_count: usize,
    /// Attributes. Those that the inputs determine or that have a default may be left out.
    pub attrs: *const PassAttr,
    /// How many.
    pub attr_count: usize,
    /// Names of attributes that are copied from the node whose gradient runs.
    pub copied: Strs,
}

/// The node whose gradient runs, and the graph that the gradient extends. Filled by the host; every entry is there.
/// Texts and attributes are valid for the run, constants until the next call of [`GradientTable::add`]. An entry that
/// returns a [`Code`] has kept the message when the code is an error: return it.
#[repr(C)]
#[derive(StableAbi)]
pub struct GradientTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Name of the node.
    pub name: Option<unsafe extern "C" fn(call: *mut GradientCall) -> Str>,
    /// Op of the node.
    pub op: Option<unsafe extern "C" fn(call: *mut GradientCall) -> Str>,
    /// Name of this differentiation: another one of the same graph has another name.
    pub scope: Option<unsafe extern "C" fn(call: *mut GradientCall) -> Str>,
    /// Attributes of the node, defaults applied.
    pub attrs: Option<unsafe extern "C" fn(call: *mut GradientCall) -> *const Attrs>,
    /// Number of data inputs.
    pub input_count: Option<unsafe extern "C" fn(call: *mut GradientCall) -> u32>,
    /// Number of outputs.
    pub output_count: Option<unsafe extern "C" fn(call: *mut GradientCall) -> u32>,
    /// Value of an input; none when there is no such input.
    pub input: Option<unsafe extern "C" fn(call: *mut GradientCall, index: u32) -> GraphValue>,
    /// Value of an output; none when there is no such output.
    pub output: Option<unsafe extern "C" fn(call: *mut GradientCall, index: u32) -> GraphValue>,
    /// Whether the gradient of an input is wanted: 1 or 0. It need not be made otherwise.
    pub is_wanted: Option<unsafe extern "C" fn(call: *mut GradientCall, input: u32) -> u32>,
    /// Gradient of an output in its own form: none, a tensor, or slices.
    pub gradient:
        Option<unsafe extern "C" fn(call: *mut GradientCall, output: u32) -> GradientParts>,
    /// Gradient of an output as a tensor: zeros where there is none, and the sum of slices.
    pub dense_gradient: Option<
        unsafe extern "C" fn(call: *mut GradientCall, output: u32, result: *mut GraphValue) -> Code,
    >,
    /// Element type of a value; `INVALID` for none.
    pub dtype: Option<unsafe extern "C" fn(call: *mut GradientCall, value: GraphValue) -> DType>,
    /// Shape of a value: its rank, or [`crate::UNKNOWN_RANK`]; the dimensions into `dims`, at most `capacity`,
    /// [`crate::UNKNOWN_DIM`] where unknown.
    pub shape: Option<
        unsafe extern "C" fn(
            call: *mut GradientCall,
            value: GraphValue,
            dims: *mut i64,
            capacity: u32,
        ) -> i32,
    >,
    /// The value when it is the same in every step, in host memory; null when it is not known.
    pub constant:
        Option<unsafe extern "C" fn(call: *mut GradientCall, value: GraphValue) -> *const Slot>,
    /// Whether two values have the same shape in every step: 1, or 0 when that is not known.
    pub same_shape:
        Option<unsafe extern "C" fn(call: *mut GradientCall, a: GraphValue, b: GraphValue) -> u32>,
    /// Adds a node. The first `capacity` of its outputs are written into `outputs`, and into `count` how many it has. The
    /// numbers of a node's outputs follow each other: output `i` has the number of output 0 plus `i`.
    pub add: Option<
        unsafe extern "C" fn(
            call: *mut GradientCall,
            made: *const GradientNode,
            outputs: *mut GraphValue,
            capacity: usize,
            count: *mut usize,
        ) -> Code,
    >,
    /// Sets the gradient of an input. An input that is not set has none.
    pub set: Option<
        unsafe extern "C" fn(
            call: *mut GradientCall,
            input: u32,
            gradient: *const GradientParts,
        ) -> Code,
    >,
    /// Keeps a copy of `message` for the error and returns `code`.
    pub fail:
        Option<unsafe extern "C" fn(call: *mut GradientCall, code: Code, message: Str) -> Code>,
}

/// A gradient: adds the nodes that compute the gradients of a node's inputs from those of its outputs, and sets them. It
/// must not unwind.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct GradientFn {
    /// Required.
    pub run: Option<
        unsafe extern "C" fn(
            host: *const Host,
            call: *mut GradientCall,
            table: *const GradientTable,
        ) -> Code,
    >,
}

/// Link [`crate::ext_tags::GRADIENT`] of an op definition: the op's gradient. Filled by the plugin; the host copies it,
/// and the function stays callable as long as the process. Without the link, the gradient of the op is not known. The host
/// refuses it on an op that states [`crate::GradientRule::NONE`].
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtGradient {
    /// Head, with tag [`crate::ext_tags::GRADIENT`].
    pub header: ExtHeader,
    /// The gradient.
    pub gradient: GradientFn,
}
