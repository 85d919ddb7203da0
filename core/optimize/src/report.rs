//! Reports of the changes that passes made.

use std::{borrow::Cow, fmt};
use tenon_graph::DeviceMemory;

/// One change by a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The node that was changed.
    pub node: String,
    /// The change, in a few words: `is a constant now`.
    pub what: Cow<'static, str>,
}

/// The changes of one pass, over all rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassReport {
    /// The name of the pass.
    pub pass: String,
    /// The plugin that provides it; empty for the passes of this crate.
    pub plugin: String,
    /// The number of runs.
    pub runs: usize,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The number of nodes that it added.
    pub added: usize,
    /// The number of nodes that it removed.
    pub removed: usize,
    /// The reason why it was skipped.
    pub skipped: Option<String>,
    /// The reason why it failed; its edits were then undone, and it did not run again.
    pub error: Option<String>,
}

/// The changes of all passes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of nodes before optimisation.
    pub before: usize,
    /// The number of nodes after it.
    pub after: usize,
    /// The number of rounds, including the last one, which changed nothing.
    pub rounds: usize,
    /// The passes, in the order in which they run.
    pub passes: Vec<PassReport>,
    /// The limits that ended passes or left nodes unchanged, each as a sentence.
    pub limits: Vec<String>,
    /// The work of all passes: nodes and edges that were visited or changed.
    pub work: u64,
    /// The memory that the graph's values need, by device; empty unless requested.
    pub memory: Vec<DeviceMemory>,
}

impl Report {
    /// The changes to the node with this name: pass and change.
    pub fn of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a str, &'a Change)> {
        self.passes.iter().flat_map(move |pass| {
            let own = pass.changes.iter().filter(move |change| change.node == node);
            own.map(move |change| (pass.pass.as_str(), change))
        })
    }

    /// The passes that failed, with their errors.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.passes.iter().filter_map(|pass| Some((pass.pass.as_str(), pass.error.as_deref()?)))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}", self.node, self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_node() {
        let change = |node: &str, what| Change { node: node.to_owned(), what };
        let pass = |name: &str, changes| PassReport {
            pass: name.to_owned(),
            changes,
            ..PassReport::default()
        };
        let report = Report {
            passes: vec![
                pass("a", vec![change("x", "is one".into()), change("y", "is two".into())]),
                pass("b", vec![change("x", "is gone".into())]),
            ],
            ..Report::default()
        };
        let of_x: Vec<String> =
            report.of("x").map(|(pass, change)| format!("{pass}: {change}")).collect();
        assert_eq!(of_x, ["a: 'x' is one", "b: 'x' is gone"]);
        assert_eq!(report.failures().count(), 0);
    }
}
