//! What runs of a draft: what fetches and targets need, nodes with effects, and nodes that may fail.
//!
//! A node that runs and fails ends the step, whoever reads it. So a node that may fail stays though nothing reads it
//! any more, until a pass answers for it ([`Draft::absorb`]).

use super::Draft;
use crate::{NodeId, optimize::fallible::may_fail};

impl Draft<'_> {
    /// Whether a node runs though nothing reads it: a step's effects and errors do not depend on readers.
    fn runs_by_itself(&self, id: NodeId) -> bool {
        self.effect[id.index()] && (self.node(id).op.stateful || may_fail(self, id))
    }

    /// The nodes that must run, as a mark each, and those among them that nothing needs but their errors.
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

    /// Removes those of these nodes that nothing uses any more, and what only they used; how many went. What a loop
    /// holds up by itself stays until [`Draft::sweep`], and so does what may fail and nobody answers for.
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
            self.note(id, "is not needed any more");
            count += 1;
        }
        count
    }

    /// As [`Draft::sweep_from`], of nodes for whose errors others answer from now on: what a pass put in their place
    /// fails where they do.
    pub fn absorb(&mut self, nodes: impl IntoIterator<Item = NodeId>) -> usize {
        let nodes: Vec<NodeId> = nodes.into_iter().collect();
        for &id in &nodes {
            if !self.node(id).op.stateful {
                self.give_up_effects(id);
            }
        }
        self.sweep_from(nodes)
    }

    /// The live nodes that nothing reads, as a mark each.
    pub(in crate::optimize) fn idle(&self) -> Vec<bool> {
        let idle = |id: NodeId| {
            let at = id.index();
            self.live[at] && !self.kept[at] && self.users(id).is_empty()
        };
        self.ids().map(idle).collect()
    }

    /// Lets the nodes from this number on stay for their errors, as those of the graph do.
    pub(in crate::optimize) fn answer_from(&mut self, first: usize) {
        for at in first..self.nodes.len() {
            self.effect[at] = self.live[at];
        }
    }
}
