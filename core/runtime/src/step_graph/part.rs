//! The part of a step at one worker, from the message of a master.

use super::{CalledGraphs, Context, StepGraph, optimize, placed::PlacedStep};
use crate::{error::RuntimeError, feeds::FeedSpecs, run_limits::RunLimits};
use tenon_graph::{Graph, NodeId};

/// Creates a step from the part of a graph that was cut elsewhere. Passes change it, kernels are chosen here, and it is cut by
/// the devices of this process. Its feeds and fetches are transfers.
pub(crate) fn take_part(
    context: Context<'_>,
    run_limits: &RunLimits,
) -> Result<StepGraph, RuntimeError> {
    let targets = last_nodes(&context.version.graph);
    let placed = PlacedStep::new(context, &[], &[], &targets, run_limits)?;
    let (placed, _) = optimize::optimized(placed)?;
    run_limits.check()?;
    let callees = CalledGraphs::of(&placed, run_limits)?;
    let partitioned = placed.partition_part()?;
    let feeds = FeedSpecs(Vec::new());
    Ok(StepGraph { partitioned, feeds, fetches: 0, scope: placed.scope, callees })
}

/// The nodes that the others run for: those that no node waits for, and those from which no such node is reached, since they
/// are in a loop without an exit. The passes may remove all others.
fn last_nodes(graph: &Graph) -> Vec<NodeId> {
    let mut is_read = vec![false; graph.len()];
    for (_, node) in graph.nodes() {
        let sources = node.inputs.iter().map(|input| input.node);
        sources
            .chain(node.control_inputs.iter().copied())
            .for_each(|id| is_read[id.index()] = true);
    }
    let mut targets: Vec<NodeId> =
        graph.nodes().map(|(id, _)| id).filter(|id| !is_read[id.index()]).collect();
    let mut is_reached = vec![false; graph.len()];
    let mut waiting = targets.clone();
    let mark = |waiting: &mut Vec<NodeId>, is_reached: &mut Vec<bool>| {
        while let Some(id) = waiting.pop() {
            if std::mem::replace(&mut is_reached[id.index()], true) {
                continue;
            }
            let node = graph.node(id);
            waiting.extend(node.inputs.iter().map(|input| input.node));
            waiting.extend(node.control_inputs.iter().copied());
        }
    };
    mark(&mut waiting, &mut is_reached);
    for (id, _) in graph.nodes() {
        if !is_reached[id.index()] {
            targets.push(id);
            waiting.push(id);
            mark(&mut waiting, &mut is_reached);
        }
    }
    targets
}
