//! What passes did.

use crate::DeviceMemory;
use std::{borrow::Cow, fmt};

/// One thing that a pass did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The node to which it was done.
    pub node: String,
    /// What, in a few words: `is a constant now`.
    pub what: Cow<'static, str>,
}

/// What one pass did, over all rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassReport {
    /// The pass.
    pub pass: String,
    /// Who brings it: empty for those of this crate.
    pub plugin: String,
    /// How often it ran.
    pub runs: usize,
    /// What it did, in order.
    pub changes: Vec<Change>,
    /// Nodes that were added, and that are gone, by its doing.
    pub added: usize,
    /// See `added`.
    pub removed: usize,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// Why it failed; then the graph was as before it, and it did not run again.
    pub error: Option<String>,
}

/// What all passes did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Nodes that would have run.
    pub before: usize,
    /// Nodes that run.
    pub after: usize,
    /// Rounds that changed something, and the last one, which did not.
    pub rounds: usize,
    /// The passes, in their order.
    pub passes: Vec<PassReport>,
    /// Limits that ended passes, or let nodes stay as they are, each in a sentence.
    pub limits: Vec<String>,
    /// Work that the passes took: nodes and edges that were looked at or changed.
    pub work: u64,
    /// What the values of the graph take, by device; empty where nobody asked.
    pub memory: Vec<DeviceMemory>,
}

impl Report {
    /// What was done to the node of this name: pass and change.
    pub fn of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = (&'a str, &'a Change)> {
        self.passes.iter().flat_map(move |pass| {
            let own = pass.changes.iter().filter(move |change| change.node == node);
            own.map(move |change| (pass.pass.as_str(), change))
        })
    }

    /// The passes that failed, with the reason.
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
