//! Passes over graphs.

use crate::{AttrView, Attrs, Code, DType, ExtHeader, Host, Slot, Source, Str};
use abi_stable::StableAbi;

/// One run of a pass over one graph. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct PassCall {
    _opaque: [u8; 0],
}

/// A tensor of a graph: an output of a node, which has a number. Filled by the side that names it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The node.
    pub node: u32,
    /// Which of its outputs.
    pub output: u32,
}

/// An attribute that a pass or a gradient gives to a node. Filled by the plugin; the host copies it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct PassAttr {
    /// Name.
    pub name: Str,
    /// Value.
    pub value: AttrView,
}

/// A node that a pass makes. Filled by the plugin; the host copies it.
#[repr(C)]
#[derive(StableAbi)]
pub struct PassNode {
    /// Size of this struct.
    pub struct_size: u32,
    /// The node whose attributes it begins with; [`crate::NO_NODE`] for none.
    pub like: u32,
    /// The op.
    pub op: Str,
    /// Data inputs, in flat order.
    pub inputs: *const Edge,
    /// How many.
    pub input_count: usize,
    /// Nodes that run before this one.
    pub control: *const u32,
    /// How many.
    pub control_count: usize,
    /// Attributes, which replace those of `like`. Attributes that the inputs determine or that have a default may be
    /// left out.
    pub attrs: *const PassAttr,
    /// How many.
    pub attr_count: usize,
}

/// The graph as a pass sees it. Filled by the host; every entry is there. Nodes have numbers; one that is not of
/// the graph has no op, no inputs and no outputs. Texts, attributes and constants are valid until the next edit.
/// An entry that returns a [`Code`] has kept the message when the code is an error: return it, or go on without
/// the edit. Every edit is checked against op, types, shapes and the device's kernels; one that is refused has
/// changed nothing.
#[repr(C)]
#[derive(StableAbi)]
pub struct PassTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Writes the nodes that run, sources first, into `nodes`, at most `capacity` of them; returns how many there are.
    pub nodes:
        Option<unsafe extern "C" fn(call: *mut PassCall, nodes: *mut u32, capacity: u32) -> u32>,
    /// Name of a node.
    pub name: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> Str>,
    /// Op of a node.
    pub op: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> Str>,
    /// Full name of the device on which a node runs.
    pub device: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> Str>,
    /// Attributes of a node, defaults applied; null if it has none.
    pub attrs: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> *const Attrs>,
    /// Number of data inputs.
    pub input_count: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> u32>,
    /// A data input; [`crate::NO_NODE`] as its node when there is no such input.
    pub input: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32, index: u32) -> Edge>,
    /// Number of outputs.
    pub output_count: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> u32>,
    /// Element type of a tensor.
    pub dtype: Option<unsafe extern "C" fn(call: *mut PassCall, tensor: Edge) -> DType>,
    /// Shape of a tensor: its rank, or [`crate::UNKNOWN_RANK`]; the dimensions into `dims`, at most `capacity`,
    /// [`crate::UNKNOWN_DIM`] where unknown.
    pub shape: Option<
        unsafe extern "C" fn(
            call: *mut PassCall,
            tensor: Edge,
            dims: *mut i64,
            capacity: u32,
        ) -> i32,
    >,
    /// The value of a tensor that is the same in every step, in host memory; null when it is not known.
    pub constant: Option<unsafe extern "C" fn(call: *mut PassCall, tensor: Edge) -> *const Slot>,
    /// How many inputs of nodes read a tensor.
    pub uses: Option<unsafe extern "C" fn(call: *mut PassCall, tensor: Edge) -> u32>,
    /// Whether a tensor is fed: then its node does not make it.
    pub is_fed: Option<unsafe extern "C" fn(call: *mut PassCall, tensor: Edge) -> u32>,
    /// Whether a feed, a fetch or a target names the node.
    pub is_kept: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> u32>,
    /// Whether the node may be replaced: it has no effect, and none of its outputs is fed.
    pub is_rewritable: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32) -> u32>,
    /// Replaces a node by another one of the same name.
    pub replace:
        Option<unsafe extern "C" fn(call: *mut PassCall, node: u32, made: *const PassNode) -> Code>,
    /// Adds a node on the device of `near`; its name is that of `near` with `suffix`.
    pub add: Option<
        unsafe extern "C" fn(
            call: *mut PassCall,
            near: u32,
            suffix: Str,
            made: *const PassNode,
            result: *mut u32,
        ) -> Code,
    >,
    /// Makes the readers of `from` read `to`.
    pub redirect: Option<unsafe extern "C" fn(call: *mut PassCall, from: Edge, to: Edge) -> Code>,
    /// Removes a node whose value is that of its input `index`; its readers read the input.
    pub bypass: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32, index: u32) -> Code>,
    /// Reports a change of a node.
    pub note: Option<unsafe extern "C" fn(call: *mut PassCall, node: u32, text: Str)>,
    /// Keeps a copy of `message` for the error and returns `code`.
    pub fail: Option<unsafe extern "C" fn(call: *mut PassCall, code: Code, message: Str) -> Code>,
}

/// A registration: a pass over graphs, link [`crate::ext_tags::PASS`]. Filled by the plugin; the host copies it,
/// except `run`. A pass that returns an error leaves the graph as it was. A host that does not know the link runs
/// graphs without the pass.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtPass {
    /// Head, with tag [`crate::ext_tags::PASS`].
    pub header: ExtHeader,
    /// Name in snake_case. The bool knob `pass_<name>` of the plugin, if it declares one, switches the pass.
    pub name: Str,
    /// One sentence.
    pub help: Str,
    /// Runs the pass.
    pub run: Option<
        unsafe extern "C" fn(
            host: *const Host,
            call: *mut PassCall,
            table: *const PassTable,
        ) -> Code,
    >,
    /// Where it is registered.
    pub source: Source,
    /// Not zero: runs when the passes before it have nothing left to do.
    pub late: u64,
}
