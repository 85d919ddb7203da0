//! `explain`: the reasons for a node's placement and kernel.

use super::{Context, choice::explain_node, optimize::optimized_step, placed::PlacedStep};
use crate::{error::RuntimeError, options::CallableOptions, run_limits::UNLIMITED};
use std::collections::HashMap;
use tenon_framework::{device::base::DeviceBase, registry::Explanation, text::cut};
use tenon_graph::{FrameId, Frames, Graph, NodeId, Output};

/// The reasons for a node's placement and kernel.
#[derive(Debug, Clone)]
pub struct NodeExplanation {
    /// The name.
    pub node: String,
    /// The op.
    pub op: String,
    /// The full name of the device.
    pub device: String,
    /// The reason for its placement.
    pub placement: String,
    /// The preferred devices that cannot run it, each with the reason.
    pub passed_over: Vec<String>,
    /// The loop in which it runs: the names of the frames from the outermost one on; `None` outside of loops.
    pub frame: Option<String>,
    /// The candidates with the reason against each, and the winner; `None` if the executor runs the
    /// node.
    pub kernels: Option<Explanation>,
    /// The reason why the node cannot run: an unregistered op of its own or of a node that it
    /// depends on. Such a node has no device.
    pub blocked: Option<String>,
}

/// Explains one node, or all. A node that calls functions is explained by the nodes that replace it.
pub(crate) fn explain(
    context: Context<'_>,
    only: Option<&str>,
) -> Result<Vec<NodeExplanation>, RuntimeError> {
    let graph = &context.version.graph;
    let blocked = graph.blocked();
    let wanted: Vec<NodeId> = match only {
        Some(name) => vec![graph.target(name)?],
        None => graph.nodes().map(|(id, _)| id).collect(),
    };
    let (stuck, running): (Vec<NodeId>, Vec<NodeId>) =
        wanted.iter().partition(|id| blocked.contains_key(id));
    // Placeholders count as fed, so that a graph can be explained without its feeds.
    let feeds: Vec<Output> = graph
        .nodes()
        .filter(|(_, node)| node.op.facts().placeholder)
        .map(|(id, _)| Output::new(id, 0))
        .collect();
    let placed = PlacedStep::new(context, &feeds, &[], &running, &UNLIMITED)?;
    let prefix = only.map_or_else(String::new, |only| format!("{only}/"));
    let called =
        placed.sub.order.iter().copied().filter(|&id| {
            id.index() >= graph.len() && placed.graph.node(id).name.starts_with(&prefix)
        });
    let frames = frames(&placed);
    let mut told: Vec<(NodeId, NodeExplanation)> = (running.into_iter().chain(called))
        .filter_map(|id| Some((id, explained(&placed, &frames, id)?)))
        .collect();
    told.extend(stuck.into_iter().map(|id| (id, stays(graph, id, blocked[&id]))));
    told.sort_unstable_by_key(|(id, _)| *id);
    Ok(told.into_iter().map(|(_, node)| node).collect())
}

/// Explains a node that cannot run because it depends on `missing`.
fn stays(graph: &Graph, id: NodeId, missing: NodeId) -> NodeExplanation {
    let (node, missing) = (graph.node(id), graph.node(missing));
    let op = format!("op '{}' is not registered", cut(&missing.op.name));
    let why = match node.name == missing.name {
        true => op,
        false => format!("it needs node '{}', whose {op}", cut(&missing.name)),
    };
    NodeExplanation {
        node: node.name.clone(),
        op: node.op.name.clone(),
        device: String::new(),
        placement: String::new(),
        passed_over: Vec::new(),
        frame: None,
        kernels: None,
        blocked: Some(why),
    }
}

/// Explains the nodes of a step that are not in the session's graph: those that passes create.
pub(crate) fn explain_made(
    context: Context<'_>,
    step: Option<&CallableOptions>,
) -> Result<Vec<NodeExplanation>, RuntimeError> {
    let (placed, _) = optimized_step(context, step)?;
    let written: HashMap<&str, &str> = context
        .version
        .graph
        .nodes()
        .map(|(_, node)| (node.name.as_str(), node.op.name.as_str()))
        .collect();
    let made = placed.sub.order.iter().filter(|&&id| {
        let node = placed.graph.node(id);
        !node.op.is_constant() && written.get(&*node.name) != Some(&&*node.op.name)
    });
    let frames = frames(&placed);
    Ok(made.filter_map(|&id| explained(&placed, &frames, id)).collect())
}

/// The loops of the nodes that run in one. A graph with loops that are none is refused when a step is compiled.
fn frames(placed: &PlacedStep<'_>) -> HashMap<NodeId, String> {
    let Ok(frames) = Frames::find(&placed.graph, &placed.sub) else { return HashMap::new() };
    let nodes = placed.sub.order.iter().zip(&frames.runs_in);
    let inside = nodes.filter(|(_, frame)| **frame != FrameId::ROOT);
    inside.map(|(&id, &frame)| (id, frames.path(frame))).collect()
}

fn explained(
    placed: &PlacedStep<'_>,
    frames: &HashMap<NodeId, String>,
    id: NodeId,
) -> Option<NodeExplanation> {
    let node = placed.graph.node(id);
    let at = placed.placement.of(id)?;
    Some(NodeExplanation {
        node: node.name.clone(),
        op: node.op.name.clone(),
        device: placed.device(id).name().to_string(),
        placement: at.reason.to_string(),
        passed_over: at.passed_over.clone(),
        frame: frames.get(&id).cloned(),
        kernels: (!node.op.is_built_in()).then(|| explain_node(placed, id, false)),
        blocked: None,
    })
}
