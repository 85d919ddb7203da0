//! Assigns a stream to each node of a partition, and the events by which streams wait for each
//! other.
//!
//! A stream runs in order, and a node runs once its predecessors have enqueued. On its own stream,
//! a node is thus ordered after its predecessors; for the others, its stream waits for events. The
//! rules are:
//!
//! - A node continues the stream on which its latest predecessor was the last to enqueue: a chain
//!   stays on one stream. If other nodes have continued that stream, the node is independent of
//!   them and takes the stream with the least work, preferring an unused one. The same holds for
//!   nodes without predecessors.
//! - A node that enqueues nothing ([`Kind::Passive`]) is transparent: its successors wait for its
//!   predecessors. With several predecessors, it joins their streams like any other node.
//! - All nodes that access state ([`Kind::State`]) share the first stream, which keeps them in the
//!   order of the step.
//! - A copy from the device ([`Kind::Outgoing`]) without successors is placed after all other
//!   nodes, so that it does not displace a node that has successors.
//! - A wait is omitted if an intermediate node already waits.
//!
//! Buffers are not released here: a step on streams keeps them until all of its streams are done.
//!
//! # Invariants
//! - Every predecessor that enqueues is ordered before the node: by stream, by the node's waits, or
//!   by those of nodes between the two.
//! - With one stream there are no events.

use super::NodeKernel;
use std::collections::BTreeSet;
use tenon_abi::DType;
use tenon_graph::{Memory, PartKind, PartNode};

/// The maximum number of streams of a partition: the step keeps a bit for each.
const MAX_STREAMS: u32 = 32;

/// Skip the check for implied waits at predecessors with more predecessors than this.
const MAX_PREDECESSORS_CHECKED: usize = 16;

/// How a node uses streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The node enqueues nothing.
    Passive,
    /// The node enqueues work.
    Active,
    /// The node enqueues work and accesses state that outlives the step.
    State,
    /// The node enqueues a copy to another device or to the host.
    Outgoing,
}

/// Whether values of this type refer to state that outlives the step.
pub(super) fn is_state(dtype: DType) -> bool {
    dtype.is_ref() || dtype == DType::RESOURCE
}

impl Kind {
    /// The kind of a node and its kernel; `has_state` states that an input refers to state.
    pub fn of(node: &PartNode, kernel: Option<&NodeKernel>, has_state: bool) -> Kind {
        let on_device = |memories: &[Memory]| memories.contains(&Memory::Device);
        match (&node.kind, kernel) {
            // Any node that reads state is ordered, even with a kernel of the host: an update in
            // place may be pending.
            (_, Some(kernel)) if kernel.stateful || has_state => Kind::State,
            // The host's own kernels forward buffers and use no device.
            (_, Some(kernel)) if kernel.choice.is_host_own() => Kind::Passive,
            (_, Some(_)) => Kind::Active,
            (PartKind::Send(_), None) if on_device(&node.input_memory) => Kind::Outgoing,
            (PartKind::Recv(_), None) if on_device(&node.output_memory) => Kind::Active,
            _ => Kind::Passive,
        }
    }
}

/// A node for the assignment of streams.
#[derive(Debug)]
pub(super) struct StreamNode {
    pub kind: Kind,
    /// The numbers of its predecessors, each lower than its own.
    pub before: BTreeSet<u32>,
}

/// The stream of a node, and its events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeStream {
    /// The position among the partition's streams.
    pub stream: u32,
    /// The events that its stream waits for first.
    pub waits: Box<[u32]>,
    /// The event recorded after the node, if another stream waits for it.
    pub event: Option<u32>,
}

impl NodeStream {
    /// Whether the node waits for events or records one.
    pub fn has_events(&self) -> bool {
        self.event.is_some() || !self.waits.is_empty()
    }
}

/// The stream assignment of a partition.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    pub nodes: Vec<NodeStream>,
    /// The number of streams in use, at least 1.
    pub streams: u32,
    /// The number of events in use.
    pub events: u32,
}

/// Assigns nodes to at most `most` streams.
pub(super) fn assign(nodes: &[StreamNode], most: u32) -> Assignment {
    if most <= 1 {
        let nodes = vec![NodeStream::default(); nodes.len()];
        return Assignment { nodes, streams: 1, events: 0 };
    }
    let mut assigner = Assigner::new(nodes, most.min(MAX_STREAMS));
    assigner.place();
    assigner.finish()
}

struct Assigner<'n> {
    nodes: &'n [StreamNode],
    most: u32,
    /// The last node placed on each stream, and the number of nodes on it.
    tails: Vec<(Option<u32>, u32)>,
    /// The node that represents each node on streams: itself, its predecessor if it is transparent,
    /// or none.
    stands_for: Vec<Option<u32>>,
    /// The representatives of each node's predecessors.
    sources: Vec<BTreeSet<u32>>,
    stream: Vec<u32>,
}

impl<'n> Assigner<'n> {
    fn new(nodes: &'n [StreamNode], most: u32) -> Assigner<'n> {
        Assigner {
            nodes,
            most,
            tails: Vec::new(),
            stands_for: vec![None; nodes.len()],
            sources: vec![BTreeSet::new(); nodes.len()],
            stream: vec![0; nodes.len()],
        }
    }

    fn place(&mut self) {
        let continued: BTreeSet<u32> =
            self.nodes.iter().flat_map(|node| node.before.iter().copied()).collect();
        let mut outgoing = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let before = node.before.iter();
            let sources: BTreeSet<u32> =
                before.filter_map(|&source| self.stands_for[source as usize]).collect();
            let passes = node.kind == Kind::Passive && sources.len() < 2;
            if passes {
                self.stands_for[number] = sources.first().copied();
                self.stream[number] = sources.first().map_or(0, |&it| self.stream[it as usize]);
            } else {
                self.stands_for[number] = Some(number as u32);
                self.sources[number] = sources;
                match node.kind {
                    Kind::Outgoing if !continued.contains(&(number as u32)) => {
                        outgoing.push(number)
                    }
                    kind => self.take(number, kind == Kind::State),
                }
            }
        }
        for number in outgoing {
            let stream = self.choose(number);
            self.stream[number] = stream;
            self.tails[stream as usize].1 += 1;
        }
    }

    /// Places a node on a stream after the others there.
    fn take(&mut self, number: usize, has_state: bool) {
        let stream = if has_state { self.first() } else { self.choose(number) };
        let tail = &mut self.tails[stream as usize];
        *tail = (Some(number as u32), tail.1 + 1);
        self.stream[number] = stream;
    }

    fn first(&mut self) -> u32 {
        if self.tails.is_empty() {
            self.tails.push((None, 0));
        }
        0
    }

    /// The stream for a node: that of a predecessor which is last on its stream, or another.
    fn choose(&mut self, number: usize) -> u32 {
        let is_tail =
            |&&source: &&u32| self.tails[self.stream[source as usize] as usize].0 == Some(source);
        if let Some(&source) = self.sources[number].iter().rev().find(is_tail) {
            return self.stream[source as usize];
        }
        if (self.tails.len() as u32) < self.most {
            self.tails.push((None, 0));
            return self.tails.len() as u32 - 1;
        }
        let loads = self.tails.iter().zip(0u32..);
        loads.min_by_key(|((_, load), at)| (*load, *at)).map_or(0, |(_, at)| at)
    }

    /// The nodes that a node's stream has to wait for.
    fn waits(&self, number: usize) -> Vec<u32> {
        let sources = &self.sources[number];
        let mut implied = BTreeSet::new();
        for &source in sources {
            let further = &self.sources[source as usize];
            if further.len() <= MAX_PREDECESSORS_CHECKED {
                implied.extend(further.iter().copied());
            }
        }
        let elsewhere = |source: &u32| self.stream[*source as usize] != self.stream[number];
        let needed = |source: &u32| elsewhere(source) && !implied.contains(source);
        sources.iter().copied().filter(needed).collect()
    }

    fn finish(self) -> Assignment {
        let mut events = 0;
        let mut nodes: Vec<NodeStream> = self
            .stream
            .iter()
            .map(|&stream| NodeStream { stream, ..NodeStream::default() })
            .collect();
        for number in 0..nodes.len() {
            let waits: Vec<u32> = self
                .waits(number)
                .into_iter()
                .map(|source| {
                    *nodes[source as usize].event.get_or_insert_with(|| {
                        events += 1;
                        events - 1
                    })
                })
                .collect();
            nodes[number].waits = waits.into();
        }
        Assignment { nodes, streams: (self.tails.len() as u32).max(1), events }
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
