//! The calls that a step of a graph makes.
//!
//! The graph runs once, with every tensor between its nodes fetched, so that each call gets the very values that it
//! has in the graph. Inputs that come from a `Const`, also through an `Identity`, are constants. Nodes that make the
//! same call are one call with a count.

use super::{Call, attrs};
use crate::{
    error::BenchError,
    feeds::{GraphWish, feeds},
};
use std::{collections::HashMap, path::Path};
use tenon_framework::{DType, Tensor, text::cut};
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    graph::{ControlFlow, Graph, Node, NodeId, Output},
    proto::GraphDef,
};
use tenon_testkit::check::{Argument, CheckCase, Fill};

/// The calls of a graph.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// The calls, in the order of the first node that makes each.
    pub calls: Vec<Call>,
    /// Nodes that compute and were not recorded, and why.
    pub skipped: Vec<(String, String)>,
}

/// Records the calls of a graph that was read from `file`.
///
/// # Errors
/// The graph does not fit the registry; a placeholder without a shape.
pub fn record(
    runtime: &Runtime,
    file: &Path,
    def: &GraphDef,
    wish: &GraphWish<'_>,
) -> Result<Recorded, BenchError> {
    let session = Session::new(runtime, SessionOptions::as_written())?;
    session.extend(def)?;
    let graph = session.graph();
    let fed = feeds(&graph, file, wish)?;
    let blocked = graph.blocked();
    let nodes = graph.nodes().filter(|(_, node)| computes(node));
    let (lost, nodes): (Vec<_>, Vec<(NodeId, &Node)>) =
        nodes.partition(|(id, _)| blocked.contains_key(id));
    let mut recorded = Recorded::default();
    recorded.skipped.extend(lost.into_iter().map(|(id, node)| {
        let op = cut(&graph.node(blocked[&id]).op.name);
        (node.name.clone(), format!("needs op '{op}', which is not registered"))
    }));
    let tensors = Tensors::fetch(&session, &graph, &fed, &nodes);
    for (id, node) in nodes {
        match call(&graph, &tensors, node) {
            Ok(call) => add(&mut recorded.calls, call),
            Err(why) => recorded.skipped.push((graph.node(id).name.clone(), why)),
        }
    }
    Ok(recorded)
}

/// Nodes that are a kernel with inputs.
fn computes(node: &Node) -> bool {
    !node.inputs.is_empty()
        && node.control_flow() == ControlFlow::No
        && !node.op.name.starts_with('_')
}

/// The tensors between the nodes.
struct Tensors {
    known: HashMap<Output, Tensor>,
    /// Why some are not there.
    lacking: HashMap<Output, String>,
}

impl Tensors {
    /// Runs a step that fetches the inputs of all nodes. Where that fails, since some are dead or cannot be
    /// fetched, a step for each.
    fn fetch(
        session: &Session,
        graph: &Graph,
        fed: &[(Output, Tensor)],
        nodes: &[(NodeId, &Node)],
    ) -> Tensors {
        let known = fed.iter().cloned().collect();
        let mut tensors = Tensors { known, lacking: HashMap::new() };
        let mut wanted: Vec<Output> =
            nodes.iter().flat_map(|(_, node)| node.inputs.iter().copied()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|output| !tensors.known.contains_key(output));
        let names: Vec<String> = fed.iter().map(|(output, _)| graph.output_name(*output)).collect();
        let feeds: Vec<(&str, Tensor)> = names
            .iter()
            .zip(fed)
            .map(|(name, (_, tensor))| (name.as_str(), tensor.clone()))
            .collect();
        let run = |outputs: &[Output]| {
            let names: Vec<String> =
                outputs.iter().map(|output| graph.output_name(*output)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            session.run(&feeds, &names, &[], &RunOptions::default())
        };
        if let Ok((fetched, _)) = run(&wanted) {
            tensors.known.extend(wanted.into_iter().zip(fetched));
            return tensors;
        }
        for output in wanted {
            match run(&[output]) {
                Ok((fetched, _)) => {
                    tensors.known.extend(fetched.into_iter().map(|tensor| (output, tensor)))
                }
                Err(error) => {
                    tensors.lacking.insert(output, error.to_string());
                }
            }
        }
        tensors
    }

    fn get(&self, graph: &Graph, output: Output) -> Result<&Tensor, String> {
        self.known.get(&output).ok_or_else(|| {
            let why = self.lacking.get(&output).map_or("was not computed", String::as_str);
            format!("input {} {why}", graph.output_name(output))
        })
    }
}

/// Whether a value is the same in every step.
fn is_constant(graph: &Graph, mut output: Output) -> bool {
    loop {
        let node = graph.node(output.node);
        match node.op.name.as_str() {
            "Const" => return true,
            "Identity" | "StopGradient" | "Snapshot" if node.inputs.len() == 1 => {
                output = node.inputs[0]
            }
            _ => return false,
        }
    }
}

fn call(graph: &Graph, tensors: &Tensors, node: &Node) -> Result<Call, String> {
    if node.op.stateful {
        return Err("has state".to_owned());
    }
    let types = node.signature.inputs.iter().chain(&node.signature.outputs);
    if let Some(dtype) = types.copied().find(|dtype| dtype.is_ref() || is_handle(*dtype)) {
        return Err(format!("passes {dtype}, which only its graph has"));
    }
    let argument = |&input: &Output| {
        let tensor = tensors.get(graph, input)?;
        let (dtype, dims) = (tensor.dtype(), tensor.shape().dims().to_vec());
        Ok(Argument {
            dtype,
            dims,
            fill: Fill::Explicit(tensor.clone()),
            constant: is_constant(graph, input),
        })
    };
    let inputs = node.inputs.iter().map(argument).collect::<Result<_, String>>()?;
    let own = node.attrs.attrs().iter().filter(|(name, _)| !name.starts_with('_'));
    let attrs = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    let case = CheckCase { name: node.name.clone(), tags: Vec::new(), attrs, inputs };
    Ok(Call { op: node.op.clone(), case, at: None, node: Some(node.name.clone()), calls: 1 })
}

fn is_handle(dtype: DType) -> bool {
    matches!(dtype, DType::RESOURCE | DType::VARIANT)
}

/// Adds a call, or counts it where it is there.
fn add(calls: &mut Vec<Call>, call: Call) {
    match calls.iter_mut().find(|known| same(known, &call)) {
        Some(known) => known.calls += 1,
        None => calls.push(call),
    }
}

/// Whether both are the same call, but for the values of what is not small and constant.
fn same(a: &Call, b: &Call) -> bool {
    let value = |argument: &Argument| match &argument.fill {
        // Axes, permutations, sizes: what a call does depends on them.
        Fill::Explicit(tensor) if argument.constant && tensor.elements() <= 16 => {
            tensor.as_bytes().map(<[u8]>::to_vec).ok()
        }
        _ => None,
    };
    let like = |(a, b): (&Argument, &Argument)| {
        (a.dtype, &a.dims, a.constant) == (b.dtype, &b.dims, b.constant) && value(a) == value(b)
    };
    a.op.name == b.op.name
        && attrs::texts(&a.case.attrs) == attrs::texts(&b.case.attrs)
        && a.case.inputs.len() == b.case.inputs.len()
        && a.case.inputs.iter().zip(&b.case.inputs).all(like)
}
