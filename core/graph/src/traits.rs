//! The interfaces that the runtime implements for this crate.

use crate::Node;
use std::time::Duration;
use tenon_framework::{KernelError, PartialShape, Tensor, attr::AttrMap, device::DeviceName};

/// A device, as placement and partitioning see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceEntry {
    /// The full name.
    pub name: DeviceName,
    /// The type, such as `CPU`.
    pub device_type: String,
    /// The priority: types with a higher number are preferred.
    pub priority: i32,
    /// A number that is new each time the device is created: a value sent by one incarnation does
    /// not reach a receiver of another.
    pub incarnation: u64,
    /// Whether the device runs kernels in this process.
    pub is_local: bool,
    /// Whether the device computes in ordinary host memory.
    pub host_memory: bool,
}

/// A node for which a kernel is looked up.
#[derive(Debug, Clone, Copy)]
pub struct NodeQuery<'a> {
    /// The name of the node.
    pub node: &'a str,
    /// The name of the op.
    pub op: &'a str,
    /// Whether the executor runs the op itself, so that it needs no kernel.
    pub is_built_in: bool,
    /// The attributes, with defaults applied; `_kernel` requests a kernel label.
    pub attrs: &'a AttrMap,
}

impl<'a> NodeQuery<'a> {
    /// Creates the query for a node.
    pub fn of(node: &'a Node) -> NodeQuery<'a> {
        NodeQuery {
            node: &node.name,
            op: &node.op.name,
            is_built_in: node.op.is_built_in(),
            attrs: node.attrs.attrs(),
        }
    }
}

/// The available devices and the nodes that they can run.
pub trait DeviceView {
    /// The devices. Device numbers are positions in this list.
    fn devices(&self) -> &[DeviceEntry];

    /// Whether a device of this type can run the node. Ops that the executor runs itself can run
    /// everywhere.
    ///
    /// # Errors
    /// The reason why not, in a few words.
    fn has_kernel(&self, node: NodeQuery<'_>, device_type: &str) -> Result<(), String>;

    /// The image format in which a device computes, `NHWC` or `NCHW`; `None` if it accepts both.
    fn image_format(&self, _device: usize) -> Option<&str> {
        None
    }

    /// Whether any kernel for the op exists; if not, further queries are unnecessary.
    fn has_any_kernel(&self, _op: &str) -> bool {
        true
    }

    /// Whether a device can run the node with inputs of these shapes, as far as they are known. The
    /// kernel itself is asked too.
    ///
    /// # Errors
    /// The reason why not, in a few words.
    fn can_run(&self, node: &Node, inputs: &[PartialShape], device: usize) -> Result<(), String> {
        let _ = inputs;
        match self.devices().get(device) {
            Some(entry) => self.has_kernel(NodeQuery::of(node), &entry.device_type),
            None => Err(format!("there is no device {device}")),
        }
    }
}

/// Computes nodes before a step, for constant folding and calibration.
pub trait Evaluate {
    /// Computes the outputs of a stateless node for these inputs, in host memory.
    ///
    /// # Errors
    /// There is no kernel, or it failed.
    fn evaluate(&self, node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>, KernelError>;

    /// Like [`Evaluate::evaluate`], but the kernel is told to stop after `time`.
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
