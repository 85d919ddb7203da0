//! Writes partitions as messages, so that a worker in another process can run them.
//!
//! A partition becomes a `GraphDef` of TensorFlow's ops. Feeds, fetches and transfers become
//! `_Arg`, `_Retval`, `_Send` and `_Recv`, and every node names its device. Additional attributes
//! hold what the ops have no attribute for:
//!
//! | attribute | on | content |
//! |---|---|---|
//! | `_output_shapes` | every node with outputs | the shapes, as far as they are known before a step |
//! | `_kernel` | nodes whose kernel has a label | the label |
//! | `_source_memory`, `_destination_memory` | `_Send`, `_Recv` | `host` or `device`: the memory on either side |
//! | `_destination_memory` | `Const` | `host` or `device`: the memory in which the value is read |
//! | `_can_be_dead` | `_Recv` | whether the received value may be dead |

use super::{Memory, PartKind, PartNode, PartOp, Partition, Transfer};
use crate::{GraphError, required_ops};
use std::collections::{BTreeMap, HashSet};
use tenon_framework::{
    DType, PartialShape,
    attr::{AttrList, AttrValue},
};
use tenon_proto::{
    AttrValue as AttrProto, AttrValueKind, GraphDef, NodeDef, TensorProto,
    convert::{attr_to_proto, dtype_to_proto, shape_to_proto},
};

/// The names of the additional attributes.
pub(super) const SOURCE_MEMORY: &str = "_source_memory";
pub(super) const DESTINATION_MEMORY: &str = "_destination_memory";
pub(super) const CAN_BE_DEAD: &str = "_can_be_dead";
const OUTPUT_SHAPES: &str = "_output_shapes";
const KERNEL: &str = "_kernel";

pub(super) fn memory_text(memory: Memory) -> &'static str {
    match memory {
        Memory::Host => "host",
        Memory::Device => "device",
    }
}

impl Partition {
    /// Writes the partition as a message. Nodes that partitioning added get new names that are
    /// valid node names.
    ///
    /// # Errors
    /// A node has an attribute that cannot be written.
    pub fn to_graph_def(&self) -> Result<GraphDef, GraphError> {
        self.to_graph_def_on(&|_| None)
    }

    /// Like [`Partition::to_graph_def`], for the part of a task: a node for which `device` gives the name of a device of the
    /// task names that one; others name the partition's.
    ///
    /// # Errors
    /// As [`Partition::to_graph_def`].
    pub fn to_graph_def_on(
        &self,
        device: &dyn Fn(&PartNode) -> Option<String>,
    ) -> Result<GraphDef, GraphError> {
        let mut writer = Writer { partition: self, device, names: names(self), nodes: Vec::new() };
        for at in 0..self.nodes.len() {
            writer.write(at)?;
        }
        Ok(GraphDef { node: writer.nodes, ..GraphDef::default() })
    }
}

/// A unique, valid name for each node.
fn names(partition: &Partition) -> Vec<String> {
    let is_own = |node: &PartNode| matches!(node.kind, PartKind::Op(_)) && !node.name.contains('@');
    let own = partition.nodes.iter().filter(|node| is_own(node));
    let mut taken: HashSet<String> = own.map(|node| node.name.clone()).collect();
    let mut name = |node: &PartNode| {
        if is_own(node) {
            return node.name.clone();
        }
        let plain: String = node.name.trim_start_matches('^').replace([':', '@'], "_");
        let mut name = plain.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        name
    };
    partition.nodes.iter().map(&mut name).collect()
}

/// The attributes of a message.
type Attrs = BTreeMap<String, AttrProto>;

struct Writer<'p> {
    partition: &'p Partition,
    /// The device of a node that is not the partition's.
    device: &'p dyn Fn(&PartNode) -> Option<String>,
    /// The names, by position.
    names: Vec<String>,
    nodes: Vec<NodeDef>,
}

impl Writer<'_> {
    fn write(&mut self, at: usize) -> Result<(), GraphError> {
        let node = &self.partition.nodes[at];
        let mut input: Vec<String> = (node.inputs.iter())
            .map(|edge| match (&self.names[edge.node as usize], edge.output) {
                (source, 0) => source.clone(),
                (source, output) => format!("{source}:{output}"),
            })
            .collect();
        let control = node.control_inputs.iter();
        let control: Vec<String> =
            control.map(|&source| format!("^{}", self.names[source as usize])).collect();
        let (op, attr) = match &node.kind {
            PartKind::Op(op) => (node.op.as_str(), self.op(node, op)?),
            PartKind::Feed { index } => {
                (required_ops::ARG, self.end(node, "T", node.signature.outputs[0], *index)?)
            }
            PartKind::Fetch { index } => {
                (required_ops::RETVAL, self.end(node, "T", node.signature.inputs[0], *index)?)
            }
            PartKind::Send(transfer) => {
                if node.inputs.is_empty() {
                    input.push(self.empty(at, &control)?);
                }
                (required_ops::SEND, self.transfer(node, "T", transfer)?)
            }
            PartKind::Recv(transfer) => {
                let mut attr = self.transfer(node, "tensor_type", transfer)?;
                let can_be_dead = AttrValue::Bool(self.partition.has_control_flow);
                put(&mut attr, node, CAN_BE_DEAD, &can_be_dead)?;
                (required_ops::RECV, attr)
            }
        };
        input.extend(control);
        let device = (self.device)(node).unwrap_or_else(|| self.partition.device.to_string());
        let (name, op) = (self.names[at].clone(), op.to_owned());
        self.nodes.push(NodeDef { name, op, input, device, attr, ..NodeDef::default() });
        Ok(())
    }

    /// The attributes of a node that runs an op.
    fn op(&self, node: &PartNode, op: &PartOp) -> Result<Attrs, GraphError> {
        let mut attrs = Attrs::new();
        for (name, value) in op.attrs.attrs() {
            put(&mut attrs, node, name, value)?;
        }
        let chosen = op.kernel.as_ref().filter(|chosen| chosen.per_shape.is_empty());
        if let Some(label) = chosen.map(|chosen| &chosen.kernel.label).filter(|l| !l.is_empty()) {
            put(&mut attrs, node, KERNEL, &text(label))?;
        }
        if let (Some(_), Some(&memory)) = (op.value(), node.output_memory.first()) {
            put(&mut attrs, node, DESTINATION_MEMORY, &text(memory_text(memory)))?;
        }
        shapes(&mut attrs, node)?;
        Ok(attrs)
    }

    /// The attributes of a feed or fetch.
    fn end(
        &self,
        node: &PartNode,
        ty: &str,
        dtype: DType,
        index: usize,
    ) -> Result<Attrs, GraphError> {
        let mut attrs = Attrs::new();
        put(&mut attrs, node, ty, &AttrValue::Type(dtype))?;
        put(&mut attrs, node, "index", &AttrValue::Int(index as i64))?;
        shapes(&mut attrs, node)?;
        Ok(attrs)
    }

    fn transfer(
        &self,
        node: &PartNode,
        ty: &str,
        transfer: &Transfer,
    ) -> Result<Attrs, GraphError> {
        let values = [
            (ty, AttrValue::Type(transfer.dtype)),
            ("tensor_name", text(&transfer.tensor)),
            ("send_device", text(&transfer.sender.to_string())),
            // As in TensorFlow, an unsigned number is stored by its bits.
            ("send_device_incarnation", AttrValue::Int(transfer.incarnation.cast_signed())),
            ("recv_device", text(&transfer.receiver.to_string())),
            ("client_terminated", AttrValue::Bool(false)),
            (SOURCE_MEMORY, text(memory_text(transfer.source_memory))),
            (DESTINATION_MEMORY, text(memory_text(transfer.destination_memory))),
        ];
        let mut attrs = Attrs::new();
        for (name, value) in &values {
            put(&mut attrs, node, name, value)?;
        }
        shapes(&mut attrs, node)?;
        Ok(attrs)
    }

    /// Adds the empty tensor that the `_Send` of a control edge sends, and returns its name.
    fn empty(&mut self, at: usize, control: &[String]) -> Result<String, GraphError> {
        let node = &self.partition.nodes[at];
        let mut name = format!("{}/_empty", self.names[at]);
        while self.names.contains(&name) {
            name.push('_');
        }
        let value = TensorProto {
            dtype: dtype_to_proto(DType::FLOAT),
            tensor_shape: PartialShape::new(&[0]).ok().map(|shape| shape_to_proto(&shape)),
            ..TensorProto::default()
        };
        let value = AttrProto { value: Some(AttrValueKind::Tensor(Box::new(value))) };
        let mut attr = Attrs::from([("value".to_owned(), value)]);
        put(&mut attr, node, "dtype", &AttrValue::Type(DType::FLOAT))?;
        put(&mut attr, node, DESTINATION_MEMORY, &text(memory_text(Memory::Host)))?;
        let shapes = PartialShape::new(&[0]).into_iter().collect();
        put(&mut attr, node, OUTPUT_SHAPES, &AttrValue::List(AttrList::Shape(shapes)))?;
        let device = self.partition.device.to_string();
        self.nodes.push(NodeDef {
            name: name.clone(),
            op: required_ops::CONST.to_owned(),
            input: control.to_vec(),
            device,
            attr,
            ..NodeDef::default()
        });
        Ok(name)
    }
}

fn text(text: &str) -> AttrValue {
    AttrValue::String(text.as_bytes().to_vec())
}

fn put(
    attrs: &mut Attrs,
    node: &PartNode,
    name: &str,
    value: &AttrValue,
) -> Result<(), GraphError> {
    let written = attr_to_proto(value).map_err(|source| GraphError::Attr {
        node: node.name.clone(),
        attr: name.to_owned(),
        source: Box::new(source),
    })?;
    attrs.insert(name.to_owned(), written);
    Ok(())
}

fn shapes(attrs: &mut Attrs, node: &PartNode) -> Result<(), GraphError> {
    if node.output_shapes.is_empty() {
        return Ok(());
    }
    let shapes: Vec<PartialShape> = node.output_shapes.clone();
    put(attrs, node, OUTPUT_SHAPES, &AttrValue::List(AttrList::Shape(shapes)))
}
