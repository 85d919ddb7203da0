//! Compiles a partition to a plan.

use super::{
    Action, Choice, Compute, HotNode, Plan, PlanNode, PlanOutput, Reference, Span, Successor,
    facts::{passes_on, reads_state_alone},
    frames,
    source::{Endpoints, Member, NodeKernel, Places, PlanSource},
    streams::{self, Kind, NodeStream, StreamNode},
};
use crate::error::RuntimeError;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64},
    },
};
use tenon_abi::{Call, Code, KernelState};
use tenon_framework::{
    Tensor, device::base::LocalDevice, op::OpRole, tensor::Memory as TensorMemory,
};
use tenon_graph::{Frames, Memory, PartKind, PartNode, PartOp, Partition};
use tenon_host::{
    call::{KEEP_BYTES, NodeInfo, OutputSpec, is_handle},
    devices::copy_tensor,
    instance::KernelInstance,
};

/// Compiles a partition.
pub(crate) fn build(
    partition: &Partition,
    frames: &Frames,
    device: &Arc<dyn LocalDevice>,
    source: &dyn PlanSource,
) -> Result<(Plan, Endpoints), RuntimeError> {
    if partition.has_control_flow {
        return frames::build(partition, frames, device, source);
    }
    let count = partition.nodes.len();
    let members = (0..count as u32).map(|at| Member { at, runs: true, gives: true }).collect();
    let mut builder = Builder::new(partition, device, source, members, Places::new(count));
    builder.outputs()?;
    builder.nodes()?;
    builder.edges();
    let (plan, endpoints, _) = builder.finish();
    Ok((plan, endpoints))
}

/// The entry point of nodes without kernels; it is never called.
unsafe extern "C" fn no_kernel(_state: *mut KernelState, _call: *const Call) -> Code {
    Code::INTERNAL
}

pub(super) struct Builder<'p> {
    partition: &'p Partition,
    device: &'p Arc<dyn LocalDevice>,
    source: &'p dyn PlanSource,
    device_memory: Arc<dyn TensorMemory>,
    /// The nodes of the partition that are in the plan; with frames, only some of them.
    members: Vec<Member>,
    places: Places,
    /// The kernels, by member.
    kernels: Vec<Option<NodeKernel>>,
    hot: Vec<HotNode>,
    nodes: Vec<PlanNode>,
    /// How each node uses streams.
    kinds: Vec<Kind>,
    outputs: Vec<PlanOutput>,
    successors: Vec<Successor>,
    counted: Vec<u32>,
    planned: Vec<u32>,
    endpoints: Endpoints,
    /// The number of nodes whose kernels are chosen per shape.
    open: u32,
    /// The number of streams and events, on a device with streams.
    streams: u32,
    events: u32,
}

impl<'p> Builder<'p> {
    pub(super) fn new(
        partition: &'p Partition,
        device: &'p Arc<dyn LocalDevice>,
        source: &'p dyn PlanSource,
        members: Vec<Member>,
        places: Places,
    ) -> Builder<'p> {
        let info = device.info();
        let device_memory =
            if info.host_memory { None } else { device.memory(info.ordinary_memory()) };
        Builder {
            partition,
            device,
            source,
            device_memory: device_memory.unwrap_or_else(|| Arc::clone(source.host_memory())),
            members,
            places,
            kernels: Vec::new(),
            hot: Vec::new(),
            nodes: Vec::new(),
            kinds: Vec::new(),
            outputs: Vec::new(),
            successors: Vec::new(),
            counted: Vec::new(),
            planned: Vec::new(),
            endpoints: Endpoints::default(),
            open: 0,
            streams: u32::from(info.streams),
            events: 0,
        }
    }

    fn memory(&self, memory: Memory) -> Arc<dyn TensorMemory> {
        match memory {
            Memory::Host => Arc::clone(self.source.host_memory()),
            Memory::Device => Arc::clone(&self.device_memory),
        }
    }

    /// Creates a [`PlanOutput`] for every output, and the kernels.
    pub(super) fn outputs(&mut self) -> Result<(), RuntimeError> {
        for index in 0..self.members.len() {
            let member = self.members[index];
            if !member.gives {
                self.kernels.push(None);
                continue;
            }
            let node = &self.partition.nodes[member.at as usize];
            let (mut kernel, mut constant) = (None, None);
            if let PartKind::Op(op) = &node.kind {
                constant = self.constant(node, op)?;
                if constant.is_none() {
                    kernel = self.source.kernel(node, op, &self.partition.device)?;
                }
            }
            self.places.first[member.at as usize] = self.outputs.len() as u32;
            let may_plan = kernel.as_ref().is_some_and(|kernel| kernel.choice.may_plan())
                && !reads_state_alone(node);
            for at in 0..node.signature.outputs.len() {
                let output = self.output(node, at, may_plan, constant.clone());
                self.outputs.push(output);
            }
            self.kernels.push(kernel);
        }
        Ok(())
    }

    /// The value of a constant node's output, in the memory where it is read.
    fn constant(&self, node: &PartNode, op: &PartOp) -> Result<Option<Tensor>, RuntimeError> {
        let Some(value) = op.value() else { return Ok(None) };
        let on_device = node.output_memory.first() == Some(&Memory::Device);
        let there = self.device.memory(self.device.info().ordinary_memory());
        let Some(there) = there.filter(|_| on_device) else { return Ok(Some(value.clone())) };
        copy_tensor(value, None, &there, Some(&**self.device)).map(Some).map_err(|error| {
            RuntimeError::Kernel {
                node: node.name.clone(),
                op: node.op.clone(),
                device: self.device.name().to_string(),
                error,
            }
        })
    }

    fn output(
        &self,
        node: &PartNode,
        at: usize,
        may_plan: bool,
        constant: Option<Tensor>,
    ) -> PlanOutput {
        let dtype = node.signature.outputs[at];
        let shape = node.output_shapes[at].clone();
        let full = shape.full().map(Box::new);
        let bytes = full.as_ref().and_then(|full| full.elements().checked_mul(dtype.size()?));
        let planned = may_plan
            && !dtype.is_ref()
            && !is_handle(dtype)
            && bytes.is_some_and(|bytes| bytes <= KEEP_BYTES);
        PlanOutput {
            dtype,
            shape,
            full,
            memory: self.memory(node.output_memory[at]),
            planned,
            constant,
            readers: 0,
            unused: true,
            steady: frames::is_steady(node),
            of_state: reads_state_alone(node) && !is_handle(dtype),
        }
    }

    /// Numbers the nodes that run, and resolves feeds and fetches.
    pub(super) fn nodes(&mut self) -> Result<(), RuntimeError> {
        for index in 0..self.members.len() {
            let member = self.members[index];
            if !member.runs {
                continue;
            }
            let at = member.at as usize;
            let node = &self.partition.nodes[at];
            let first = self.places.first[at];
            match node.kind {
                PartKind::Feed { index } => self.endpoints.feeds.push((index, first)),
                PartKind::Fetch { index } => {
                    let edge = node.inputs[0];
                    let output = self.places.first[edge.node as usize] + edge.output;
                    self.outputs[output as usize].unused = false;
                    self.endpoints.fetches.push((index, output));
                }
                PartKind::Op(_)
                    if member.gives
                        && node.control_inputs.is_empty()
                        && self.outputs.get(first as usize).is_some_and(|output| {
                            !node.signature.outputs.is_empty() && output.constant.is_some()
                        }) => {}
                _ => {
                    self.places.number[at] = Some(self.nodes.len() as u32);
                    let node = self.plan_node(index, node)?;
                    self.nodes.push(node);
                }
            }
        }
        Ok(())
    }

    fn plan_node(&mut self, index: usize, node: &PartNode) -> Result<PlanNode, RuntimeError> {
        let kernel = self.kernels[index].take();
        let Member { at, gives, .. } = self.members[index];
        let (inputs, references) = self.inputs(node, kernel.as_ref());
        let outputs = || {
            let spec = |out: usize| OutputSpec {
                dtype: node.signature.outputs[out],
                memory: self.memory(node.output_memory[out]),
            };
            let own = if gives { node.signature.outputs.len() } else { 0 };
            (0..own).map(spec).collect()
        };
        let host_only = self.device.info().host_memory;
        let own = || NodeInfo {
            name: node.name.clone(),
            op: node.op.clone(),
            def: None,
            outputs: outputs(),
            input_args: Vec::new(),
            output_args: Vec::new(),
            functions: Vec::new(),
            host_memory: Arc::clone(self.source.host_memory()),
            device_memory: Arc::clone(&self.device_memory),
            device: if host_only { std::ptr::null_mut() } else { self.device.as_raw() },
            device_state: self.device.state(),
        };
        let info = match &kernel {
            Some(kernel) => Arc::clone(kernel.choice.info()),
            None => Arc::new(own()),
        };
        let shown = inputs.iter().map(|&input| self.outputs[input as usize].dtype);
        let has_state = !references.is_empty() || shown.into_iter().any(streams::is_state);
        self.kinds.push(Kind::of(node, kernel.as_ref(), has_state));
        // The value of a reference is looked up before each call.
        let passes = references.is_empty()
            && kernel.as_ref().is_some_and(|kernel| passes_on(node, &kernel.choice));
        let (plugin, runs, choice) = match kernel {
            Some(kernel) => (kernel.plugin, kernel.runs, Some(kernel.choice)),
            None => (String::new(), None, None),
        };
        let (action, instance) = self.action(node, choice)?;
        Ok(PlanNode {
            info,
            plugin,
            action,
            instance,
            inputs: inputs.into(),
            references: references.into(),
            first_output: if gives { self.places.first[at as usize] } else { 0 },
            pending: 0,
            cost_ns: AtomicU32::new(0),
            samples: Default::default(),
            calls: AtomicU64::new(0),
            runs,
            stream: NodeStream::default(),
            flow: node.control_flow(),
            passes,
        })
    }

    /// The slots of a node's inputs. If a kernel takes the value of a reference, the value gets a
    /// slot of its own, which is filled before each call.
    fn inputs(
        &mut self,
        node: &PartNode,
        kernel: Option<&NodeKernel>,
    ) -> (Vec<u32>, Vec<Reference>) {
        let (mut inputs, mut references) = (Vec::new(), Vec::new());
        for (edge, wanted) in node.inputs.iter().zip(&node.signature.inputs) {
            let source = self.places.first[edge.node as usize] + edge.output;
            let output = &mut self.outputs[source as usize];
            output.readers += 1;
            output.unused = false;
            let kernel = kernel.filter(|_| output.dtype.is_ref());
            if kernel.is_none() || wanted.is_ref() {
                inputs.push(source);
                if kernel.is_some_and(|kernel| !kernel.allows_uninitialized_input) {
                    references.push(Reference { slot: source, shown: None });
                }
                continue;
            }
            let value = PlanOutput {
                dtype: output.dtype.base(),
                shape: output.shape.clone(),
                full: None,
                memory: Arc::clone(&output.memory),
                planned: false,
                constant: None,
                readers: 1,
                unused: false,
                steady: false,
                of_state: false,
            };
            let shown = self.outputs.len() as u32;
            self.outputs.push(value);
            references.push(Reference { slot: source, shown: Some(shown) });
            inputs.push(shown);
        }
        (inputs, references)
    }

    fn action(
        &mut self,
        node: &PartNode,
        choice: Option<Choice>,
    ) -> Result<(Action, Option<Arc<KernelInstance>>), RuntimeError> {
        Ok(match (&node.kind, choice) {
            (PartKind::Send(transfer), _) => {
                (Action::Send(self.source.transfer(transfer, &transfer.receiver)), None)
            }
            (PartKind::Recv(transfer), _) => {
                (Action::Recv(self.source.transfer(transfer, &transfer.sender)), None)
            }
            (PartKind::Op(op), None) if op.def.facts().role == OpRole::Call => {
                (Action::Call(self.source.function(node, op)?), None)
            }
            (_, None) => (Action::Nothing, None),
            (_, Some(Choice::Made(instance))) => (Action::Kernel, Some(instance)),
            (_, Some(Choice::PerShape(table))) => {
                self.open += 1;
                let made = table.made().cloned();
                (Action::PerShape { table, at: self.open - 1 }, made)
            }
        })
    }

    /// Whether the readers of an output are counted, so that its buffer is released after the last
    /// one.
    fn is_counted(&self, output: u32) -> bool {
        self.outputs[output as usize].is_counted()
    }

    /// Creates the edges between nodes that run, and assigns streams.
    fn edges(&mut self) {
        let mut after: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); self.nodes.len()];
        let mut placed = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.partition.nodes.iter().enumerate() {
            let Some(number) = self.places.number[at] else { continue };
            let sources = node.inputs.iter().map(|edge| edge.node);
            let before: BTreeSet<u32> = sources
                .chain(node.control_inputs.iter().copied())
                .filter_map(|source| self.places.number[source as usize])
                .collect();
            self.nodes[number as usize].pending = before.len() as u32;
            for &source in &before {
                after[source as usize].insert(number);
            }
            placed.push(StreamNode { kind: self.kinds[number as usize], before });
        }
        if self.device.info().streams {
            let found = streams::assign(&placed, self.source.streams(&**self.device));
            let assigned = self.nodes.iter_mut().zip(found.nodes);
            assigned.for_each(|(node, stream)| node.stream = stream);
            (self.streams, self.events) = (found.streams, found.events);
        }
        self.hot_nodes(&after);
    }

    /// Creates a [`HotNode`] for every node that runs, with its successors.
    pub(super) fn hot_nodes(&mut self, after: &[BTreeSet<u32>]) {
        for (number, next) in after.iter().enumerate() {
            let node = self.hot_node(number, next);
            self.hot.push(node);
        }
    }

    fn hot_node(&mut self, number: usize, next: &BTreeSet<u32>) -> HotNode {
        let node = &self.nodes[number];
        let start = self.successors.len() as u32;
        // The last pushed node runs first, so the highest number is pushed first.
        for &successor in next.iter().rev() {
            let only = self.nodes[successor as usize].pending == 1;
            self.successors.push(Successor::new(successor, only));
        }
        let successors = Span { start, end: self.successors.len() as u32 };
        let start = self.counted.len() as u32;
        let read = node.inputs.iter().copied().skip(node.forwarded());
        let counted_inputs: Vec<u32> = read.filter(|&input| self.is_counted(input)).collect();
        self.counted.extend(counted_inputs);
        let first = node.first_output;
        let outputs = first..first + node.info.outputs.len() as u32;
        // An output without readers is released by its own node.
        let unread = |&at: &u32| self.is_counted(at) && self.outputs[at as usize].unused;
        let unread: Vec<u32> = outputs.clone().filter(unread).collect();
        self.counted.extend(unread);
        let counted = Span { start, end: self.counted.len() as u32 };
        let start = self.planned.len() as u32;
        let planned: Vec<u32> =
            outputs.clone().filter(|&at| self.outputs[at as usize].planned).collect();
        let checked = planned.len() < outputs.len();
        self.planned.extend(planned);
        let span = Span { start, end: self.planned.len() as u32 };
        let none = (no_kernel as Compute, std::ptr::null_mut());
        let (compute, state, kernel) = match (&node.instance, &node.action) {
            (Some(instance), _) => {
                (instance.compute(), instance.state(), instance.def().table.flags)
            }
            (None, Action::PerShape { table, .. }) => (none.0, none.1, table.flags()),
            (None, _) => (none.0, none.1, 0),
        };
        HotNode {
            compute,
            state,
            planned: span,
            successors,
            counted,
            flags: node.flags(kernel, checked || !node.references.is_empty()),
        }
    }

    /// The number of nodes that run.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn finish(mut self) -> (Plan, Endpoints, Places) {
        let keep = u32::from(self.device.info().streams);
        let mut readers = Vec::new();
        for &(_, output) in self.endpoints.feeds.iter().chain(&self.endpoints.fetches) {
            self.outputs[output as usize].readers += 1;
        }
        for at in 0..self.outputs.len() as u32 {
            if self.is_counted(at) {
                // Work enqueued on a stream may use the buffer after the last reader has returned:
                // an additional reader keeps it until the streams are done.
                let output = &self.outputs[at as usize];
                readers.push((at, output.readers + u32::from(output.unused) + keep));
            }
        }
        let shows_state = |&at: &u32| {
            let output = &self.outputs[at as usize];
            keep > 0 && output.of_state && output.is_counted()
        };
        let of_state = (0..self.outputs.len() as u32).filter(shows_state).collect();
        let nodes = self.nodes.iter().enumerate();
        let counters = nodes
            .clone()
            .filter(|(_, node)| node.pending > 1)
            .map(|(at, node)| (at as u32, node.pending))
            .collect();
        let mut roots: Vec<u32> =
            nodes.filter(|(_, node)| node.pending == 0).map(|(at, _)| at as u32).collect();
        roots.reverse();
        let mut plan = Plan {
            device: Arc::clone(self.device),
            hot: self.hot.into(),
            nodes: self.nodes.into(),
            outputs: self.outputs.into(),
            of_state,
            successors: self.successors.into(),
            counted: self.counted.into(),
            planned: self.planned.into(),
            counters,
            readers: readers.into(),
            roots: roots.into(),
            open: self.open,
            streams: self.streams,
            events: self.events,
            roles: None,
            record_after: self.source.record_after(),
            frame: None,
            inner: Box::new([]),
        };
        plan.roles = plan.roles_of(&self.kinds);
        (plan, self.endpoints, self.places)
    }
}
