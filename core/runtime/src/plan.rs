//! Plans: a partition compiled into flat arrays.
//!
//! A plan is immutable and shared by all its steps; the state of a step is separate. [`HotNode`]
//! has the 48 bytes of a node that every run needs; everything else is in [`PlanNode`].

mod build;
mod facts;
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
use tenon_graph::ControlFlow;
use tenon_host::{call::NodeInfo, instance::KernelInstance};

/// The minimum cost of a call, in nanoseconds, for handing it to another thread.
const HANDOFF_NS: u32 = 50_000;

/// The entry point of a kernel.
pub(crate) type Compute = unsafe extern "C" fn(state: *mut KernelState, call: *const Call) -> Code;

/// Bits of [`HotNode::flags`]. Each one that is not in `PLAIN` takes the node off the fast path.
pub(crate) mod node_flags {
    /// The node is not a kernel but another [`super::Action`].
    pub const ACTION: u32 = 1;
    /// The kernel may complete later.
    pub const ASYNC: u32 = 2;
    /// The kernel may block.
    pub const BLOCKING: u32 = 4;
    /// Some output is not planned, so outputs are checked after the call.
    pub const CHECKED: u32 = 8;
    /// The calls are counted.
    pub const COUNTED: u32 = 16;
    /// The node waits for events, or other streams wait for its event.
    pub const EVENTS: u32 = 32;
    /// The node calls nothing and waits for no event: it is done once its successors are notified.
    pub const FORWARD: u32 = 64;
    /// The kernel only passes its input on, which the executor can do as well.
    pub const PASSES: u32 = 128;
    /// The flags of a node that only calls its kernel; at most its outputs are checked and its calls
    /// counted.
    pub const PLAIN: u32 = CHECKED | COUNTED | PASSES;
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
        // SAFETY: the builder creates each span together with the array that it indexes, so the
        // range is within `items`.
        unsafe { items.get_unchecked(self.start as usize..self.end as usize) }
    }
}

/// The data of a node that every run needs.
pub(crate) struct HotNode {
    pub compute: Compute,
    pub state: *mut KernelState,
    /// The outputs with buffers that exist before the call: positions in `Plan::planned`.
    pub planned: Span,
    /// The nodes that wait for this one: positions in `Plan::successors`.
    pub successors: Span,
    /// The inputs with counted readers: positions in `Plan::counted`.
    pub counted: Span,
    pub flags: u32,
}

// SAFETY: a kernel's state may be used from any thread, and `PlanNode::instance` keeps it alive as
// long as the plan.
unsafe impl Send for HotNode {}
// SAFETY: as for `Send`.
unsafe impl Sync for HotNode {}

impl HotNode {
    /// Whether the node only calls its kernel; at most its outputs are checked and its calls
    /// counted.
    pub fn is_plain(&self) -> bool {
        self.flags & !node_flags::PLAIN == 0
    }
}

/// A node that waits for another one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Successor(u32);

impl Successor {
    const ONLY: u32 = 1 << 31;

    /// Creates a successor; `only` means that it waits for no other node, so that it becomes ready
    /// at once.
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

/// The action of a node.
pub(crate) enum Action {
    /// Calls the kernel.
    Kernel,
    /// Sends the input to the rendezvous.
    Send(Transfer),
    /// Receives the output from the rendezvous.
    Recv(Transfer),
    /// Calls the kernel that `table` has for the shapes of the inputs. If the node has a kernel
    /// already, `table` holds the shapes that passed the check.
    PerShape {
        /// The table, shared by all steps.
        table: Arc<PerShape>,
        /// The position among the plan's tables, at which a step's state keeps the last entry used.
        at: u32,
    },
    /// Calls the function of this number.
    Call(u32),
    /// Does nothing: the node only orders others.
    Nothing,
}

/// One end of a transfer.
pub(crate) struct Transfer {
    /// The key of the value; frame and iteration are added at run time.
    pub key: crate::rendezvous::Key,
    /// The device at the other end; `None` if it belongs to another worker, whose values are
    /// transferred in host memory.
    pub peer: Option<Arc<dyn LocalDevice>>,
    /// Whether the receiver reads the value in the device's memory instead of host memory.
    pub to_device_memory: bool,
}

/// An input that refers to a variable which must have a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference {
    /// The slot of the reference.
    pub slot: u32,
    /// The slot for the value, if the kernel takes the value instead of the reference.
    pub shown: Option<u32>,
}

/// The data of a node that only some operations need.
pub(crate) struct PlanNode {
    pub info: Arc<NodeInfo>,
    /// The plugin of the kernel.
    pub plugin: String,
    pub action: Action,
    pub instance: Option<Arc<KernelInstance>>,
    /// The slot of each input.
    pub inputs: Box<[u32]>,
    /// The inputs that refer to variables which must have a value.
    pub references: Box<[Reference]>,
    /// The slot of the first output.
    pub first_output: u32,
    /// The number of predecessors.
    pub pending: u32,
    /// The cost of a call in nanoseconds, measured as the graph runs; 0 if unknown.
    pub cost_ns: AtomicU32,
    /// The number of measured calls, and their total nanoseconds.
    pub samples: [AtomicU64; 2],
    /// The number of calls under control flow; elsewhere the node is called once per step.
    pub calls: AtomicU64,
    /// A call counter, for [`Metadata`](crate::Metadata) and for the benchmarks' check that every
    /// kernel ran.
    pub runs: Option<Arc<std::sync::atomic::AtomicU64>>,
    /// The stream on which the node enqueues, on a device with streams.
    pub stream: NodeStream,
    /// The node's role in control flow.
    pub flow: ControlFlow,
    /// Whether the kernel only passes its input on.
    pub passes: bool,
}

impl PlanNode {
    /// The number of inputs, from the first one, that the node forwards: the executor passes their
    /// values on, and the node only reads the others. A `Merge` forwards one of its inputs.
    fn forwarded(&self) -> usize {
        match self.flow {
            ControlFlow::No => 0,
            ControlFlow::Merge => self.inputs.len(),
            _ => 1,
        }
    }

    /// The flags of the node's [`HotNode`]; `kernel` are the flags of its kernel.
    fn flags(&self, kernel: u32, checked: bool) -> u32 {
        let is_nothing = matches!(self.action, Action::Nothing);
        let set = [
            (!matches!(self.action, Action::Kernel), node_flags::ACTION),
            (is_nothing && !self.stream.has_events(), node_flags::FORWARD),
            (kernel & kernel_flags::ASYNC != 0, node_flags::ASYNC),
            (kernel & kernel_flags::BLOCKING != 0, node_flags::BLOCKING),
            (checked, node_flags::CHECKED),
            (self.runs.is_some(), node_flags::COUNTED),
            (self.passes && self.runs.is_none(), node_flags::PASSES),
            (self.stream.has_events(), node_flags::EVENTS),
        ];
        set.into_iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag)
    }

    /// Whether a call is long enough to be handed to another thread.
    pub fn is_costly(&self) -> bool {
        self.cost_ns.load(Ordering::Relaxed) >= HANDOFF_NS
    }

    /// Adds a measurement to the sums and the running mean (weight 1/8).
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
    /// The inferred shape, which the actual shape is checked against.
    pub shape: PartialShape,
    /// The full shape, if it is known; the slot's dimensions point to it.
    pub full: Option<Box<Shape>>,
    pub memory: Arc<dyn Memory>,
    /// Whether the buffer exists before the call.
    pub planned: bool,
    /// The value, if it never changes.
    pub constant: Option<Tensor>,
    /// The number of readers, if they are counted; otherwise 0.
    pub readers: u32,
    /// Whether nothing reads the output.
    pub unused: bool,
    /// Whether every iteration of a loop has the same value, which stays until the loop ends.
    pub steady: bool,
    /// Whether it may show a value that state holds, such as that of a variable.
    pub of_state: bool,
}

impl PlanOutput {
    /// Whether the readers are counted, so that the buffer is released after the last one.
    pub fn is_counted(&self) -> bool {
        !self.planned && !self.steady && self.constant.is_none()
    }
}

/// A compiled partition.
pub(crate) struct Plan {
    pub device: Arc<dyn LocalDevice>,
    pub hot: Box<[HotNode]>,
    pub nodes: Box<[PlanNode]>,
    pub outputs: Box<[PlanOutput]>,
    /// The outputs on a device with streams that may show values of variables.
    pub of_state: Box<[u32]>,
    pub successors: Box<[Successor]>,
    pub counted: Box<[u32]>,
    pub planned: Box<[u32]>,
    /// The nodes with more than one predecessor, with the number of predecessors.
    pub counters: Box<[(u32, u32)]>,
    /// The outputs with counted readers, with the number of readers.
    pub readers: Box<[(u32, u32)]>,
    /// The nodes without predecessors.
    pub roots: Box<[u32]>,
    /// The number of nodes whose kernels are chosen per shape.
    pub open: u32,
    /// The number of streams that the nodes use; 0 on a device without streams.
    pub streams: u32,
    /// The number of events by which streams wait for each other.
    pub events: u32,
    /// The role of each node in a recording, if the partition can be recorded.
    pub roles: Option<Box<[Role]>>,
    /// The number of ordinary steps before one is recorded; `None` disables recording.
    pub record_after: Option<u32>,
    /// The additional data for control flow, which replaces counters and successors.
    pub frame: Option<Arc<frames::FramePlan>>,
    /// The plans of a partition's loops, in the plan of the root frame.
    pub inner: Box<[Arc<Plan>]>,
}

impl Plan {
    /// Whether the plan has control flow.
    pub fn has_control_flow(&self) -> bool {
        self.frame.is_some()
    }

    /// The plans of the loops.
    pub fn inner(&self) -> &[Arc<Plan>] {
        &self.inner
    }
}
