//! Errors of graphs, and of requests to them.

mod function;
mod missing;
mod text;

pub use function::FunctionError;
pub use missing::{MissingOp, MissingOps};

use crate::names::NODE_NAME_RULE;
use tenon_framework::{
    Code, DType, KernelError,
    device::{DeviceName, DeviceNameError},
    op::OpError,
    text::{cut, cut_text},
};
use tenon_proto::{convert::ConvertError, versions::VersionError};
use text::{asked, chain, elsewhere, listed, reference_note};
use thiserror::Error;

/// An error of a graph. The message names the node.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More nodes than a [`NodeId`](crate::NodeId) can number.
    #[error("a graph has at most 2^32 - 1 nodes, found {found}")]
    TooManyNodes {
        /// The number of nodes that there would be.
        found: usize,
    },
    /// More outputs than a graph may have.
    #[error(
        "node '{node}': the outputs of a graph's nodes are at most {limit}, found {found}",
        node = cut(.node)
    )]
    TooManyOutputs {
        /// The node that exceeds the limit.
        node: String,
        /// The limit.
        limit: usize,
        /// The number of outputs that there would be.
        found: usize,
    },
    /// An invalid node name.
    #[error(
        "node '{name}' (op '{op}'): names of nodes follow {NODE_NAME_RULE}: rename it",
        name = cut(.name), op = cut(.op)
    )]
    NodeName {
        /// The name.
        name: String,
        /// The op.
        op: String,
    },
    /// Two nodes with the same name.
    #[error("node '{node}': there are two nodes of this name: rename one", node = cut(.node))]
    DuplicateNode {
        /// The name.
        node: String,
    },
    /// An unregistered op.
    #[error(
        "node '{node}': op '{op}' is not registered{near}; load the plugin that defines it",
        node = cut(.node), op = cut(.op), near = cut_text(.near)
    )]
    UnknownOp {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// Similar names, as text for the message; may be empty.
        near: String,
    },
    /// Unregistered ops that a step needs.
    #[error("{ops}")]
    MissingOps {
        /// The ops, with the nodes that need them.
        ops: Box<MissingOps>,
    },
    /// An output of an unregistered op that no node of a registered op reads: its type is unknown.
    #[error(
        "'{name}': its node's op '{op}' is not registered, and no node of a registered op reads this output: load the \
         plugin that defines the op",
        name = cut(.name), op = cut(.op)
    )]
    UnreadOutput {
        /// The tensor.
        name: String,
        /// The op of its node.
        op: String,
    },
    /// A graph whose versions exclude this reader.
    #[error(transparent)]
    Version(VersionError),
    /// Attributes or a number of inputs that do not fit the op.
    #[error("node '{node}': {source}", node = cut(.node))]
    Op {
        /// The node.
        node: String,
        /// The mismatch.
        source: Box<OpError>,
    },
    /// An attribute whose value cannot be read or written.
    #[error("node '{node}': attribute '{attr}': {source}", node = cut(.node), attr = cut(.attr))]
    Attr {
        /// The node.
        node: String,
        /// The attribute.
        attr: String,
        /// The reason.
        source: Box<ConvertError>,
    },
    /// A device that is not a device name.
    #[error("node '{node}': {source}", node = cut(.node))]
    Device {
        /// The node.
        node: String,
        /// The reason.
        source: Box<DeviceNameError>,
    },
    /// An input that has none of the three forms.
    #[error(
        "node '{node}': an input is written 'node', 'node:output' or '^node', found '{input}'",
        node = cut(.node), input = cut(.input)
    )]
    InputName {
        /// The node.
        node: String,
        /// The input as found.
        input: String,
    },
    /// A data input after a control input.
    #[error(
        "node '{node}': data inputs must precede control inputs, found '{input}' after one",
        node = cut(.node), input = cut(.input)
    )]
    ControlOrder {
        /// The node.
        node: String,
        /// The data input.
        input: String,
    },
    /// An input from a node that does not exist.
    #[error(
        "node '{node}': input '{input}' names a node that is not in the graph{near}",
        node = cut(.node), input = cut(.input), near = cut_text(.near)
    )]
    UnknownInput {
        /// The node.
        node: String,
        /// The input.
        input: String,
        /// Similar names, as text for the message; may be empty.
        near: String,
    },
    /// An input from an output that does not exist.
    #[error(
        "node '{node}': input '{input}': its node (op '{op}') has {outputs} outputs, numbered from 0",
        node = cut(.node), input = cut(.input), op = cut(.op)
    )]
    OutputRange {
        /// The node.
        node: String,
        /// The input.
        input: String,
        /// The op of the source.
        op: String,
        /// The number of its outputs.
        outputs: usize,
    },
    /// An input of another type than the op expects.
    #[error(
        "node '{node}' (op '{op}'): input {index} (argument '{arg}') is {expected}, found {found} from \
         {from}{}",
        reference_note(*.expected, *.found), node = cut(.node), op = cut(.op), arg = cut(.arg),
        from = cut_text(.from)
    )]
    InputType {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The argument.
        arg: String,
        /// The flat position of the input.
        index: usize,
        /// The type that the op expects.
        expected: DType,
        /// The type of the source.
        found: DType,
        /// The source: its output and op.
        from: String,
    },
    /// Nodes that depend on each other.
    #[error("the graph has a cycle outside of loops: {}", chain(.nodes))]
    Cycle {
        /// The names along the cycle: each node is a source of the next, the last of the first.
        nodes: Vec<String>,
    },
    /// Two different functions with the same name.
    #[error(
        "function '{name}' is in the graph's library already, with another definition: rename it",
        name = cut(.name)
    )]
    FunctionConflict {
        /// The function.
        name: String,
    },
    /// Parts of a graph that were written by different producer versions.
    #[error(
        "the graph comes from a producer of version {have}, found {found}: extend it only with graphs of the \
         same version"
    )]
    Versions {
        /// The version of the graph.
        have: i32,
        /// The version of the part to be added.
        found: i32,
    },
    /// A feed or fetch that is not the name of a tensor.
    #[error("'{name}': expected {expected}", name = cut(.name))]
    TensorName {
        /// The name as given.
        name: String,
        /// The expected form.
        expected: &'static str,
    },
    /// A feed, fetch or target that does not exist.
    #[error(
        "'{name}': the graph has no such node{near}",
        name = cut(.name), near = cut_text(.near)
    )]
    NoSuchNode {
        /// The node.
        name: String,
        /// Similar names, as text for the message; may be empty.
        near: String,
    },
    /// A feed or fetch of an output that does not exist.
    #[error("'{name}': the node has {outputs} outputs, numbered from 0", name = cut(.name))]
    NoSuchOutput {
        /// The tensor.
        name: String,
        /// The number of outputs of its node.
        outputs: usize,
    },
    /// A tensor that is fed twice.
    #[error("'{name}' is fed twice: feed it once", name = cut(.name))]
    FedTwice {
        /// The tensor.
        name: String,
    },
    /// An input for the builder from another graph.
    #[error(
        "node '{node}' (op '{op}'): expected an output of a node of this graph, found {found}",
        node = cut(.node), op = cut(.op), found = cut_text(.found)
    )]
    Foreign {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The input as given.
        found: String,
    },
    /// A back edge between other ops than `NextIteration` and `Merge`, or to no data input.
    #[error(
        "node '{node}' (op '{op}'): a back edge leads from a NextIteration to a data input of a Merge, found \
         one from '{source_name}' (op '{source_op}')",
        node = cut(.node), op = cut(.op), source_name = cut(.source_name),
        source_op = cut(.source_op)
    )]
    BackEdge {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The source.
        source_name: String,
        /// The op of the source.
        source_op: String,
    },
    /// A fetch inside a loop.
    #[error(
        "'{tensor}' is inside loop '{frame}' and has a value per iteration: fetch the output of its Exit",
        tensor = cut(.tensor), frame = cut(.frame)
    )]
    FetchInFrame {
        /// The output.
        tensor: String,
        /// The name of the frame.
        frame: String,
    },
    /// A shape function refuses its inputs.
    #[error("node '{node}' (op '{op}'): {source}", node = cut(.node), op = cut(.op))]
    Shape {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The error of the shape function.
        source: KernelError,
    },
    /// A node whose inputs come from different frames.
    #[error(
        "node '{node}' (op '{op}'): its inputs come from different frames, '{first}' and '{second}': bring \
         values into a loop by Enter and out of it by Exit",
        node = cut(.node), op = cut(.op), first = cut(.first), second = cut(.second)
    )]
    FrameMix {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The frame of one input.
        first: String,
        /// The frame of another input.
        second: String,
    },
    /// An `Exit` or `NextIteration` outside any frame.
    #[error(
        "node '{node}' (op '{op}') is not in a loop: its input does not come from an Enter",
        node = cut(.node), op = cut(.op)
    )]
    NoFrame {
        /// The node.
        node: String,
        /// Its op.
        op: String,
    },
    /// A loop over several devices that has no condition.
    #[error("loop '{frame}' is over several devices: expected a LoopCond in it, found none", frame = cut(.frame))]
    NoCondition {
        /// The name of the frame.
        frame: String,
    },
    /// A loop over several devices that lacks a control loop.
    #[error(
        "loop '{frame}' is over several devices: '{tensor}' goes from {from} to {to}, where it has no control loop",
        frame = cut(.frame), tensor = cut(.tensor), from = cut_text(.from), to = cut(.to)
    )]
    SplitFrame {
        /// The name of the frame.
        frame: String,
        /// The tensor that would cross devices.
        tensor: String,
        /// The device of its source.
        from: String,
        /// The device that uses it.
        to: String,
    },
    /// A fed tensor that is used as a reference.
    #[error(
        "'{tensor}' is used as a reference and cannot be fed: feed what reads it",
        tensor = cut(.tensor)
    )]
    FedReference {
        /// The output.
        tensor: String,
    },
    /// A reference that would have to be sent to another device.
    #[error(
        "'{tensor}' is a reference on {from}, used as one on {to}: references stay on their device",
        tensor = cut(.tensor), from = cut_text(.from), to = cut(.to)
    )]
    SplitReference {
        /// The output.
        tensor: String,
        /// The device of its source.
        from: String,
        /// The device that uses it.
        to: String,
    },
    /// A location outside the list of devices.
    #[error("{what} is at location {found}, there are {devices} devices", what = cut(.what))]
    Location {
        /// The node, or the client, at this location.
        what: String,
        /// The location.
        found: usize,
        /// The number of devices.
        devices: usize,
    },
    /// A node that cannot take the place of another one.
    #[error(
        "node '{node}' (op '{op}') takes the place of another node: expected {expected}, found {found}",
        node = cut(.node), op = cut(.op), found = cut_text(.found)
    )]
    Replaced {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// What it needs.
        expected: String,
        /// What was found.
        found: String,
    },
    /// Colocation with a node that does not exist.
    #[error(
        "node '{node}': attribute '_class' names '{with}', which is not in the graph{near}",
        node = cut(.node), with = cut(.with), near = cut_text(.near)
    )]
    ColocationUnknown {
        /// The node.
        node: String,
        /// The name in its `_class` attribute.
        with: String,
        /// Similar names, as text for the message; may be empty.
        near: String,
    },
    /// Colocated nodes that request different devices.
    #[error(
        "nodes '{first}' and '{second}' belong on one device ({why}): {source}",
        first = cut(.first), second = cut(.second)
    )]
    ColocationConflict {
        /// One node.
        first: String,
        /// The other.
        second: String,
        /// The reason for placing them together.
        why: &'static str,
        /// The difference between their requests.
        source: Box<DeviceNameError>,
    },
    /// A function, or a node that calls one.
    #[error(transparent)]
    Function(Box<FunctionError>),
    /// The step was cancelled, or its deadline passed, while passes worked on its graph.
    #[error("the step was cancelled, or its deadline passed, while passes worked on its graph")]
    Cancelled,
    /// A node that no device can run.
    #[error(
        "node '{node}' (op '{op}'): no device can run it{}{}{}",
        asked(requested, *is_there), listed(.candidates), elsewhere(.soft), node = cut(.node), op = cut(.op)
    )]
    NoDevice {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The device requested by the node, or by the nodes that share its device.
        requested: Box<DeviceName>,
        /// Whether a device has that name.
        is_there: bool,
        /// Each device, with the reason why it cannot run the node.
        candidates: Vec<String>,
        /// The device that soft placement would choose, if it is off.
        soft: Option<String>,
    },
}

impl From<FunctionError> for GraphError {
    fn from(error: FunctionError) -> GraphError {
        GraphError::Function(Box::new(error))
    }
}

impl GraphError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            GraphError::Function(error) => error.code(),
            GraphError::UnknownOp { .. }
            | GraphError::MissingOps { .. }
            | GraphError::UnreadOutput { .. }
            | GraphError::NoSuchNode { .. }
            | GraphError::NoSuchOutput { .. } => Code::NOT_FOUND,
            GraphError::SplitFrame { .. } => Code::UNIMPLEMENTED,
            GraphError::TooManyNodes { .. } | GraphError::TooManyOutputs { .. } => {
                Code::RESOURCE_EXHAUSTED
            }
            GraphError::Location { .. } => Code::INTERNAL,
            GraphError::Version(error) => error.code(),
            GraphError::Cancelled => Code::CANCELLED,
            GraphError::Op { source, .. } => source.code(),
            GraphError::Attr { source, .. } => source.code(),
            GraphError::Device { source, .. } => source.code(),
            GraphError::Shape { source, .. } => source.code(),
            GraphError::ColocationConflict { source, .. } => source.code(),
            _ => Code::INVALID_ARGUMENT,
        }
    }
}
