//! The edges to live nodes, listed by source.
//!
//! Each edge knows its position in the list of its source, and each list entry knows its edge. An
//! edge is therefore added, removed or moved in constant time, however many users its source and
//! inputs its user has.
//!
//! # Invariants
//! - `into[user].data[slot]` is the position of data edge `slot` of a live user in the list of the
//!   output that it reads, or [`NOWHERE`] if that output is fed. `into[user].control[slot]` is the
//!   same for control edges, which all have a source. The edges of nodes that do not run are in no
//!   list.
//! - `wide[user]`, if present, holds the sources of all control edges of the user.

use std::collections::{HashMap, HashSet};
use tenon_graph::{NodeId, Output};

/// The position of an edge that is in no list.
const NOWHERE: u32 = u32::MAX;

/// A node with more control edges than this gets a set for lookups.
const WIDE: usize = 16;

/// An edge, as its source sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    /// The node that the edge leads to.
    pub user: NodeId,
    /// The position among the data inputs, or among the control inputs, of that node.
    pub slot: u32,
}

/// The edges from a node.
#[derive(Debug, Default)]
struct Outgoing {
    /// The data edges by output; the list is shorter if the last outputs have none.
    readers: Vec<Vec<Use>>,
    /// The control edges.
    waiters: Vec<Use>,
    count: usize,
}

/// The edges to a node: the position of each in the list of its source.
#[derive(Debug, Default)]
struct Incoming {
    data: Vec<u32>,
    control: Vec<u32>,
}

/// All edges of a draft.
#[derive(Debug, Default)]
pub(super) struct Edges {
    from: Vec<Outgoing>,
    into: Vec<Incoming>,
    wide: HashMap<NodeId, HashSet<NodeId>>,
    /// The number of edges in all lists.
    pub count: usize,
}

/// The live nodes that use a node, once for each data edge and each control edge.
#[derive(Debug, Clone, Copy)]
pub struct Users<'d> {
    from: &'d Outgoing,
}

impl<'d> Users<'d> {
    /// Whether nothing uses the node.
    pub fn is_empty(&self) -> bool {
        self.from.count == 0
    }

    /// The number of edges.
    pub fn len(&self) -> usize {
        self.from.count
    }

    /// The users, one for each edge.
    pub fn iter(&self) -> impl Iterator<Item = &'d NodeId> + use<'d> {
        self.from.readers.iter().flatten().chain(&self.from.waiters).map(|edge| &edge.user)
    }
}

impl Edges {
    /// Creates an empty set of edges for this number of nodes.
    pub fn new(nodes: usize) -> Edges {
        let mut edges = Edges::default();
        edges.from.resize_with(nodes, Outgoing::default);
        edges.into.resize_with(nodes, Incoming::default);
        edges
    }

    /// Adds a node without edges.
    pub fn push_node(&mut self) {
        self.from.push(Outgoing::default());
        self.into.push(Incoming::default());
    }

    pub fn users(&self, id: NodeId) -> Users<'_> {
        Users { from: &self.from[id.index()] }
    }

    /// The data edges from an output.
    pub fn readers(&self, output: Output) -> &[Use] {
        let readers = &self.from[output.node.index()].readers;
        readers.get(output.output as usize).map_or(&[], Vec::as_slice)
    }

    /// The control edges from a node.
    pub fn waiters(&self, id: NodeId) -> &[Use] {
        &self.from[id.index()].waiters
    }

    /// Adds the next data edge of a node; an edge that reads a feed has no source.
    pub fn add_data(&mut self, user: NodeId, source: Option<Output>) {
        let slot = self.into[user.index()].data.len() as u32;
        let place = self.enter(Use { user, slot }, source);
        self.into[user.index()].data.push(place);
    }

    /// Moves data edge `slot` of a node from one source to another.
    pub fn move_data(&mut self, edge: Use, from: Option<Output>, to: Option<Output>) {
        let place = self.into[edge.user.index()].data[edge.slot as usize];
        if let Some(from) = from {
            self.remove_reader(from, place);
        }
        self.into[edge.user.index()].data[edge.slot as usize] = self.enter(edge, to);
    }

    fn enter(&mut self, edge: Use, source: Option<Output>) -> u32 {
        let Some(source) = source else { return NOWHERE };
        let from = &mut self.from[source.node.index()];
        let at = source.output as usize;
        if from.readers.len() <= at {
            from.readers.resize_with(at + 1, Vec::new);
        }
        from.readers[at].push(edge);
        from.count += 1;
        self.count += 1;
        from.readers[at].len() as u32 - 1
    }

    /// Removes the data edge at `place` from the list of an output; the last edge of the list moves
    /// to its place.
    fn remove_reader(&mut self, source: Output, place: u32) {
        let from = &mut self.from[source.node.index()];
        let readers = &mut from.readers[source.output as usize];
        readers.swap_remove(place as usize);
        from.count -= 1;
        self.count -= 1;
        if let Some(moved) = readers.get(place as usize) {
            self.into[moved.user.index()].data[moved.slot as usize] = place;
        }
    }

    /// Adds the next control edge of a node.
    pub fn add_control(&mut self, user: NodeId, source: NodeId) {
        let slot = self.into[user.index()].control.len() as u32;
        let from = &mut self.from[source.index()];
        from.waiters.push(Use { user, slot });
        from.count += 1;
        self.count += 1;
        self.into[user.index()].control.push(from.waiters.len() as u32 - 1);
        if let Some(sources) = self.wide.get_mut(&user) {
            sources.insert(source);
        }
    }

    /// Removes a control edge. The user's last control edge, whose source is `last`, moves to its
    /// slot, as in `swap_remove`.
    pub fn remove_control(&mut self, edge: Use, source: NodeId, last: NodeId) {
        let into = &mut self.into[edge.user.index()].control;
        let place = into.swap_remove(edge.slot as usize);
        let moved = into.get(edge.slot as usize).copied();
        if let Some(at) = moved {
            self.from[last.index()].waiters[at as usize].slot = edge.slot;
        }
        self.remove_waiter(source, place);
        if let Some(sources) = self.wide.get_mut(&edge.user) {
            sources.remove(&source);
        }
    }

    /// Removes the control edge at `place` from the list of a node; the last edge of the list moves
    /// to its place.
    fn remove_waiter(&mut self, source: NodeId, place: u32) {
        let from = &mut self.from[source.index()];
        from.waiters.swap_remove(place as usize);
        from.count -= 1;
        self.count -= 1;
        if let Some(moved) = from.waiters.get(place as usize) {
            self.into[moved.user.index()].control[moved.slot as usize] = place;
        }
    }

    /// Removes all edges to a node. The arguments are the sources of these edges, in their order.
    pub fn remove_all(
        &mut self,
        user: NodeId,
        data: impl Iterator<Item = Option<Output>>,
        control: &[NodeId],
    ) {
        for (slot, source) in data.enumerate() {
            if let Some(source) = source {
                let place = self.into[user.index()].data[slot];
                self.remove_reader(source, place);
            }
        }
        for (slot, &source) in control.iter().enumerate() {
            let place = self.into[user.index()].control[slot];
            self.remove_waiter(source, place);
        }
        self.into[user.index()] = Incoming::default();
        self.wide.remove(&user);
    }

    /// Whether a node with these control inputs waits for `source`.
    pub fn waits_for(&mut self, user: NodeId, control: &[NodeId], source: NodeId) -> bool {
        if control.len() <= WIDE {
            return control.contains(&source);
        }
        let sources = self.wide.entry(user);
        sources.or_insert_with(|| control.iter().copied().collect()).contains(&source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(node: u32) -> Output {
        Output::new(NodeId(node), 0)
    }

    /// The users of a node with the slots of their edges.
    fn reading(edges: &Edges, node: u32) -> Vec<(u32, u32)> {
        let mut found: Vec<_> =
            edges.readers(output(node)).iter().map(|edge| (edge.user.0, edge.slot)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn an_edge_that_moves_leaves_the_others_where_they_are() {
        let mut edges = Edges::new(4);
        for user in [2, 3] {
            for source in [output(0), output(0), output(1)] {
                edges.add_data(NodeId(user), Some(source));
            }
        }
        edges.move_data(Use { user: NodeId(2), slot: 0 }, Some(output(0)), Some(output(1)));
        assert_eq!(reading(&edges, 0), [(2, 1), (3, 0), (3, 1)]);
        assert_eq!(reading(&edges, 1), [(2, 0), (2, 2), (3, 2)]);
        edges.remove_all(NodeId(3), [0, 0, 1].map(|at| Some(output(at))).into_iter(), &[]);
        assert_eq!(reading(&edges, 0), [(2, 1)]);
        assert_eq!(reading(&edges, 1), [(2, 0), (2, 2)]);
        edges.move_data(Use { user: NodeId(2), slot: 1 }, Some(output(0)), None);
        assert!(edges.users(NodeId(0)).is_empty());
        assert_eq!((edges.users(NodeId(1)).len(), edges.count), (2, 2));
    }

    #[test]
    fn control_edges_change_slots_as_their_list_does() {
        let mut edges = Edges::new(42);
        let user = NodeId(41);
        let mut control: Vec<NodeId> = (0..40).map(NodeId).collect();
        control.iter().for_each(|&source| edges.add_control(user, source));
        assert!(edges.waits_for(user, &control, NodeId(7)));
        while control.len() > 3 {
            let at = control.len() / 2;
            let edge = Use { user, slot: at as u32 };
            edges.remove_control(edge, control[at], control[control.len() - 1]);
            let gone = control.swap_remove(at);
            assert!(edges.waiters(gone).is_empty());
            assert!(!edges.waits_for(user, &control, gone));
        }
        for (slot, &source) in control.iter().enumerate() {
            let [edge] = edges.waiters(source) else { panic!("one edge from {source}") };
            assert_eq!(edge.slot, slot as u32);
            assert!(edges.waits_for(user, &control, source));
        }
        edges.remove_all(user, std::iter::empty(), &control);
        assert_eq!(edges.count, 0);
    }
}
