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
    /// The branches of nodes that are given sources first, and what each runs after before it. `sources` gives the tensors
    /// that a node reads; what begins an iteration reads none.
    pub fn find(
        graph: &Graph,
        order: &[NodeId],
        sources: impl Fn(NodeId) -> Vec<Output>,
    ) -> Contexts {
        let mut contexts = Contexts::default();
        for &id in order {
            let (node, read) = (graph.node(id), sources(id));
            match node.control_flow() {
                ControlFlow::Merge => {
                    let around: Vec<Vec<Branch>> =
                        read.iter().map(|&input| contexts.around(input)).collect();
                    contexts.put(id, common(&around));
                }
                flow => {
                    contexts.join(id, &read, &node.control_inputs);
                    if let (ControlFlow::Switch, [_, pred]) = (flow, read.as_slice()) {
                        contexts.switches.insert(id, *pred);
                    }
                }
            }
        }
        contexts
    }

    /// Notes that a node is in all branches of what it reads and of what runs before it.
    pub fn join(&mut self, id: NodeId, read: &[Output], before: &[NodeId]) {
        let around = read.iter().map(|&input| self.around(input));
        // A switch itself runs whichever branch it takes.
        let before = before.iter().map(|id| self.of.get(id).cloned().unwrap_or_default());
        let own = around.chain(before).max_by_key(Vec::len).unwrap_or_default();
        self.put(id, own);
    }

    fn put(&mut self, id: NodeId, own: Vec<Branch>) {
        if !own.is_empty() {
            self.of.insert(id, own);
        }
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
