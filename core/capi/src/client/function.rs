//! Functions of graphs.

use crate::{
    client::{
        graph::Graph,
        handle::Handle,
        status::Status,
        text::{Buffer, List},
    },
    fail::Failure,
    function_def::Source,
    raw::{Array, Text},
};
use tenon_framework::Code;
use tenon_proto::{FunctionDef, FunctionDefLibrary, MAX_MESSAGE_BYTES, decode};

fn function_def(bytes: Array<'_, u8>, size: usize) -> Result<FunctionDef, Failure> {
    if size > MAX_MESSAGE_BYTES {
        return Err(Failure::invalid(format!(
            "a function of {size} bytes: expected {MAX_MESSAGE_BYTES} at most"
        )));
    }
    let def: FunctionDef = decode(bytes.required(size, "the bytes of the function")?)?;
    match def.signature.as_ref().is_some_and(|signature| !signature.name.is_empty()) {
        true => Ok(def),
        false => Err(Failure::invalid("the function has no signature with a name")),
    }
}

api! {
    /// Adds the function of a FunctionDef message to a graph, whose nodes may then call it.
    fn tn_graph_add_function(
        graph: Handle<Graph>,
        message: Array<'_, u8>,
        bytes: usize,
        status: Option<&mut Status>,
    ) -> bool [status] {
        let (graph, def) = (graph.get()?, function_def(message, bytes)?);
        graph.shared.add_functions(FunctionDefLibrary { function: vec![def], ..Default::default() })?;
        Ok(true)
    }

    /// The names of the functions of a graph. The caller deletes the list.
    fn tn_graph_functions(graph: Handle<Graph>, status: Option<&mut Status>) -> Handle<List> [status] {
        let graph = graph.get()?;
        let state = graph.shared.lock();
        let all = state.graph.library().map_or(&[][..], |library| &library.function);
        let names = all.iter().filter_map(|def| Some(def.signature.as_ref()?.name.clone()));
        let names: Vec<String> = names.collect();
        drop(state);
        Ok(List::of(names))
    }

    /// The function of this name as a FunctionDef message. The caller deletes the buffer.
    fn tn_graph_function(
        graph: Handle<Graph>,
        name: Text<'_>,
        status: Option<&mut Status>,
    ) -> Handle<Buffer> [status] {
        let (graph, name) = (graph.get()?, name.required("the name of the function")?);
        let def = graph.shared.lock().graph.function(name).cloned();
        let def = def.ok_or_else(|| Failure::new(
            Code::NOT_FOUND,
            format!("the graph has no function '{name}': add it by tn_graph_add_function"),
        ))?;
        Buffer::of_message(&def)
    }

    /// Makes a function of all nodes of a graph but those of the inputs, as a FunctionDef message for tn_graph_add_function.
    /// "output_names" is null for names that are chosen, or has one for each output. The caller deletes the buffer.
    fn tn_graph_to_function(
        graph: Handle<Graph>,
        name: Text<'_>,
        inputs: Array<'_, Text<'_>>,
        input_count: usize,
        outputs: Array<'_, Text<'_>>,
        output_names: Array<'_, Text<'_>>,
        output_count: usize,
        status: Option<&mut Status>,
    ) -> Handle<Buffer> [status] {
        let (graph, name) = (graph.get()?, name.required("the name of the function")?);
        if name.is_empty() {
            return Err(Failure::invalid("the name of the function is empty"));
        }
        let names = output_names.of_size(output_count).iter();
        let names = names.map(|it| Ok(it.required("the name of an output")?.to_owned()));
        let source = Source {
            name,
            description: "",
            nodes: None,
            inputs: &graph.outputs(inputs, input_count, "an input of the function")?,
            outputs: &graph.outputs(outputs, output_count, "an output of the function")?,
            output_names: names.collect::<Result<_, Failure>>()?,
            effects: &[],
            effect_names: Vec::new(),
        };
        let def = source.write(&graph.shared, &graph.shared.lock())?;
        Buffer::of_message(&def)
    }
}
