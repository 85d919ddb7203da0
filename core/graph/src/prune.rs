//! Finds the part of a graph that a step needs.

use crate::{ControlFlow, Graph, GraphError, NodeId, Output, order::topological};
use std::collections::HashMap;

/// The part of a graph that the feeds, fetches and targets need. The node of a fed tensor is
/// included only if something else needs it.
#[derive(Debug, Clone, Default)]
pub struct Subgraph {
    /// The nodes that run, sources first. Edges from `NextIteration` to `Merge` lead back.
    pub order: Vec<NodeId>,
    /// The tensors that are fed.
    pub feeds: Vec<Output>,
    /// The tensors that are fetched. A tensor may be fetched twice, and a fed tensor gives the fed
    /// value.
    pub fetches: Vec<Output>,
    /// The nodes that run for their effects.
    pub targets: Vec<NodeId>,
    /// The position in `order` by node; `None` for nodes that do not run.
    place: Vec<Option<u32>>,
    fed: HashMap<Output, usize>,
}

impl Subgraph {
    /// Whether a node runs.
    pub fn contains(&self, node: NodeId) -> bool {
        self.position(node).is_some()
    }

    /// The position of a node in `order`.
    pub fn position(&self, node: NodeId) -> Option<usize> {
        self.place.get(node.index()).copied().flatten().map(|at| at as usize)
    }

    /// The same step with further nodes, in this order, of a graph of this many nodes.
    pub(crate) fn with_order(&self, order: Vec<NodeId>, nodes: usize) -> Subgraph {
        let mut place = vec![None; nodes];
        for (&id, at) in order.iter().zip(0..) {
            place[id.index()] = Some(at);
        }
        Subgraph { order, place, ..self.clone() }
    }

    /// The index of the feed that supplies this tensor.
    pub fn feed_of(&self, output: Output) -> Option<usize> {
        self.fed.get(&output).copied()
    }

    /// The nodes that must run before `node`. Fed placeholders are left out: their values exist
    /// already, and they cannot run.
    pub fn control_inputs<'a>(
        &'a self,
        graph: &'a Graph,
        node: NodeId,
    ) -> impl Iterator<Item = NodeId> + 'a {
        let waits = |&id: &NodeId| !is_fed_placeholder(graph, &self.fed, id);
        graph.node(node).control_inputs.iter().copied().filter(waits)
    }

    /// The nodes on which `node` depends within an iteration, one for each edge.
    pub fn sources<'a>(
        &'a self,
        graph: &'a Graph,
        node: NodeId,
    ) -> impl Iterator<Item = NodeId> + 'a {
        let is_merge = graph.node(node).control_flow() == ControlFlow::Merge;
        let data = graph.node(node).inputs.iter().filter(|input| !self.fed.contains_key(input));
        let data = data.map(|input| input.node).filter(move |&source| {
            !(is_merge && graph.node(source).control_flow() == ControlFlow::NextIteration)
        });
        data.chain(self.control_inputs(graph, node))
    }
}

fn is_fed_placeholder(graph: &Graph, fed: &HashMap<Output, usize>, id: NodeId) -> bool {
    graph.node(id).op.facts().placeholder && fed.contains_key(&Output::new(id, 0))
}

/// Prunes a graph: walks backwards from the fetches and targets, and stops at feeds.
///
/// # Errors
/// A tensor that is fed twice.
///
/// # Panics
/// Panics if a feed, fetch or target is not of this graph.
pub fn prune(
    graph: &Graph,
    feeds: &[Output],
    fetches: &[Output],
    targets: &[NodeId],
) -> Result<Subgraph, GraphError> {
    let mut sub = Subgraph {
        feeds: feeds.to_vec(),
        fetches: fetches.to_vec(),
        targets: targets.to_vec(),
        ..Subgraph::default()
    };
    for (at, &feed) in feeds.iter().enumerate() {
        if sub.fed.insert(feed, at).is_some() {
            return Err(GraphError::FedTwice { name: graph.output_name(feed) });
        }
    }
    let nodes = reached(graph, &sub);
    let mut number = vec![None; graph.len()];
    for (at, &id) in nodes.iter().enumerate() {
        number[id.index()] = Some(at);
    }
    let order = topological(nodes.len(), |at| {
        sub.sources(graph, nodes[at]).filter_map(|id| number[id.index()])
    });
    sub.order = order.into_iter().map(|at| nodes[at]).collect();
    sub.place = vec![None; graph.len()];
    for (at, id) in sub.order.iter().enumerate() {
        sub.place[id.index()] = Some(at as u32);
    }
    Ok(sub)
}

/// The needed nodes, in the order of their numbers.
fn reached(graph: &Graph, sub: &Subgraph) -> Vec<NodeId> {
    let mut seen = vec![false; graph.len()];
    let fetched = sub.fetches.iter().filter(|output| !sub.fed.contains_key(output));
    let mut stack: Vec<NodeId> =
        fetched.map(|output| output.node).chain(sub.targets.iter().copied()).collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let data = graph.node(id).inputs.iter().filter(|input| !sub.fed.contains_key(input));
        stack.extend(data.map(|input| input.node));
        stack.extend(sub.control_inputs(graph, id));
    }
    (0..graph.len() as u32).map(NodeId).filter(|id| seen[id.index()]).collect()
}
