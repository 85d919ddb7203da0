//! What can be wrong with a graph, and with what is asked of one.

mod missing;

pub use missing::{MissingOp, MissingOps};

use crate::names::NODE_NAME_RULE;
use std::fmt::Write as _;
use tenon_framework::{
    Code, DType, KernelError,
    device::{DeviceName, DeviceNameError},
    op::OpError,
    text::{cut, cut_message, cut_text},
};
use tenon_proto::{convert::ConvertError, versions::VersionError};
use thiserror::Error;

/// What is wrong; names the node.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More nodes than a number can name.
    #[error("a graph has at most 2^32 - 1 nodes, found {found}")]
    TooManyNodes {
        /// Nodes there would be.
        found: usize,
    },
    /// More outputs than a graph may have.
    #[error(
        "node '{node}': the outputs of a graph's nodes are at most {limit}, found {found}",
        node = cut(.node)
    )]
    TooManyOutputs {
        /// The node with which there are too many.
        node: String,
        /// The limit.
        limit: usize,
        /// Outputs there would be.
        found: usize,
    },
    /// A name that no node may have.
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
    /// Two nodes of one name.
    #[error("node '{node}': there are two nodes of this name: rename one", node = cut(.node))]
    DuplicateNode {
        /// The name.
        node: String,
    },
    /// An op that nobody registered.
    #[error(
        "node '{node}': op '{op}' is not registered{near}; load the plugin that defines it",
        node = cut(.node), op = cut(.op), near = cut_text(.near)
    )]
    UnknownOp {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// Ops that a step needs and nobody registered.
    #[error("{ops}")]
    MissingOps {
        /// The ops, with the nodes that need them.
        ops: Box<MissingOps>,
    },
    /// An output of which nothing is known: the op of its node is not registered, and no node that is known reads it.
    #[error(
        "'{name}': its node's op '{op}' is not registered, and no node of a registered op reads this output: load the \
         plugin that defines the op",
        name = cut(.name), op = cut(.op)
    )]
    UnreadOutput {
        /// The tensor.
        name: String,
        /// Op of its node.
        op: String,
    },
    /// A graph that says that it is not for this reader.
    #[error(transparent)]
    Version(VersionError),
    /// Attributes or the number of inputs do not fit the op.
    #[error("node '{node}': {source}", node = cut(.node))]
    Op {
        /// The node.
        node: String,
        /// What does not fit.
        source: Box<OpError>,
    },
    /// An attribute's value cannot be read or written.
    #[error("node '{node}': attribute '{attr}': {source}", node = cut(.node), attr = cut(.attr))]
    Attr {
        /// The node.
        node: String,
        /// The attribute.
        attr: String,
        /// Why.
        source: Box<ConvertError>,
    },
    /// A device that is no device name.
    #[error("node '{node}': {source}", node = cut(.node))]
    Device {
        /// The node.
        node: String,
        /// Why.
        source: Box<DeviceNameError>,
    },
    /// An input that is written in none of the forms.
    #[error(
        "node '{node}': an input is written 'node', 'node:output' or '^node', found '{input}'",
        node = cut(.node), input = cut(.input)
    )]
    InputName {
        /// The node.
        node: String,
        /// What was found.
        input: String,
    },
    /// A data input after a control input.
    #[error(
        "node '{node}': data inputs stand before control inputs, found '{input}' after one",
        node = cut(.node), input = cut(.input)
    )]
    ControlOrder {
        /// The node.
        node: String,
        /// The data input.
        input: String,
    },
    /// An input from a node that is not there.
    #[error(
        "node '{node}': input '{input}' names a node that is not in the graph{near}",
        node = cut(.node), input = cut(.input), near = cut_text(.near)
    )]
    UnknownInput {
        /// The node.
        node: String,
        /// The input.
        input: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// An input from an output that is not there.
    #[error(
        "node '{node}': input '{input}': its node (op '{op}') has {outputs} outputs, numbered from 0",
        node = cut(.node), input = cut(.input), op = cut(.op)
    )]
    OutputRange {
        /// The node.
        node: String,
        /// The input.
        input: String,
        /// Op of the source.
        op: String,
        /// Its outputs.
        outputs: usize,
    },
    /// An input of another type than the op takes.
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
        /// Flat position.
        index: usize,
        /// Type that the op takes.
        expected: DType,
        /// Type that comes.
        found: DType,
        /// Where it comes from: output and op.
        from: String,
    },
    /// Nodes that depend on each other.
    #[error("the graph has a cycle outside of loops: {}", chain(.nodes))]
    Cycle {
        /// Their names, each the source of the next, the last of the first.
        nodes: Vec<String>,
    },
    /// Two different functions of one name.
    #[error(
        "function '{name}' is in the graph's library already, with another definition: rename it",
        name = cut(.name)
    )]
    FunctionConflict {
        /// The function.
        name: String,
    },
    /// Parts of a graph that come from different versions.
    #[error(
        "the graph comes from a producer of version {have}, found {found}: extend it with what the same \
         version wrote"
    )]
    Versions {
        /// Version of the graph.
        have: i32,
        /// Version of what is to be added.
        found: i32,
    },
    /// A feed or fetch that is no name of a tensor.
    #[error("'{name}': expected {expected}", name = cut(.name))]
    TensorName {
        /// What was given.
        name: String,
        /// The form.
        expected: &'static str,
    },
    /// A feed, fetch or target that is not there.
    #[error(
        "'{name}': the graph has no such node{near}",
        name = cut(.name), near = cut_text(.near)
    )]
    NoSuchNode {
        /// The node.
        name: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// A feed or fetch of an output that is not there.
    #[error("'{name}': the node has {outputs} outputs, numbered from 0", name = cut(.name))]
    NoSuchOutput {
        /// The tensor.
        name: String,
        /// Outputs of its node.
        outputs: usize,
    },
    /// A tensor that is fed twice.
    #[error("'{name}' is fed twice: feed it once", name = cut(.name))]
    FedTwice {
        /// The tensor.
        name: String,
    },
    /// The builder is given an input that is not of its graph.
    #[error(
        "node '{node}' (op '{op}'): expected an output of a node of this graph, found {found}",
        node = cut(.node), op = cut(.op), found = cut_text(.found)
    )]
    Foreign {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// What was given.
        found: String,
    },
    /// The builder is asked for a back edge that is none.
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
        /// Op of the source.
        source_op: String,
    },
    /// A fetch inside of a loop.
    #[error(
        "'{tensor}' lies in loop '{frame}' and has a value per iteration: fetch what its Exit gives",
        tensor = cut(.tensor), frame = cut(.frame)
    )]
    FetchInFrame {
        /// The output.
        tensor: String,
        /// Name of the frame.
        frame: String,
    },
    /// A shape function refuses its inputs.
    #[error("node '{node}' (op '{op}'): {source}", node = cut(.node), op = cut(.op))]
    Shape {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// What it says.
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
        /// One frame.
        first: String,
        /// The other.
        second: String,
    },
    /// An Exit or NextIteration outside of any frame.
    #[error(
        "node '{node}' (op '{op}') stands in no loop: its input does not come from an Enter",
        node = cut(.node), op = cut(.op)
    )]
    NoFrame {
        /// The node.
        node: String,
        /// Its op.
        op: String,
    },
    /// A loop over several devices.
    #[error(
        "loop '{frame}' is split over devices: '{tensor}' would go from {from} to {to}; distributed loops come \
         later: put the nodes of the loop on one device",
        frame = cut(.frame), tensor = cut(.tensor), from = cut_text(.from), to = cut(.to)
    )]
    SplitFrame {
        /// Name of the frame.
        frame: String,
        /// What crosses.
        tensor: String,
        /// Device of its source.
        from: String,
        /// Device where it is used.
        to: String,
    },
    /// A feed in the place of a reference.
    #[error(
        "'{tensor}' is used as a reference and cannot be fed: feed what reads it",
        tensor = cut(.tensor)
    )]
    FedReference {
        /// The output.
        tensor: String,
    },
    /// A reference that would have to be sent.
    #[error(
        "'{tensor}' is a reference on {from}, used as one on {to}: references stay on their device",
        tensor = cut(.tensor), from = cut_text(.from), to = cut(.to)
    )]
    SplitReference {
        /// The output.
        tensor: String,
        /// Device of its source.
        from: String,
        /// Device where it is used.
        to: String,
    },
    /// A location that is none of the devices.
    #[error("{what} is at location {found}, there are {devices} devices", what = cut(.what))]
    Location {
        /// Who is there.
        what: String,
        /// The location.
        found: usize,
        /// Number of devices.
        devices: usize,
    },
    /// Colocation with a node that is not there.
    #[error(
        "node '{node}': attribute '_class' names '{with}', which is not in the graph{near}",
        node = cut(.node), with = cut(.with), near = cut_text(.near)
    )]
    ColocationUnknown {
        /// The node.
        node: String,
        /// The name.
        with: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// Colocated nodes that ask for different devices.
    #[error(
        "nodes '{first}' and '{second}' belong on one device ({why}): {source}",
        first = cut(.first), second = cut(.second)
    )]
    ColocationConflict {
        /// One node.
        first: String,
        /// The other.
        second: String,
        /// Why they belong together.
        why: &'static str,
        /// How their requests differ.
        source: Box<DeviceNameError>,
    },
    /// Whoever waits for the step has given up while passes worked on its graph.
    #[error(
        "the step's graph was given up while passes worked on it: its deadline passed, or it was cancelled"
    )]
    GivenUp,
    /// A node that no device takes.
    #[error(
        "node '{node}' (op '{op}'): no device takes it{}{}{}",
        asked(requested, *is_there), listed(.candidates), elsewhere(.soft), node = cut(.node), op = cut(.op)
    )]
    NoDevice {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// What was asked for, alone or with the nodes that belong with it.
        requested: Box<DeviceName>,
        /// Whether a device has that name.
        is_there: bool,
        /// Each device with the reason why not.
        candidates: Vec<String>,
        /// The device that would take it by soft placement, where that was not asked for.
        soft: Option<String>,
    },
}

impl GraphError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            GraphError::MissingOps { ops } if ops.are_functions() => Code::UNIMPLEMENTED,
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
            GraphError::GivenUp => Code::CANCELLED,
            GraphError::Op { source, .. } => source.code(),
            GraphError::Attr { source, .. } => source.code(),
            GraphError::Device { source, .. } => source.code(),
            GraphError::Shape { source, .. } => source.code(),
            GraphError::ColocationConflict { source, .. } => source.code(),
            _ => Code::INVALID_ARGUMENT,
        }
    }
}

fn reference_note(expected: DType, found: DType) -> &'static str {
    let wants_reference = expected.is_ref() && !found.is_ref();
    let note = ": a reference is taken, which only variables and what passes them on give";
    if wants_reference { note } else { "" }
}

/// `'a' -> 'b' -> 'a'`, shortened.
fn chain(nodes: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = String::new();
    for name in nodes.iter().take(MOST) {
        let _ = write!(text, "'{}' -> ", cut(name));
    }
    if nodes.len() > MOST {
        let _ = write!(text, "({} more) -> ", nodes.len() - MOST);
    }
    let first = nodes.first().map(String::as_str).unwrap_or_default();
    let _ = write!(text, "'{}'", cut(first));
    text
}

fn asked(requested: &DeviceName, is_there: bool) -> String {
    let text = requested.to_string();
    match text.is_empty() {
        true => text,
        false if is_there => format!(" ({text} was asked for)"),
        false => format!(" ({text} was asked for, and there is no such device)"),
    }
}

fn elsewhere(soft: &Option<String>) -> String {
    let Some(device) = soft else { return String::new() };
    format!(
        "\nwith soft placement it would run on {device}: ask for that by the knob runtime.soft_placement \
         (--soft-placement on the command line), or name a device that can run it"
    )
}

fn listed(candidates: &[String]) -> String {
    match candidates {
        [] => ": there are no devices".to_owned(),
        lines => format!(":\n  {}", cut_message(&lines.join("\n  "))),
    }
}
