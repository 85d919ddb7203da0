//! The outcome of the cases of an op, as a person wants to read it.

use std::{collections::BTreeMap, fmt};

/// How many failures of an op are shown in full.
const TOLD: usize = 3;

/// The outcome of the cases of an op on a device type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpReport {
    op: String,
    device_type: String,
    label: Option<String>,
    passed: usize,
    failures: Vec<(String, String)>,
    skipped: BTreeMap<String, Vec<String>>,
}

impl OpReport {
    /// A report of no cases.
    pub fn new(op: &str, device_type: &str, label: Option<&str>) -> OpReport {
        OpReport {
            op: op.to_owned(),
            device_type: device_type.to_owned(),
            label: label.map(str::to_owned),
            ..OpReport::default()
        }
    }

    /// Counts a case that passed.
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    /// Adds a case that failed.
    pub fn fail(&mut self, case: &str, message: String) {
        self.failures.push((case.to_owned(), message));
    }

    /// Adds a case that was skipped.
    pub fn skip(&mut self, case: &str, reason: &str) {
        self.skipped.entry(reason.to_owned()).or_default().push(case.to_owned());
    }

    /// Name of the op.
    pub fn op(&self) -> &str {
        &self.op
    }

    /// Number of cases that passed.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// Number of cases that were skipped.
    pub fn skipped(&self) -> usize {
        self.skipped.values().map(Vec::len).sum()
    }

    /// Number of all cases.
    pub fn cases(&self) -> usize {
        self.passed + self.skipped() + self.failures.len()
    }

    /// The cases that failed, with what was expected and what was found.
    pub fn failures(&self) -> &[(String, String)] {
        &self.failures
    }

    /// Whether no case failed.
    pub fn is_right(&self) -> bool {
        self.failures.is_empty()
    }
}

/// A line with the counts, a line per reason for which cases were skipped, and the first failures.
impl fmt::Display for OpReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label.as_ref().map(|label| format!(" '{label}'")).unwrap_or_default();
        write!(
            f,
            "{} on {}{label}: {} cases, {} passed, {} skipped, {} failed",
            self.op,
            self.device_type,
            self.cases(),
            self.passed,
            self.skipped(),
            self.failures.len()
        )?;
        for (reason, cases) in &self.skipped {
            let first = cases.first().map_or("", String::as_str);
            write!(f, "\n  skipped {} ({first}, ...): {reason}", cases.len())?;
        }
        for (case, message) in self.failures.iter().take(TOLD) {
            write!(f, "\n  {case}: {message}")?;
        }
        if self.failures.len() > TOLD {
            let rest: Vec<&str> =
                self.failures[TOLD..].iter().map(|(case, _)| case.as_str()).collect();
            write!(f, "\n  and {}: {}", rest.len(), rest.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_and_tells_the_first_failures() {
        let mut report = OpReport::new("Add", "CPU", Some("avx2"));
        report.pass();
        report.skip("half_a", "no kernel takes it");
        for case in ["a", "b", "c", "d"] {
            report.fail(case, format!("wrong {case}"));
        }
        assert!(!report.is_right());
        assert_eq!((report.cases(), report.passed(), report.skipped()), (6, 1, 1));
        assert_eq!(
            report.to_string(),
            "Add on CPU 'avx2': 6 cases, 1 passed, 1 skipped, 4 failed\n  \
             skipped 1 (half_a, ...): no kernel takes it\n  \
             a: wrong a\n  b: wrong b\n  c: wrong c\n  and 1: d"
        );
    }
}
