//! Two variants of one kernel, timed against each other.

use super::{
    assets::Digits,
    classify::{bad_result, difference, time_steps},
};
use crate::{error::CliError, progress::progress, run::median};
use tenon_runtime::{
    CallableOptions, NodeExplanation, RunOptions, Runtime, Session, SessionOptions,
    framework::{Tensor, registry::Removal},
    proto::{AttrValue, AttrValueKind, GraphDef, NodeDef},
};

/// Where the variants run.
const DEVICE: &str = "/device:CPU:0";
/// Attribute by which a node asks for the kernel of a label.
const LABEL_ATTR: &str = "_kernel";
/// Label of the variant to compare with, where there is one.
const REFERENCE: &str = "reference";

/// A variant with its time.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    /// Label; empty for the ordinary kernel.
    pub label: String,
    /// Plugin.
    pub plugin: String,
    /// Median time of a step that is one node.
    pub step_ns: u64,
    /// Steps.
    pub steps: usize,
}

/// Two variants of the kernel of a node.
#[derive(Debug)]
pub struct Pair {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: String,
    /// Shape of its input.
    pub input: Vec<i64>,
    /// What the policy chooses, then the other.
    pub variants: [Variant; 2],
    /// Largest difference between their results.
    pub difference: f32,
}

/// A node whose kernel comes in two variants, and the label of the other one.
struct Subject {
    node: NodeDef,
    label: String,
}

/// Times the two.
///
/// # Errors
/// No node of the graph has two kernels on the device; a step fails.
pub fn compare(runtime: &Runtime, digits: &Digits) -> Result<Pair, CliError> {
    let session = session(runtime, &digits.graph)?;
    let Some(subject) = subject(&session, &digits.graph)? else {
        let none = format!("no kernel of the graph has a second variant on {DEVICE}");
        return Err(CliError::Demo(none));
    };
    let source = subject.node.input.first().cloned().unwrap_or_default();
    let feed = [("images", digits.images.clone())];
    let (input, _) = session.run(&feed, &[source.as_str()], &[], &RunOptions::default())?;
    let Some(input) = input.into_iter().next() else {
        return Err(CliError::Demo(format!("'{source}' gives nothing")));
    };
    let (chosen, first) = time(runtime, &digits.graph, &subject.node, &input)?;
    let asked = with_label(&digits.graph, &subject);
    let (other, second) = time(runtime, &asked, &subject.node, &input)?;
    if other.label != subject.label {
        let (found, wanted) = (other.label, subject.label);
        return Err(CliError::Demo(format!("kernel '{wanted}' was asked for, '{found}' ran")));
    }
    let values = |tensor: &Tensor| tensor.as_slice::<f32>().map(<[f32]>::to_vec);
    let first = values(&first).map_err(bad_result)?;
    let second = values(&second).map_err(bad_result)?;
    Ok(Pair {
        node: subject.node.name,
        op: subject.node.op,
        input: input.shape().dims().to_vec(),
        variants: [chosen, other],
        difference: difference(&first, &second),
    })
}

fn session(runtime: &Runtime, graph: &GraphDef) -> Result<Session, CliError> {
    let options =
        SessionOptions { device: Some(DEVICE.to_owned()), ..SessionOptions::as_written() };
    let session = Session::new(runtime, options)?;
    session.extend(graph)?;
    Ok(session)
}

/// The node to compare on: of the last convolution if that has two variants, else of any.
fn subject(session: &Session, graph: &GraphDef) -> Result<Option<Subject>, CliError> {
    let mut nodes: Vec<&NodeDef> = graph.node.iter().filter(|n| !n.input.is_empty()).collect();
    nodes.reverse();
    nodes.sort_by_key(|node| node.op != "Conv2D");
    for node in nodes {
        let explanations = session.explain(Some(&node.name))?;
        if let Some(label) = explanations.iter().find_map(other_label) {
            return Ok(Some(Subject { node: node.clone(), label }));
        }
    }
    Ok(None)
}

/// The label of a kernel that could run the node, and does not.
fn other_label(node: &NodeExplanation) -> Option<String> {
    let kernels = node.kernels.as_ref()?;
    let winner = kernels.winner.as_ref()?;
    let could = |removed: &Removal| {
        matches!(removed, Removal::OnRequest { .. } | Removal::LowerPriority { .. })
    };
    let mut labels: Vec<&str> = kernels
        .candidates
        .iter()
        .filter(|candidate| candidate.removed.as_ref().is_some_and(could))
        .map(|candidate| candidate.kernel.label.as_str())
        .filter(|label| !label.is_empty() && *label != winner.label)
        .collect();
    labels.sort_by_key(|label| *label != REFERENCE);
    labels.first().map(|label| (*label).to_owned())
}

fn with_label(graph: &GraphDef, subject: &Subject) -> GraphDef {
    let mut graph = graph.clone();
    let label = AttrValueKind::S(subject.label.clone().into_bytes());
    for node in graph.node.iter_mut().filter(|node| node.name == subject.node.name) {
        node.attr.insert(LABEL_ATTR.to_owned(), AttrValue { value: Some(label.clone()) });
    }
    graph
}

/// Times steps that are this node alone: its first input is fed, its result is fetched.
fn time(
    runtime: &Runtime,
    graph: &GraphDef,
    node: &NodeDef,
    input: &Tensor,
) -> Result<(Variant, Tensor), CliError> {
    let session = session(runtime, graph)?;
    let feeds = [(node.input[0].as_str(), input.clone())];
    let fetches = [node.name.as_str()];
    let (mut fetched, metadata) = session.run(&feeds, &fetches, &[], &RunOptions::default())?;
    let Some(report) = metadata.nodes.iter().find(|report| report.name == node.name) else {
        return Err(CliError::Demo(format!("node '{}' was not run", node.name)));
    };
    let callable = session.callable(CallableOptions::new(&[&node.input[0]], &fetches))?;
    let bar = progress(super::classify::STEPS as u64, "variants");
    let feeds = [input.clone()];
    let times = time_steps(&bar, || Ok(callable.run(&feeds, &mut fetched)?))?;
    bar.finish_and_clear();
    let (label, plugin) = (report.label.clone(), report.plugin.clone());
    let variant = Variant { label, plugin, step_ns: median(&times), steps: times.len() };
    match fetched.into_iter().next() {
        Some(result) => Ok((variant, result)),
        None => Err(CliError::Demo(format!("node '{}' gives nothing", node.name))),
    }
}
