//! What a check found, as data; [`table`], [`json`] and [`junit`] write it down.

pub mod json;
pub mod junit;
mod spent;
pub mod table;
#[cfg(test)]
mod testing;
mod text;

pub use spent::{Activity, Spent};
pub use text::summary;

use super::{
    Clause,
    protocol::{Sampling, Unit},
};
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The plugin that was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginFacts {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its file.
    pub file: PathBuf,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
}

/// A clause that was broken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Name of the case; empty for what is judged once.
    pub case: String,
    /// What was expected, what was found.
    pub message: String,
    /// What the process wrote to its standard error, where it ended.
    pub said: String,
    /// The smallest input that was found to fail, in words.
    pub input: Option<String>,
    /// What reproduces it.
    pub reproducer: Option<PathBuf>,
    /// The folder with its inputs, expectation and result as arrays.
    pub arrays: Option<PathBuf>,
}

/// How many failures of one clause of one unit are kept in full.
pub const KEPT: usize = 3;

/// What became of a clause of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was kept.
    pub passed: usize,
    /// How often it was broken.
    pub failed: usize,
    /// The first failures.
    pub failures: Vec<Failure>,
    /// Why it was not looked at, and how often.
    pub skipped: BTreeMap<String, usize>,
}

/// A clause of a unit, or of several, in one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It does not apply, or nothing looked at it.
    Nothing,
    /// It was not looked at, for a reason.
    Skipped,
    /// It was kept.
    Kept,
    /// It was broken.
    Broken,
}

impl Tally {
    /// The tally in one sign.
    pub fn mark(&self) -> Mark {
        match (self.failed, self.passed, self.skipped.is_empty()) {
            (0, 0, true) => Mark::Nothing,
            (0, 0, false) => Mark::Skipped,
            (0, ..) => Mark::Kept,
            _ => Mark::Broken,
        }
    }

    /// Adds a failure; beyond the first few only the count.
    pub fn fail(&mut self, failure: Failure) {
        self.failed += 1;
        if self.failures.len() < KEPT {
            self.failures.push(failure);
        }
    }
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitReport {
    /// The unit.
    pub unit: Unit,
    /// How many cases were run.
    pub cases: usize,
    /// What became of each clause that was looked at.
    pub clauses: BTreeMap<Clause, Tally>,
    /// Where its time went.
    pub spent: Spent,
}

impl UnitReport {
    /// Nothing so far.
    pub fn new(unit: Unit) -> UnitReport {
        UnitReport { unit, cases: 0, clauses: BTreeMap::new(), spent: Spent::default() }
    }

    /// Whether no clause was broken.
    pub fn is_right(&self) -> bool {
        self.clauses.values().all(|tally| tally.failed == 0)
    }
}

/// What became of a check.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plugin.
    pub plugin: PluginFacts,
    /// How cases were generated.
    pub sampling: Sampling,
    /// What was checked, in the order in which the plugin has it.
    pub units: Vec<UnitReport>,
    /// What is wrong besides: exceptions that cover nothing, a worker that could not do its work.
    pub problems: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// The exceptions that were applied.
    pub exceptions: Option<PathBuf>,
    /// Where reproducers were written.
    pub reproducers: Option<PathBuf>,
    /// How long it took.
    pub time: Duration,
}

impl Report {
    /// Whether nothing failed.
    pub fn is_right(&self) -> bool {
        self.problems.is_empty() && self.units.iter().all(UnitReport::is_right)
    }

    /// How many cases were run.
    pub fn cases(&self) -> usize {
        self.units.iter().map(|unit| unit.cases).sum()
    }

    /// Every clause of every unit that failed, in order.
    pub fn broken(&self) -> impl Iterator<Item = (&Unit, Clause, &Tally)> {
        self.units.iter().flat_map(|unit| {
            let broken = unit.clauses.iter().filter(|(_, tally)| tally.failed > 0);
            broken.map(|(clause, tally)| (&unit.unit, *clause, tally))
        })
    }
}
