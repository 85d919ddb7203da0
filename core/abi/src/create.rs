//! What a kernel learns when it is created.

use crate::{DType, Dims, ExtHeader, PluginContext, Range, Sink, Slot, Str, Strs};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// The attributes of one node, read through `Host::attr`. Opaque; valid while the call that lent it runs.
#[repr(C)]
#[derive(StableAbi)]
pub struct Attrs {
    _opaque: [u8; 0],
}

/// Kind of an attribute value, or of the items of a list.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttrKind(pub u32);

impl AttrKind {
    /// Items are `int64_t`.
    pub const INT: AttrKind = AttrKind(1);
    /// Items are `float`.
    pub const FLOAT: AttrKind = AttrKind(2);
    /// Items are bytes, 0 or 1.
    pub const BOOL: AttrKind = AttrKind(3);
    /// Items are [`Str`]s.
    pub const STRING: AttrKind = AttrKind(4);
    /// Items are [`DType`]s.
    pub const TYPE: AttrKind = AttrKind(5);
    /// Items are [`ShapeView`]s.
    pub const SHAPE: AttrKind = AttrKind(6);
    /// Items are [`Slot`]s in host memory.
    pub const TENSOR: AttrKind = AttrKind(7);
    /// Items are [`FuncView`]s.
    pub const FUNC: AttrKind = AttrKind(8);
}

/// One attribute. Filled by the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct AttrView {
    /// What the items are.
    pub kind: AttrKind,
    /// 1 for a list, 0 for a single value (then `len` is 1).
    pub is_list: u32,
    /// First item; may be null when `len` is 0.
    pub data: *const c_void,
    /// Number of items.
    pub len: usize,
}

/// A shape that may be partly unknown. Filled by the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ShapeView {
    /// Dimensions, [`crate::UNKNOWN_DIM`] where unknown.
    pub dims: Dims,
    /// 1 when the rank is not known; then `dims` is empty.
    pub unknown_rank: u32,
}

/// A function: its name, and the serialised `NameAttrList` and `FunctionDef` that define it.
/// Filled by the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct FuncView {
    /// Name in the graph's function library.
    pub name: Str,
    /// Serialised `tensorflow.NameAttrList`.
    pub call: Str,
    /// Serialised `tensorflow.FunctionDef`; empty when the library has no function of that name.
    pub definition: Str,
}

/// The arguments of `create` and `supports` (`supports` is called before a kernel exists). Filled by the host; valid
/// while `create` runs.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct Create {
    /// Size of this struct.
    pub struct_size: u32,
    /// Number of inputs.
    pub input_count: u32,
    /// Number of outputs.
    pub output_count: u32,
    /// Zero.
    pub reserved: u32,
    /// Attributes of the node.
    pub attrs: *const Attrs,
    /// Name of the op.
    pub op: Str,
    /// Name of the node.
    pub node: Str,
    /// Full name of the device.
    pub device: Str,
    /// State of the device that the kernel will run on; null for host memory alone.
    pub device_state: *mut crate::DeviceState,
    /// `input_count` element types.
    pub input_types: *const DType,
    /// `output_count` element types.
    pub output_types: *const DType,
    /// `input_count` shapes, partly unknown.
    pub input_shapes: *const ShapeView,
    /// `input_count` views; `data` is null if the input is not constant.
    pub constants: *const Slot,
    /// Names of the input arguments, in order.
    pub input_args: Strs,
    /// Positions of each input argument, as many as `input_args`.
    pub input_ranges: *const Range,
    /// Names of the output arguments, in order.
    pub output_args: Strs,
    /// Positions of each output argument, as many as `output_args`.
    pub output_ranges: *const Range,
    /// The kernel's plugin as its session uses it, for `Host::knob`; lent for this call, unless it is retained.
    pub context: *const PluginContext,
    /// Takes the message when the kernel refuses.
    pub sink: *mut Sink,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// Answer of `supports`.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Support(pub i32);

impl Support {
    /// Not these attributes or shapes; the sink has the reason.
    pub const NO: Support = Support(0);
    /// Yes, whatever the unknown dimensions turn out to be.
    pub const YES: Support = Support(1);
    /// Ask again when the shapes are known: at the latest in the step that brings them, once for each new shape.
    pub const DEPENDS_ON_SHAPES: Support = Support(2);
}

/// A packed form of a constant input, made by `prepack`. Opaque to the host.
#[repr(C)]
#[derive(StableAbi)]
pub struct Packed {
    _opaque: [u8; 0],
}
