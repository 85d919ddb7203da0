//! Graphs: made, read from messages, and written.

use crate::{
    client::{
        handle::Handle,
        info::{ValueInfo, shape as shape_of},
        runtime::{Runtime, texts},
        status::Status,
        text::{Buffer, List},
        versioned::{Filled, Options, Versioned},
    },
    fail::Failure,
    graph::Shared,
    import::{TF_ImportGraphDefOptions, import_def},
    operation::{OpRef, TF_Output},
    raw::{Array, Text},
    shapes::refine,
};
use std::{ffi::c_int, sync::Arc};
use tenon_framework::sync::{Mutex, Rank};
use tenon_proto::{GraphDef, MAX_MESSAGE_BYTES, decode};
use tenon_training::Variables;

/// The rank of a graph's list of variables: outside of that of the graph.
const VARIABLES: Rank = Rank(2);

/// A graph.
pub struct Graph {
    /// The nodes, and what is known of their shapes.
    pub shared: Arc<Shared>,
    /// The variables that were added by functions of this API.
    pub variables: Mutex<Variables>,
}

kept! { Graph => "a graph" }

/// Options of an import. Zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ImportOptions {
    /// sizeof(tn_import_options).
    pub size: usize,
    /// Is put before the names of all imported nodes, with a slash; null for nothing.
    pub prefix: Text<'static>,
    /// The device of imported nodes that request none; null for none.
    pub default_device: Text<'static>,
    /// Tensors of the message, such as "x:0", that are replaced by those of the graph below.
    pub replaced: Array<'static, Text<'static>>,
    /// Tensors of the graph, as many.
    pub replacements: Array<'static, Text<'static>>,
    /// The number of tensors that are replaced.
    pub replaced_count: usize,
}

// SAFETY: `repr(C)`, the size comes first, and zeros are null pointers and numbers.
unsafe impl Versioned for ImportOptions {
    const NAME: &'static str = "tn_import_options";
}

impl Graph {
    /// The tensor of this name.
    ///
    /// # Errors
    /// The graph has no such tensor.
    pub fn output(&self, name: &str) -> Result<TF_Output, Failure> {
        let state = self.shared.lock();
        Ok(state.output(state.graph.tensor(name)?))
    }

    /// The tensors of these names.
    ///
    /// # Errors
    /// As [`Graph::output`].
    pub fn outputs(
        &self,
        names: Array<'_, Text<'_>>,
        count: usize,
        what: &str,
    ) -> Result<Vec<TF_Output>, Failure> {
        texts(names, count, what)?.iter().map(|name| self.output(name)).collect()
    }

    /// The node of this name.
    ///
    /// # Errors
    /// The graph has no such node.
    pub fn node(&self, name: &str) -> Result<OpRef, Failure> {
        let state = self.shared.lock();
        Ok(state.operation(state.graph.target(name)?))
    }

    /// The name of a tensor.
    pub fn name(&self, output: &TF_Output) -> Result<String, Failure> {
        let found = output.of(&self.shared, "the tensor")?;
        Ok(self.shared.lock().graph.output_name(found))
    }
}

/// Reads a `GraphDef`.
///
/// # Errors
/// Null, too large, or not such a message.
pub fn graph_def(bytes: Array<'_, u8>, size: usize) -> Result<GraphDef, Failure> {
    if size > MAX_MESSAGE_BYTES {
        return Err(Failure::invalid(format!(
            "a graph of {size} bytes: expected {MAX_MESSAGE_BYTES} at most"
        )));
    }
    Ok(decode(bytes.required(size, "the bytes of the graph")?)?)
}

/// A tensor of a message as node and number.
fn split(name: &str) -> (String, c_int) {
    let parts = name.rsplit_once(':').and_then(|(node, at)| Some((node, at.parse().ok()?)));
    parts.map_or_else(|| (name.to_owned(), 0), |(node, at)| (node.to_owned(), at))
}

fn import(graph: &Graph, def: GraphDef, options: &ImportOptions) -> Result<(), Failure> {
    let mut given = TF_ImportGraphDefOptions::default();
    options.prefix.optional("prefix")?.clone_into(&mut given.plan.prefix);
    options.default_device.optional("default_device")?.clone_into(&mut given.plan.device);
    let count = options.replaced_count;
    let replaced = texts(options.replaced, count, "a tensor that is replaced")?;
    let by = graph.outputs(options.replacements, count, "a replacement")?;
    given.mapped.extend(replaced.iter().map(|name| split(name)).zip(by));
    import_def(&graph.shared, def, &given).map(drop)
}

api! {
    /// Makes an empty graph over the ops of a runtime. The caller deletes it.
    fn tn_graph_new(runtime: Handle<Runtime>, status: Option<&mut Status>) -> Handle<Graph> [status] {
        let shared = Shared::new(Some(runtime.get()?.0.clone()));
        let variables = Mutex::ranked(VARIABLES, Variables::new());
        Ok(Handle::new(Graph { shared, variables }))
    }

    /// Deletes a graph. Its sessions keep what they need of it.
    fn tn_graph_delete(graph: Handle<Graph>) -> c_int { graph.delete() }

    /// Adds the nodes and functions of a GraphDef message. "options" may be null. If the graph is refused, nothing is added.
    fn tn_graph_import(
        graph: Handle<Graph>,
        message: Array<'_, u8>,
        bytes: usize,
        options: Options<'_, ImportOptions>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        import(&*graph.get()?, graph_def(message, bytes)?, &options.read()?)?;
        Ok(true)
    }

    /// The graph as a GraphDef message. The caller deletes the buffer.
    fn tn_graph_message(graph: Handle<Graph>, status: Option<&mut Status>) -> Handle<Buffer> [status] {
        let def = graph.get()?.shared.lock().graph.to_graph_def()?;
        Buffer::of_message(&def)
    }

    /// The names of all nodes, in the order in which they were added. The caller deletes the list.
    fn tn_graph_nodes(graph: Handle<Graph>, status: Option<&mut Status>) -> Handle<List> [status] {
        let graph = graph.get()?;
        let state = graph.shared.lock();
        let names: Vec<String> = state.graph.nodes().map(|(_, node)| node.name.clone()).collect();
        drop(state);
        Ok(List::of(names))
    }

    /// Whether the graph has a node of this name; false also for a handle or a name that is wrong, which the status tells apart.
    fn tn_graph_has(
        graph: Handle<Graph>,
        node: Text<'_>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (graph, name) = (graph.get()?, node.required("the name of the node")?);
        let found = graph.shared.lock().graph.find(name);
        Ok(found.is_some())
    }

    /// Writes the element type and the shape of a tensor such as "x:0", as far as they are known before a step.
    fn tn_graph_tensor_info(
        graph: Handle<Graph>,
        tensor: Text<'_>,
        info: Filled<'_, ValueInfo>,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (graph, name) = (graph.get()?, tensor.required("the name of the tensor")?);
        let state = graph.shared.lock();
        let output = state.graph.tensor(name)?;
        info.set(&ValueInfo::of(Some(state.graph.dtype(output)), &state.shapes.shape(output)))?;
        Ok(true)
    }

    /// Makes the shape of a tensor more exact: -1 as a dimension is one that is not known. TN_INVALID_ARGUMENT if it contradicts
    /// what is known.
    fn tn_graph_set_shape(
        graph: Handle<Graph>,
        tensor: Text<'_>,
        dims: Array<'_, i64>,
        rank: c_int,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (graph, name) = (graph.get()?, tensor.required("the name of the tensor")?);
        let shape = shape_of(dims, rank)?;
        let mut state = graph.shared.lock();
        let output = state.graph.tensor(name)?;
        refine(&mut state.shapes, output, &shape)?;
        Ok(true)
    }
}
