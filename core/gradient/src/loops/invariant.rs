//! Values that are the same in each iteration of a loop.
//!
//! The gradient of an iteration computes them again from what the loop does not change, if that is cheap, instead of taking
//! them from lists to which each iteration would append the same value.

use crate::body::Body;
use std::collections::HashSet;
use tenon_framework::{DType, op::ValueRule};
use tenon_graph::{Node, NodeId, Output, topological};

/// Ops besides elementwise ones, and those of shapes, that are cheap to run again.
const CHEAP: &[&str] = &[
    "Cast",
    "Reshape",
    "ExpandDims",
    "Squeeze",
    "Transpose",
    "BroadcastTo",
    "Fill",
    "Range",
    "Identity",
];

fn is_cheap(node: &Node) -> bool {
    let facts = node.op.facts();
    let cheap = facts.elementwise
        || facts.value != ValueRule::None
        || CHEAP.contains(&node.op.name.as_str());
    let is_value = |dtype: &DType| !matches!(dtype.base(), DType::RESOURCE | DType::VARIANT);
    cheap
        && !node.op.stateful
        && node.control_inputs.is_empty()
        && node.outputs().iter().all(is_value)
}

impl Body<'_> {
    /// Lets the gradient compute values again that follow from constants and from the arguments that do not change.
    pub(super) fn compute_again(&mut self) {
        let invariant = self.invariant();
        let kept = std::mem::take(&mut self.kept);
        let (mut again, varying): (Vec<Output>, Vec<Output>) =
            kept.into_iter().partition(|tensor| invariant.contains(&tensor.node));
        self.kept = varying;
        while let Some(tensor) = again.pop() {
            if let Some(at) = self.args.iter().position(|&arg| arg == tensor) {
                if !self.kept_args.contains(&at) {
                    self.kept_args.push(at);
                }
                continue;
            }
            let node = self.builder.graph().node(tensor.node);
            if !node.op.is_constant() && self.again.insert(tensor.node) {
                again.extend(&node.inputs);
            }
        }
    }

    /// The cheap nodes of the body that give the same values in each iteration.
    fn invariant(&self) -> HashSet<NodeId> {
        let graph = self.builder.graph();
        let fixed = |at: usize| self.returns.get(at) == Some(&self.args[at]);
        let fixed: HashSet<Output> =
            (0..self.args.len()).filter(|&at| fixed(at)).map(|at| self.args[at]).collect();
        let order = topological(graph.len(), |at| {
            graph.node(NodeId(at as u32)).inputs.iter().map(|input| input.node.index())
        });
        let mut found: HashSet<NodeId> = HashSet::new();
        for id in order.into_iter().map(|at| NodeId(at as u32)) {
            let node = graph.node(id);
            let same = |input: &Output| {
                fixed.contains(input)
                    || graph.node(input.node).op.is_constant()
                    || found.contains(&input.node)
            };
            let is_own = self.forward.contains(&id) && !node.inputs.is_empty();
            if is_own && is_cheap(node) && node.inputs.iter().all(same) {
                found.insert(id);
            }
        }
        found
    }
}
