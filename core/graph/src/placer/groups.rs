//! Groups of nodes that must share a device.

use crate::{Graph, GraphError, Node, NodeId, Subgraph, names::near_names};
use std::collections::HashMap;
use tenon_framework::{
    DType,
    attr::{AttrList, AttrValue},
    device::DeviceName,
};

/// Nodes that must share a device, with their merged requests.
#[derive(Debug)]
pub(super) struct Group {
    /// The members that run, by number; at least one.
    pub members: Vec<NodeId>,
    /// The merged requests.
    pub request: DeviceName,
}

impl Group {
    /// Whether the group is a single stateless node without inputs or requests.
    pub(super) fn is_generator(&self, graph: &Graph, sub: &Subgraph) -> bool {
        let [id] = self.members[..] else { return false };
        let node = graph.node(id);
        self.request == DeviceName::default()
            && node.inputs.is_empty()
            && sub.control_inputs(graph, id).next().is_none()
            && !node.op.stateful
    }
}

const BY_CLASS: &str = "one names the other in '_class'";
const BY_REFERENCE: &str = "a reference leads from one to the other";
const BY_RESOURCE: &str = "a resource leads from one to the other";

/// The names of the nodes that a node is colocated with.
fn classes(node: &Node) -> impl Iterator<Item = &str> {
    let texts = match node.attrs.get("_class") {
        Some(AttrValue::List(AttrList::String(texts))) => texts.as_slice(),
        _ => &[],
    };
    texts.iter().filter_map(|text| std::str::from_utf8(text).ok()?.strip_prefix("loc:@"))
}

/// The groups of the nodes that run, in the order of their first nodes.
pub(super) fn groups(graph: &Graph, sub: &Subgraph, soft: bool) -> Result<Vec<Group>, GraphError> {
    let mut sets = DisjointSets::new(graph.len());
    // Nodes that do not run are included if others are colocated with them.
    let mut seen = vec![false; graph.len()];
    let mut stack = sub.order.clone();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        for with in classes(graph.node(id)) {
            let other = find(graph, id, with)?;
            sets.join(id, other, BY_CLASS);
            stack.push(other);
        }
    }
    // A resource has one device in all steps, so that all of its users have a say, those of other steps too.
    for (id, _) in graph.nodes() {
        join_edges(graph, sub, id, &mut sets);
    }
    let mut runs = vec![false; graph.len()];
    sub.order.iter().for_each(|id| runs[sets.root(id.0) as usize] = true);
    for (at, seen) in seen.iter_mut().enumerate() {
        *seen |= runs[sets.root(at as u32) as usize];
    }
    collect(graph, sub, soft, &seen, &mut sets)
}

fn find(graph: &Graph, node: NodeId, with: &str) -> Result<NodeId, GraphError> {
    graph.find(with).ok_or_else(|| GraphError::ColocationUnknown {
        node: graph.node(node).name.clone(),
        with: with.to_owned(),
        near: near_names(with, graph.names.keys().map(String::as_str)),
    })
}

fn join_edges(graph: &Graph, sub: &Subgraph, id: NodeId, sets: &mut DisjointSets) {
    let node = graph.node(id);
    for (input, &wanted) in node.inputs.iter().zip(&node.signature.inputs) {
        // A fed tensor has no device of its own; a back edge joins its ends like any other edge.
        if sub.feed_of(*input).is_some() {
            continue;
        }
        if wanted.is_ref() {
            sets.join(input.node, id, BY_REFERENCE);
        } else if wanted == DType::RESOURCE {
            sets.join(input.node, id, BY_RESOURCE);
        }
    }
}

fn collect(
    graph: &Graph,
    sub: &Subgraph,
    soft: bool,
    seen: &[bool],
    sets: &mut DisjointSets,
) -> Result<Vec<Group>, GraphError> {
    let mut position: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<(Group, Vec<NodeId>)> = Vec::new();
    // As in TensorFlow, the device of a resource decides, whatever its users request.
    let takes_resource = |id: &NodeId| graph.node(*id).signature.inputs.contains(&DType::RESOURCE);
    let ids = (0..graph.len() as u32).map(NodeId).filter(|id| seen[id.index()]);
    let (users, others): (Vec<NodeId>, Vec<NodeId>) = ids.partition(takes_resource);
    for id in others.into_iter().chain(users) {
        let at = *position.entry(sets.root(id.0)).or_insert_with(|| {
            all.push((Group { members: Vec::new(), request: DeviceName::default() }, Vec::new()));
            all.len() - 1
        });
        let (group, askers) = &mut all[at];
        let request = &graph.node(id).device;
        match group.request.merge(request, soft) {
            Ok(merged) => group.request = merged,
            Err(_) if takes_resource(&id) && !askers.is_empty() => {}
            // It fails the steps that run it.
            Err(_) if !sub.contains(id) => {}
            Err(_) => return Err(conflict(graph, askers, id, sets)),
        }
        askers.push(id);
        if sub.contains(id) {
            group.members.push(id);
        }
    }
    let mut groups: Vec<Group> = all.into_iter().map(|(group, _)| group).collect();
    groups.retain(|group| !group.members.is_empty());
    groups.iter_mut().for_each(|group| group.members.sort_unstable());
    groups.sort_by_key(|group| group.members[0]);
    Ok(groups)
}

/// The error for a conflict. It names the first earlier node whose own request differs.
fn conflict(graph: &Graph, earlier: &[NodeId], id: NodeId, sets: &DisjointSets) -> GraphError {
    let node = graph.node(id);
    let differs = |&other: &NodeId| {
        let source = graph.node(other).device.merge(&node.device, false).err()?;
        Some((graph.node(other).name.clone(), Box::new(source)))
    };
    let why = sets.why[id.index()];
    match earlier.iter().find_map(differs) {
        Some((first, source)) => {
            GraphError::ColocationConflict { first, second: node.name.clone(), why, source }
        }
        // Names merge part by part, so a name that conflicts with the merged one conflicts with one
        // of its parts.
        None => GraphError::NoDevice {
            node: node.name.clone(),
            op: node.op.name.clone(),
            requested: Box::new(node.device.clone()),
            is_there: true,
            candidates: vec![why.to_owned()],
            soft: None,
        },
    }
}

/// Disjoint sets of nodes, joined pair by pair.
struct DisjointSets {
    parent: Vec<u32>,
    size: Vec<u32>,
    why: Vec<&'static str>,
}

impl DisjointSets {
    fn new(count: usize) -> DisjointSets {
        DisjointSets {
            parent: (0..count as u32).collect(),
            size: vec![1; count],
            why: vec![BY_CLASS; count],
        }
    }

    fn root(&mut self, mut at: u32) -> u32 {
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    fn join(&mut self, a: NodeId, b: NodeId, why: &'static str) {
        self.why[a.index()] = why;
        self.why[b.index()] = why;
        let (a, b) = (self.root(a.0), self.root(b.0));
        if a == b {
            return;
        }
        let (large, small) =
            if self.size[a as usize] >= self.size[b as usize] { (a, b) } else { (b, a) };
        self.parent[small as usize] = large;
        self.size[large as usize] += self.size[small as usize];
    }
}
