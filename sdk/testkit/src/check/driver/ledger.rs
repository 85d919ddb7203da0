//! What was found so far, exceptions applied.

use crate::check::{
    Clause, Finding, Verdict,
    exceptions::{Applied, CheckException, CheckExceptions, Place},
    protocol::Unit,
    report::{Failure, Looked, Spent, UnitReport},
};
use std::path::PathBuf;

/// The findings of a run.
#[derive(Debug)]
pub(super) struct Ledger {
    units: Vec<UnitReport>,
    applied: Applied,
    pub problems: Vec<String>,
    pub notes: Vec<String>,
}

/// What a unit is, for the patterns of exceptions.
fn place(unit: &Unit) -> Place<'_> {
    Place { op: &unit.op, device: &unit.device, subject: &unit.name }
}

impl Ledger {
    /// Nothing found so far.
    pub fn new(units: Vec<Unit>, exceptions: CheckExceptions) -> Ledger {
        let units = units.into_iter().map(UnitReport::new).collect();
        let applied = Applied::new(exceptions);
        Ledger { units, applied, problems: Vec::new(), notes: Vec::new() }
    }

    /// How many cases of a unit are run.
    pub fn set_cases(&mut self, at: usize, cases: usize) {
        self.units[at].cases = cases;
    }

    /// Notes how far a unit was looked at.
    pub fn set_looked(&mut self, at: usize, looked: Looked) {
        let unit = &mut self.units[at];
        unit.looked = unit.looked.max(looked);
    }

    /// Adds what was spent on a unit.
    pub fn spend(&mut self, at: usize, spent: &Spent) {
        self.units[at].spent.merge(spent);
    }

    /// Adds a finding. Returns whether it counts as a failure.
    pub fn add(&mut self, at: usize, case: &str, finding: Finding, said: &str) -> bool {
        let unit = &mut self.units[at];
        let Finding { clause, verdict } = finding;
        let verdict = self.applied.apply(place(&unit.unit), clause, case, verdict);
        let tally = unit.clauses.entry(clause).or_default();
        match verdict {
            Verdict::Passed => tally.passed += 1,
            Verdict::Skipped(reason) => *tally.skipped.entry(reason).or_default() += 1,
            Verdict::Failed(message) => {
                let (case, said) = (case.to_owned(), said.to_owned());
                tally.fail(Failure { case, message, said, ..Failure::default() });
                return true;
            }
        }
        false
    }

    /// Says of the first failure of a clause what reproduces it.
    pub fn reproduce(&mut self, at: usize, clause: Clause, reproduced: Reproduced) {
        let tally = self.units[at].clauses.entry(clause).or_default();
        if let Some(failure) = tally.failures.first_mut() {
            let Reproduced { message, input, file, arrays } = reproduced;
            failure.message = message.unwrap_or_else(|| std::mem::take(&mut failure.message));
            failure.input = input;
            failure.reproducer = file;
            failure.arrays = arrays;
        }
    }

    /// Says of units that were looked at and of which no case was run that this is a failure. An exception for the
    /// kernel, or for its clause `covered`, excuses it.
    fn refuse_not_run(&mut self) {
        for at in 0..self.units.len() {
            let unit = &self.units[at];
            let is_seen = unit.looked == Looked::Whole && unit.is_right();
            let Some(reason) = unit.not_run().filter(|_| is_seen) else { continue };
            let message = format!(
                "nothing of it was run: {reason}; with --strict that is a failure, unless an exception says why it is none"
            );
            self.add(at, "", Finding::failed(Clause::Covered, message), "");
        }
    }

    /// Closes the books: exceptions that were not right become failures. Of a check of only a part of the
    /// plugin, those that are about the rest are left alone; of a check of a sample, those for some cases are noted.
    pub fn close(mut self, how: Close) -> (Vec<UnitReport>, Vec<String>, Vec<String>) {
        let Close { is_whole: whole, full, strict } = how;
        if strict {
            self.refuse_not_run();
        }
        let passes: Vec<(usize, Clause, String)> = (self.applied.unexpected_passes())
            .filter_map(|(subject, clause, message)| {
                let at = self.units.iter().position(|unit| unit.unit.name == subject)?;
                Some((at, clause, message))
            })
            .collect();
        for (at, clause, message) in passes {
            let tally = self.units[at].clauses.entry(clause).or_default();
            let case = String::new();
            let said = String::new();
            tally.fail(Failure { case, message, said, ..Failure::default() });
        }
        let units = &self.units;
        // Of a kernel that was only called, other cases may be what an entry is for.
        let partly = units.iter().any(|unit| unit.looked == Looked::Called);
        let about = |entry: &CheckException| {
            let mut seen = units.iter().filter(|unit| !partly || unit.looked == Looked::Whole);
            whole && !partly || seen.any(|unit| entry.is_about(place(&unit.unit)))
        };
        for (entry, message) in self.applied.stale(about) {
            if full || !entry.is_of_cases() {
                self.problems.push(message);
            } else {
                self.notes.push(format!("in this sample {message}; a check with --full tells"));
            }
        }
        (self.units, self.problems, self.notes)
    }
}

/// How the books are closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Close {
    /// Whether all of the plugin was checked.
    pub is_whole: bool,
    /// Whether all cases were.
    pub full: bool,
    /// Whether what was not run is a failure.
    pub strict: bool,
}

/// What reproduces a failure.
#[derive(Debug, Default)]
pub(super) struct Reproduced {
    /// What the shrunk case says, where it says something else.
    pub message: Option<String>,
    /// Its input, in words.
    pub input: Option<String>,
    /// The file it was written to.
    pub file: Option<PathBuf>,
    /// The folder with its arrays.
    pub arrays: Option<PathBuf>,
}
