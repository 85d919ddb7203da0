//! Builders of nodes.
//!
//! What is wrong with an argument is told at once; the builder then goes on as if the call had not been made.

use crate::{
    client::{graph::Graph, handle::Handle, runtime::texts, status::Status, text::List},
    describe::TF_OperationDescription as Description,
    fail::Failure,
    raw::{Array, Text},
};
use std::{ffi::c_int, sync::Arc};
use tenon_framework::{
    Code,
    op::OpDef,
    sync::{Mutex, Rank},
};
use tenon_graph::Output;

/// The rank of a builder: the op of its node is looked up in the graph.
const DESCRIPTION: Rank = Rank(2);

/// A node to be added.
pub struct Builder {
    graph: Arc<Graph>,
    /// `None` once it is finished.
    description: Mutex<Option<Description>>,
}

kept! { Builder => "a builder of a node" }

fn finished() -> Failure {
    Failure::new(Code::FAILED_PRECONDITION, "the node is finished already: begin another one")
}

impl Builder {
    /// Changes the description.
    ///
    /// # Errors
    /// The node is finished; the error of `change`.
    pub fn change(
        &self,
        change: impl FnOnce(&mut Description) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        change(self.description.lock().as_mut().ok_or_else(finished)?)?;
        Ok(true)
    }

    /// The definition of the node's op.
    ///
    /// # Errors
    /// The node is finished; the op is not registered.
    pub fn op(&self) -> Result<Arc<OpDef>, Failure> {
        let description = self.description.lock();
        description.as_ref().ok_or_else(finished)?.op()
    }

    /// Adds the node, and gives the names of its outputs.
    fn finish(&self) -> Result<Vec<String>, Failure> {
        let description = self.description.lock().take().ok_or_else(finished)?;
        let oper = description.finish()?;
        let state = self.graph.shared.lock();
        let count = oper.node.outputs().len() as u32;
        Ok((0..count).map(|at| state.graph.output_name(Output::new(oper.id, at))).collect())
    }
}

api! {
    /// Begins a node of this op and this name: add inputs and attributes, and then call tn_builder_finish. The caller deletes the
    /// builder.
    fn tn_builder_new(
        graph: Handle<Graph>,
        op: Text<'_>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Builder> [status] {
        let graph = graph.get()?;
        let (op, name) = (op.required("the op")?, name.required("the name of the node")?);
        let description = Description::new(Arc::clone(&graph.shared), op, name);
        let description = Mutex::ranked(DESCRIPTION, Some(description));
        Ok(Handle::new(Builder { graph, description }))
    }

    /// Deletes a builder. A node that is not finished is not added.
    fn tn_builder_delete(builder: Handle<Builder>) -> c_int { builder.delete() }

    /// Adds the node to its graph. Returns the names of its outputs, such as "y:0", which the caller deletes. Null if the node is
    /// refused, and then the graph is unchanged; the builder is finished in both cases.
    fn tn_builder_finish(
        builder: Handle<Builder>,
        status: Option<&mut Status>,
    ) -> Handle<List> [status] {
        builder.get()?.finish().map(List::of)
    }

    /// Gives the next input a tensor such as "x:0"; "x" is its first output.
    fn tn_builder_input(
        builder: Handle<Builder>,
        tensor: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let builder = builder.get()?;
        let input = builder.graph.output(tensor.required("the input")?)?;
        builder.change(|it| {
            it.add_input(input);
            Ok(())
        })
    }

    /// Gives the next input, which is a list, tensors.
    fn tn_builder_input_list(
        builder: Handle<Builder>,
        tensors: Array<'_, Text<'_>>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let builder = builder.get()?;
        let inputs = builder.graph.outputs(tensors, count, "an input")?;
        builder.change(|it| {
            it.add_list(inputs);
            Ok(())
        })
    }

    /// Makes the node wait for others.
    fn tn_builder_control_inputs(
        builder: Handle<Builder>,
        nodes: Array<'_, Text<'_>>,
        count: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let builder = builder.get()?;
        let names = texts(nodes, count, "a control input")?;
        let nodes = names.iter().map(|name| builder.graph.node(name)).collect::<Result<Vec<_>, _>>()?;
        builder.change(|it| {
            nodes.into_iter().for_each(|node| it.add_control(Some(node)));
            Ok(())
        })
    }

    /// Requests a device, by a full or partial name such as "/device:CPU:0".
    fn tn_builder_device(
        builder: Handle<Builder>,
        device: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let device = device.required("the device")?;
        builder.get()?.change(|it| {
            it.set_device(device);
            Ok(())
        })
    }

    /// Requests the device of another node.
    fn tn_builder_colocate(
        builder: Handle<Builder>,
        node: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let builder = builder.get()?;
        let node = builder.graph.node(node.required("the node to be colocated with")?)?;
        builder.change(|it| {
            it.colocate(node);
            Ok(())
        })
    }
}
