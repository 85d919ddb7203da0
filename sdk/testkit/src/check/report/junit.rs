//! The report as JUnit's XML, which continuous integration reads: a suite for each subject, a test for each
//! clause.

use super::{Failure, Mark, Report, Tally, UnitReport};
use crate::check::Clause;
use quick_junit::{
    NonSuccessKind, Property, Report as JunitReport, TestCase, TestCaseStatus, TestSuite, XmlString,
};

/// Property of a suite of which nothing was run: why.
const NOT_RUN: &str = "not-run";

/// The whole report.
///
/// # Errors
/// An error of the writer.
pub fn to_xml(report: &Report) -> Result<String, quick_junit::SerializeError> {
    let plugin = &report.plugin;
    let mut junit = JunitReport::new(format!("tenon check {} {}", plugin.name, plugin.version));
    junit.set_time(report.time);
    junit.add_test_suites(report.units.iter().map(suite));
    if !report.problems.is_empty() {
        let mut suite = TestSuite::new("check");
        suite.add_test_cases(report.problems.iter().map(|problem| {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(problem.as_str());
            TestCase::new("exceptions and workers", status)
        }));
        junit.add_test_suite(suite);
    }
    junit.to_string()
}

fn suite(report: &UnitReport) -> TestSuite {
    let mut suite = TestSuite::new(report.unit.name.as_str());
    if let Some(reason) = report.not_run() {
        suite.add_property(Property::new(NOT_RUN, reason));
    }
    suite.add_test_cases(report.clauses.iter().map(|(clause, tally)| {
        let mut test = TestCase::new(clause.name(), status(*clause, tally));
        test.set_classname(report.unit.name.as_str());
        test
    }));
    suite
}

fn status(clause: Clause, tally: &Tally) -> TestCaseStatus {
    match tally.mark() {
        Mark::Kept => TestCaseStatus::success(),
        Mark::Nothing | Mark::Skipped => {
            let mut status = TestCaseStatus::skipped();
            let reasons: Vec<&str> = tally.skipped.keys().map(String::as_str).collect();
            status.set_message(reasons.join("; "));
            status
        }
        Mark::Broken => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let first = tally.failures.first().map_or("", |failure| &failure.message);
            status.set_type(clause.name());
            status.set_message(first);
            let texts: Vec<String> = tally.failures.iter().map(failure_text).collect();
            status.set_description(XmlString::new(texts.join("\n\n")));
            status
        }
    }
}

fn failure_text(failure: &Failure) -> String {
    let mut lines = vec![failure.message.clone()];
    if !failure.case.is_empty() {
        lines.push(format!("in case {}", failure.case));
    }
    lines.extend(failure.input.as_ref().map(|input| format!("with {input}")));
    let file = failure.reproducer.as_ref();
    lines.extend(file.map(|file| format!("again: tenon check --case {}", file.display())));
    lines.extend(failure.arrays.as_ref().map(|folder| format!("arrays: {}", folder.display())));
    if !failure.said.is_empty() {
        lines.push(failure.said.clone());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::testing::{broken, kept, report, skipped};

    #[test]
    fn a_reader_of_junit_finds_every_verdict() {
        let clauses =
            [(Clause::Values, broken(2)), (Clause::Bounds, kept()), (Clause::Leak, skipped())];
        let mut made = report(&[("Add", "", "float", &clauses)]);
        made.problems.push("stale".to_owned());
        let xml = to_xml(&made).unwrap();
        let read = JunitReport::deserialize_from_str(&xml).unwrap();
        assert_eq!((read.tests, read.failures), (4, 2), "{xml}");
        let suite = &read.test_suites[0];
        assert_eq!(suite.name.as_str(), "Add[T=float] on CPU");
        let status = |name: &str| {
            let test = suite.test_cases.iter().find(|test| test.name.as_str() == name);
            test.unwrap_or_else(|| panic!("{name}: {xml}")).status.clone()
        };
        let TestCaseStatus::NonSuccess { message, description, .. } = status("values") else {
            panic!("{xml}");
        };
        assert!(message.unwrap().contains("0 of 7 elements are wrong"));
        let description = description.unwrap();
        assert!(description.contains("prime_1") && description.contains("<&>"), "{description:?}");
        assert!(matches!(status("bounds"), TestCaseStatus::Success { .. }));
        let TestCaseStatus::Skipped { message, .. } = status("leak") else { panic!("{xml}") };
        assert_eq!(message.unwrap().as_str(), "no device");
        assert!(!xml.contains(NOT_RUN), "{xml}");
    }

    #[test]
    fn a_suite_of_which_nothing_was_run_says_so() {
        let clauses = [(Clause::Verified, kept()), (Clause::Values, skipped())];
        let xml = to_xml(&report(&[("Add", "", "float", &clauses)])).unwrap();
        assert!(xml.contains(r#"<property name="not-run" value="no device"/>"#), "{xml}");
    }
}
