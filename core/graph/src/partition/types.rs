//! The result of partitioning. Each partition is self-contained: a worker compiles it to a plan.

use super::PartOp;
use crate::{ControlFlow, DeviceEntry, FrameId, Frames, NodeId, Shapes};
use std::fmt;
use tenon_framework::{DType, PartialShape, device::DeviceName, op::Signature};

/// The kind of memory that holds a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// The device's ordinary memory.
    Device,
    /// Host memory.
    Host,
}

/// The kind of a [`PartNode`].
#[derive(Debug, Clone)]
pub enum PartKind {
    /// Runs an op.
    Op(Box<PartOp>),
    /// Sends its input to the rendezvous. For a control edge it has no data input and sends an
    /// empty float tensor. If the input or the control input is dead, the value is sent as dead.
    Send(Transfer),
    /// Waits for the value from the `Send` with the same [`Transfer::id`]. Its output is dead if
    /// the sent value is.
    Recv(Transfer),
    /// Outputs feed `index`, in host memory. It is never dead.
    Feed {
        /// The position among the feeds.
        index: usize,
    },
    /// Receives fetch `index`, in host memory.
    Fetch {
        /// The position among the fetches.
        index: usize,
    },
}

/// A transfer of one tensor, the same in a `Send` and its `Recv`. The key of the rendezvous is
/// (name and incarnation of `sender`, name of `receiver`, `tensor`, and at run time frame and
/// iteration); it is unique among the transfers of a [`Partitioned`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The number, from 0, among all transfers of the step's graph.
    pub id: u32,
    /// The sending device.
    pub sender: DeviceName,
    /// The incarnation of the sending device.
    pub incarnation: u64,
    /// The receiving device.
    pub receiver: DeviceName,
    /// The name of the tensor: `node:output`, or `^node` for a control edge. It ends in `@host` if
    /// a device with memory of its own receives it in host memory.
    pub tensor: String,
    /// The memory that holds the value at the sender.
    pub source_memory: Memory,
    /// The memory that holds the value at the receiver.
    pub destination_memory: Memory,
    /// The element type, never a reference; float for a control edge.
    pub dtype: DType,
    /// The shape, as far as it is known.
    pub shape: PartialShape,
}

impl Transfer {
    /// Whether sender and receiver are one device: a copy between its memory and the host's.
    pub fn is_local(&self) -> bool {
        self.sender == self.receiver
    }

    /// Whether it represents a control edge: its `Send` has no data input.
    pub fn is_control(&self) -> bool {
        self.tensor.starts_with('^')
    }
}

/// Output `output` of node `node` of the same partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The position in [`Partition::nodes`].
    pub node: u32,
    /// The flat position among the node's outputs.
    pub output: u32,
}

/// A node of a partition.
#[derive(Debug, Clone)]
pub struct PartNode {
    /// The name, unique in the partition.
    pub name: String,
    /// The name of the op; `_Send`, `_Recv`, `_Arg` or `_Retval` for nodes that partitioning adds.
    pub op: String,
    /// The kind of node.
    pub kind: PartKind,
    /// The sources of the data inputs, in flat order. All are in this partition, in the memory that
    /// the node expects.
    pub inputs: Vec<Edge>,
    /// The nodes of this partition that must run before this one.
    pub control_inputs: Vec<u32>,
    /// The types of the inputs, as the op expects them, and of the outputs, with the positions of
    /// the op's arguments.
    pub signature: Signature,
    /// The memory of each input.
    pub input_memory: Vec<Memory>,
    /// The memory of each output.
    pub output_memory: Vec<Memory>,
    /// The shapes of the outputs, as far as they are known.
    pub output_shapes: Vec<PartialShape>,
    /// The frame in which the node runs.
    pub frame: FrameId,
    /// The frame to which its outputs belong; a node that enters or leaves a loop changes the
    /// frame.
    pub gives_to: FrameId,
}

impl PartNode {
    /// The role in control flow.
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
    /// The full name of the device.
    pub device: DeviceName,
    /// The nodes. Every edge leads forward, except the back edges to a `Merge`.
    pub nodes: Vec<PartNode>,
    /// Whether a node here has a role in control flow or receives values while another partition
    /// has such a node: values can then be dead, and there may be loops.
    pub has_control_flow: bool,
}

/// A step's graph, cut into partitions.
#[derive(Debug, Clone)]
pub struct Partitioned {
    /// One partition for each device that has nodes, in the order of the devices.
    pub partitions: Vec<Partition>,
    /// The frames that [`PartNode::frame`] refers to.
    pub frames: Frames,
    /// The number of transfers.
    pub transfers: u32,
}

/// An input or output of a node, for queries about its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgSide {
    /// The input at this flat position.
    Input(usize),
    /// The output at this flat position.
    Output(usize),
}

/// The inputs of partitioning.
pub struct PartitionOptions<'a> {
    /// The devices; a location is a position in this list.
    pub devices: &'a [DeviceEntry],
    /// The location of each node.
    pub location: &'a dyn Fn(NodeId) -> usize,
    /// The location at which feeds enter and fetches leave, in host memory.
    pub client: usize,
    /// Whether an input or output of a node is in host memory at the node's location. It is not
    /// called for devices that compute in host memory, where everything is.
    pub host_memory: &'a dyn Fn(NodeId, ArgSide) -> bool,
    /// The partition op for a node of the graph.
    pub op: &'a dyn Fn(NodeId) -> PartOp,
    /// The known shapes.
    pub shapes: &'a Shapes,
    /// The `Merge` of each control loop.
    pub control_loops: &'a [NodeId],
}

impl fmt::Display for Partition {
    /// Writes one line per node: `3 y = Add(1:0, 2:0) ^0`.
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
