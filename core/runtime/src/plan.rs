//! Plans: a partition compiled into flat arrays.
//!
//! A plan is immutable and shared by all steps over it; what changes during a step is in the step's state.
//! What a node needs every time it runs is in [`HotNode`], 48 bytes; everything else is in [`PlanNode`].

mod build;
pub(crate) mod frames;
mod per_shape;
mod replay;
mod source;
mod streams;

pub(crate) use build::build;
pub(crate) use per_shape::{Choice, Entry, MakeKernel, PerShape};
pub(crate) use replay::Role;
pub(crate) use source::{NodeKernel, PlanSource};
pub(crate) use streams::NodeStream;

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
use tenon_abi::{Call, Code, DType, KernelState, kernel_flags};
use tenon_framework::{PartialShape, Shape, Tensor, device::base::LocalDevice, tensor::Memory};
use tenon_host::{call::NodeInfo, instance::KernelInstance};

/// Entry of a kernel.
pub(crate) type Compute = unsafe extern "C" fn(state: *mut KernelState, call: *const Call) -> Code;

/// Bits of [`HotNode::flags`]: any of them sends the node off the straight path.
pub(crate) mod node_flags {
    /// Not a kernel: one of [`super::Action`].
    pub const ACTION: u32 = 1;
    /// The kernel may complete later.
    pub const ASYNC: u32 = 2;
    /// The kernel may block.
    pub const BLOCKING: u32 = 4;
    /// Some output is not planned: it is looked at after the call.
    pub const CHECKED: u32 = 8;
    /// Calls are counted.
    pub const COUNTED: u32 = 16;
    /// Its stream waits for others, or others for it.
    pub const EVENTS: u32 = 32;
}

/// A range of positions in one of the plan's arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    #[inline(always)]
    pub fn of<T>(self, items: &[T]) -> &[T] {
        debug_assert!(self.start <= self.end && self.end as usize <= items.len());
        // SAFETY: the builder makes spans of the array that it hands over with them.
        unsafe { items.get_unchecked(self.start as usize..self.end as usize) }
    }
}

/// What a node needs every time it runs.
pub(crate) struct HotNode {
    pub compute: Compute,
    pub state: *mut KernelState,
    /// Outputs whose buffers are there before the call: positions in `Plan::planned`.
    pub planned: Span,
    /// Positions in `Plan::successors`.
    pub successors: Span,
    /// Inputs whose readers are counted: positions in `Plan::counted`.
    pub counted: Span,
    pub flags: u32,
}

// SAFETY: the kernel's state may be used from any thread, and lives as long as the plan's instance.
unsafe impl Send for HotNode {}
// SAFETY: as above.
unsafe impl Sync for HotNode {}

impl HotNode {
    /// Whether its kernel just runs, and what it leaves is looked at afterwards at most.
    pub fn is_plain(&self) -> bool {
        self.flags & !(node_flags::CHECKED | node_flags::COUNTED) == 0
    }
}

/// A node to be told that this one is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Successor(u32);

impl Successor {
    const ONLY: u32 = 1 << 31;

    /// `only`: it waits for nothing else, so that it is ready at once.
    pub fn new(node: u32, only: bool) -> Successor {
        debug_assert!(node & Successor::ONLY == 0);
        Successor(if only { node | Successor::ONLY } else { node })
    }

    #[inline(always)]
    pub fn node(self) -> u32 {
        self.0 & !Successor::ONLY
    }

    #[inline(always)]
    pub fn is_only(self) -> bool {
        self.0 & Successor::ONLY != 0
    }
}

/// What a node does that is no kernel.
pub(crate) enum Action {
    /// Computes by its kernel.
    Kernel,
    /// Gives its input to the rendezvous.
    Send(Transfer),
    /// Takes its output from the rendezvous.
    Recv(Transfer),
    /// Computes by the kernel that `table` has for the shapes of the inputs; where the node has its kernel, `table` has
    /// the shapes that passed the check.
    PerShape {
        /// Shared by all steps.
        table: Arc<PerShape>,
        /// Position among those of the plan: where a step's state keeps what the last call used.
        at: u32,
    },
    /// Nothing: it only orders others.
    Nothing,
}

/// One end of a transfer.
pub(crate) struct Transfer {
    /// What the value travels under; frame and iteration are added as it runs.
    pub key: crate::rendezvous::Key,
    /// The device at the other end; `None` for one of another worker, whose values travel in host memory.
    pub peer: Option<Arc<dyn LocalDevice>>,
    /// Whether the receiver wants it in its own memory, not in the host's.
    pub to_device_memory: bool,
}

/// An input that is a reference to a variable which must have a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    /// Slot of the reference.
    pub slot: u32,
    /// Slot that shows the value, for a kernel that takes the value and not the reference.
    pub shown: Option<u32>,
}

/// Everything else about a node.
pub(crate) struct PlanNode {
    pub info: Arc<NodeInfo>,
    /// Plugin of the kernel.
    pub plugin: String,
    pub action: Action,
    pub instance: Option<Arc<KernelInstance>>,
    /// Slot of each input.
    pub inputs: Box<[u32]>,
    /// Inputs that are references to variables which must have a value.
    pub references: Box<[Reference]>,
    /// Slot of the first output.
    pub first_output: u32,
    /// Predecessors that have to be done.
    pub pending: u32,
    /// Nanoseconds that a call costs, measured as the graph runs; 0 is not known.
    pub cost_ns: AtomicU32,
    /// Calls that were measured, and the nanoseconds that they took together.
    pub samples: [AtomicU64; 2],
    /// Calls, where control flow steers: elsewhere each step is one.
    pub calls: AtomicU64,
    /// Calls, for `Metadata` and the benchmarks' check that every kernel ran.
    pub runs: Option<Arc<std::sync::atomic::AtomicU64>>,
    /// Where it enqueues, on a device with streams.
    pub stream: NodeStream,
    /// Whether it passes on the first of its inputs that is not dead.
    pub merges: bool,
}

impl PlanNode {
    /// The flags of its [`HotNode`]; `kernel` are those of its kernel.
    fn flags(&self, kernel: u32, checked: bool) -> u32 {
        let set = [
            (!matches!(self.action, Action::Kernel), node_flags::ACTION),
            (kernel & kernel_flags::ASYNC != 0, node_flags::ASYNC),
            (kernel & kernel_flags::BLOCKING != 0, node_flags::BLOCKING),
            (checked, node_flags::CHECKED),
            (self.runs.is_some(), node_flags::COUNTED),
            (self.stream.has_events(), node_flags::EVENTS),
        ];
        set.into_iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag)
    }

    /// Takes a measurement into the sums and the running mean (weight 1/8).
    pub fn sample(&self, ns: u64) {
        let [count, sum] = &self.samples;
        count.fetch_add(1, Ordering::Relaxed);
        sum.fetch_add(ns, Ordering::Relaxed);
        let ns = u32::try_from(ns).unwrap_or(u32::MAX).max(1);
        let old = self.cost_ns.load(Ordering::Relaxed);
        let new = if old == 0 { ns } else { old - old / 8 + ns / 8 };
        self.cost_ns.store(new.max(1), Ordering::Relaxed);
    }
}

/// An output.
pub(crate) struct PlanOutput {
    pub dtype: DType,
    /// What shape inference knows; checked against what the kernel gives.
    pub shape: PartialShape,
    /// The whole shape, when it is known: the slot's dimensions point here.
    pub full: Option<Box<Shape>>,
    pub memory: Arc<dyn Memory>,
    /// The buffer is there before the call.
    pub planned: bool,
    /// The value, when it never changes.
    pub constant: Option<Tensor>,
    /// Readers, where they are counted; 0 where they are not.
    pub readers: u32,
    /// Nobody reads it.
    pub unused: bool,
}

impl PlanOutput {
    /// Whether its readers are counted: its buffer goes back when the last is done.
    pub fn is_counted(&self) -> bool {
        !self.planned && self.constant.is_none()
    }
}

/// A partition, compiled.
pub(crate) struct Plan {
    pub device: Arc<dyn LocalDevice>,
    pub hot: Box<[HotNode]>,
    pub nodes: Box<[PlanNode]>,
    pub outputs: Box<[PlanOutput]>,
    pub successors: Box<[Successor]>,
    pub counted: Box<[u32]>,
    pub planned: Box<[u32]>,
    /// Nodes with more than one predecessor, and how many.
    pub counters: Box<[(u32, u32)]>,
    /// Outputs with counted readers, and how many.
    pub readers: Box<[(u32, u32)]>,
    /// Nodes without predecessors.
    pub roots: Box<[u32]>,
    /// Nodes whose kernels are chosen per shape.
    pub open: u32,
    /// Streams that its nodes enqueue on; 0 on a device without streams.
    pub streams: u32,
    /// Events by which they wait for each other.
    pub events: u32,
    /// What each node is to who records the partition, where that can be done.
    pub roles: Option<Box<[Role]>>,
    /// Steps that run as ever before one is recorded; `None` is never.
    pub record_after: Option<u32>,
    /// What control flow needs beyond: instead of counters and successors.
    pub frame: Option<Arc<frames::FramePlan>>,
    /// The plans of a partition's loops, in that of the step itself.
    pub inner: Box<[Arc<Plan>]>,
}

impl Plan {
    /// Whether control flow steers its nodes.
    pub fn has_control_flow(&self) -> bool {
        self.frame.is_some()
    }

    /// The plans of its loops.
    pub fn inner(&self) -> &[Arc<Plan>] {
        &self.inner
    }
}
