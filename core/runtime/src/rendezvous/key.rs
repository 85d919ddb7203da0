//! The keys of transfers.

use std::{
    collections::HashMap,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};
use tenon_framework::sync::{Mutex, rank};
use tenon_graph::Transfer;

/// The name of a transfer: its devices and its tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EdgeName {
    /// The full name of the source device.
    pub source: String,
    /// The incarnation of the source device: values of an earlier incarnation are refused.
    pub incarnation: u64,
    /// The full name of the destination device.
    pub destination: String,
    /// The name of the tensor.
    pub tensor: String,
}

impl EdgeName {
    /// The edge that a transfer of a partition takes.
    pub fn of(transfer: &Transfer) -> EdgeName {
        EdgeName {
            source: transfer.sender.to_string(),
            incarnation: transfer.incarnation,
            destination: transfer.receiver.to_string(),
            tensor: transfer.tensor.clone(),
        }
    }
}

impl fmt::Display for EdgeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor {} from {} to {}", self.tensor, self.source, self.destination)
    }
}

/// An edge between partitions, which is compared by number. Created by [`Edges`].
#[derive(Debug)]
pub struct Edge {
    number: u64,
    name: Arc<EdgeName>,
}

impl Edge {
    /// The name of the edge.
    pub fn name(&self) -> &EdgeName {
        &self.name
    }
}

/// The edges of a worker: equal names get the same edge while it is in use.
pub struct Edges {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    edges: HashMap<Arc<EdgeName>, Weak<Edge>>,
    /// The highest number in use so far.
    last: u64,
    /// The size at which unused edges are removed.
    sweep_at: usize,
}

/// The minimum number of edges before unused ones are removed.
const MIN_SWEEP: usize = 64;

impl Default for Edges {
    fn default() -> Edges {
        Edges { table: Mutex::ranked(rank::LEAF, Table::default()) }
    }
}

impl Edges {
    /// The edge of this name.
    pub fn intern(&self, name: EdgeName) -> Arc<Edge> {
        let mut table = self.table.lock();
        if let Some(edge) = table.edges.get(&name).and_then(Weak::upgrade) {
            return edge;
        }
        if table.edges.len() >= table.sweep_at {
            table.edges.retain(|_, edge| edge.strong_count() > 0);
            table.sweep_at = MIN_SWEEP.max(2 * table.edges.len());
        }
        table.last += 1;
        let name = Arc::new(name);
        let edge = Arc::new(Edge { number: table.last, name: Arc::clone(&name) });
        table.edges.insert(name, Arc::downgrade(&edge));
        edge
    }
}

/// The key of a value, unique in a step. Keys are compared by numbers alone, so both ends must take
/// their edges from the same [`Edges`].
#[derive(Debug, Clone)]
pub struct Key {
    /// The edge.
    pub edge: Arc<Edge>,
    /// The number of the frame instance; 0 outside all loops.
    pub frame: u64,
    /// The iteration within the frame.
    pub iteration: u64,
}

impl Key {
    /// The key outside all loops.
    pub fn of(edge: Arc<Edge>) -> Key {
        Key { edge, frame: 0, iteration: 0 }
    }

    fn numbers(&self) -> [u64; 3] {
        [self.edge.number, self.frame, self.iteration]
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.numbers() == other.numbers()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.numbers().hash(state);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn name(tensor: &str) -> EdgeName {
        let [source, destination] = ["/device:CPU:0", "/device:ACCEL:0"].map(str::to_owned);
        EdgeName { source, incarnation: 7, destination, tensor: tensor.to_owned() }
    }

    #[test]
    fn equal_names_have_one_number_and_others_another() {
        let edges = Edges::default();
        let (x, again, y) =
            (edges.intern(name("x:0")), edges.intern(name("x:0")), edges.intern(name("y:0")));
        assert!(Arc::ptr_eq(&x, &again));
        assert_ne!(Key::of(Arc::clone(&x)), Key::of(y));
        let reborn = edges.intern(EdgeName { incarnation: 8, ..name("x:0") });
        assert_ne!(Key::of(Arc::clone(&x)), Key::of(reborn));
        assert_eq!(Key::of(Arc::clone(&x)), Key::of(again));
        assert_ne!(Key { iteration: 1, ..Key::of(Arc::clone(&x)) }, Key::of(x));
    }

    #[test]
    fn edges_that_nobody_holds_are_swept() {
        let edges = Edges::default();
        let held = edges.intern(name("held:0"));
        for at in 0..10 * MIN_SWEEP {
            edges.intern(name(&format!("x{at}:0")));
        }
        assert!(edges.table.lock().edges.len() <= 2 * MIN_SWEEP);
        assert!(Arc::ptr_eq(&held, &edges.intern(name("held:0"))));
    }
}
