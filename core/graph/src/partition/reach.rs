//! What depends on what across partitions.

use super::types::{PartKind, Partitioned};
use std::collections::HashMap;

impl Partitioned {
    /// Whether something that partition `at` receives depends on something that it sends: it can then not gather, which
    /// is to wait for all that comes from elsewhere before it gives anything away. Others gather, too, as `gathers` says
    /// by partition.
    pub fn waits_for_itself(&self, at: usize, gathers: &[bool]) -> bool {
        let mut receivers = HashMap::new();
        let mut successors: Vec<Vec<Vec<u32>>> = Vec::with_capacity(self.partitions.len());
        for (part, partition) in self.partitions.iter().enumerate() {
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
        let mut seen: Vec<Vec<bool>> =
            successors.iter().map(|nodes| vec![false; nodes.len()]).collect();
        let mut reached: Vec<(usize, u32)> = self.sends(at).collect();
        while let Some((part, number)) = reached.pop() {
            if std::mem::replace(&mut seen[part][number as usize], true) {
                continue;
            }
            if let PartKind::Send(transfer) = &self.partitions[part].nodes[number as usize].kind {
                match receivers.get(&transfer.id) {
                    Some(&(there, _)) if there == at => return true,
                    Some(&(there, _)) if gathers[there] => reached.extend(self.sends(there)),
                    Some(&receiver) => reached.push(receiver),
                    None => {}
                }
            }
            reached.extend(successors[part][number as usize].iter().map(|&next| (part, next)));
        }
        false
    }

    /// What a partition gives away.
    fn sends(&self, part: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let nodes = self.partitions[part].nodes.iter().zip(0u32..);
        let sends = nodes.filter(|(node, _)| matches!(node.kind, PartKind::Send(_)));
        sends.map(move |(_, number)| (part, number))
    }
}
