//! The limits of one step's optimisation: work, folding, and cancellation by its caller.
//!
//! Work is counted in nodes and edges that are visited or changed. All passes together are meant to
//! take work in proportion to the graph. If one does not, the limit ends optimisation: the edits
//! made so far stay, and the report mentions the limit.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

/// The limits of one step's optimisation.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// The units of work for each node and each edge of the step's graph.
    pub work: u64,
    /// The bytes of all constants that folding creates, in addition to twice those of the graph.
    pub folding_bytes: usize,
    /// The total time of folding.
    pub folding_time: Duration,
    /// Whether the step was cancelled; called between nodes.
    pub stop: &'a dyn Fn() -> bool,
}

impl Default for Limits<'_> {
    fn default() -> Limits<'static> {
        Limits {
            work: 1000,
            folding_bytes: 512 << 20,
            folding_time: Duration::from_secs(10),
            stop: &|| false,
        }
    }
}

/// Nodes added to the size of every graph, so that small graphs are not limited by accident.
const BASE_NODES: u64 = 1000;

/// The factor by which passes may increase the number of edges.
const MAX_EDGE_GROWTH: u64 = 8;

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LimitKind {
    Work,
    Edges,
    FoldingBytes,
    FoldingTime,
}

/// The limits of one step's optimisation, and how much of them is used.
pub(crate) struct Budget<'a> {
    limits: Limits<'a>,
    /// The number of nodes and edges at the start.
    size: u64,
    work: Cell<u64>,
    /// The bytes that folding may still create; `None` until the graph's constants are counted.
    bytes: Cell<Option<usize>>,
    time: Cell<Duration>,
    /// The limits that were reached, as text.
    met: RefCell<BTreeMap<LimitKind, String>>,
}

impl<'a> Budget<'a> {
    pub fn new(limits: Limits<'a>) -> Budget<'a> {
        Budget {
            limits,
            size: BASE_NODES,
            work: Cell::new(0),
            bytes: Cell::new(None),
            time: Cell::new(limits.folding_time),
            met: RefCell::default(),
        }
    }

    /// Sets the size of the graph.
    pub fn measure(&mut self, nodes: usize, edges: usize) {
        self.size = (nodes as u64).saturating_add(edges as u64).saturating_add(BASE_NODES);
        self.work.set(0);
    }

    pub fn spend(&self, units: usize) {
        self.work.set(self.work.get().saturating_add(units as u64));
    }

    pub fn work(&self) -> u64 {
        self.work.get()
    }

    /// Whether the step was cancelled.
    pub fn is_cancelled(&self) -> bool {
        (self.limits.stop)()
    }

    /// Whether the work limit is reached, or a graph with this number of edges has grown too much.
    pub fn is_used_up(&self, edges: usize) -> bool {
        let most = self.size.saturating_mul(self.limits.work);
        let used_up = self.work.get() > most;
        let grown = edges as u64 > self.size.saturating_mul(MAX_EDGE_GROWTH);
        if used_up {
            self.meet(LimitKind::Work, || {
                let (work, limit) = (self.work.get(), self.limits.work);
                format!(
                    "optimisation ended after {work} units of work (graph.work_limit={limit}): the rest of the graph \
                     stays as it is"
                )
            });
        } else if grown {
            self.meet(LimitKind::Edges, || {
                format!(
                    "optimisation ended as the graph had {edges} edges, more than {MAX_EDGE_GROWTH} times as many as \
                     before: the rest of it stays as it is"
                )
            });
        }
        used_up || grown
    }

    /// Whether folding may create this number of bytes. `own` returns the bytes of the graph's
    /// constants.
    pub fn may_fold(&self, bytes: usize, own: impl FnOnce() -> usize) -> bool {
        let left = self.bytes.get().unwrap_or_else(|| {
            let all = self.limits.folding_bytes.saturating_add(own().saturating_mul(2));
            self.bytes.set(Some(all));
            all
        });
        if bytes > left {
            let limit = self.limits.folding_bytes;
            self.meet(LimitKind::FoldingBytes, || {
                format!("folding left nodes as they are: its constants reached the limit (graph.folding_bytes={limit})")
            });
        }
        bytes <= left && !self.time.get().is_zero()
    }

    /// Counts the bytes of constants that folding created.
    pub fn folded(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().map(|left| left.saturating_sub(bytes)));
    }

    /// The remaining time for folding.
    pub fn folding_time(&self) -> Duration {
        self.time.get()
    }

    /// Counts the time that folding took.
    pub fn folded_for(&self, time: Duration) {
        self.time.set(self.time.get().saturating_sub(time));
        if self.time.get().is_zero() {
            let limit = self.limits.folding_time.as_millis();
            self.meet(LimitKind::FoldingTime, || {
                format!(
                    "folding left nodes as they are: its time ran out (graph.folding_ms={limit})"
                )
            });
        }
    }

    fn meet(&self, limit: LimitKind, say: impl FnOnce() -> String) {
        self.met.borrow_mut().entry(limit).or_insert_with(say);
    }

    /// The limits that were reached.
    pub fn met(&self) -> Vec<String> {
        self.met.borrow().values().cloned().collect()
    }
}
