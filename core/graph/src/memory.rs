//! Estimates the memory that the values of a step's graph need, with and without buffer reuse.
//!
//! The plan visits the nodes in the order in which one thread runs them. A buffer is free after its
//! last reader. A node that forwards its input, perhaps with another shape, outputs the same
//! buffer. A node whose kernel can work in place takes over an input that nothing else reads. Small
//! outputs keep their buffers from step to step, and a device with streams keeps all buffers of
//! enqueued work until the step ends ([`BufferRules`]).
//!
//! Values with known shapes are counted, on the device that computes them; constants are counted
//! separately, since they live as long as the plan. The estimate excludes feeds, scratch memory of
//! kernels, memory that kernels keep, copies between devices, and the values that additional
//! threads hold when they run ahead of the order.

mod order;

use crate::{DeviceView, Graph, NodeId, Output, Placement, Shapes, Subgraph};
use std::{collections::HashMap, fmt};

/// The memory that the values of one device need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// The full name of the device.
    pub device: String,
    /// The number of values whose size is known.
    pub values: usize,
    /// The number of values whose size is known only at run time; they are not counted in bytes.
    pub unknown: usize,
    /// The bytes of the constants.
    pub constants: u64,
    /// The bytes of all other values, without buffer reuse.
    pub without_reuse: u64,
    /// The bytes, of these, in buffers that are kept from step to step.
    pub kept: u64,
    /// The bytes held at the peak with buffer reuse, kept buffers included.
    pub peak: u64,
    /// The node that runs at the peak.
    pub peak_at: String,
    /// The number of values that take over the buffer of an input.
    pub in_place: usize,
    /// The number of values that are the unchanged buffer of an input.
    pub passed_on: usize,
}

/// The buffer rules of the executor.
#[derive(Clone, Copy)]
pub struct BufferRules<'a> {
    /// Pairs of an input and the output that may take over its buffer, by flat position.
    pub in_place: &'a dyn Fn(NodeId) -> Vec<(usize, usize)>,
    /// Maximum size in bytes of an output that keeps its buffer from step to step.
    pub kept_bytes: u64,
    /// Whether a device, given by its number, releases buffers only when the step ends.
    pub holds_all: &'a dyn Fn(usize) -> bool,
}

impl fmt::Debug for BufferRules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferRules(kept_bytes: {})", self.kept_bytes)
    }
}

/// Plans the buffers of a placed step.
pub fn plan_memory(
    graph: &Graph,
    sub: &Subgraph,
    shapes: &Shapes,
    placement: &Placement,
    view: &dyn DeviceView,
    rules: BufferRules<'_>,
) -> Vec<DeviceMemory> {
    let devices = view.devices();
    let mut planner = Planner {
        graph,
        sub,
        shapes,
        placement,
        rules,
        readers: HashMap::new(),
        buffers: Vec::new(),
        of: HashMap::new(),
        devices: vec![DeviceMemory::default(); devices.len()],
        live: vec![0; devices.len()],
    };
    planner.count_readers();
    for id in order::run_order(graph, sub, placement) {
        planner.node(id);
    }
    for (memory, device) in planner.devices.iter_mut().zip(devices) {
        memory.device = device.name.to_string();
        memory.peak += memory.kept;
    }
    planner.devices.retain(|memory| memory.values + memory.unknown > 0);
    planner.devices
}

struct Buffer {
    /// The bytes that are released with the buffer; 0 if they are counted elsewhere or not at all.
    bytes: u64,
    device: usize,
    /// The number of reads still to come. A fetch is never counted down.
    reads: usize,
}

struct Planner<'a> {
    graph: &'a Graph,
    sub: &'a Subgraph,
    shapes: &'a Shapes,
    placement: &'a Placement,
    rules: BufferRules<'a>,
    readers: HashMap<Output, usize>,
    buffers: Vec<Buffer>,
    of: HashMap<Output, usize>,
    devices: Vec<DeviceMemory>,
    live: Vec<u64>,
}

impl Planner<'_> {
    fn count_readers(&mut self) {
        for &id in &self.sub.order {
            let inputs = self.graph.node(id).inputs.iter();
            for &input in inputs.filter(|input| self.sub.feed_of(**input).is_none()) {
                *self.readers.entry(input).or_default() += 1;
            }
        }
        for fetch in &self.sub.fetches {
            *self.readers.entry(*fetch).or_default() += 1;
        }
        for &feed in &self.sub.feeds {
            let device = usize::MAX;
            self.add(feed, Buffer { bytes: 0, device, reads: usize::MAX / 2 });
        }
    }

    fn bytes(&self, output: Output) -> Option<u64> {
        let size = self.graph.dtype(output).base().size()?;
        let elements = self.shapes.shape(output).full()?.elements();
        u64::try_from(elements.checked_mul(size)?).ok()
    }

    fn node(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        let Some(device) = self.placement.device(id) else { return };
        let mut pairs = (self.rules.in_place)(id);
        pairs.sort_by_key(|&(_, to)| to);
        for at in 0..node.outputs().len() {
            let output = Output::new(id, at as u32);
            if self.sub.feed_of(output).is_some() {
                continue;
            }
            let Some(bytes) = self.bytes(output) else {
                self.devices[device].unknown += 1;
                continue;
            };
            self.devices[device].values += 1;
            if node.op.is_constant() {
                self.devices[device].constants += bytes;
                self.add(output, Buffer { bytes: 0, device, reads: usize::MAX / 2 });
                continue;
            }
            self.devices[device].without_reuse += bytes;
            self.output(id, output, bytes, device, &pairs);
        }
        let (live, memory) = (self.live[device], &mut self.devices[device]);
        if live > memory.peak {
            memory.peak = live;
            memory.peak_at.clone_from(&node.name);
        }
        self.give_back(id);
    }

    fn output(
        &mut self,
        id: NodeId,
        output: Output,
        bytes: u64,
        device: usize,
        pairs: &[(usize, usize)],
    ) {
        let node = self.graph.node(id);
        let reads = self.readers.get(&output).copied().unwrap_or(0);
        let source = |at: usize| self.of.get(node.inputs.get(at)?).copied();
        let passed = node.op.facts().passed_to(&node.signature, output.output as usize);
        if let Some(buffer) = passed.and_then(&source) {
            self.buffers[buffer].reads += reads;
            self.of.insert(output, buffer);
            self.devices[device].passed_on += 1;
            return;
        }
        if bytes <= self.rules.kept_bytes {
            self.devices[device].kept += bytes;
            return self.add(output, Buffer { bytes: 0, device, reads });
        }
        let dtype = |output: Output| self.graph.dtype(output).base();
        let at = output.output as usize;
        let first = pairs.partition_point(|&(_, to)| to < at);
        let own = pairs[first..].iter().take_while(|&&(_, to)| to == at);
        let is_alike = |&&(from, _): &&(usize, usize)| {
            let same = |&input: &Output| dtype(input) == dtype(output);
            node.inputs.get(from).is_some_and(same)
        };
        let is_free = |&buffer: &usize| {
            let buffer = &self.buffers[buffer];
            buffer.reads == 1 && buffer.bytes == bytes && buffer.device == device
        };
        let mut sources = own.filter(is_alike).filter_map(|(from, _)| source(*from));
        match sources.find(is_free).filter(|_| !(self.rules.holds_all)(device)) {
            Some(buffer) => {
                // This node makes the last read of the old value.
                self.buffers[buffer].reads += reads;
                self.of.insert(output, buffer);
                self.devices[device].in_place += 1;
            }
            None => {
                self.live[device] += bytes;
                self.add(output, Buffer { bytes, device, reads });
            }
        }
    }

    fn add(&mut self, output: Output, buffer: Buffer) {
        self.of.insert(output, self.buffers.len());
        self.buffers.push(buffer);
    }

    /// Counts down the reads of a node's inputs, and releases buffers without further readers,
    /// including its own unread outputs.
    fn give_back(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        for input in node.inputs.iter().filter(|input| self.sub.feed_of(**input).is_none()) {
            let Some(&buffer) = self.of.get(input) else { continue };
            self.buffers[buffer].reads -= 1;
            self.free(buffer);
        }
        for at in 0..node.outputs().len() as u32 {
            let output = Output::new(id, at);
            if !self.readers.contains_key(&output)
                && let Some(&buffer) = self.of.get(&output)
            {
                self.free(buffer);
            }
        }
    }

    fn free(&mut self, buffer: usize) {
        let Buffer { bytes, device, reads } = &mut self.buffers[buffer];
        if *reads == 0 && !(self.rules.holds_all)(*device) {
            self.live[*device] -= *bytes;
            // A buffer is released once.
            *bytes = 0;
        }
    }
}
