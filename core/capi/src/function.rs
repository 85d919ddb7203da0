//! Functions: made of graphs, read and written as messages, copied into graphs.

use crate::{
    buffer::{self, TF_Buffer, give},
    fail::Failure,
    function_def::Source,
    graph::{TF_Graph, shared},
    operation::{OpRef, TF_Output},
    raw::{Array, Out, Text, c_count},
    status::{TF_Status, c_text},
};
use prost::Message;
use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr,
};
use tenon_framework::Code;
use tenon_proto::{AttrValue, FunctionDef, FunctionDefLibrary, GradientDef};

/// A function.
pub struct TF_Function {
    name: CString,
    def: FunctionDef,
}

impl TF_Function {
    fn new(def: FunctionDef) -> Result<TF_Function, Failure> {
        let signature = def.signature.as_ref();
        let signature =
            signature.ok_or_else(|| Failure::invalid("the function has no signature"))?;
        if signature.name.is_empty() {
            return Err(Failure::invalid("the function has no name"));
        }
        Ok(TF_Function { name: c_text(&signature.name), def })
    }
}

/// The digits of a hash of a definition.
fn hash(def: &FunctionDef) -> String {
    let bytes = def.encode_to_vec();
    let mixed =
        |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, mixed))
}

fn texts(names: Array<'_, Text<'_>>, count: c_int, what: &str) -> Result<Vec<String>, Failure> {
    let names = names.of(count).iter();
    names.map(|name| Ok(name.required(what)?.to_owned())).collect()
}

/// The array of nodes; `None` where its number is -1.
fn nodes<'a>(
    nodes: Array<'a, Option<OpRef>>,
    count: c_int,
) -> Result<Option<&'a [Option<OpRef>]>, Failure> {
    match count {
        -1 => Ok(None),
        _ => nodes.checked(count, "the nodes of the function").map(Some),
    }
}

fn make(
    graph: Option<&TF_Graph>,
    source: &Source<'_>,
    name: &str,
    append_hash: bool,
) -> Result<Option<Box<TF_Function>>, Failure> {
    if name.is_empty() {
        return Err(Failure::invalid("the name of the function is empty"));
    }
    let graph = shared(graph)?;
    let mut def = source.write(graph, &graph.lock())?;
    if append_hash {
        let full = format!("{name}_{}", hash(&def));
        def.signature.get_or_insert_default().name = full;
    }
    TF_Function::new(def).map(|function| Some(Box::new(function)))
}

fn function(function: Option<&TF_Function>) -> Result<&TF_Function, Failure> {
    function.ok_or_else(|| Failure::null("the function"))
}

api! {
    /// Makes a function of a graph: of the nodes `nodes`, or of all but those of the inputs if their number is -1.
    fn TF_GraphToFunction(
        graph: Option<&TF_Graph>,
        name: Text<'_>,
        append_hash: u8,
        node_count: c_int,
        body: Array<'_, Option<OpRef>>,
        input_count: c_int,
        inputs: Array<'_, TF_Output>,
        output_count: c_int,
        outputs: Array<'_, TF_Output>,
        output_names: Array<'_, Text<'_>>,
        options: *const c_void,
        description: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Function>> {
        // SAFETY: the caller in C gave the arguments for this function, and the list of control outputs is empty.
        unsafe {
            TF_GraphToFunctionWithControlOutputs(
                graph, name, append_hash, node_count, body, input_count, inputs, output_count, outputs, output_names,
                0, Array::NULL, Array::NULL, options, description, status,
            )
        }
    }

    /// As `TF_GraphToFunction`, and a call runs the control outputs too.
    fn TF_GraphToFunctionWithControlOutputs(
        graph: Option<&TF_Graph>,
        name: Text<'_>,
        append_hash: u8,
        node_count: c_int,
        body: Array<'_, Option<OpRef>>,
        input_count: c_int,
        inputs: Array<'_, TF_Output>,
        output_count: c_int,
        outputs: Array<'_, TF_Output>,
        output_names: Array<'_, Text<'_>>,
        control_count: c_int,
        control_outputs: Array<'_, Option<OpRef>>,
        control_names: Array<'_, Text<'_>>,
        _options: *const c_void,
        description: Text<'_>,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Function>> [status] {
        let name = name.required("the name of the function")?;
        let source = Source {
            name,
            description: description.optional("the description")?,
            nodes: nodes(body, node_count)?,
            inputs: inputs.checked(input_count, "the inputs")?,
            outputs: outputs.checked(output_count, "the outputs")?,
            output_names: texts(output_names, output_count, "the name of an output")?,
            effects: control_outputs.checked(control_count, "the control outputs")?,
            effect_names: texts(control_names, control_count, "the name of a control output")?,
        };
        make(graph, &source, name, append_hash != 0)
    }

    /// The name of a function, which stays as long as the function.
    fn TF_FunctionName(found: Option<&TF_Function>) -> *const c_char {
        found.map_or(ptr::null(), |function| function.name.as_ptr())
    }

    /// Writes a function as a `FunctionDef`.
    fn TF_FunctionToFunctionDef(
        found: Option<&TF_Function>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        give(message, &function(found)?.def)
    }

    /// Reads a function from a `FunctionDef`.
    fn TF_FunctionImportFunctionDef(
        message: Array<'_, u8>,
        length: usize,
        status: Option<&mut TF_Status>,
    ) -> Option<Box<TF_Function>> [status] {
        let def = buffer::message(message.message(length))?;
        TF_Function::new(def).map(|function| Some(Box::new(function)))
    }

    /// Sets an attribute of a function to the value of an `AttrValue`.
    fn TF_FunctionSetAttrValueProto(
        found: Option<&mut TF_Function>,
        name: Text<'_>,
        message: Array<'_, u8>,
        length: usize,
        status: Option<&mut TF_Status>,
    ) [status] {
        let found = found.ok_or_else(|| Failure::null("the function"))?;
        let name = name.required("the name of the attribute")?;
        let value: AttrValue = buffer::message(message.message(length))?;
        found.def.attr.insert(name.to_owned(), value);
        Ok(())
    }

    /// Writes an attribute of a function as an `AttrValue`.
    fn TF_FunctionGetAttrValueProto(
        found: Option<&TF_Function>,
        name: Text<'_>,
        message: Option<&mut TF_Buffer>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let found = function(found)?;
        let name = name.required("the name of the attribute")?;
        let value = found.def.attr.get(name).ok_or_else(|| {
            Failure::invalid(format!("function {:?} has no attribute '{name}'", found.name))
        })?;
        give(message, value)
    }

    /// Deletes a function. Graphs that it was copied into keep it.
    fn TF_DeleteFunction(function: Option<Box<TF_Function>>) { drop(function) }

    /// Copies a function into a graph, and its gradient if that is not null. The graph's nodes may then call it.
    fn TF_GraphCopyFunction(
        graph: Option<&TF_Graph>,
        found: Option<&TF_Function>,
        gradient: Option<&TF_Function>,
        status: Option<&mut TF_Status>,
    ) [status] {
        let (graph, found) = (shared(graph)?, function(found)?);
        let mut library =
            FunctionDefLibrary { function: vec![found.def.clone()], ..Default::default() };
        if let Some(gradient) = gradient {
            library.function.push(gradient.def.clone());
            library.gradient.push(GradientDef {
                function_name: found.name.to_string_lossy().into_owned(),
                gradient_func: gradient.name.to_string_lossy().into_owned(),
            });
        }
        graph.add_functions(library).map_err(|failure| Failure { code: Code::INVALID_ARGUMENT, ..failure })
    }

    /// The number of functions of a graph.
    fn TF_GraphNumFunctions(graph: Option<&TF_Graph>) -> c_int {
        let Ok(graph) = shared(graph) else { return 0 };
        let state = graph.lock();
        let count = state.graph.library().map_or(0, |library| library.function.len());
        c_count(count)
    }

    /// Writes copies of the functions of a graph, `room` of them at most, which the caller deletes; returns their number.
    fn TF_GraphGetFunctions(
        graph: Option<&TF_Graph>,
        functions: Out<'_, Option<Box<TF_Function>>>,
        room: c_int,
        status: Option<&mut TF_Status>,
    ) -> c_int [status] {
        let state = shared(graph)?.lock();
        let found = state.graph.library().map_or(&[][..], |library| &library.function);
        let room_for = usize::try_from(room).unwrap_or(0);
        let copies = found.iter().take(room_for).map(|def| TF_Function::new(def.clone()));
        let copies = copies.collect::<Result<Vec<_>, _>>()?;
        Ok(functions.fill(room, copies.into_iter().map(|copy| Some(Box::new(copy)))))
    }
}
