//! The order in which one thread runs a step's nodes.
//!
//! This is the executor's order. Of the ready nodes of a device, the node that became ready last
//! runs first; among nodes that became ready together, the first one in the step's order. Devices
//! take turns, each for as long as it has ready nodes.

use crate::{Graph, NodeId, Placement, Subgraph};

/// The nodes in that order. Nodes that only a loop reaches come last, in the step's order.
pub(super) fn run_order(graph: &Graph, sub: &Subgraph, placement: &Placement) -> Vec<NodeId> {
    let count = sub.order.len();
    let mut waits = vec![0usize; count];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (at, &id) in sub.order.iter().enumerate() {
        let sources = sub.sources(graph, id).filter_map(|source| sub.position(source));
        let mut sources: Vec<usize> = sources.filter(|&from| !is_held(graph, sub, from)).collect();
        sources.sort_unstable();
        sources.dedup();
        waits[at] = sources.len();
        sources.into_iter().for_each(|from| next[from].push(at));
    }
    let device = |at: usize| placement.device(sub.order[at]).unwrap_or(0);
    let devices = (0..count).map(device).max().map_or(0, |last| last + 1);
    let mut ready: Vec<Vec<usize>> = vec![Vec::new(); devices];
    (0..count).rev().filter(|&at| waits[at] == 0).for_each(|at| ready[device(at)].push(at));
    let mut ran = Vec::with_capacity(count);
    let mut is_done = vec![false; count];
    while ready.iter().any(|own| !own.is_empty()) {
        for turn in 0..devices {
            while let Some(at) = ready[turn].pop() {
                is_done[at] = true;
                ran.push(sub.order[at]);
                for &successor in next[at].iter().rev() {
                    waits[successor] -= 1;
                    if waits[successor] == 0 {
                        ready[device(successor)].push(successor);
                    }
                }
            }
        }
    }
    ran.extend((0..count).filter(|&at| !is_done[at]).map(|at| sub.order[at]));
    ran
}

/// Whether a node's value exists before the step, so that its readers do not wait for it.
fn is_held(graph: &Graph, sub: &Subgraph, at: usize) -> bool {
    let id = sub.order[at];
    graph.node(id).op.is_constant() && sub.control_inputs(graph, id).next().is_none()
}
