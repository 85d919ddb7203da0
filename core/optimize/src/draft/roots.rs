//! The roots of a draft: fetches and targets, nodes with effects, and nodes that may fail.
//!
//! A node that runs and fails ends the step even if nothing reads its outputs. A node that may fail
//! therefore stays without readers, until a pass states that other nodes fail in its place
//! ([`Draft::absorb`]).

use super::Draft;
use crate::fallible::may_fail;
use tenon_graph::NodeId;

impl Draft<'_> {
    /// Whether a node runs even without readers, for its effects or errors.
    fn runs_by_itself(&self, id: NodeId) -> bool {
        self.effect[id.index()] && (self.node(id).op.stateful || may_fail(self, id))
    }

    /// Which nodes must run, and the nodes among them that run only for their errors.
    pub(super) fn needed(&self) -> (Vec<bool>, Vec<NodeId>) {
        let mut needed = vec![false; self.nodes.len()];
        let fetched = self.sub.fetches.iter().filter_map(|&output| self.source(output));
        let mut stack: Vec<NodeId> = fetched.chain(self.sub.targets.iter().copied()).collect();
        stack.extend(self.effects());
        self.mark(stack, &mut needed);
        let mut alone = Vec::new();
        for id in self.ids() {
            let idle = self.live[id.index()] && !needed[id.index()];
            if idle && self.runs_by_itself(id) {
                alone.push(id);
                self.mark(vec![id], &mut needed);
            }
        }
        (needed, alone)
    }

    /// The live nodes with effects.
    pub(super) fn effects(&self) -> impl Iterator<Item = NodeId> + '_ {
        let stays = |id: &NodeId| {
            let at = id.index();
            self.live[at] && self.effect[at] && self.node(*id).op.stateful
        };
        self.ids().filter(stays)
    }

    fn mark(&self, mut stack: Vec<NodeId>, needed: &mut [bool]) {
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut needed[id.index()], true) {
                stack.extend(self.node(id).inputs.iter().filter_map(|&input| self.source(input)));
                stack.extend(self.control_sources(id));
            }
        }
    }

    /// Removes those of these nodes that have no users left, and the nodes that only they used;
    /// returns how many. A loop that only feeds itself stays until [`Draft::sweep`], and so does a
    /// node that may fail and was not absorbed.
    pub fn sweep_from(&mut self, nodes: impl IntoIterator<Item = NodeId>) -> usize {
        let mut stack: Vec<NodeId> = nodes.into_iter().collect();
        let mut count = 0;
        while let Some(id) = stack.pop() {
            let at = id.index();
            let needed = self.kept[at] || !self.users(id).is_empty();
            if needed || !self.live[at] || self.runs_by_itself(id) {
                continue;
            }
            stack.extend(self.node(id).inputs.iter().filter_map(|&input| self.source(input)));
            stack.extend(self.node(id).control_inputs.iter().copied());
            self.remove(id);
            self.note(id, "is no longer needed");
            count += 1;
        }
        count
    }

    /// Like [`Draft::sweep_from`], for nodes that a pass replaced by others which fail in the same
    /// cases.
    pub fn absorb(&mut self, nodes: impl IntoIterator<Item = NodeId>) -> usize {
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        for &id in &nodes {
            if !self.node(id).op.stateful {
                self.give_up_effects(id);
            }
        }
        self.sweep_from(nodes)
    }

    /// Which live nodes have no users.
    pub(crate) fn idle(&self) -> Vec<bool> {
        let idle = |id: NodeId| {
            let at = id.index();
            self.live[at] && !self.kept[at] && self.users(id).is_empty()
        };
        self.ids().map(idle).collect()
    }

    /// Makes the nodes from this number on stay for their errors, like those of the graph.
    pub(crate) fn keep_errors_from(&mut self, first: usize) {
        for at in first..self.nodes.len() {
            self.effect[at] = self.live[at];
        }
    }
}
