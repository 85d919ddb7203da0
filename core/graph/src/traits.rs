//! What this crate needs from above it; the runtime implements it.

use crate::Node;
use std::time::Duration;
use tenon_framework::{KernelError, PartialShape, Tensor, attr::AttrMap, device::DeviceName};

/// A device as placement and partitioning see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceEntry {
    /// Full name.
    pub name: DeviceName,
    /// Type, such as `CPU`.
    pub device_type: String,
    /// Types with the higher figure are preferred.
    pub priority: i32,
    /// A number that the device gets each time it is made: a value that one incarnation sends does not reach a receiver of
    /// another.
    pub incarnation: u64,
    /// Whether it runs kernels in this process.
    pub is_local: bool,
    /// Whether it computes in ordinary host memory.
    pub host_memory: bool,
}

/// A node for which a kernel is wanted.
#[derive(Debug, Clone, Copy)]
pub struct NodeQuery<'a> {
    /// Name of the node.
    pub node: &'a str,
    /// Name of the op.
    pub op: &'a str,
    /// Whether the executor does the op's work itself, so that it needs no kernel.
    pub is_built_in: bool,
    /// Attributes, defaults applied; `_kernel` asks for a label.
    pub attrs: &'a AttrMap,
}

impl<'a> NodeQuery<'a> {
    /// The query for a node.
    pub fn of(node: &'a Node) -> NodeQuery<'a> {
        NodeQuery {
            node: &node.name,
            op: &node.op.name,
            is_built_in: node.op.is_built_in(),
            attrs: node.attrs.attrs(),
        }
    }
}

/// The devices there are, and what they can run.
pub trait DeviceView {
    /// The devices. Positions in this list stand for them wherever a number does.
    fn devices(&self) -> &[DeviceEntry];

    /// Whether a device of this type can run the node. What the executor runs itself counts as runnable
    /// everywhere.
    ///
    /// # Errors
    /// Why not, in a few words.
    fn has_kernel(&self, node: NodeQuery<'_>, device_type: &str) -> Result<(), String>;

    /// The format in which a device computes images: `NHWC` or `NCHW`; none where it takes both as they are.
    fn image_format(&self, _device: usize) -> Option<&str> {
        None
    }

    /// Whether there is a kernel for the op at all: where there is none, nobody need ask further.
    fn has_any_kernel(&self, _op: &str) -> bool {
        true
    }

    /// Whether a device can run the node with inputs of these shapes, as far as they are known: the kernel is asked
    /// too.
    ///
    /// # Errors
    /// Why not, in a few words.
    fn can_run(&self, node: &Node, inputs: &[PartialShape], device: usize) -> Result<(), String> {
        let _ = inputs;
        match self.devices().get(device) {
            Some(entry) => self.has_kernel(NodeQuery::of(node), &entry.device_type),
            None => Err(format!("there is no device {device}")),
        }
    }
}

/// Computes nodes ahead of a step: for constant folding and calibration.
pub trait Evaluate {
    /// The outputs of a stateless node on these inputs, in host memory.
    ///
    /// # Errors
    /// There is no kernel, or it failed.
    fn evaluate(&self, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError>;

    /// As [`Evaluate::evaluate`], by a kernel that is told to end after `time`.
    ///
    /// # Errors
    /// As [`Evaluate::evaluate`].
    fn evaluate_within(
        &self,
        node: &Node,
        inputs: &[Tensor],
        time: Duration,
    ) -> Result<Vec<Tensor>, KernelError> {
        let _ = time;
        self.evaluate(node, inputs)
    }
}
