//! Dependencies across partitions.

use super::types::{PartKind, Partitioned};
use std::collections::HashMap;

/// A node: its partition and its position there.
type Place = (usize, u32);

impl Partitioned {
    /// The partitions, of those set in `candidates`, that gather: they wait for all received values
    /// before they send any. A partition does not gather if a value that it receives depends on one
    /// that it sends, since it would wait for itself. Of two partitions that would wait for each
    /// other, the later one gathers.
    pub fn gatherers(&self, candidates: &[bool]) -> Vec<bool> {
        let mut gathers = candidates.to_vec();
        if gathers.contains(&true) {
            let reach = Reach::new(self);
            for at in 0..gathers.len() {
                gathers[at] = gathers[at] && !reach.waits_for_itself(at, &gathers);
            }
        }
        gathers
    }
}

struct Reach<'p> {
    graph: &'p Partitioned,
    /// The receiving node of each transfer.
    receivers: HashMap<u32, Place>,
    /// The successors of each node within its partition.
    successors: Vec<Vec<Vec<u32>>>,
}

impl<'p> Reach<'p> {
    fn new(graph: &'p Partitioned) -> Reach<'p> {
        let mut receivers = HashMap::new();
        let mut successors = Vec::with_capacity(graph.partitions.len());
        for (part, partition) in graph.partitions.iter().enumerate() {
            let mut after = vec![Vec::new(); partition.nodes.len()];
            for (node, number) in partition.nodes.iter().zip(0u32..) {
                let inputs = node.inputs.iter().map(|edge| edge.node);
                for before in inputs.chain(node.control_inputs.iter().copied()) {
                    after[before as usize].push(number);
                }
                if let PartKind::Recv(transfer) = &node.kind {
                    receivers.insert(transfer.id, (part, number));
                }
            }
            successors.push(after);
        }
        Reach { graph, receivers, successors }
    }

    /// Whether a value that a partition receives depends on one that it sends, given which others
    /// gather.
    fn waits_for_itself(&self, at: usize, gathers: &[bool]) -> bool {
        let mut seen: Vec<Vec<bool>> =
            self.successors.iter().map(|nodes| vec![false; nodes.len()]).collect();
        let mut has_sent = vec![false; gathers.len()];
        let mut reached: Vec<Place> = self.sends(at).collect();
        while let Some((part, number)) = reached.pop() {
            if std::mem::replace(&mut seen[part][number as usize], true) {
                continue;
            }
            let node = &self.graph.partitions[part].nodes[number as usize];
            if let PartKind::Send(transfer) = &node.kind {
                match self.receivers.get(&transfer.id) {
                    Some(&(there, _)) if there == at => return true,
                    // A gathering partition was reached before: all its sends have been followed.
                    Some(&(there, _)) if gathers[there] && has_sent[there] => {}
                    Some(&(there, _)) if gathers[there] => {
                        has_sent[there] = true;
                        reached.extend(self.sends(there));
                    }
                    Some(&receiver) => reached.push(receiver),
                    None => {}
                }
            }
            reached.extend(self.successors[part][number as usize].iter().map(|&next| (part, next)));
        }
        false
    }

    /// The `Send` nodes of a partition.
    fn sends(&self, part: usize) -> impl Iterator<Item = Place> + '_ {
        let nodes = self.graph.partitions[part].nodes.iter().zip(0u32..);
        let sends = nodes.filter(|(node, _)| matches!(node.kind, PartKind::Send(_)));
        sends.map(move |(_, number)| (part, number))
    }
}
