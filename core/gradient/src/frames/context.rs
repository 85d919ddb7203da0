//! Which branches the values of a frame are in.

use std::collections::HashMap;
use tenon_graph::{ControlFlow, Graph, NodeId, Output};

/// A branch: the predicate of a switch, and the number of its output.
pub(crate) type Branch = (Output, u32);

/// The branches around each node of a frame, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    of: HashMap<NodeId, Vec<Branch>>,
    switches: HashMap<NodeId, Output>,
}

impl Contexts {
    /// The branches of nodes that are given sources first. `begins` says which nodes begin an iteration.
    pub fn find(graph: &Graph, order: &[NodeId], begins: impl Fn(NodeId) -> bool) -> Contexts {
        let mut contexts = Contexts::default();
        for &id in order.iter().filter(|&&id| !begins(id)) {
            let node = graph.node(id);
            let control = node.control_inputs.iter().map(|&id| Output::new(id, 0));
            let around: Vec<Vec<Branch>> =
                node.inputs.iter().copied().chain(control).map(|i| contexts.around(i)).collect();
            let own = match node.control_flow() {
                ControlFlow::Merge => common(&around),
                _ => around.into_iter().max_by_key(Vec::len).unwrap_or_default(),
            };
            if node.control_flow() == ControlFlow::Switch
                && let Some(&pred) = node.inputs.get(1)
            {
                contexts.switches.insert(id, pred);
            }
            if !own.is_empty() {
                contexts.of.insert(id, own);
            }
        }
        contexts
    }

    fn around(&self, value: Output) -> Vec<Branch> {
        let mut around = self.of.get(&value.node).cloned().unwrap_or_default();
        if let Some(&pred) = self.switches.get(&value.node) {
            around.push((pred, value.output));
        }
        around
    }

    /// The innermost branch that a value is in.
    pub fn branch(&self, value: Output) -> Option<Branch> {
        self.around(value).last().copied()
    }
}

/// What all lists begin with.
fn common(lists: &[Vec<Branch>]) -> Vec<Branch> {
    let Some((first, others)) = lists.split_first() else { return Vec::new() };
    let mut first = first.clone();
    for other in others {
        let same = first.iter().zip(other).take_while(|(a, b)| a == b).count();
        first.truncate(same);
    }
    first
}
