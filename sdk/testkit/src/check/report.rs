//! What a check found, as data; [`table`], [`json`] and [`junit`] write it down.

pub mod json;
pub mod junit;
mod spent;
pub mod table;
#[cfg(test)]
mod testing;
mod text;

pub use spent::{Activity, Spent};
pub use text::{failures, summary};

use super::{
    Clause, Examiner,
    protocol::{Sampling, Unit, UnitKind},
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

/// The outcome of a clause of a unit.
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

/// How far a unit was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Looked {
    /// Not at all, or not to the end.
    #[default]
    Not,
    /// It was called on a case or two.
    Called,
    /// In full.
    Whole,
}

impl Looked {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Looked::Not => "not",
            Looked::Called => "called",
            Looked::Whole => "whole",
        }
    }
}

/// The outcome of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitReport {
    /// The unit.
    pub unit: Unit,
    /// How many cases were run.
    pub cases: usize,
    /// The outcome of each clause that was looked at.
    pub clauses: BTreeMap<Clause, Tally>,
    /// Where its time went.
    pub spent: Spent,
    /// How far it was looked at.
    pub looked: Looked,
}

impl UnitReport {
    /// Nothing so far.
    pub fn new(unit: Unit) -> UnitReport {
        let (clauses, spent, looked) = Default::default();
        UnitReport { unit, cases: 0, clauses, spent, looked }
    }

    /// Why nothing of it was run, where that is so: of a kernel no case, since the machine lacks what it needs, since it
    /// declines or refuses all, or since an exception says so; of a device or plugin, no clause was looked at. Of what
    /// was not looked at to the end this says nothing.
    pub fn not_run(&self) -> Option<String> {
        let is_kernel = self.unit.kind == UnitKind::Kernel;
        let is_of_calls = |clause: Clause| {
            !is_kernel || clause == Clause::Progress || Examiner::CASE_CLAUSES.contains(&clause)
        };
        let was_run = self.clauses.iter().any(|(&clause, tally)| match clause {
            // Broken, it says that no call came to anything.
            Clause::Covered if is_kernel => tally.passed > 0,
            _ => is_of_calls(clause) && tally.passed + tally.failed > 0,
        });
        if was_run || self.looked == Looked::Not {
            return None;
        }
        let of_calls = self.clauses.iter().filter(|(clause, _)| is_of_calls(**clause));
        let reasons = of_calls.chain(&self.clauses).flat_map(|(_, tally)| &tally.skipped);
        let reason = reasons.map(|(reason, _)| reason.as_str()).next();
        Some(reason.unwrap_or("it has no case").to_owned())
    }

    /// Whether no clause was broken.
    pub fn is_right(&self) -> bool {
        self.clauses.values().all(|tally| tally.failed == 0)
    }
}

/// The outcome of a check.
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
    /// A remark for the reader.
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

    /// Units of which nothing was run, and why.
    pub fn not_run(&self) -> Vec<(&Unit, String)> {
        let units = self.units.iter();
        units.filter_map(|unit| Some((&unit.unit, unit.not_run()?))).collect()
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
