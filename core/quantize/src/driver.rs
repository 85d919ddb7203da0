//! Quantises a graph: calibration, rewriting, and comparison of the precision.
//!
//! A [`Plan`] decides what is quantised, and how; this module runs graphs for it. The float graph
//! runs on the calibration data to observe its tensors. The quantised graph then runs on the same
//! data, and each of its layers is compared with the float one.

use crate::{
    Method, Noise, Observer, Plan, PlanOptions, QuantizeError, QuantizedNode, Range, Rewritten,
    Step,
};
use std::collections::{BTreeSet, HashMap};
use tenon_framework::{DType, PartialShape, Tensor, attr::AttrValue};
use tenon_graph::{Graph, GraphError, Node, NodeId, Output, strip_default_attrs};
use tenon_proto::GraphDef;
use tenon_runtime::{Callable, CallableOptions, Runtime, Session, SessionOptions};

/// Options of quantisation.
#[derive(Debug, Clone)]
pub struct QuantizeOptions {
    /// The tensors to fetch from the quantised graph; if empty, all unused outputs.
    pub fetches: Vec<String>,
    /// The nodes that stay in float.
    pub keep: Vec<String>,
    /// Whether activations are quantised at run time, each by its range in that step; otherwise by
    /// the ranges observed in the calibration data.
    pub dynamic: bool,
    /// The method for choosing ranges from observed values.
    pub method: Method,
}

impl Default for QuantizeOptions {
    fn default() -> QuantizeOptions {
        QuantizeOptions {
            fetches: Vec::new(),
            keep: Vec::new(),
            dynamic: false,
            method: Method::MinMax,
        }
    }
}

/// The tensors to feed together, with the names of the inputs.
pub type Sample = Vec<(String, Tensor)>;

/// An input of a graph.
#[derive(Debug, Clone)]
pub struct Input {
    /// The name, without `:0`.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The declared shape.
    pub shape: PartialShape,
}

/// The loss of precision of a tensor.
#[derive(Debug, Clone)]
pub struct Loss {
    /// The name of the node, or of the fetched tensor.
    pub name: String,
    /// The comparison with the float tensor; `None` without data.
    pub noise: Option<Noise>,
}

/// A quantised graph, with a report of its nodes.
#[derive(Debug)]
pub struct Quantized {
    /// The quantised graph.
    pub graph: GraphDef,
    /// The nodes that compute on 8 bits, with the loss of each.
    pub nodes: Vec<(QuantizedNode, Loss)>,
    /// The losses of the fetched float tensors.
    pub outputs: Vec<Loss>,
    /// The products that stay in float, each with the reason.
    pub left: Vec<(String, String)>,
    /// The number of samples that were run.
    pub samples: usize,
}

/// The inputs of a graph, in the order of their nodes.
///
/// # Errors
/// The graph is invalid.
pub fn inputs(runtime: &Runtime, graph: &GraphDef) -> Result<Vec<Input>, QuantizeError> {
    let graph = Graph::import(graph, &runtime.registry())?;
    let placeholders = graph.nodes().filter(|(_, node)| node.op.facts().placeholder);
    let input = |(id, node): (_, &Node)| Input {
        name: node.name.clone(),
        dtype: graph.dtype(Output::from(id)),
        shape: match node.attrs.get("shape") {
            Some(AttrValue::Shape(shape)) => shape.clone(),
            _ => PartialShape::UNKNOWN,
        },
    };
    Ok(placeholders.map(input).collect())
}

/// The parts of the plan that outlive the simplified graph.
struct Prepared {
    float: GraphDef,
    inputs: Vec<String>,
    fetches: Vec<(String, bool)>,
    observed: Vec<(Output, String)>,
}

/// Quantises a graph. Static quantisation requires samples; dynamic quantisation uses them, if
/// there are any, for the comparison only.
///
/// # Errors
/// The graph is invalid or has nothing to quantise, a name is unknown, a sample does not fit, or a
/// step fails.
pub fn quantize(
    runtime: &Runtime,
    graph: &GraphDef,
    samples: &[Sample],
    options: &QuantizeOptions,
) -> Result<Quantized, QuantizeError> {
    options.method.check()?;
    if !options.dynamic && samples.is_empty() {
        return Err(QuantizeError::NoSamples);
    }
    let session = simplifying(runtime, graph)?;
    let keep = options.keep.iter().map(|name| Ok(kept(&session, name)?));
    let keep = keep.collect::<Result<BTreeSet<String>, QuantizeError>>()?;
    let plan_options = PlanOptions { keep, dynamic: options.dynamic };
    let prepared = session.simplified(&options.fetches, |simple| {
        let step = Step::from(simple);
        prepare(&Plan::new(step, &plan_options)?, step)
    })??;
    let samples = named(samples, &prepared.inputs)?;
    let float = Run::new(runtime, &prepared.float)?;
    let ranges = calibrate(&float, &prepared, &samples, options.method)?;
    // The passes are deterministic, so the node numbers are those of the first plan.
    let rewritten = session.simplified(&options.fetches, |simple| {
        Plan::new(simple.into(), &plan_options)?.rewrite(&ranges, simple.evaluate)
    })??;
    let Rewritten { graph, nodes, left } = rewritten;
    let mut graph = graph.to_graph_def()?;
    strip_default_attrs(&mut graph, &runtime.registry());
    let quantized = Run::new(runtime, &graph)?;
    let noise = compare(&float, &quantized, &prepared, &nodes, &samples)?;
    Ok(report(graph, nodes, left, noise, &prepared, samples.len()))
}

/// Creates a session on the host device, where images have their channels last.
fn simplifying(runtime: &Runtime, graph: &GraphDef) -> Result<Session, QuantizeError> {
    let device = Some("/device:CPU:0".to_owned());
    let session = Session::new(runtime, SessionOptions { device, ..SessionOptions::default() })?;
    session.extend(graph)?;
    Ok(session)
}

/// Checks that a node to be kept in float is in the graph.
fn kept(session: &Session, name: &str) -> Result<String, GraphError> {
    session.graph().target(name).map(|_| name.to_owned())
}

fn prepare(plan: &Plan<'_>, step: Step<'_>) -> Result<Prepared, QuantizeError> {
    let (graph, sub) = (step.graph, step.sub);
    let is_used = |feed: &&Output| {
        let reads = |id: &NodeId| graph.node(*id).inputs.contains(feed);
        sub.fetches.contains(feed) || sub.order.iter().any(reads)
    };
    let name = |output: Output| graph.output_name(output);
    let is_float = |output: Output| graph.dtype(output) == DType::FLOAT;
    Ok(Prepared {
        float: Plan::float_graph(step)?.to_graph_def()?,
        inputs: sub.feeds.iter().filter(is_used).map(|feed| name(*feed)).collect(),
        fetches: sub.fetches.iter().map(|&fetch| (name(fetch), is_float(fetch))).collect(),
        observed: plan.observed().into_iter().map(|output| (output, name(output))).collect(),
    })
}

/// The feeds of each sample, in the order of the inputs.
fn named(samples: &[Sample], inputs: &[String]) -> Result<Vec<Vec<Tensor>>, QuantizeError> {
    let plain = |name: &str| name.strip_suffix(":0").unwrap_or(name).to_owned();
    let words = |names: Vec<String>| match names.is_empty() {
        true => "none".to_owned(),
        false => format!("'{}'", names.join("', '")),
    };
    let feeds = |sample: &Sample| {
        let is_input = |name: &str| inputs.iter().any(|input| plain(input) == plain(name));
        if let Some((found, _)) = sample.iter().find(|(name, _)| !is_input(name)) {
            let inputs = words(inputs.iter().map(|name| plain(name)).collect());
            return Err(QuantizeError::UnknownInput { found: found.clone(), inputs });
        }
        let feed = |input: &String| {
            let found = sample.iter().find(|(name, _)| plain(name) == plain(input));
            let there = || words(sample.iter().map(|(name, _)| name.clone()).collect());
            found
                .map(|(_, value)| value.clone())
                .ok_or_else(|| QuantizeError::MissingInput { input: plain(input), found: there() })
        };
        inputs.iter().map(feed).collect()
    };
    samples.iter().map(feeds).collect()
}

/// A graph with a session to run it.
struct Run {
    session: Session,
}

impl Run {
    fn new(runtime: &Runtime, graph: &GraphDef) -> Result<Run, QuantizeError> {
        let session = Session::new(runtime, SessionOptions::default())?;
        session.extend(graph)?;
        Ok(Run { session })
    }

    fn callable(&self, feeds: &[String], fetches: Vec<String>) -> Result<Callable, QuantizeError> {
        let (feeds, targets) = (feeds.to_vec(), Vec::new());
        Ok(self.session.callable(CallableOptions {
            feeds,
            fetches,
            targets,
            ..CallableOptions::default()
        })?)
    }
}

fn calibrate(
    float: &Run,
    prepared: &Prepared,
    samples: &[Vec<Tensor>],
    method: Method,
) -> Result<HashMap<Output, Range>, QuantizeError> {
    if prepared.observed.is_empty() {
        return Ok(HashMap::new());
    }
    let names: Vec<String> = prepared.observed.iter().map(|(_, name)| name.clone()).collect();
    let callable = float.callable(&prepared.inputs, names.clone())?;
    let mut observers: Vec<Observer> =
        names.into_iter().map(|name| Observer::new(name, method)).collect();
    let mut fetched = Vec::new();
    for pass in 0..method.passes() {
        for (number, feeds) in samples.iter().enumerate() {
            callable.run(feeds, &mut fetched)?;
            for (observer, value) in observers.iter_mut().zip(&fetched) {
                observer.take(pass, value, number)?;
            }
        }
    }
    let range =
        |((output, _), observer): (&(Output, String), &Observer)| Ok((*output, observer.range()?));
    prepared.observed.iter().zip(&observers).map(range).collect()
}

/// Compares the nodes, then the outputs.
fn compare(
    float: &Run,
    quantized: &Run,
    prepared: &Prepared,
    nodes: &[QuantizedNode],
    samples: &[Vec<Tensor>],
) -> Result<Vec<Noise>, QuantizeError> {
    let outputs: Vec<String> = (prepared.fetches.iter())
        .filter(|(_, is_float)| *is_float)
        .map(|(name, _)| name.clone())
        .collect();
    let all = |names: &dyn Fn(&QuantizedNode) -> String| {
        nodes.iter().map(names).chain(outputs.iter().cloned()).collect::<Vec<String>>()
    };
    let names = all(&|node| node.float.clone());
    let mut noise = vec![Noise::default(); names.len()];
    if samples.is_empty() {
        return Ok(noise);
    }
    let expected = float.callable(&prepared.inputs, names.clone())?;
    let found = quantized.callable(&prepared.inputs, all(&|node| node.tensor.clone()))?;
    let (mut floats, mut results) = (Vec::new(), Vec::new());
    for feeds in samples {
        expected.run(feeds, &mut floats)?;
        found.run(feeds, &mut results)?;
        for (at, (float, result)) in floats.iter().zip(&results).enumerate() {
            let affine = nodes.get(at).and_then(|node| node.affine);
            noise[at].take(&names[at], float, result, affine)?;
        }
    }
    Ok(noise)
}

fn report(
    graph: GraphDef,
    nodes: Vec<QuantizedNode>,
    left: Vec<(String, String)>,
    noise: Vec<Noise>,
    prepared: &Prepared,
    samples: usize,
) -> Quantized {
    let mut noise = noise.into_iter().map(|noise| (samples > 0).then_some(noise));
    let mut loss = |name: &str| Loss { name: name.to_owned(), noise: noise.next().flatten() };
    let nodes: Vec<(QuantizedNode, Loss)> = nodes
        .into_iter()
        .map(|node| {
            let loss = loss(&node.name);
            (node, loss)
        })
        .collect();
    let fetched = prepared.fetches.iter().filter(|(_, is_float)| *is_float);
    let outputs = fetched.map(|(name, _)| loss(name)).collect();
    Quantized { graph, nodes, outputs, left, samples }
}
