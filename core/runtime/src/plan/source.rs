//! The inputs of building a plan, and its results besides the plan.

use super::{Choice, Transfer};
use crate::error::RuntimeError;
use std::sync::{Arc, atomic::AtomicU64};
use tenon_framework::{
    device::{DeviceName, base::LocalDevice},
    tensor::Memory,
};
use tenon_graph::{PartNode, PartOp};

/// The kernel of a node.
pub(crate) struct NodeKernel {
    pub choice: Choice,
    /// The name of its plugin.
    pub plugin: String,
    pub runs: Option<Arc<AtomicU64>>,
    /// Whether its op is stateful.
    pub stateful: bool,
    /// Whether it accepts references to variables without a value.
    pub allows_uninitialized_input: bool,
}

/// The services of the worker that building a plan uses.
pub(crate) trait PlanSource {
    /// Creates the kernel of a node on a device; `None` for a node that only orders others.
    fn kernel(
        &self,
        node: &PartNode,
        op: &PartOp,
        device: &DeviceName,
    ) -> Result<Option<NodeKernel>, RuntimeError>;
    /// The transfer from or to the device with this name.
    fn transfer(&self, transfer: &tenon_graph::Transfer, peer: &DeviceName) -> Transfer;
    /// The number of the function that a node calls.
    fn function(&self, node: &PartNode, op: &PartOp) -> Result<u32, RuntimeError>;
    /// The host memory.
    fn host_memory(&self) -> &Arc<dyn Memory>;
    /// The maximum number of streams of a step, on a device with streams.
    fn streams(&self, device: &dyn LocalDevice) -> u32;
    /// The number of steps before one is recorded, on a device that supports it; `None` disables
    /// recording.
    fn record_after(&self) -> Option<u32>;
}

/// The feeds and fetches of one partition.
#[derive(Default)]
pub(crate) struct Endpoints {
    /// Each feed with its output.
    pub feeds: Vec<(usize, u32)>,
    /// Each fetch with its output.
    pub fetches: Vec<(usize, u32)>,
}

/// A node of a partition, as a member of one plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// The position in the partition.
    pub at: u32,
    /// Whether the plan runs the node.
    pub runs: bool,
    /// Whether the plan has the node's outputs.
    pub gives: bool,
}

/// The places of a partition's nodes in its plans: each node runs in one of them, and has its
/// outputs in one.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The first output of each node, in the plan that has its outputs.
    pub first: Vec<u32>,
    /// The number of each node that runs, in the plan that runs it.
    pub number: Vec<Option<u32>>,
}

impl Places {
    /// Creates the places for this number of nodes, all still unassigned.
    pub fn new(nodes: usize) -> Places {
        Places { first: vec![0; nodes], number: vec![None; nodes] }
    }
}
