//! What building a plan asks, and what it gives beside the plan.

use super::{Choice, Transfer};
use crate::error::RuntimeError;
use std::sync::{Arc, atomic::AtomicU64};
use tenon_framework::{
    device::{DeviceName, base::LocalDevice},
    tensor::Memory,
};
use tenon_graph::{PartNode, PartOp};

/// A kernel for a node.
pub(crate) struct NodeKernel {
    pub choice: Choice,
    /// Name of its plugin.
    pub plugin: String,
    pub runs: Option<Arc<AtomicU64>>,
    /// Whether its op has state.
    pub stateful: bool,
    /// Whether it takes references to variables that have no value yet.
    pub allows_uninitialized_input: bool,
}

/// What building a plan asks of the worker.
pub(crate) trait PlanSource {
    /// The kernel of a node on a device, made; `None` for one that only orders others.
    fn kernel(
        &self,
        node: &PartNode,
        op: &PartOp,
        device: &DeviceName,
    ) -> Result<Option<NodeKernel>, RuntimeError>;
    /// A transfer from or to the device of this name.
    fn transfer(&self, transfer: &tenon_graph::Transfer, peer: &DeviceName) -> Transfer;
    /// Host memory.
    fn host_memory(&self) -> &Arc<dyn Memory>;
    /// Streams that a step may use on a device with streams.
    fn streams(&self, device: &dyn LocalDevice) -> u32;
    /// Steps before one is recorded on a device that can; `None` is never.
    fn record_after(&self) -> Option<u32>;
}

/// Where feeds and fetches of one partition are.
#[derive(Default)]
pub(crate) struct Sites {
    /// Feed and output.
    pub feeds: Vec<(usize, u32)>,
    /// Fetch and output.
    pub fetches: Vec<(usize, u32)>,
}

/// A node of a partition, as one of its plans has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Position in the partition.
    pub at: u32,
    /// Whether the plan runs it.
    pub runs: bool,
    /// Whether its outputs are the plan's.
    pub gives: bool,
}

/// Where the nodes of a partition are in its plans: each node runs in one of them, and has its outputs in one.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// First output of each node, in the plan that has its outputs.
    pub first: Vec<u32>,
    /// Number of each node that runs, in the plan that runs it.
    pub number: Vec<Option<u32>>,
}

impl Places {
    /// Of so many nodes, of which none has a place yet.
    pub fn new(nodes: usize) -> Places {
        Places { first: vec![0; nodes], number: vec![None; nodes] }
    }
}
