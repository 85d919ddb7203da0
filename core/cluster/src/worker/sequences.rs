//! The numbers of steps on which several masters agree: those whose graphs have collective operations with the same keys.
//!
//! The task that leads the groups gives the next number of a graph; each master counts on from there, and asks again after a
//! step that failed.

use crate::handles::new_step;
use std::collections::HashMap;
use tenon_framework::sync::{Mutex, rank};

/// The next numbers, by graph.
pub(crate) struct Sequences(Mutex<HashMap<i64, i64>>);

impl Default for Sequences {
    fn default() -> Sequences {
        Sequences(Mutex::ranked(rank::LEAF, HashMap::new()))
    }
}

/// The number after another; numbers have 57 bits, and none is 0.
fn after(step: i64) -> i64 {
    ((step + 1) & (i64::MAX >> 6)).max(1)
}

impl Sequences {
    /// The next number of a graph, which begins with any.
    pub fn next(&self, graph: i64) -> i64 {
        *self.0.lock().entry(graph).or_insert_with(new_step)
    }

    /// The next number of a graph, if it is known.
    pub fn known(&self, graph: i64) -> Option<i64> {
        self.0.lock().get(&graph).copied()
    }

    /// Notes the next number of a graph, as its leader says it.
    pub fn set(&self, graph: i64, next: i64) {
        self.0.lock().insert(graph, next);
    }

    /// Counts a step that has ended.
    pub fn retire(&self, graph: i64, step: i64) {
        if let Some(next) = self.0.lock().get_mut(&graph).filter(|next| **next == step) {
            *next = after(step);
        }
    }

    /// Forgets the number of a graph: its leader is asked again.
    pub fn forget(&self, graph: i64) {
        self.0.lock().remove(&graph);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_that_count_agree() {
        let (leader, other) = (Sequences::default(), Sequences::default());
        let first = leader.next(5);
        assert_eq!(other.known(5), None);
        other.set(5, first);
        for sequences in [&leader, &other] {
            sequences.retire(5, first);
            sequences.retire(5, first);
        }
        assert_eq!((leader.next(5), other.known(5)), (after(first), Some(after(first))));
        other.forget(5);
        assert_eq!(other.known(5), None);
        assert_eq!(after(i64::MAX >> 6), 1);
    }
}
