//! Gradients in Python.
//!
//! The function builds the gradient in a graph of its own, over placeholders for the inputs and outputs of the node and for the
//! gradients of the outputs. The nodes of that graph are then added to the graph of the node.

use super::{Custom, answer, dict, find, read_attrs};
use crate::{
    dtypes::dtype_object,
    fail::Fail,
    graph::{Pair, PyGraph, output},
};
use pyo3::prelude::*;
use std::collections::HashMap;
use tenon_author::{GradientContext, enter_gradient};
use tenon_framework::{
    Code, KernelError,
    abi::{self, AttrKind, GraphValue},
    attr::{AttrList, AttrValue},
};
use tenon_graph::{Graph, NodeId, Output};

/// The gradient of all ops of Python's.
pub(super) unsafe extern "C" fn entry(
    host: *const abi::Host,
    call: *mut abi::GradientCall,
    table: *const abi::GradientTable,
) -> Code {
    // SAFETY: the host gives a gradient what `enter_gradient` expects.
    unsafe { enter_gradient(host, call, table, differentiate) }
}

/// What a placeholder of the graph that Python built means.
#[derive(Clone, Copy)]
enum Given {
    Input(usize),
    Output(usize),
    Gradient(usize),
}

/// A gradient as Python built it.
struct Built {
    graph: Graph,
    given: HashMap<NodeId, Given>,
    /// The gradient of each input.
    results: Vec<Option<Output>>,
}

fn differentiate(c: &GradientContext<'_>) -> Result<(), KernelError> {
    let op = c.node_op();
    let custom = find(&op)?;
    let built = answer(&op, |py| build(py, &custom, c))?;
    let results: Vec<Output> = built.results.iter().flatten().copied().collect();
    let mut values: HashMap<Output, GraphValue> = HashMap::new();
    for id in needed(&built.graph, &results) {
        if let Some(&given) = built.given.get(&id) {
            let value = match given {
                Given::Input(at) => c.input(at),
                Given::Output(at) => c.output(at),
                Given::Gradient(at) => c.gradient(at)?,
            };
            values.insert(Output::new(id, 0), value);
            continue;
        }
        add(c, &built.graph, id, &mut values)?;
    }
    for (input, result) in built.results.iter().enumerate() {
        if let Some(value) = result.as_ref().and_then(|result| values.get(result)) {
            c.set(input, *value)?;
        }
    }
    Ok(())
}

/// Lets the function of the op build the gradient.
fn build(py: Python<'_>, custom: &Custom, c: &GradientContext<'_>) -> Result<Built, Fail> {
    let described = |values: Vec<GraphValue>| -> Result<Vec<_>, Fail> {
        let one = |value: GraphValue| {
            let dims = c.dims(value);
            let dims = dims.map(|dims| {
                dims.into_iter().map(|dim| (dim >= 0).then_some(dim)).collect::<Vec<_>>()
            });
            Ok((dtype_object(py, c.dtype(value).base())?, dims))
        };
        values.into_iter().map(one).collect()
    };
    let inputs = described(c.inputs())?;
    let outputs = described((0..c.output_count()).map(|at| c.output(at)).collect())?;
    let attrs = read_attrs!(c, &custom.def.attrs);
    let attrs = dict(py, attrs.iter().map(|(name, value)| (name.as_str(), value)))?;
    let arguments = (c.node_name(), inputs, outputs, attrs);
    let made = custom.object.bind(py).call_method1("_differentiate", arguments)?;
    type Parts<'py> = (Bound<'py, PyGraph>, Vec<u32>, Vec<u32>, Vec<u32>, Vec<Option<Pair>>);
    let (graph, xs, ys, dys, results): Parts<'_> = made.extract()?;
    let numbered = |ids: Vec<u32>, of: fn(usize) -> Given| {
        ids.into_iter().enumerate().map(move |(at, id)| (NodeId(id), of(at)))
    };
    let given = numbered(xs, Given::Input)
        .chain(numbered(ys, Given::Output))
        .chain(numbered(dys, Given::Gradient))
        .collect();
    let results = results.into_iter().map(|result| result.map(output)).collect();
    let graph = graph.get().lock()?.graph.clone();
    Ok(Built { graph, given, results })
}

/// The nodes that results need, in the order in which they can be added.
fn needed(graph: &Graph, results: &[Output]) -> Vec<NodeId> {
    let mut is_needed = vec![false; graph.len()];
    let mut open: Vec<NodeId> = results.iter().map(|result| result.node).collect();
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut is_needed[id.index()], true) {
            continue;
        }
        let node = graph.node(id);
        open.extend(node.inputs.iter().map(|input| input.node));
        open.extend(&node.control_inputs);
    }
    (0..graph.len() as u32).map(NodeId).filter(|id| is_needed[id.index()]).collect()
}

/// Adds a node of the graph that Python built.
fn add(
    c: &GradientContext<'_>,
    graph: &Graph,
    id: NodeId,
    values: &mut HashMap<Output, GraphValue>,
) -> Result<(), KernelError> {
    let node = graph.node(id);
    let value = |of: Output| {
        values.get(&of).copied().ok_or_else(|| {
            KernelError::unimplemented(format!(
                "the gradient of op '{}' has node '{}' in a loop: use the functions of tenon.functions",
                c.node_op(),
                node.name
            ))
        })
    };
    let mut made = c.op(&node.op.name).name(&node.name);
    for &input in &node.inputs {
        made = made.input(value(input)?);
    }
    for &control in &node.control_inputs {
        made = made.after(value(Output::new(control, 0))?);
    }
    for (name, attr) in node.attrs.attrs() {
        made = made.attr(name, attr.clone());
    }
    let outputs = made.outputs()?;
    values.extend(outputs.into_iter().zip(0..).map(|(value, at)| (Output::new(id, at), value)));
    Ok(())
}
