//! What a model is, as text and as JSON.

use super::args::ShowArgs;
use crate::{
    args::Global,
    error::CliError,
    output::{count, print, print_json},
    run::preview,
    start::start_whole,
    table::Table,
};
use serde_json::{Value, json};
use tenon_import::{Argument, MetaGraph, SavedModel, SignatureInfo, Variable};
use tenon_runtime::framework::{PartialShape, registry::Registry};

/// Prints what a model is.
///
/// # Errors
/// The model cannot be read; no graph of it has the tags.
pub fn show(global: &Global, args: &ShowArgs) -> Result<(), CliError> {
    let model = SavedModel::open(&args.folder)?;
    let graphs: Vec<MetaGraph<'_>> = if args.tags.is_empty() {
        model.meta_graphs().collect()
    } else {
        let tags: Vec<&str> = args.tags.iter().map(String::as_str).collect();
        let tags: Vec<&str> = tags.into_iter().filter(|tag| !tag.is_empty()).collect();
        vec![model.meta_graph(&tags)?]
    };
    let variables = model.variables()?;
    // Which ops are missing depends on the plugins.
    let (runtime, _) = start_whole(global, None)?;
    let registry = runtime.registry();
    if global.json {
        let graphs = graphs.into_iter().map(|graph| graph_json(graph, &registry));
        let graphs = graphs.collect::<Result<Vec<Value>, CliError>>()?;
        return print_json(&json!({
            "folder": args.folder.display().to_string(),
            "graphs": graphs,
            "variables": variables.iter().map(variable_json).collect::<Vec<_>>(),
        }));
    }
    let mut text = format!("{}: {}\n", args.folder.display(), count(graphs.len(), "graph"));
    for graph in graphs {
        text.push_str(&graph_text(graph, &registry)?);
    }
    text.push_str(&variables_text(&variables));
    print(&text)
}

fn dtype(argument: &Argument) -> String {
    argument.dtype.map_or_else(|| "?".to_owned(), |dtype| dtype.name().to_owned())
}

fn dims(shape: &PartialShape) -> Value {
    json!(shape.dims())
}

fn argument_json(argument: &Argument) -> Value {
    json!({
        "name": argument.name, "tensor": argument.tensor, "dtype": dtype(argument),
        "shape": dims(&argument.shape), "default": argument.default.as_ref().map(preview),
    })
}

fn signature_json(signature: &SignatureInfo) -> Value {
    json!({
        "key": signature.key, "method": signature.method_name,
        "inputs": signature.inputs.iter().map(argument_json).collect::<Vec<_>>(),
        "outputs": signature.outputs.iter().map(argument_json).collect::<Vec<_>>(),
    })
}

fn variable_json(variable: &Variable) -> Value {
    json!({ "name": variable.name, "dtype": variable.dtype.name(), "shape": variable.dims })
}

fn graph_json(graph: MetaGraph<'_>, registry: &Registry) -> Result<Value, CliError> {
    let assets: Vec<Value> = graph
        .assets()?
        .iter()
        .map(|asset| json!({ "tensor": asset.tensor, "file": asset.file.display().to_string() }))
        .collect();
    let ops = graph.ops().into_iter().map(|used| (used.name, json!(used.nodes)));
    Ok(json!({
        "tags": graph.tags(), "tensorflow": graph.tensorflow_version(),
        "signatures": graph.signatures()?.iter().map(signature_json).collect::<Vec<_>>(),
        "assets": assets,
        "ops": ops.collect::<serde_json::Map<_, _>>(),
        "missing_ops": graph.missing_ops(registry),
    }))
}

fn graph_text(graph: MetaGraph<'_>, registry: &Registry) -> Result<String, CliError> {
    let version = match graph.tensorflow_version() {
        "" => String::new(),
        version => format!(", written by TensorFlow {version}"),
    };
    let mut text = format!("\ngraph {{{}}}{version}\n", graph.tags().join(", "));
    let mut table = Table::new(["signature", "", "name", "dtype", "shape", "default", "tensor"]);
    for signature in graph.signatures()? {
        let inputs = signature.inputs.iter().map(|argument| ("input", argument));
        let outputs = signature.outputs.iter().map(|argument| ("result", argument));
        for (at, (role, argument)) in inputs.chain(outputs).enumerate() {
            table.row([
                if at == 0 { signature.key.clone() } else { String::new() },
                role.to_owned(),
                argument.name.clone(),
                dtype(argument),
                argument.shape.to_string(),
                argument.default.as_ref().map_or_else(String::new, preview),
                argument.tensor.clone(),
            ]);
        }
    }
    text.push_str(&if table.is_empty() { "no signatures\n".to_owned() } else { table.render(0) });
    for asset in graph.assets()? {
        let there = if asset.file.is_file() { "" } else { ", which is not there" };
        text.push_str(&format!("asset {}: {}{there}\n", asset.tensor, asset.file.display()));
    }
    let ops = graph.ops();
    let nodes = ops.iter().fold(0, |sum, used| sum + used.nodes);
    text.push_str(&format!("{} in {}", count(ops.len(), "op"), count(nodes, "node")));
    text.push_str(&match graph.missing_ops(registry).as_slice() {
        [] => ", all of them registered\n".to_owned(),
        missing => format!("; not registered: {}\n", missing.join(", ")),
    });
    Ok(text)
}

fn variables_text(variables: &[Variable]) -> String {
    let mut table = Table::new(["variable", "dtype", "shape"]);
    for variable in variables {
        let dims: Vec<String> = variable.dims.iter().map(ToString::to_string).collect();
        table.row([
            variable.name.clone(),
            variable.dtype.name().to_owned(),
            format!("[{}]", dims.join(",")),
        ]);
    }
    if table.is_empty() { "\nno variables\n".to_owned() } else { format!("\n{}", table.render(0)) }
}
