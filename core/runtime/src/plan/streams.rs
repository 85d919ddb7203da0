//! Which stream each node of a partition enqueues on, and where one stream waits for another.
//!
//! A stream runs in order, and a node is told to run when those before it have enqueued. So a node is ordered
//! behind what comes before it on its own stream; for the rest its stream waits on events. The rules:
//!
//! - A node goes on where the latest of those before it has enqueued last: a chain stays on one stream. When
//!   others have gone on there, it does not depend on them, and takes the stream with the least to do, one
//!   that is not in use yet first. So do nodes with nothing before them.
//! - A node that enqueues nothing ([`Kind::Passive`]) is transparent: what comes after it waits for what comes
//!   before it. One with several before it joins their streams, as any other does.
//! - What touches state ([`Kind::State`]) shares the first stream, which keeps the order in which the step
//!   came to it.
//! - A copy that leaves the device ([`Kind::Outgoing`]) and that nothing comes after is placed when all others
//!   are: it takes the stream from nobody who goes on.
//! - A wait is left out where another node in between waits already.
//!
//! Not here: when buffers go back. A step on streams keeps them until all of its streams are done.
//!
//! # Invariants
//! - Whatever comes before a node, and enqueues, is ordered before it: by stream, by its waits, or by those of
//!   nodes between the two.
//! - With one stream there are no events.

use super::NodeKernel;
use std::collections::BTreeSet;
use tenon_abi::DType;
use tenon_graph::{Memory, PartKind, PartNode};

/// Most streams of a partition: the step keeps a bit for each.
const MAX_STREAMS: u32 = 32;

/// Of a node with more than these before it nobody asks whether it waits for another's sake.
const LOOKED_THROUGH: usize = 16;

/// What a node does to streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It enqueues nothing.
    Passive,
    /// It enqueues.
    Active,
    /// It enqueues, and reads or writes what outlives the step.
    State,
    /// It enqueues a copy to elsewhere.
    Outgoing,
}

/// Whether a value is a way to what outlives the step.
pub(super) fn is_state(dtype: DType) -> bool {
    dtype.is_ref() || dtype == DType::RESOURCE
}

impl Kind {
    /// Of a node and its kernel; `has_state` when an input leads to state.
    pub fn of(node: &PartNode, kernel: Option<&NodeKernel>, has_state: bool) -> Kind {
        let on_device = |memories: &[Memory]| memories.contains(&Memory::Device);
        match (&node.kind, kernel) {
            // Whoever reads state takes a turn, also a kernel of the host's: an update in place may be under way.
            (_, Some(kernel)) if kernel.stateful || has_state => Kind::State,
            // The host's own kernels pass buffers on and know no device.
            (_, Some(kernel)) if kernel.choice.is_host_own() => Kind::Passive,
            (_, Some(_)) => Kind::Active,
            (PartKind::Send(_), None) if on_device(&node.input_memory) => Kind::Outgoing,
            (PartKind::Recv(_), None) if on_device(&node.output_memory) => Kind::Active,
            _ => Kind::Passive,
        }
    }
}

/// A node, as far as streams go.
#[derive(Debug)]
pub(super) struct Placed {
    pub kind: Kind,
    /// Numbers of the nodes that come before it, each lower than its own.
    pub before: BTreeSet<u32>,
}

/// Where a node enqueues, and who waits for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeStream {
    /// Position among the partition's streams.
    pub stream: u32,
    /// Events that its stream waits for first.
    pub waits: Box<[u32]>,
    /// The event that is recorded behind it, where another stream waits for it.
    pub event: Option<u32>,
}

impl NodeStream {
    /// Whether events have to be waited for or recorded.
    pub fn has_events(&self) -> bool {
        self.event.is_some() || !self.waits.is_empty()
    }
}

/// The streams of a partition.
#[derive(Debug, Default)]
pub(super) struct Assignment {
    pub nodes: Vec<NodeStream>,
    /// Streams that are used, at least 1.
    pub streams: u32,
    /// Events that are used.
    pub events: u32,
}

/// Assigns nodes to at most `most` streams.
pub(super) fn assign(nodes: &[Placed], most: u32) -> Assignment {
    if most <= 1 {
        let nodes = vec![NodeStream::default(); nodes.len()];
        return Assignment { nodes, streams: 1, events: 0 };
    }
    let mut assigner = Assigner::new(nodes, most.min(MAX_STREAMS));
    assigner.place();
    assigner.finish()
}

struct Assigner<'n> {
    nodes: &'n [Placed],
    most: u32,
    /// For each stream the node placed last, and how many were.
    tails: Vec<(Option<u32>, u32)>,
    /// The node that stands for each on streams: itself, the one before it where it is transparent, or none.
    stands_for: Vec<Option<u32>>,
    /// What stands for the nodes before each.
    sources: Vec<BTreeSet<u32>>,
    stream: Vec<u32>,
}

impl<'n> Assigner<'n> {
    fn new(nodes: &'n [Placed], most: u32) -> Assigner<'n> {
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

    /// Puts a node behind the others of its stream.
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

    /// The stream for a node: that of a source which nobody has gone on behind, or another.
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

    /// What a node's stream has to wait for.
    fn waits(&self, number: usize) -> Vec<u32> {
        let sources = &self.sources[number];
        let mut implied = BTreeSet::new();
        for &source in sources {
            let further = &self.sources[source as usize];
            if further.len() <= LOOKED_THROUGH {
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
