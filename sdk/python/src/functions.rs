//! Functions of graphs.

use crate::{
    blocking::guarded,
    fail::Fail,
    graph::{Pair, PyGraph, check, check_output, output},
    runtime::runtime,
};
use pyo3::{prelude::*, types::PyBytes};
use tenon_framework::Code;
use tenon_graph::{GraphBuilder, NodeId, Output};
use tenon_proto::{FunctionDef, FunctionDefLibrary, convert::dtype_from_proto, encode};

/// Adds a function to a graph: its body is another graph, whose placeholders `args` a call replaces. The functions that the body
/// calls come along. A call runs the nodes `effects` too.
#[pyfunction]
#[pyo3(signature = (graph, name, body, args, results, effects=vec![]))]
pub(crate) fn define_function(
    py: Python<'_>,
    graph: &PyGraph,
    name: &str,
    body: &PyGraph,
    args: Vec<Pair>,
    results: Vec<Pair>,
    effects: Vec<u32>,
) -> Result<(), Fail> {
    let registry = runtime(py)?.registry();
    let body = {
        let state = body.lock()?;
        for &(id, index) in args.iter().chain(&results) {
            check_output(&state.graph, id, index)?;
        }
        effects.iter().try_for_each(|&id| check(&state.graph, id))?;
        state.graph.clone()
    };
    let outputs = |pairs: Vec<Pair>| pairs.into_iter().map(output).collect::<Vec<Output>>();
    let (args, results) = (outputs(args), outputs(results));
    let effects: Vec<NodeId> = effects.into_iter().map(NodeId).collect();
    py.detach(|| {
        graph.lock()?.build(&registry, |builder, _| {
            if let Some(library) = body.library() {
                builder.add_library(library.clone())?;
            }
            builder.define_with(name, &body, &args, &results, &effects)?;
            Ok(())
        })
    })
}

/// The names of the functions of a graph.
#[pyfunction]
pub(crate) fn function_names(graph: &PyGraph) -> Result<Vec<String>, Fail> {
    let state = graph.lock()?;
    let Some(library) = state.graph.library() else { return Ok(Vec::new()) };
    let names = library.function.iter().filter_map(|function| function.signature.as_ref());
    Ok(names.map(|signature| signature.name.clone()).collect())
}

/// A function of a graph as the bytes of a `FunctionDef`.
#[pyfunction]
pub(crate) fn function_def<'py>(
    py: Python<'py>,
    graph: &PyGraph,
    name: &str,
) -> Result<Bound<'py, PyBytes>, Fail> {
    let def = graph.lock()?.graph.function(name).cloned();
    let def = def
        .ok_or_else(|| Fail::new(Code::NOT_FOUND, format!("the graph has no function '{name}'")))?;
    Ok(PyBytes::new(py, &encode(&def)?))
}

/// Numbers of element types.
type Types = Vec<u32>;

/// The types of the arguments and results of a function of a graph, and whether it has state.
#[pyfunction]
pub(crate) fn function_signature(
    graph: &PyGraph,
    name: &str,
) -> Result<(Types, Types, bool), Fail> {
    let state = graph.lock()?;
    let signature = state.graph.function(name).and_then(|function| function.signature.as_ref());
    let signature = signature
        .ok_or_else(|| Fail::new(Code::NOT_FOUND, format!("the graph has no function '{name}'")))?;
    let types = |args: &[tenon_proto::ArgDef]| {
        let fixed = |arg: &tenon_proto::ArgDef| {
            let is_one = arg.number_attr.is_empty() && arg.type_list_attr.is_empty();
            let dtype = dtype_from_proto(arg.r#type).ok().filter(|_| is_one && arg.r#type != 0);
            dtype.map(|dtype| dtype.0).ok_or_else(|| {
                Fail::new(
                    Code::UNIMPLEMENTED,
                    format!(
                        "argument '{}' of function '{name}' has a type that its calls choose: expected a function with \
                         types of its own",
                        arg.name
                    ),
                )
            })
        };
        args.iter().map(fixed).collect::<Result<Types, Fail>>()
    };
    Ok((types(&signature.input_arg)?, types(&signature.output_arg)?, signature.is_stateful))
}

/// Adds functions to a graph, each given as the bytes of a `FunctionDef`. Returns the name of the first.
#[pyfunction]
pub(crate) fn add_functions(
    py: Python<'_>,
    graph: &PyGraph,
    defs: Vec<Vec<u8>>,
) -> Result<String, Fail> {
    let registry = runtime(py)?.registry();
    py.detach(|| {
        let read = |bytes: &Vec<u8>| guarded(|| Ok(tenon_proto::decode::<FunctionDef>(bytes)?));
        let function = defs.iter().map(read).collect::<Result<Vec<_>, Fail>>()?;
        let named = |function: &FunctionDef| {
            function.signature.as_ref().is_some_and(|signature| !signature.name.is_empty())
        };
        if !function.iter().all(named) {
            return Err(Fail::invalid(
                "expected the bytes of a FunctionDef with a name, found none",
            ));
        }
        let first = function.first().and_then(|first| first.signature.as_ref());
        let first = first.map(|signature| signature.name.clone()).unwrap_or_default();
        let library = FunctionDefLibrary { function, ..FunctionDefLibrary::default() };
        graph.lock()?.build(&registry, |builder: &mut GraphBuilder<'_>, _| {
            Ok(builder.add_library(library)?)
        })?;
        Ok(first)
    })
}
