//! The `_Send` and `_Recv` nodes that a graph has already, since it is a part of a graph that was cut elsewhere.

use super::{
    AssembleError, Memory, Transfer,
    message::{CAN_BE_DEAD, DESTINATION_MEMORY, SOURCE_MEMORY},
};
use crate::{Graph, Node, NodeId, Output, Shapes, Subgraph};
use std::collections::HashMap;
use tenon_framework::{attr::AttrValue, device::DeviceName, op::OpRole};

/// The transfers of the nodes that send to other parts, or receive from them.
#[derive(Default)]
pub(super) struct Ends {
    pub transfers: HashMap<NodeId, Transfer>,
    /// Whether a received value may be dead.
    pub may_be_dead: bool,
}

impl Ends {
    /// Finds them among the nodes that run.
    pub fn find(graph: &Graph, sub: &Subgraph, shapes: &Shapes) -> Result<Ends, AssembleError> {
        let mut ends = Ends::default();
        for &id in &sub.order {
            let node = graph.node(id);
            let value = match node.op.facts().role {
                OpRole::Sender => node.inputs[0],
                OpRole::Receiver => Output::new(id, 0),
                _ => continue,
            };
            let is_received = value.node == id;
            // TensorFlow's partitions do not say whether a value may be dead.
            let is_alive = matches!(node.attrs.get(CAN_BE_DEAD), Some(AttrValue::Bool(false)));
            ends.may_be_dead |= is_received && !is_alive;
            ends.transfers.insert(id, transfer(graph, shapes, node, value)?);
        }
        Ok(ends)
    }
}

/// The transfer of a `_Send` or `_Recv`, with 0 as its number.
pub(super) fn transfer(
    graph: &Graph,
    shapes: &Shapes,
    node: &Node,
    value: Output,
) -> Result<Transfer, AssembleError> {
    let device = |attr| {
        let name = DeviceName::parse(&words(node, attr)?);
        name.map_err(|source| AssembleError::Device { node: node.name.clone(), attr, source })
    };
    let memory = |attr| match node.attrs.get(attr) {
        // The partitions may come from TensorFlow, which has separate ops for host memory.
        None => Ok(Memory::Host),
        Some(value) => match value.as_text() {
            Some("host") => Ok(Memory::Host),
            Some("device") => Ok(Memory::Device),
            _ => Err(wrong(node, attr, "'host' or 'device'", value)),
        },
    };
    let incarnation = node.attrs.get("send_device_incarnation").and_then(AttrValue::as_int);
    Ok(Transfer {
        id: 0,
        sender: device("send_device")?,
        incarnation: incarnation.unwrap_or_default().cast_unsigned(),
        receiver: device("recv_device")?,
        tensor: words(node, "tensor_name")?,
        source_memory: memory(SOURCE_MEMORY)?,
        destination_memory: memory(DESTINATION_MEMORY)?,
        dtype: graph.dtype(value).base(),
        shape: shapes.shape(value),
    })
}

pub(super) fn flag(node: &Node, attr: &str) -> bool {
    matches!(node.attrs.get(attr), Some(AttrValue::Bool(true)))
}

pub(super) fn words(node: &Node, attr: &'static str) -> Result<String, AssembleError> {
    let value = node.attrs.get(attr);
    let text = value.and_then(AttrValue::as_text).map(str::to_owned);
    text.ok_or_else(|| match value {
        Some(value) => wrong(node, attr, "text", value),
        None => wrong(node, attr, "text", &"nothing"),
    })
}

pub(super) fn wrong(
    node: &Node,
    attr: &'static str,
    expected: &'static str,
    found: &dyn std::fmt::Debug,
) -> AssembleError {
    let (node, op) = (node.name.clone(), node.op.name.clone());
    AssembleError::Attr { node, op, attr, expected, found: format!("{found:?}") }
}
