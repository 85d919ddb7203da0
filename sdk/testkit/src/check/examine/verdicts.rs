//! The outcome of the clauses of one case so far.

use crate::check::{
    clause::{Clause, Finding, Verdict},
    progress::Progress,
};
use std::collections::BTreeSet;

/// Tells each clause's verdict once: a failure at once, since the next call may be the process's last.
pub(crate) struct Verdicts<'p> {
    progress: &'p mut dyn Progress,
    case: String,
    told: BTreeSet<Clause>,
    failed: BTreeSet<Clause>,
}

impl<'p> Verdicts<'p> {
    pub fn new(progress: &'p mut dyn Progress, case: &str) -> Verdicts<'p> {
        let (told, failed) = Default::default();
        Verdicts { progress, case: case.to_owned(), told, failed }
    }

    /// From here on another case is examined; reported clauses stay reported.
    pub fn set_case(&mut self, case: &str) {
        self.case = case.to_owned();
    }

    /// Says what is looked at from here on.
    pub fn begin(&mut self, clause: Clause) {
        self.progress.begin(clause, &self.case);
    }

    /// As [`Verdicts::begin`], of a call on inputs as no session gives them.
    pub fn begin_unpromised(&mut self, clause: Clause) {
        self.progress.begin_unpromised(clause, &self.case);
    }

    /// Whether a clause was reported as broken.
    pub fn has_failed(&self, clause: Clause) -> bool {
        self.failed.contains(&clause)
    }

    fn tell(&mut self, finding: Finding) {
        if self.told.insert(finding.clause) {
            if matches!(finding.verdict, Verdict::Failed(_)) {
                self.failed.insert(finding.clause);
            }
            self.progress.found(finding);
        }
    }

    /// A clause that is broken.
    pub fn fail(&mut self, clause: Clause, message: impl Into<String>) {
        self.tell(Finding::failed(clause, message));
    }

    /// A clause that is not looked at.
    pub fn skip(&mut self, clause: Clause, reason: &str) {
        self.tell(Finding::skipped(clause, reason));
    }

    /// Clauses that are not examined, except those whose verdict is reported.
    pub fn skip_all(&mut self, clauses: &[Clause], reason: &str) {
        clauses.iter().for_each(|&clause| self.skip(clause, reason));
    }

    /// A clause that was kept, unless another verdict on it was reported.
    pub fn pass(&mut self, clause: Clause) {
        self.tell(Finding::passed(clause));
    }

    /// A clause that was kept, or the first thing that is wrong.
    pub fn conclude(&mut self, clause: Clause, result: Result<(), String>) {
        match result {
            Ok(()) => self.pass(clause),
            Err(message) => self.fail(clause, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Vec<String>);

    impl Progress for Log {
        fn begin(&mut self, clause: Clause, case: &str) {
            self.0.push(format!("{clause} of {case}"));
        }

        fn found(&mut self, finding: Finding) {
            let verdict = match finding.verdict {
                Verdict::Passed => "passed".to_owned(),
                Verdict::Failed(why) => format!("failed: {why}"),
                Verdict::Skipped(why) => format!("skipped: {why}"),
            };
            self.0.push(format!("{} {verdict}", finding.clause));
        }
    }

    #[test]
    fn the_first_verdict_counts() {
        let mut log = Log::default();
        let mut verdicts = Verdicts::new(&mut log, "case");
        verdicts.begin(Clause::Values);
        verdicts.fail(Clause::Values, "first");
        verdicts.fail(Clause::Values, "second");
        verdicts.pass(Clause::Values);
        verdicts.skip_all(&[Clause::Values, Clause::Bounds], "no");
        verdicts.conclude(Clause::Shapes, Ok(()));
        assert_eq!(
            log.0,
            ["values of case", "values failed: first", "bounds skipped: no", "shapes passed"]
        );
    }
}
