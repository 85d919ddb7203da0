//! The state of cutting a graph into partitions.

use super::{
    ArgSide, Edge, Memory, PartKind, PartNode, PartitionOptions, Partitioned, Transfer, ends::Ends,
    finish, locations,
};
use crate::{FrameId, Frames, Graph, GraphError, NodeId, Output, Subgraph, required_ops};
use std::collections::{BTreeMap, HashMap};
use tenon_framework::{DType, PartialShape, device::DeviceName, op::Signature};

/// The content of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Carried {
    Value(Output),
    /// The value of a reference, for one reader: it is read when all that the reader waits for is
    /// done.
    Reference(Output, NodeId),
    Control(NodeId),
}

/// What reads a value.
#[derive(Default)]
struct Reader {
    /// Whether it takes a reference.
    wants_reference: bool,
    /// The node, if the order of its inputs matters.
    id: Option<NodeId>,
}

/// The place where a value is computed or fed.
struct Source {
    location: usize,
    edge: Edge,
    memory: Memory,
    frame: FrameId,
}

pub(super) struct Cutter<'a> {
    graph: &'a Graph,
    sub: &'a Subgraph,
    options: &'a PartitionOptions<'a>,
    frames: &'a Frames,
    /// The location of each node, by position in the subgraph's order.
    locations: Vec<usize>,
    /// The place of each node already added to its partition, by the same position.
    places: Vec<u32>,
    /// The place, in the client's partition, of each feed already added.
    feeds: Vec<Option<u32>>,
    parts: BTreeMap<usize, Vec<PartNode>>,
    /// The place of the `Recv`, or of the constant's copy, of each value already brought to a
    /// location and memory.
    brought: HashMap<(Carried, usize, Memory), u32>,
    /// The position in the order of each control loop's `Merge`, by frame and location.
    control_loops: HashMap<(FrameId, usize), usize>,
    /// The ends of transfers with parts of the graph that are elsewhere.
    ends: Ends,
    transfers: u32,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        sub: &'a Subgraph,
        options: &'a PartitionOptions<'a>,
        frames: &'a Frames,
        ends: Ends,
    ) -> Result<Cutter<'a>, GraphError> {
        let (found, devices) = (options.client, options.devices.len());
        if found >= devices {
            return Err(GraphError::Location { what: "the client".to_owned(), found, devices });
        }
        let locations = locations(graph, sub, options)?;
        let merges = options.control_loops.iter().filter_map(|&merge| sub.position(merge));
        let control_loops = merges.map(|at| ((frames.runs_in[at], locations[at]), at)).collect();
        Ok(Cutter {
            graph,
            sub,
            options,
            frames,
            locations,
            control_loops,
            places: Vec::with_capacity(sub.order.len()),
            feeds: vec![None; sub.feeds.len()],
            parts: BTreeMap::new(),
            brought: HashMap::new(),
            ends,
            transfers: 0,
        })
    }

    pub(super) fn cut(mut self) -> Result<Partitioned, GraphError> {
        let mut back_edges = Vec::new();
        for (at, &id) in self.sub.order.iter().enumerate() {
            self.add_node(at, id, &mut back_edges)?;
        }
        for (at, index) in back_edges {
            self.close_loop(at, index)?;
        }
        for (index, &fetch) in self.sub.fetches.iter().enumerate() {
            self.add_fetch(index, fetch)?;
        }
        let ends = (self.frames.clone(), self.transfers);
        Ok(finish(self.parts, self.options.devices, self.ends.may_be_dead, ends))
    }

    fn push(&mut self, location: usize, node: PartNode) -> u32 {
        let nodes = self.parts.entry(location).or_default();
        nodes.push(node);
        nodes.len() as u32 - 1
    }

    fn memory(&self, location: usize, host: bool) -> Memory {
        if host || self.options.devices[location].host_memory {
            Memory::Host
        } else {
            Memory::Device
        }
    }

    fn arg_memory(&self, location: usize, id: NodeId, side: ArgSide) -> Memory {
        let own = !self.options.devices[location].host_memory;
        self.memory(location, own && (self.options.host_memory)(id, side))
    }

    fn add_node(
        &mut self,
        at: usize,
        id: NodeId,
        back_edges: &mut Vec<(usize, usize)>,
    ) -> Result<(), GraphError> {
        let node = self.graph.node(id);
        let location = self.locations[at];
        let side = |cutter: &Self, count, side: fn(usize) -> ArgSide| -> Vec<Memory> {
            (0..count).map(|index| cutter.arg_memory(location, id, side(index))).collect()
        };
        let mut input_memory = side(self, node.inputs.len(), ArgSide::Input);
        let mut output_memory = side(self, node.outputs().len(), ArgSide::Output);
        if let Some(end) = self.ends.transfers.get(&id) {
            input_memory.fill(end.source_memory);
            output_memory.fill(end.destination_memory);
        }
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (index, &input) in node.inputs.iter().enumerate() {
            if self.is_back_edge(at, input) {
                back_edges.push((at, index));
                inputs.push(Edge { node: 0, output: 0 });
            } else {
                let wants_reference = node.signature.inputs[index].is_ref();
                let memory = input_memory[index];
                inputs.push(self.bring(
                    input,
                    location,
                    memory,
                    Reader { wants_reference, id: Some(id) },
                )?);
            }
        }
        let control: Vec<NodeId> = self.sub.control_inputs(self.graph, id).collect();
        let control_inputs = control
            .into_iter()
            .map(|source| self.bring_control(source, location))
            .collect::<Result<_, _>>()?;
        let kind = self.kind(id);
        let shape = |output| self.options.shapes.shape(Output::new(id, output));
        let place = self.push(
            location,
            PartNode {
                name: node.name.clone(),
                op: node.op.name.clone(),
                kind,
                inputs,
                control_inputs,
                signature: node.signature.clone(),
                input_memory,
                output_memory,
                output_shapes: (0..node.outputs().len() as u32).map(shape).collect(),
                frame: self.frames.runs_in[at],
                gives_to: self.frames.gives_to[at],
            },
        );
        self.places.push(place);
        Ok(())
    }

    /// The kind of a node of the graph.
    fn kind(&mut self, id: NodeId) -> PartKind {
        let Some(end) = self.ends.transfers.get(&id) else {
            return PartKind::Op(Box::new((self.options.op)(id)));
        };
        let transfer = Transfer { id: self.transfers, ..end.clone() };
        self.transfers += 1;
        match self.graph.node(id).outputs().is_empty() {
            true => PartKind::Send(transfer),
            false => PartKind::Recv(transfer),
        }
    }

    /// Whether the source of an input comes later in the order, which happens only at the back edge
    /// of a loop.
    fn is_back_edge(&self, at: usize, input: Output) -> bool {
        self.sub.feed_of(input).is_none()
            && self.sub.position(input.node).is_some_and(|source| source >= at)
    }

    fn close_loop(&mut self, at: usize, index: usize) -> Result<(), GraphError> {
        let node = self.graph.node(self.sub.order[at]);
        let location = self.locations[at];
        let place = self.places[at] as usize;
        let memory = self.parts[&location][place].input_memory[index];
        let wants_reference = node.signature.inputs[index].is_ref();
        let edge =
            self.bring(node.inputs[index], location, memory, Reader { wants_reference, id: None })?;
        if let Some(nodes) = self.parts.get_mut(&location) {
            nodes[place].inputs[index] = edge;
        }
        Ok(())
    }

    /// The source of a tensor. A feed is added to the client's partition at its first use.
    fn source(&mut self, value: Output) -> Source {
        if let Some(index) = self.sub.feed_of(value) {
            let location = self.options.client;
            let node = match self.feeds[index] {
                Some(place) => place,
                None => self.add_feed(index, value),
            };
            let edge = Edge { node, output: 0 };
            return Source { location, edge, memory: Memory::Host, frame: FrameId::ROOT };
        }
        let at = self.sub.position(value.node).unwrap_or_default();
        let location = self.locations[at];
        Source {
            location,
            edge: Edge { node: self.places[at], output: value.output },
            memory: match self.ends.transfers.get(&value.node) {
                Some(end) => end.destination_memory,
                None => {
                    self.arg_memory(location, value.node, ArgSide::Output(value.output as usize))
                }
            },
            frame: self.frames.gives_to[at],
        }
    }

    fn add_feed(&mut self, index: usize, value: Output) -> u32 {
        let node = PartNode {
            name: format!("{}/_arg", self.graph.output_name(value)),
            op: required_ops::ARG.to_owned(),
            kind: PartKind::Feed { index },
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            signature: signature(&[], &[self.graph.dtype(value).base()]),
            input_memory: Vec::new(),
            output_memory: vec![Memory::Host],
            output_shapes: vec![self.options.shapes.seen(self.sub, value)],
            frame: FrameId::ROOT,
            gives_to: FrameId::ROOT,
        };
        let place = self.push(self.options.client, node);
        self.feeds[index] = Some(place);
        place
    }

    fn add_fetch(&mut self, index: usize, value: Output) -> Result<(), GraphError> {
        let frame = self.source(value).frame;
        if frame != FrameId::ROOT {
            return Err(GraphError::FetchInFrame {
                tensor: self.graph.output_name(value),
                frame: self.frames.path(frame),
            });
        }
        let edge = self.bring(value, self.options.client, Memory::Host, Reader::default())?;
        let node = PartNode {
            name: format!("{}/_retval_{index}", self.graph.output_name(value)),
            op: required_ops::RETVAL.to_owned(),
            kind: PartKind::Fetch { index },
            inputs: vec![edge],
            control_inputs: Vec::new(),
            signature: signature(&[self.graph.dtype(value).base()], &[]),
            input_memory: vec![Memory::Host],
            output_memory: Vec::new(),
            output_shapes: Vec::new(),
            frame: FrameId::ROOT,
            gives_to: FrameId::ROOT,
        };
        self.push(self.options.client, node);
        Ok(())
    }

    /// The edge from which a node at `location` reads `value` in `memory`.
    fn bring(
        &mut self,
        value: Output,
        location: usize,
        memory: Memory,
        reader: Reader,
    ) -> Result<Edge, GraphError> {
        let wants_reference = reader.wants_reference;
        if wants_reference && self.sub.feed_of(value).is_some() {
            return Err(GraphError::FedReference { tensor: self.graph.output_name(value) });
        }
        let source = self.source(value);
        if source.location == location && source.memory == memory {
            return Ok(source.edge);
        }
        let is_ref = self.sub.feed_of(value).is_none() && self.graph.dtype(value).is_ref();
        let reader = reader.id.filter(|_| is_ref);
        let carried = reader.map_or(Carried::Value(value), |id| Carried::Reference(value, id));
        let key = (carried, location, memory);
        if let Some(&node) = self.brought.get(&key) {
            return Ok(Edge { node, output: 0 });
        }
        let mut tensor = self.graph.output_name(value);
        if wants_reference {
            return Err(GraphError::SplitReference {
                tensor,
                from: self.options.devices[source.location].name.to_string(),
                to: self.options.devices[location].name.to_string(),
            });
        }
        if let Some(node) = self.copy_constant(&source, location, memory) {
            self.brought.insert(key, node);
            return Ok(Edge { node, output: 0 });
        }
        let mut before = Vec::new();
        if let Some(id) = reader {
            before = self.before_reading(id, value, source.location)?;
            tensor = format!("{tensor}/for/{}", self.graph.node(id).name);
        }
        let shape = self.options.shapes.seen(self.sub, value);
        let transfer = Transfer {
            id: self.transfers,
            sender: self.device(source.location).clone(),
            incarnation: self.options.devices[source.location].incarnation,
            receiver: self.device(location).clone(),
            tensor: self.name_at(&tensor, location, memory),
            source_memory: source.memory,
            destination_memory: memory,
            dtype: self.graph.dtype(value).base(),
            shape,
        };
        let ends = (source.location, location);
        let node = self.transfer(transfer, ends, (vec![source.edge], before), source.frame)?;
        self.brought.insert(key, node);
        Ok(Edge { node, output: 0 })
    }

    /// The nodes at the location of a reference that its value is read after: all that the reader of
    /// the value waits for.
    fn before_reading(
        &mut self,
        reader: NodeId,
        reference: Output,
        location: usize,
    ) -> Result<Vec<u32>, GraphError> {
        let node = self.graph.node(reader);
        let at = self.sub.position(reader).unwrap_or_default();
        let data = node.inputs.iter().filter(|&&input| {
            input.node != reference.node
                && self.sub.feed_of(input).is_none()
                && !self.is_back_edge(at, input)
        });
        let mut before: Vec<NodeId> = data.map(|input| input.node).collect();
        before.extend(self.sub.control_inputs(self.graph, reader));
        before.into_iter().map(|id| self.bring_control(id, location)).collect()
    }

    /// Copies a constant to where it is read, so that no step has to send it. Returns `None` if the
    /// source is not a constant, or has control inputs or is in a loop.
    fn copy_constant(&mut self, source: &Source, location: usize, memory: Memory) -> Option<u32> {
        let original = &self.parts[&source.location][source.edge.node as usize];
        let is_constant = matches!(&original.kind, PartKind::Op(op) if op.def.is_constant());
        if !is_constant || !original.control_inputs.is_empty() || source.frame != FrameId::ROOT {
            return None;
        }
        let copy = PartNode {
            name: self.name_at(&original.name, location, memory),
            output_memory: vec![memory],
            ..original.clone()
        };
        Some(self.push(location, copy))
    }

    /// The name of a value brought to a location; it ends in `@host` if a device with memory of its
    /// own reads it from host memory.
    fn name_at(&self, name: &str, location: usize, memory: Memory) -> String {
        let to_host = memory == Memory::Host && !self.options.devices[location].host_memory;
        format!("{name}{}", if to_host { "@host" } else { "" })
    }

    /// The node at `location` to wait for in place of `id`.
    fn bring_control(&mut self, id: NodeId, location: usize) -> Result<u32, GraphError> {
        let at = self.sub.position(id).unwrap_or_default();
        let (from, place) = (self.locations[at], self.places[at]);
        if from == location {
            return Ok(place);
        }
        let key = (Carried::Control(id), location, Memory::Host);
        if let Some(&node) = self.brought.get(&key) {
            return Ok(node);
        }
        let transfer = Transfer {
            id: self.transfers,
            sender: self.device(from).clone(),
            incarnation: self.options.devices[from].incarnation,
            receiver: self.device(location).clone(),
            tensor: format!("^{}", self.graph.node(id).name),
            source_memory: Memory::Host,
            destination_memory: Memory::Host,
            dtype: DType::FLOAT,
            shape: PartialShape::new(&[0]).unwrap_or_default(),
        };
        let frame = self.frames.gives_to[at];
        let node = self.transfer(transfer, (from, location), (Vec::new(), vec![place]), frame)?;
        self.brought.insert(key, node);
        Ok(node)
    }

    fn device(&self, location: usize) -> &DeviceName {
        &self.options.devices[location].name
    }

    /// Adds a `Send` with these inputs and control inputs, and its `Recv`; returns the place of the
    /// `Recv`.
    fn transfer(
        &mut self,
        transfer: Transfer,
        (from, to): (usize, usize),
        (inputs, control_inputs): (Vec<Edge>, Vec<u32>),
        frame: FrameId,
    ) -> Result<u32, GraphError> {
        let merge = match self.control_loops.get(&(frame, to)) {
            _ if transfer.is_local() || frame == FrameId::ROOT => None,
            Some(&at) => Some(self.places[at]),
            None => {
                return Err(GraphError::SplitFrame {
                    frame: self.frames.path(frame),
                    tensor: transfer.tensor,
                    from: transfer.sender.to_string(),
                    to: transfer.receiver.to_string(),
                });
            }
        };
        self.transfers += 1;
        let sender = PartNode {
            name: format!("{}/_send_{}", transfer.tensor, transfer.id),
            op: required_ops::SEND.to_owned(),
            signature: signature(&vec![transfer.dtype; inputs.len()], &[]),
            input_memory: vec![transfer.source_memory; inputs.len()],
            inputs,
            control_inputs,
            output_memory: Vec::new(),
            output_shapes: Vec::new(),
            frame,
            gives_to: frame,
            kind: PartKind::Send(transfer.clone()),
        };
        let sent = self.push(from, sender);
        let receiver = PartNode {
            name: format!("{}/_recv_{}", transfer.tensor, transfer.id),
            op: required_ops::RECV.to_owned(),
            inputs: Vec::new(),
            control_inputs: if transfer.is_local() { vec![sent] } else { Vec::from_iter(merge) },
            signature: signature(&[], &[transfer.dtype]),
            input_memory: Vec::new(),
            output_memory: vec![transfer.destination_memory],
            output_shapes: vec![transfer.shape.clone()],
            frame,
            gives_to: frame,
            kind: PartKind::Recv(transfer),
        };
        Ok(self.push(to, receiver))
    }
}

/// The signature of a node that partitioning adds.
fn signature(inputs: &[DType], outputs: &[DType]) -> Signature {
    Signature { inputs: inputs.to_vec(), outputs: outputs.to_vec(), ..Signature::default() }
}
