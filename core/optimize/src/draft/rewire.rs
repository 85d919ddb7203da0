//! Edits of data and control edges.
//!
//! An edit, and undoing it, costs time in proportion to the edges that change, however many other
//! edges the nodes have.

use super::{
    Draft,
    edges::{Edges, Use},
};
use crate::{PassError, undo::Undo};
use std::sync::Arc;
use tenon_graph::{Node, NodeId, Output};

impl Draft<'_> {
    /// Makes the readers of `from` read `to` instead; fetches and feeds of `from` stay. Returns the
    /// number of moved edges.
    ///
    /// # Errors
    /// The tensors have different types.
    pub fn redirect(&mut self, from: Output, to: Output) -> Result<usize, PassError> {
        self.redirect_of(from, to, |_| true)
    }

    /// Like [`Draft::redirect`], for some of the readers.
    ///
    /// # Errors
    /// As [`Draft::redirect`].
    pub fn redirect_of(
        &mut self,
        from: Output,
        to: Output,
        of: impl Fn(NodeId) -> bool,
    ) -> Result<usize, PassError> {
        let (expected, found) = (self.dtype(from), self.dtype(to));
        if expected != found || expected.is_ref() {
            let tensor = self.output_name(from);
            return Err(PassError::Type { tensor, expected, found });
        }
        if !self.is_there(to) {
            return Err(PassError::NoNode { found: self.output_name(to) });
        }
        if self.is_fed(from) || from == to {
            return Ok(0);
        }
        let mut readers = self.edges.readers(from).to_vec();
        readers.retain(|edge| of(edge.user));
        let source = (!self.is_fed(to)).then_some(to);
        for &edge in &readers {
            self.own(edge.user).inputs[edge.slot as usize] = to;
            self.undo.push(Undo::Input(edge.user, edge.slot, from));
            self.edges.move_data(edge, Some(from), source);
            self.source_changed(edge.user, Some(from.node), source.map(|to| to.node));
        }
        Ok(readers.len())
    }

    /// Makes the nodes that wait for `from` wait for `to` instead.
    pub fn redirect_control(&mut self, from: NodeId, to: &[NodeId]) {
        for edge in self.edges.waiters(from).to_vec() {
            let user = edge.user;
            if to.contains(&user) {
                continue;
            }
            self.stop_waiting(edge, from);
            for &source in to {
                self.wait_for(user, source);
                self.source_changed(user, Some(from), Some(source));
            }
            if to.is_empty() {
                self.source_changed(user, Some(from), None);
            }
        }
    }

    /// Removes a control edge. A node waits for each of its sources once.
    fn stop_waiting(&mut self, edge: Use, source: NodeId) {
        let control = &mut self.own(edge.user).control_inputs;
        let last = control[control.len() - 1];
        control.swap_remove(edge.slot as usize);
        self.undo.push(Undo::ControlGone(edge.user, edge.slot, source));
        self.edges.remove_control(edge, source, last);
    }

    /// Adds a control edge from `source`, if the node has none from there.
    fn wait_for(&mut self, user: NodeId, source: NodeId) {
        let control = &self.nodes[user.index()].control_inputs;
        if self.edges.waits_for(user, control, source) {
            return;
        }
        self.own(user).control_inputs.push(source);
        self.undo.push(Undo::ControlAdded(user));
        self.edges.add_control(user, source);
    }

    /// Sets the control inputs of a node.
    pub fn set_control(&mut self, id: NodeId, mut control: Vec<NodeId>) {
        control.sort_unstable();
        control.dedup();
        let mut node = Node::clone(&self.nodes[id.index()]);
        node.control_inputs = control;
        self.set_node(id, node);
    }

    pub(super) fn set_node(&mut self, id: NodeId, node: Node) {
        self.remove_edges(id);
        let node = Arc::new(Node { origin: None, ..node });
        let old = std::mem::replace(&mut self.nodes[id.index()], node);
        self.undo.push(Undo::Node(id, old));
        self.add_edges(id);
        let clean = self.looks_clean(id);
        let own = &self.clean[id.index()];
        own.is_stale.set(false);
        self.undo.push(Undo::Clean(id, own.is_clean.replace(clean)));
        self.version += 1;
    }

    /// The node for editing. The graph that the draft was made from keeps its own copy.
    fn own(&mut self, id: NodeId) -> &mut Node {
        self.version += 1;
        let node = &mut self.nodes[id.index()];
        let edges = node.inputs.len() + node.control_inputs.len();
        if Arc::get_mut(node).is_none() {
            let copy = Arc::new(Node { origin: None, ..Node::clone(node) });
            self.undo.push(Undo::Node(id, std::mem::replace(node, copy)));
            self.context.budget.spend(edges);
        }
        self.context.budget.spend(1);
        Arc::make_mut(&mut self.nodes[id.index()])
    }

    /// Updates the cleanliness of a node right after one of its edges was moved.
    fn source_changed(&mut self, user: NodeId, from: Option<NodeId>, to: Option<NodeId>) {
        let is_clean = |id: Option<NodeId>| id.is_none_or(|id| self.is_clean(id));
        let (was, now) = (is_clean(from), is_clean(to));
        let own = &self.clean[user.index()];
        if was == now || own.is_stale.get() && now {
            return;
        }
        self.undo.push(Undo::Clean(user, own.is_clean.get()));
        if now {
            // Other sources may not be clean; they are checked when the value is next read.
            own.is_stale.set(true);
            self.stale.push(user);
        } else {
            own.is_clean.set(false);
            own.is_stale.set(false);
        }
    }

    /// Updates all stale cleanliness.
    pub(crate) fn freshen(&mut self) {
        for id in std::mem::take(&mut self.stale) {
            self.is_clean(id);
        }
    }

    pub(super) fn count_users(&mut self) {
        self.edges = Edges::new(self.nodes.len());
        let live: Vec<NodeId> = self.ids().filter(|id| self.is_live(*id)).collect();
        live.into_iter().for_each(|id| self.add_edges(id));
    }

    pub(super) fn add_edges(&mut self, id: NodeId) {
        let node = Arc::clone(&self.nodes[id.index()]);
        self.spend(node.inputs.len() + node.control_inputs.len());
        for &input in &node.inputs {
            let source = self.source(input).map(|_| input);
            self.edges.add_data(id, source);
        }
        node.control_inputs.iter().for_each(|&source| self.edges.add_control(id, source));
    }

    pub(super) fn remove_edges(&mut self, id: NodeId) {
        let node = Arc::clone(&self.nodes[id.index()]);
        self.spend(node.inputs.len() + node.control_inputs.len());
        let sources: Vec<Option<Output>> =
            node.inputs.iter().map(|&input| self.source(input).map(|_| input)).collect();
        self.edges.remove_all(id, sources.into_iter(), &node.control_inputs);
    }
}
