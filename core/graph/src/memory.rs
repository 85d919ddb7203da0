//! How much memory the values of a step's graph take: with a buffer for each, and with buffers that are used again.
//!
//! The plan goes through the nodes in their order. A buffer is free after its last reader; a node that passes its
//! input on, under another shape at most, gives the same buffer; and one whose kernel can work in place takes over
//! an input that nobody reads any more. Counted are values whose shapes are known, on the device that makes them;
//! constants apart, since they live as long as the plan. Not counted: scratch memory of kernels, copies between
//! devices, and what threads that run ahead of the order hold in addition.

use crate::{DeviceView, Graph, NodeId, Output, Placement, Shapes, Subgraph};
use std::collections::HashMap;

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
    /// Most bytes that are needed at once, buffers used again.
    pub peak: u64,
    /// The node during which they are.
    pub peak_at: String,
    /// Values that take over the buffer of an input.
    pub in_place: usize,
    /// Values that are an input's buffer as it is.
    pub passed_on: usize,
}

/// Pairs of an input and the output that may take its buffer over, by flat position.
pub type InPlacePairs<'a> = &'a dyn Fn(NodeId) -> Vec<(usize, usize)>;

/// Plans the buffers of a placed step.
pub fn plan_memory(
    graph: &Graph,
    sub: &Subgraph,
    shapes: &Shapes,
    placement: &Placement,
    view: &dyn DeviceView,
    in_place: InPlacePairs<'_>,
) -> Vec<DeviceMemory> {
    let devices = view.devices();
    let mut planner = Planner {
        graph,
        sub,
        shapes,
        placement,
        readers: HashMap::new(),
        buffers: Vec::new(),
        of: HashMap::new(),
        devices: vec![DeviceMemory::default(); devices.len()],
        live: vec![0; devices.len()],
    };
    planner.count_readers();
    for &id in &sub.order {
        planner.node(id, in_place);
    }
    for (memory, device) in planner.devices.iter_mut().zip(devices) {
        memory.device = device.name.to_string();
    }
    planner.devices.retain(|memory| memory.values + memory.unknown > 0);
    planner.devices
}

/// Ops that give their input's buffer.
fn passes_on(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "Snapshot"
            | "StopGradient"
            | "PreventGradient"
            | "Reshape"
            | "Squeeze"
            | "ExpandDims"
            | "EnsureShape"
    )
}

struct Buffer {
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
    }

    fn bytes(&self, output: Output) -> Option<u64> {
        let size = self.graph.dtype(output).base().size()?;
        let elements = self.shapes.shape(output).full()?.elements();
        u64::try_from(elements.checked_mul(size)?).ok()
    }

    fn node(&mut self, id: NodeId, in_place: InPlacePairs<'_>) {
        let node = self.graph.node(id);
        let Some(device) = self.placement.device(id) else { return };
        let pairs = in_place(id);
        for at in 0..node.outputs().len() {
            let output = Output::new(id, at as u32);
            let Some(bytes) = self.bytes(output) else {
                self.devices[device].unknown += 1;
                continue;
            };
            self.devices[device].values += 1;
            if node.op.name == "Const" {
                self.devices[device].constants += bytes;
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
        let source = |at: usize| {
            let input = *node.inputs.get(at)?;
            self.of.get(&input).copied().filter(|_| self.sub.feed_of(input).is_none())
        };
        if passes_on(&node.op.name)
            && output.output == 0
            && let Some(buffer) = source(0)
        {
            self.buffers[buffer].reads += reads;
            self.of.insert(output, buffer);
            self.devices[device].passed_on += 1;
            return;
        }
        let own = pairs.iter().filter(|(_, to)| *to == output.output as usize);
        let free = own.filter_map(|(from, _)| source(*from)).find(|&buffer| {
            let buffer = &self.buffers[buffer];
            buffer.reads == 1 && buffer.bytes == bytes && buffer.device == device
        });
        let buffer = match free {
            Some(buffer) => {
                // The read of this node is the last one of what was there.
                self.buffers[buffer].reads += reads;
                self.devices[device].in_place += 1;
                buffer
            }
            None => {
                self.buffers.push(Buffer { bytes, device, reads });
                self.live[device] += bytes;
                self.buffers.len() - 1
            }
        };
        self.of.insert(output, buffer);
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
        if *reads == 0 {
            self.live[*device] -= *bytes;
            // Given back once.
            *bytes = 0;
        }
    }
}
