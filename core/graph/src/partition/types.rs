//! What partitioning gives: partitions that are complete in themselves, from each of which a worker compiles a plan.

use super::PartOp;
use crate::{ControlFlow, DeviceEntry, FrameId, Frames, NodeId, Shapes};
use std::fmt;
use tenon_framework::{DType, PartialShape, device::DeviceName, op::Signature};

/// Where a value lies on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// The device's ordinary memory.
    Device,
    /// Host memory.
    Host,
}

/// What a [`PartNode`] does.
#[derive(Debug, Clone)]
pub enum PartKind {
    /// Runs an op.
    Op(Box<PartOp>),
    /// Gives its input to the rendezvous. For a control edge it has no data input: it sends an empty float
    /// tensor. A dead input is sent as dead, and so is a dead control input.
    Send(Transfer),
    /// Waits for what the `Send` of the same [`Transfer::id`] gives. Its output is dead when that was.
    Recv(Transfer),
    /// Gives feed `index`, in host memory. Never dead.
    Feed {
        /// Position among the feeds.
        index: usize,
    },
    /// Takes fetch `index`, in host memory.
    Fetch {
        /// Position among the fetches.
        index: usize,
    },
}

/// One tensor on its way, the same in a `Send` and its `Recv`. The key of the rendezvous is (name and incarnation of
/// `sender`, name of `receiver`, `tensor`, and at run time frame and iteration); it is unique among the transfers of a
/// [`Partitioned`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Number, from 0, among all transfers of the step's graph.
    pub id: u32,
    /// Device that sends.
    pub sender: DeviceName,
    /// Incarnation of that device.
    pub incarnation: u64,
    /// Device that receives.
    pub receiver: DeviceName,
    /// What is sent: `node:output`, `^node` for a control edge, with `@host` after it where a device with
    /// memory of its own receives it in host memory.
    pub tensor: String,
    /// Where the sender has it.
    pub source_memory: Memory,
    /// Where the receiver wants it.
    pub destination_memory: Memory,
    /// Element type, never a reference; float for a control edge.
    pub dtype: DType,
    /// What is known of the shape.
    pub shape: PartialShape,
}

impl Transfer {
    /// Whether it stays on one device: a copy between its memory and the host's.
    pub fn is_local(&self) -> bool {
        self.sender == self.receiver
    }

    /// Whether it stands for a control edge: a `Send` without data input.
    pub fn is_control(&self) -> bool {
        self.tensor.starts_with('^')
    }
}

/// Output `output` of node `node` of the same partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Position in [`Partition::nodes`].
    pub node: u32,
    /// Flat position among its outputs.
    pub output: u32,
}

/// A node of a partition.
#[derive(Debug, Clone)]
pub struct PartNode {
    /// Name, unique in the partition.
    pub name: String,
    /// Name of the op; `_Send`, `_Recv`, `_Arg` and `_Retval` for those that partitioning adds.
    pub op: String,
    /// What it does.
    pub kind: PartKind,
    /// Sources of the data inputs, in flat order. All lie in this partition, in the memory wanted.
    pub inputs: Vec<Edge>,
    /// Nodes of this partition that must have run before.
    pub control_inputs: Vec<u32>,
    /// Types of the inputs, as the op takes them, and of the outputs, with the positions of the op's arguments.
    pub signature: Signature,
    /// Where each input lies.
    pub input_memory: Vec<Memory>,
    /// Where each output lies.
    pub output_memory: Vec<Memory>,
    /// What is known of the outputs' shapes.
    pub output_shapes: Vec<PartialShape>,
    /// The frame in which the node runs.
    pub frame: FrameId,
    /// The frame to which its outputs belong: another one where it enters or leaves a loop.
    pub gives_to: FrameId,
}

impl PartNode {
    /// Role in control flow.
    pub fn control_flow(&self) -> ControlFlow {
        match &self.kind {
            PartKind::Op(op) => ControlFlow::of(&op.def),
            _ => ControlFlow::No,
        }
    }
}

/// The part of a step's graph on one device.
#[derive(Debug, Clone)]
pub struct Partition {
    /// Full name of the device.
    pub device: DeviceName,
    /// The nodes. Every edge leads forward but those by which a value comes back to a `Merge`.
    pub nodes: Vec<PartNode>,
    /// Whether a node steers: then values can be dead, and there may be loops.
    pub has_control_flow: bool,
}

/// A step's graph, cut.
#[derive(Debug, Clone)]
pub struct Partitioned {
    /// One for each device that has nodes, in the order of the devices.
    pub partitions: Vec<Partition>,
    /// The frames that [`PartNode::frame`] names.
    pub frames: Frames,
    /// Number of transfers.
    pub transfers: u32,
}

/// An argument of a node, for questions about its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgSide {
    /// Flat input.
    Input(usize),
    /// Flat output.
    Output(usize),
}

/// What partitioning has to be told.
pub struct PartitionOptions<'a> {
    /// The devices; a location is a position among them.
    pub devices: &'a [DeviceEntry],
    /// Location of each node.
    pub location: &'a dyn Fn(NodeId) -> usize,
    /// Location at which feeds enter and fetches leave, in host memory.
    pub client: usize,
    /// Whether an argument of a node, at the location given to it, lies in host memory. Not asked for
    /// devices that compute in host memory: there all lies in it.
    pub host_memory: &'a dyn Fn(NodeId, ArgSide) -> bool,
    /// What a node of the graph becomes.
    pub op: &'a dyn Fn(NodeId) -> PartOp,
    /// What is known of the shapes.
    pub shapes: &'a Shapes,
}

impl fmt::Display for Partition {
    /// One line per node: `3 y = Add(1:0, 2:0) ^0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.device)?;
        for (at, node) in self.nodes.iter().enumerate() {
            let inputs: Vec<String> =
                node.inputs.iter().map(|edge| format!("{}:{}", edge.node, edge.output)).collect();
            write!(f, "  {at} {} = {}({})", node.name, node.op, inputs.join(", "))?;
            for control in &node.control_inputs {
                write!(f, " ^{control}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
