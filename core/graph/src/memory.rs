//! How much memory the values of a step's graph take: with a buffer for each, and with buffers that are used again.
//!
//! The plan goes through the nodes in the order in which one thread runs them. A buffer is free after its last reader;
//! a node that passes its input on, under another shape at most, gives the same buffer; and one whose kernel can work
//! in place takes over an input that nobody reads any more. Small outputs keep their buffers from step to step, and
//! what a device with streams has enqueued keeps all of them until the step ends ([`BufferRules`]).
//!
//! Counted are values whose shapes are known, on the device that makes them; constants apart, since they live as
//! long as the plan. Not counted: feeds, scratch memory of kernels, what kernels keep, copies between devices, and
//! what further threads that run ahead of the order hold in addition.

mod order;

use crate::{DeviceView, Graph, NodeId, Output, Placement, Shapes, Subgraph};
use std::{collections::HashMap, fmt};

/// What the values of one device take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Full name of the device.
    pub device: String,
    /// Values whose size is known.
    pub values: usize,
    /// Values whose size only a step knows; they are not counted.
    pub unknown: usize,
    /// Bytes of the constants.
    pub constants: u64,
    /// Bytes of all other values, each in a buffer of its own.
    pub without_reuse: u64,
    /// Of these, bytes that keep their buffers from step to step.
    pub kept: u64,
    /// Most bytes that are held at once, buffers used again, with all that is kept.
    pub peak: u64,
    /// The node during which they are.
    pub peak_at: String,
    /// Values that take over the buffer of an input.
    pub in_place: usize,
    /// Values that are an input's buffer as it is.
    pub passed_on: usize,
}

/// What the executor does with buffers.
#[derive(Clone, Copy)]
pub struct BufferRules<'a> {
    /// Pairs of an input and the output that may take its buffer over, by flat position.
    pub in_place: &'a dyn Fn(NodeId) -> Vec<(usize, usize)>,
    /// An output of at most so many bytes keeps its buffer from step to step.
    pub kept_bytes: u64,
    /// Whether a device, by its number, gives buffers back only when the step ends.
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
    /// What goes back with it: none of what is counted elsewhere, or by nobody.
    bytes: u64,
    device: usize,
    /// Reads of its values that are still to come; a fetch counts for ever.
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
                // The read of this node is the last one of what was there.
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

    /// Counts the reads of a node off, and gives back what nobody reads any more, its own unused outputs too.
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
            // Given back once.
            *bytes = 0;
        }
    }
}
