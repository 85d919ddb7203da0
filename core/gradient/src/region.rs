//! The part of a graph through which gradients flow.

use crate::known::is_trainable;
use std::collections::{HashMap, HashSet};
use tenon_framework::op::GradientRule;
use tenon_graph::{Graph, NodeId, Output};

/// The nodes between `xs` and `ys`.
#[derive(Debug, Default)]
pub(crate) struct Region {
    /// The nodes that `ys` depend on, sources first.
    pub order: Vec<NodeId>,
    /// The tensors to which a path leads from one of `xs`, themselves included.
    pub reached: HashSet<Output>,
    /// For each node to which a path leads, the input through which it comes.
    toward: HashMap<NodeId, Output>,
}

/// Where a region begins and ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    pub ys: Vec<Output>,
    pub xs: HashSet<Output>,
    /// Tensors through which no gradient flows.
    pub stops: HashSet<Output>,
}

impl Region {
    /// The region of a graph within these bounds. `sources` gives the tensors that a node reads, for its gradient.
    pub fn find(graph: &Graph, bounds: &Bounds, sources: impl Fn(NodeId) -> Vec<Output>) -> Region {
        let mut region = Region { order: order(&bounds.ys, &sources), ..Region::default() };
        for at in 0..region.order.len() {
            let id = region.order[at];
            let node = graph.node(id);
            let read = sources(id).into_iter().find(|input| region.reached.contains(input));
            let flows = read.filter(|_| node.op.facts().gradient != GradientRule::None);
            if let Some(input) = flows {
                region.toward.insert(id, input);
            }
            for (output, dtype) in (0..).zip(node.outputs()) {
                let output = Output::new(id, output);
                let through = flows.is_some() && !bounds.stops.contains(&output);
                if is_trainable(*dtype) && (through || bounds.xs.contains(&output)) {
                    region.reached.insert(output);
                }
            }
        }
        region
    }

    /// Whether a path leads to a node from one of `xs` through its inputs.
    pub fn leads_to(&self, id: NodeId) -> bool {
        self.toward.contains_key(&id)
    }

    /// Names of the nodes after this one on the path to an `x`.
    pub fn path_to_x(&self, graph: &Graph, from: NodeId) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = from;
        // A path is at most as long as the region, also if a loop leads it back.
        while let Some(input) = self.toward.get(&at).filter(|_| names.len() < self.order.len()) {
            names.push(graph.node(input.node).name.clone());
            at = input.node;
        }
        names
    }
}

/// The nodes that these tensors depend on, sources first.
fn order(ys: &[Output], sources: &impl Fn(NodeId) -> Vec<Output>) -> Vec<NodeId> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    for y in ys {
        if !seen.insert(y.node) {
            continue;
        }
        let mut stack = vec![(y.node, sources(y.node), 0)];
        while let Some((id, inputs, next)) = stack.last_mut() {
            match inputs.get(*next).copied() {
                None => {
                    order.push(*id);
                    stack.pop();
                }
                Some(input) => {
                    *next += 1;
                    if seen.insert(input.node) {
                        stack.push((input.node, sources(input.node), 0));
                    }
                }
            }
        }
    }
    order
}

/// Adds to flags what a relation leads to, in any number of steps.
pub(crate) fn spread(flags: &mut [bool], leads: impl Fn(usize, usize) -> bool) {
    let mut stack: Vec<usize> = (0..flags.len()).filter(|&at| flags[at]).collect();
    while let Some(at) = stack.pop() {
        for (to, flag) in flags.iter_mut().enumerate() {
            if !*flag && leads(at, to) {
                *flag = true;
                stack.push(to);
            }
        }
    }
}
