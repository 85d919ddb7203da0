//! What is promised, and what became of it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One promise of the boundary that a check looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Clause {
    /// The plugin loads, and registers what its manifest says.
    Load,
    /// At least one case of the op is accepted by its shape function.
    Covered,
    /// Something independent says what the results must be.
    Verified,
    /// Results agree with the oracle within the numerics contract.
    Values,
    /// Outputs have the shapes that the shape function says.
    Shapes,
    /// Nothing is read or written beyond a buffer.
    Bounds,
    /// Inputs that the call does not own stay as they are.
    Inputs,
    /// Results do not depend on what outputs and scratch memory held before.
    Uninitialised,
    /// A buffer that is taken over for an output, and one that two inputs share, change no result.
    InPlace,
    /// Calls at the same time on one state give what single calls give.
    Concurrent,
    /// The same bits again, call after call and state after state, where that is promised.
    Repeatable,
    /// Thousands of calls leave the process as large as before.
    Leak,
    /// Attributes and inputs that are wrong are refused with an error.
    Refusals,
    /// Each attribute that the op's author declared is asked for by somebody.
    Attributes,
    /// A cancelled call, and one in a step that fails, ends and leaves nothing behind.
    Cancellation,
    /// Every call returns in time.
    Progress,
    /// The plugin is replaced and retired while its kernels exist.
    Lifecycle,
    /// Memory of a device: limits, zero size, alignment.
    Allocation,
    /// Copies in all directions and sizes.
    Copies,
    /// Work on one stream runs in order.
    StreamOrder,
    /// Events order work across streams.
    Events,
    /// Many streams at once.
    Streams,
    /// Failures that the device can be ordered to have.
    Faults,
    /// A device that is lost says so, the same way everywhere.
    Loss,
}

impl Clause {
    /// All, in the order of a report.
    pub const ALL: [Clause; 24] = [
        Clause::Load,
        Clause::Covered,
        Clause::Verified,
        Clause::Values,
        Clause::Shapes,
        Clause::Bounds,
        Clause::Inputs,
        Clause::Uninitialised,
        Clause::InPlace,
        Clause::Concurrent,
        Clause::Repeatable,
        Clause::Leak,
        Clause::Refusals,
        Clause::Attributes,
        Clause::Cancellation,
        Clause::Progress,
        Clause::Lifecycle,
        Clause::Allocation,
        Clause::Copies,
        Clause::StreamOrder,
        Clause::Events,
        Clause::Streams,
        Clause::Faults,
        Clause::Loss,
    ];

    /// Its name in reports, exceptions and reproducers.
    pub fn name(self) -> &'static str {
        match self {
            Clause::Load => "load",
            Clause::Covered => "covered",
            Clause::Verified => "verified",
            Clause::Values => "values",
            Clause::Shapes => "shapes",
            Clause::Bounds => "bounds",
            Clause::Inputs => "inputs",
            Clause::Uninitialised => "uninitialised",
            Clause::InPlace => "in-place",
            Clause::Concurrent => "concurrent",
            Clause::Repeatable => "repeatable",
            Clause::Leak => "leak",
            Clause::Refusals => "refusals",
            Clause::Attributes => "attributes",
            Clause::Cancellation => "cancellation",
            Clause::Progress => "progress",
            Clause::Lifecycle => "lifecycle",
            Clause::Allocation => "allocation",
            Clause::Copies => "copies",
            Clause::StreamOrder => "stream-order",
            Clause::Events => "events",
            Clause::Streams => "streams",
            Clause::Faults => "faults",
            Clause::Loss => "loss",
        }
    }

    /// The clause of a name.
    pub fn from_name(name: &str) -> Option<Clause> {
        Clause::ALL.into_iter().find(|clause| clause.name() == name)
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Clause> for String {
    fn from(clause: Clause) -> String {
        clause.name().to_owned()
    }
}

impl TryFrom<String> for Clause {
    type Error = String;

    fn try_from(name: String) -> Result<Clause, String> {
        Clause::from_name(&name).ok_or_else(|| format!("no clause is called '{name}'"))
    }
}

/// The outcome of a clause in one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Kept.
    Passed,
    /// Broken: what was expected, what was found.
    Failed(String),
    /// Not looked at, and why.
    Skipped(String),
}

/// A verdict with its clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The promise.
    pub clause: Clause,
    /// Its outcome.
    pub verdict: Verdict,
}

impl Finding {
    /// A clause that was kept.
    pub fn passed(clause: Clause) -> Finding {
        Finding { clause, verdict: Verdict::Passed }
    }

    /// A clause that was broken.
    pub fn failed(clause: Clause, message: impl Into<String>) -> Finding {
        Finding { clause, verdict: Verdict::Failed(message.into()) }
    }

    /// A clause that was not looked at.
    pub fn skipped(clause: Clause, reason: impl Into<String>) -> Finding {
        Finding { clause, verdict: Verdict::Skipped(reason.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for clause in Clause::ALL {
            assert_eq!(Clause::from_name(clause.name()), Some(clause));
        }
        assert_eq!(Clause::from_name("luck"), None);
    }
}
