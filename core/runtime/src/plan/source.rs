//! What building a plan asks, and what it gives beside the plan.

use super::{Choice, Transfer};
use crate::error::RuntimeError;
use std::sync::{Arc, atomic::AtomicU64};
use tenon_framework::{Tensor, device::base::LocalDevice, tensor::Memory as TensorMemory};
use tenon_graph::{FrameId, Memory, NodeId};

/// A kernel for a node.
pub(crate) struct NodeKernel {
    pub choice: Choice,
    /// Name of its plugin.
    pub plugin: String,
    pub runs: Option<Arc<AtomicU64>>,
    /// Whether its op has state.
    pub stateful: bool,
}

/// A device, and which of its memories.
pub(crate) type Wanted<'d> = (&'d Arc<dyn LocalDevice>, Memory);

/// What building a plan asks about the step's graph.
pub(crate) trait PlanSource {
    /// The kernel of a node; `None` for one that only orders others.
    fn kernel(&self, node: NodeId) -> Result<Option<NodeKernel>, RuntimeError>;
    /// The value of a node's only output, when it never changes, in memory of a device where it is wanted.
    fn constant(&self, node: NodeId, wanted: Wanted<'_>) -> Result<Option<Tensor>, RuntimeError>;
    /// The ends of a transfer.
    fn transfer(&self, transfer: &tenon_graph::Transfer) -> Transfer;
    /// The frame to which a node's outputs belong.
    fn gives_to(&self, node: NodeId) -> FrameId;
    /// Whether an `Enter` brings its value into every iteration.
    fn is_loop_constant(&self, node: NodeId) -> bool;
    /// Host memory.
    fn host_memory(&self) -> &Arc<dyn TensorMemory>;
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
