//! How far optimisation of one step goes: work, folding, and the patience of its caller.
//!
//! Work is counted in edges and nodes that are looked at or changed. Passes are made so that all of them together
//! take work in proportion to the graph; where one does not, the limit ends optimisation, what was done until then
//! stays, and the report says so.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    time::Duration,
};

/// What optimisation of one step may take.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Units of work for each node and each edge of the step's graph.
    pub work: u64,
    /// Bytes of all constants that folding makes together, beside twice those that the graph brings.
    pub folding_bytes: usize,
    /// Time that folding takes in all.
    pub folding_time: Duration,
    /// Whether the caller of the step has given up; asked between nodes.
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

/// Nodes that every graph counts for beside its own, so that a small one is not limited by chance.
const SPARE: u64 = 1000;

/// Times its edges that a graph may have after passes.
const MOST_EDGES: u64 = 8;

/// Which limit was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    Work,
    Edges,
    FoldingBytes,
    FoldingTime,
}

/// The limits of one step's optimisation, and what was used of them.
pub(super) struct Budget<'a> {
    limits: Limits<'a>,
    /// Nodes and edges at the beginning.
    size: u64,
    work: Cell<u64>,
    /// Bytes that folding may make yet, once they were counted.
    bytes: Cell<Option<usize>>,
    time: Cell<Duration>,
    /// Limits that were met, in words.
    met: RefCell<BTreeMap<Met, String>>,
}

impl<'a> Budget<'a> {
    pub fn new(limits: Limits<'a>) -> Budget<'a> {
        Budget {
            limits,
            size: SPARE,
            work: Cell::new(0),
            bytes: Cell::new(None),
            time: Cell::new(limits.folding_time),
            met: RefCell::default(),
        }
    }

    /// Says how large the graph is.
    pub fn measure(&mut self, nodes: usize, edges: usize) {
        self.size = (nodes as u64).saturating_add(edges as u64).saturating_add(SPARE);
        self.work.set(0);
    }

    pub fn spend(&self, units: usize) {
        self.work.set(self.work.get().saturating_add(units as u64));
    }

    pub fn work(&self) -> u64 {
        self.work.get()
    }

    /// Whether the caller of the step has given up.
    pub fn is_given_up(&self) -> bool {
        (self.limits.stop)()
    }

    /// Whether the limit of work is met by a graph that has so many edges now.
    pub fn is_used_up(&self, edges: usize) -> bool {
        let most = self.size.saturating_mul(self.limits.work);
        let used_up = self.work.get() > most;
        let grown = edges as u64 > self.size.saturating_mul(MOST_EDGES);
        if used_up {
            self.meet(Met::Work, || {
                let (work, limit) = (self.work.get(), self.limits.work);
                format!(
                    "optimisation ended after {work} units of work (graph.work_limit={limit}): the rest of the graph \
                     stays as it is"
                )
            });
        } else if grown {
            self.meet(Met::Edges, || {
                format!(
                    "optimisation ended as the graph had {edges} edges, more than {MOST_EDGES} times as many as \
                     before: the rest of it stays as it is"
                )
            });
        }
        used_up || grown
    }

    /// Whether folding may make so many bytes more. `own` are those of the graph's constants.
    pub fn may_fold(&self, bytes: usize, own: impl FnOnce() -> usize) -> bool {
        let left = self.bytes.get().unwrap_or_else(|| {
            let all = self.limits.folding_bytes.saturating_add(own().saturating_mul(2));
            self.bytes.set(Some(all));
            all
        });
        if bytes > left {
            let limit = self.limits.folding_bytes;
            self.meet(Met::FoldingBytes, || {
                format!("folding left nodes as they are: its constants took too much (graph.folding_bytes={limit})")
            });
        }
        bytes <= left && !self.time.get().is_zero()
    }

    /// Counts constants that folding made.
    pub fn folded(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().map(|left| left.saturating_sub(bytes)));
    }

    /// What is left of the time for folding.
    pub fn folding_time(&self) -> Duration {
        self.time.get()
    }

    /// Counts time that folding took.
    pub fn folded_for(&self, time: Duration) {
        self.time.set(self.time.get().saturating_sub(time));
        if self.time.get().is_zero() {
            let limit = self.limits.folding_time.as_millis();
            self.meet(Met::FoldingTime, || {
                format!(
                    "folding left nodes as they are: its time was over (graph.folding_ms={limit})"
                )
            });
        }
    }

    fn meet(&self, limit: Met, say: impl FnOnce() -> String) {
        self.met.borrow_mut().entry(limit).or_insert_with(say);
    }

    /// The limits that were met.
    pub fn met(&self) -> Vec<String> {
        self.met.borrow().values().cloned().collect()
    }
}
