//! What can be wrong with a graph, and with what is asked of one.

use std::fmt::Write as _;
use tenon_framework::{
    Code, DType, KernelError,
    device::{DeviceName, DeviceNameError},
    op::OpError,
};
use tenon_proto::convert::ConvertError;
use thiserror::Error;

use crate::import::NODE_NAME_RULE;

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
    #[error("node '{node}': the outputs of a graph's nodes are at most {limit}, found {found}")]
    TooManyOutputs {
        /// The node with which there are too many.
        node: String,
        /// The limit.
        limit: usize,
        /// Outputs there would be.
        found: usize,
    },
    /// A name that no node may have.
    #[error("node '{name}' (op '{op}'): names of nodes follow {NODE_NAME_RULE}: rename it")]
    NodeName {
        /// The name.
        name: String,
        /// The op.
        op: String,
    },
    /// Two nodes of one name.
    #[error("node '{node}': there are two nodes of this name: rename one")]
    DuplicateNode {
        /// The name.
        node: String,
    },
    /// An op that nobody registered.
    #[error("node '{node}': op '{op}' is not registered{near}; load the plugin that defines it")]
    UnknownOp {
        /// The node.
        node: String,
        /// The op.
        op: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// A node that calls a function of the graph's library.
    #[error(
        "node '{node}': '{op}' is a function of the graph's library; calling functions comes later: write a \
         graph whose functions are inlined"
    )]
    FunctionCall {
        /// The node.
        node: String,
        /// The function.
        op: String,
    },
    /// Attributes or the number of inputs do not fit the op.
    #[error("node '{node}': {source}")]
    Op {
        /// The node.
        node: String,
        /// What does not fit.
        source: Box<OpError>,
    },
    /// An attribute's value cannot be read or written.
    #[error("node '{node}': attribute '{attr}': {source}")]
    Attr {
        /// The node.
        node: String,
        /// The attribute.
        attr: String,
        /// Why.
        source: Box<ConvertError>,
    },
    /// A device that is no device name.
    #[error("node '{node}': {source}")]
    Device {
        /// The node.
        node: String,
        /// Why.
        source: Box<DeviceNameError>,
    },
    /// An input that is written in none of the forms.
    #[error("node '{node}': an input is written 'node', 'node:output' or '^node', found '{input}'")]
    InputName {
        /// The node.
        node: String,
        /// What was found.
        input: String,
    },
    /// A data input after a control input.
    #[error("node '{node}': data inputs stand before control inputs, found '{input}' after one")]
    ControlOrder {
        /// The node.
        node: String,
        /// The data input.
        input: String,
    },
    /// An input from a node that is not there.
    #[error("node '{node}': input '{input}' names a node that is not in the graph{near}")]
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
        "node '{node}': input '{input}': its node (op '{op}') has {outputs} outputs, numbered from 0"
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
         {from}{}", reference_note(*.expected, *.found)
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
        "function '{name}' is in the graph's library already, with another definition: rename it"
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
    #[error("'{name}': expected {expected}")]
    TensorName {
        /// What was given.
        name: String,
        /// The form.
        expected: &'static str,
    },
    /// A feed, fetch or target that is not there.
    #[error("'{name}': the graph has no such node{near}")]
    NoSuchNode {
        /// The node.
        name: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// A feed or fetch of an output that is not there.
    #[error("'{name}': the node has {outputs} outputs, numbered from 0")]
    NoSuchOutput {
        /// The tensor.
        name: String,
        /// Outputs of its node.
        outputs: usize,
    },
    /// A tensor that is fed twice.
    #[error("'{name}' is fed twice: feed it once")]
    FedTwice {
        /// The tensor.
        name: String,
    },
    /// The builder is given an input that is not of its graph.
    #[error("node '{node}' (op '{op}'): expected an output of a node of this graph, found {found}")]
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
         one from '{source_name}' (op '{source_op}')"
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
        "'{tensor}' lies in loop '{frame}' and has a value per iteration: fetch what its Exit gives"
    )]
    FetchInFrame {
        /// The output.
        tensor: String,
        /// Name of the frame.
        frame: String,
    },
    /// A shape function refuses its inputs.
    #[error("node '{node}' (op '{op}'): {source}")]
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
         values into a loop by Enter and out of it by Exit"
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
    #[error("node '{node}' (op '{op}') stands in no loop: its input does not come from an Enter")]
    NoFrame {
        /// The node.
        node: String,
        /// Its op.
        op: String,
    },
    /// A loop over several devices.
    #[error(
        "loop '{frame}' is split over devices: '{tensor}' would go from {from} to {to}; distributed loops come \
         later: put the nodes of the loop on one device"
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
    #[error("'{tensor}' is used as a reference and cannot be fed: feed what reads it")]
    FedReference {
        /// The output.
        tensor: String,
    },
    /// A reference that would have to be sent.
    #[error(
        "'{tensor}' is a reference on {from}, used as one on {to}: references stay on their device"
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
    #[error("{what} is at location {found}, there are {devices} devices")]
    Location {
        /// Who is there.
        what: String,
        /// The location.
        found: usize,
        /// Number of devices.
        devices: usize,
    },
    /// Colocation with a node that is not there.
    #[error("node '{node}': attribute '_class' names '{with}', which is not in the graph{near}")]
    ColocationUnknown {
        /// The node.
        node: String,
        /// The name.
        with: String,
        /// Names it may have been meant as, in words; may be empty.
        near: String,
    },
    /// Colocated nodes that ask for different devices.
    #[error("nodes '{first}' and '{second}' belong on one device ({why}): {source}")]
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
    #[error("node '{node}' (op '{op}'): no device takes it{}{}", asked(.requested), listed(.candidates))]
    NoDevice {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// What was asked for, alone or with the nodes that belong with it.
        requested: Box<DeviceName>,
        /// Each device with the reason why not.
        candidates: Vec<String>,
    },
}

impl GraphError {
    /// The canonical code.
    pub fn code(&self) -> Code {
        match self {
            GraphError::UnknownOp { .. }
            | GraphError::NoSuchNode { .. }
            | GraphError::NoSuchOutput { .. } => Code::NOT_FOUND,
            GraphError::FunctionCall { .. } | GraphError::SplitFrame { .. } => Code::UNIMPLEMENTED,
            GraphError::TooManyNodes { .. } | GraphError::TooManyOutputs { .. } => {
                Code::RESOURCE_EXHAUSTED
            }
            GraphError::Location { .. } => Code::INTERNAL,
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
    if expected.is_ref() && !found.is_ref() {
        ": a reference is taken, which only variables and what passes them on give"
    } else {
        ""
    }
}

/// `'a' -> 'b' -> 'a'`, shortened.
fn chain(nodes: &[String]) -> String {
    const MOST: usize = 8;
    let mut text = String::new();
    for name in nodes.iter().take(MOST) {
        let _ = write!(text, "'{name}' -> ");
    }
    if nodes.len() > MOST {
        let _ = write!(text, "({} more) -> ", nodes.len() - MOST);
    }
    let first = nodes.first().map(String::as_str).unwrap_or_default();
    let _ = write!(text, "'{first}'");
    text
}

fn asked(requested: &DeviceName) -> String {
    let text = requested.to_string();
    if text.is_empty() { text } else { format!(" ({text} was asked for)") }
}

fn listed(candidates: &[String]) -> String {
    match candidates {
        [] => ": there are no devices".to_owned(),
        lines => format!(":\n  {}", lines.join("\n  ")),
    }
}
