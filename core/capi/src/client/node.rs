//! Questions about nodes.

use crate::{
    client::{
        graph::Graph,
        handle::Handle,
        info::TypeNumber,
        status::Status,
        text::{Buffer, List},
    },
    fail::Failure,
    raw::{Out, Text, c_count},
    status::c_text,
};
use std::{
    ffi::{CString, c_char, c_int},
    ptr,
    sync::Arc,
};
use tenon_framework::{Code, attr::AttrValue};
use tenon_graph::{Node as GraphNode, Output};
use tenon_proto::convert::attr_to_proto;

/// A node of a graph, as it was when it was asked for.
pub struct Node {
    node: Arc<GraphNode>,
    name: CString,
    op: CString,
    device: CString,
    inputs: Vec<String>,
    control: Vec<String>,
}

kept! { Node => "a node" }

impl Node {
    fn of(graph: &Graph, name: &str) -> Result<Node, Failure> {
        let state = graph.shared.lock();
        let id = state.graph.target(name)?;
        let node = Arc::clone(&state.graph.shared_nodes()[id.index()]);
        let requested = node.device.to_string();
        let origin = node.origin.as_ref().map(|origin| origin.device.as_str());
        let tensor = |&input: &Output| state.graph.output_name(input);
        Ok(Node {
            name: c_text(&node.name),
            op: c_text(&node.op.name),
            device: c_text(origin.unwrap_or(&requested)),
            inputs: node.inputs.iter().map(tensor).collect(),
            control: node
                .control_inputs
                .iter()
                .map(|&id| state.graph.node(id).name.clone())
                .collect(),
            node,
        })
    }

    /// The value of an attribute.
    fn attr(&self, name: Text<'_>) -> Result<&AttrValue, Failure> {
        let name = name.required("the name of the attribute")?;
        self.node.attrs.get(name).ok_or_else(|| {
            Failure::new(
                Code::NOT_FOUND,
                format!(
                    "node '{}': op {} has no attribute '{name}'",
                    self.node.name, self.node.op.name
                ),
            )
        })
    }

    fn other(&self, name: Text<'_>, expected: &str) -> Failure {
        Failure::invalid(format!(
            "node '{}': attribute {:?} is no {expected}: read it by tn_node_attr",
            self.node.name,
            name.get().unwrap_or_default()
        ))
    }
}

api! {
    /// The node of this name. What it tells is of the time of this call. The caller deletes it.
    fn tn_graph_node(
        graph: Handle<Graph>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Node> [status] {
        let name = name.required("the name of the node")?;
        Node::of(&*graph.get()?, name).map(Handle::new)
    }

    /// Deletes what tn_graph_node gave; the node stays in its graph.
    fn tn_node_delete(node: Handle<Node>) -> c_int { node.delete() }

    /// The name, which stays until the handle is deleted; null for no node.
    fn tn_node_name(node: Handle<Node>) -> *const c_char {
        node.get().map_or(ptr::null(), |node| node.name.as_ptr())
    }

    /// The op, which stays until the handle is deleted; null for no node.
    fn tn_node_op(node: Handle<Node>) -> *const c_char {
        node.get().map_or(ptr::null(), |node| node.op.as_ptr())
    }

    /// The device that the node requests, which stays until the handle is deleted; empty if it requests none, null for no node.
    fn tn_node_device(node: Handle<Node>) -> *const c_char {
        node.get().map_or(ptr::null(), |node| node.device.as_ptr())
    }

    /// The names of the tensors that the node reads. The caller deletes the list.
    fn tn_node_inputs(node: Handle<Node>, status: Option<&mut Status>) -> Handle<List> [status] {
        Ok(List::of(&node.get()?.inputs))
    }

    /// The names of the nodes that the node waits for without reading them. The caller deletes the list.
    fn tn_node_control_inputs(node: Handle<Node>, status: Option<&mut Status>) -> Handle<List> [status] {
        Ok(List::of(&node.get()?.control))
    }

    /// The number of outputs; 0 for no node.
    fn tn_node_output_count(node: Handle<Node>) -> c_int {
        node.get().map_or(0, |node| c_count(node.node.outputs().len()))
    }

    /// The element type of output number "index"; 0 where the node has no such output.
    fn tn_node_output_dtype(node: Handle<Node>, index: c_int) -> TypeNumber {
        let (Ok(node), Ok(index)) = (node.get(), usize::try_from(index)) else { return 0 };
        node.node.outputs().get(index).map_or(0, |dtype| dtype.base().0 as c_int)
    }

    /// An attribute as an AttrValue message. TN_NOT_FOUND if the node does not have it. The caller deletes the buffer.
    fn tn_node_attr(
        node: Handle<Node>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Buffer> [status] {
        let node = node.get()?;
        Buffer::of_message(&attr_to_proto(node.attr(name)?)?)
    }

    /// Writes an attribute that is an integer.
    fn tn_node_attr_int(
        node: Handle<Node>,
        name: Text<'_>,
        value: Out<'_, i64>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let node = node.get()?;
        let AttrValue::Int(found) = node.attr(name)? else { return Err(node.other(name, "integer")) };
        value.set(*found);
        Ok(true)
    }

    /// Writes an attribute that is a number.
    fn tn_node_attr_float(
        node: Handle<Node>,
        name: Text<'_>,
        value: Out<'_, f32>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let node = node.get()?;
        let AttrValue::Float(found) = node.attr(name)? else { return Err(node.other(name, "number")) };
        value.set(*found);
        Ok(true)
    }

    /// Writes an attribute that is a truth value.
    fn tn_node_attr_bool(
        node: Handle<Node>,
        name: Text<'_>,
        value: Out<'_, bool>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let node = node.get()?;
        let AttrValue::Bool(found) = node.attr(name)? else {
            return Err(node.other(name, "truth value"));
        };
        value.set(*found);
        Ok(true)
    }

    /// Writes an attribute that is an element type.
    fn tn_node_attr_type(
        node: Handle<Node>,
        name: Text<'_>,
        value: Out<'_, TypeNumber>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let node = node.get()?;
        let AttrValue::Type(found) = node.attr(name)? else {
            return Err(node.other(name, "element type"));
        };
        value.set(found.0 as c_int);
        Ok(true)
    }

    /// The bytes of an attribute that is a text. The caller deletes the buffer.
    fn tn_node_attr_string(
        node: Handle<Node>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Buffer> [status] {
        let node = node.get()?;
        let AttrValue::String(found) = node.attr(name)? else { return Err(node.other(name, "text")) };
        Ok(Buffer::of(found.clone()))
    }

    /// Writes the dimensions of an attribute that is a shape, at most "room" of them, and their number: -1 for a shape of which
    /// nothing is known.
    fn tn_node_attr_shape(
        node: Handle<Node>,
        name: Text<'_>,
        dims: Out<'_, i64>,
        room: c_int,
        rank: Out<'_, c_int>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let node = node.get()?;
        let AttrValue::Shape(found) = node.attr(name)? else { return Err(node.other(name, "shape")) };
        rank.set(found.dims().map_or(-1, |dims| c_count(dims.len())));
        dims.fill(room, found.dims().unwrap_or_default().iter().copied());
        Ok(true)
    }

    /// The names of the tensors that the node of this name would give as outputs, such as "x:0" and "x:1". The caller deletes the
    /// list.
    fn tn_graph_outputs(
        graph: Handle<Graph>,
        node: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        let (graph, name) = (graph.get()?, node.required("the name of the node")?);
        let state = graph.shared.lock();
        let id = state.graph.target(name)?;
        let count = state.graph.node(id).outputs().len() as u32;
        let names: Vec<String> =
            (0..count).map(|at| state.graph.output_name(Output::new(id, at))).collect();
        drop(state);
        Ok(List::of(names))
    }
}
