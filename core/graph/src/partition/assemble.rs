//! Assembles partitions from a graph that was cut elsewhere.

use super::{
    Edge, Memory, PartKind, PartNode, PartitionOptions, Partitioned, Transfer,
    ends::{self, flag, words, wrong},
    finish, locations,
    message::{CAN_BE_DEAD, DESTINATION_MEMORY, memory_text},
};
use crate::{ArgSide, Frames, Graph, GraphError, Node, NodeId, Output, Subgraph, required_ops};
use std::collections::BTreeMap;
use tenon_framework::{attr::AttrValue, device::DeviceNameError, op::OpRole};
use thiserror::Error;

/// An error of a graph that is to become partitions.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum AssembleError {
    /// An error that any graph can have.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// An attribute of a transfer with a wrong value.
    #[error("node '{node}' (op '{op}'): attribute {attr}: expected {expected}, found {found}")]
    Attr {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The attribute.
        attr: &'static str,
        /// The expected value.
        expected: &'static str,
        /// The value found.
        found: String,
    },
    /// An invalid device name of a transfer.
    #[error("node '{node}': attribute {attr}: {source}")]
    Device {
        /// The node.
        node: String,
        /// The attribute.
        attr: &'static str,
        /// The error in the name.
        source: DeviceNameError,
    },
    /// An edge from one device to another.
    #[error(
        "'{to}' on {to_device} takes an input of '{from}' on {from_device}: expected a _Send and a _Recv between two devices"
    )]
    Crosses {
        /// The source.
        from: String,
        /// Its device.
        from_device: String,
        /// The node that reads it.
        to: String,
        /// Its device.
        to_device: String,
    },
    /// A value in another kind of memory than its reader expects.
    #[error(
        "'{to}' takes output {output} of '{from}' in {wanted} memory, and it is in {found} memory: expected a _Send and a \
         _Recv between the two; cut the graph for the kernels of this worker"
    )]
    Memory {
        /// The source.
        from: String,
        /// Its output.
        output: u32,
        /// The node that reads it.
        to: String,
        /// The kind of memory that the reader expects.
        wanted: &'static str,
        /// The kind of memory that the value is in.
        found: &'static str,
    },
    /// The indices of feeds or fetches have duplicates or gaps.
    #[error("the {op} nodes: expected the indices 0 to {last}, each once, found {found:?}")]
    Indices {
        /// `_Arg` or `_Retval`.
        op: &'static str,
        /// The highest expected index.
        last: usize,
        /// The indices found.
        found: Vec<usize>,
    },
}

/// Assembles the nodes of a graph that was cut elsewhere, as
/// [`Partition::to_graph_def`](super::Partition::to_graph_def) writes it, into one partition per
/// device. `_Arg`, `_Retval`, `_Send` and `_Recv` become feeds, fetches and transfers again;
/// `options.client` is ignored.
///
/// # Errors
/// Edges between devices or kinds of memory; transfers without devices; indices of `_Arg` or
/// `_Retval` that do not count up from 0; and frames that [`partition`](super::partition) refuses.
pub fn assemble(
    graph: &Graph,
    sub: &Subgraph,
    options: &PartitionOptions<'_>,
) -> Result<Partitioned, AssembleError> {
    let frames = Frames::find(graph, sub)?;
    let locations = locations(graph, sub, options)?;
    let mut places = vec![0; sub.order.len()];
    let mut counts = vec![0; options.devices.len()];
    for (&location, place) in locations.iter().zip(&mut places) {
        *place = counts[location];
        counts[location] += 1;
    }
    let assembler = Assembler { graph, sub, options, frames: &frames, locations, places };
    let mut parts: BTreeMap<usize, Vec<PartNode>> = BTreeMap::new();
    let mut transfers = 0;
    for (at, &id) in sub.order.iter().enumerate() {
        let mut node = assembler.node(at, id)?;
        if let PartKind::Send(transfer) | PartKind::Recv(transfer) = &mut node.kind {
            transfer.id = transfers;
            transfers += 1;
        }
        parts.entry(assembler.locations[at]).or_default().push(node);
    }
    pair(&mut parts);
    check_memory(&parts)?;
    check_indices(&parts)?;
    let dead = |&id: &NodeId| flag(graph.node(id), CAN_BE_DEAD);
    let may_be_dead = sub.order.iter().any(dead);
    Ok(finish(parts, options.devices, may_be_dead, (frames, transfers)))
}

/// Gives both ends of a transfer the same number, if both are here.
fn pair(parts: &mut BTreeMap<usize, Vec<PartNode>>) {
    let key = |transfer: &Transfer| {
        let ends = (transfer.sender.to_string(), transfer.receiver.to_string());
        (ends, transfer.incarnation, transfer.tensor.clone())
    };
    let mut sent = std::collections::HashMap::new();
    for node in parts.values().flatten() {
        if let PartKind::Send(transfer) = &node.kind {
            sent.insert(key(transfer), transfer.id);
        }
    }
    for node in parts.values_mut().flatten() {
        if let PartKind::Recv(transfer) = &mut node.kind
            && let Some(&id) = sent.get(&key(transfer))
        {
            transfer.id = id;
        }
    }
}

struct Assembler<'a> {
    graph: &'a Graph,
    sub: &'a Subgraph,
    options: &'a PartitionOptions<'a>,
    frames: &'a Frames,
    /// The location of each node and its place there, by position in the order.
    locations: Vec<usize>,
    places: Vec<u32>,
}

impl Assembler<'_> {
    fn node(&self, at: usize, id: NodeId) -> Result<PartNode, AssembleError> {
        let node = self.graph.node(id);
        let location = self.locations[at];
        let kind = self.kind(id)?;
        let place = |source: NodeId| self.place(source, location, node);
        let inputs = node.inputs.iter();
        let inputs =
            inputs.map(|input| Ok(Edge { node: place(input.node)?, output: input.output }));
        let control = self.sub.control_inputs(self.graph, id).map(place);
        let shape = |output| self.options.shapes.shape(Output::new(id, output));
        let (input_memory, output_memory) = self.memory(location, id, &kind);
        Ok(PartNode {
            name: node.name.clone(),
            op: node.op.name.clone(),
            kind,
            inputs: inputs.collect::<Result<_, AssembleError>>()?,
            control_inputs: control.collect::<Result<_, AssembleError>>()?,
            signature: node.signature.clone(),
            input_memory,
            output_memory,
            output_shapes: (0..node.outputs().len() as u32).map(shape).collect(),
            frame: self.frames.runs_in[at],
            gives_to: self.frames.gives_to[at],
        })
    }

    /// The place of a source; it must be at the location of its reader.
    fn place(&self, source: NodeId, location: usize, to: &Node) -> Result<u32, AssembleError> {
        let at = self.sub.position(source).unwrap_or_default();
        if self.locations[at] == location {
            return Ok(self.places[at]);
        }
        let device = |location: usize| self.options.devices[location].name.to_string();
        Err(AssembleError::Crosses {
            from: self.graph.node(source).name.clone(),
            from_device: device(self.locations[at]),
            to: to.name.clone(),
            to_device: device(location),
        })
    }

    fn kind(&self, id: NodeId) -> Result<PartKind, AssembleError> {
        let node = self.graph.node(id);
        Ok(match node.op.facts().role {
            OpRole::Arg => PartKind::Feed { index: index(node)? },
            OpRole::Retval => PartKind::Fetch { index: index(node)? },
            OpRole::Sender => PartKind::Send(ends::transfer(
                self.graph,
                self.options.shapes,
                node,
                node.inputs[0],
            )?),
            OpRole::Receiver => PartKind::Recv(ends::transfer(
                self.graph,
                self.options.shapes,
                node,
                Output::new(id, 0),
            )?),
            _ => PartKind::Op(Box::new((self.options.op)(id))),
        })
    }

    /// The kinds of memory of a node's inputs and outputs.
    fn memory(&self, location: usize, id: NodeId, kind: &PartKind) -> (Vec<Memory>, Vec<Memory>) {
        let node = self.graph.node(id);
        let on_host = self.options.devices[location].host_memory;
        let (inputs, outputs) = (node.inputs.len(), node.outputs().len());
        let all = |memory| (vec![memory; inputs], vec![memory; outputs]);
        let arg = |side| match on_host || (self.options.host_memory)(id, side) {
            true => Memory::Host,
            false => Memory::Device,
        };
        match kind {
            PartKind::Feed { .. } | PartKind::Fetch { .. } => all(Memory::Host),
            PartKind::Send(transfer) => all(transfer.source_memory),
            PartKind::Recv(transfer) => all(transfer.destination_memory),
            PartKind::Op(op)
                if op.value().is_some()
                    && words(node, DESTINATION_MEMORY).is_ok_and(|memory| memory == "host") =>
            {
                all(Memory::Host)
            }
            PartKind::Op(_) => (
                (0..inputs).map(|at| arg(ArgSide::Input(at))).collect(),
                (0..outputs).map(|at| arg(ArgSide::Output(at))).collect(),
            ),
        }
    }
}

fn index(node: &Node) -> Result<usize, AssembleError> {
    let value = node.attrs.get("index");
    let index = value.and_then(AttrValue::as_int).and_then(|index| usize::try_from(index).ok());
    index.ok_or_else(|| wrong(node, "index", "a number from 0 on", &value))
}

/// Checks that each value is in the memory from which it is read.
fn check_memory(parts: &BTreeMap<usize, Vec<PartNode>>) -> Result<(), AssembleError> {
    for nodes in parts.values() {
        for node in nodes {
            for (edge, &wanted) in node.inputs.iter().zip(&node.input_memory) {
                let source = &nodes[edge.node as usize];
                let found = source.output_memory[edge.output as usize];
                if found != wanted {
                    return Err(AssembleError::Memory {
                        from: source.name.clone(),
                        output: edge.output,
                        to: node.name.clone(),
                        wanted: memory_text(wanted),
                        found: memory_text(found),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Checks that feeds and fetches are numbered from 0 without gaps.
fn check_indices(parts: &BTreeMap<usize, Vec<PartNode>>) -> Result<(), AssembleError> {
    let of = |wanted: fn(&PartKind) -> Option<usize>| {
        let nodes = parts.values().flatten();
        let mut found: Vec<usize> = nodes.filter_map(|node| wanted(&node.kind)).collect();
        found.sort_unstable();
        found
    };
    let feeds = of(|kind| match kind {
        PartKind::Feed { index } => Some(*index),
        _ => None,
    });
    let fetches = of(|kind| match kind {
        PartKind::Fetch { index } => Some(*index),
        _ => None,
    });
    for (op, found) in [(required_ops::ARG, feeds), (required_ops::RETVAL, fetches)] {
        if found.iter().enumerate().any(|(at, &index)| at != index) {
            let last = found.len() - 1;
            return Err(AssembleError::Indices { op, last, found });
        }
    }
    Ok(())
}
