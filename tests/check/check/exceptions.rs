//! What a plugin's author knows to be wrong.

use super::support::{broken, check, of_ops, tally, text};
use std::fs;
use tenon_testkit::check::{Clause, driver::Options, exceptions::CheckExceptions, report::Report};
use tenon_tests::zoo::plugin;

const NAN: &str = "WrongNan on CPU";

/// A check of a sample of these ops' cases with these exceptions.
fn excepted(toml: &str, ops: &[&str]) -> Report {
    excepted_of(toml, ops, false)
}

fn excepted_of(toml: &str, ops: &[&str], full: bool) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("exceptions.toml");
    fs::write(&file, toml).expect("a file");
    let exceptions = CheckExceptions::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let mut options = Options { exceptions, ..of_ops(plugin("zoo_wrong"), ops) };
    options.setup.sampling.full = full;
    check(&options)
}

#[test]
fn an_expected_failure_is_none() {
    let entry =
        "[[expected_failure]]\nkernel = 'WrongNan on CPU'\nclause = 'values'\nreason = 'max'\n";
    let report = excepted(entry, &["WrongNan"]);
    assert!(report.is_right(), "{}", text(&report));
    let values = tally(&report, NAN, Clause::Values);
    assert!(values.skipped.contains_key("expected failure: max"), "{values:?}");
}

#[test]
fn an_expected_failure_that_passes_is_one() {
    let entry = "[[expected_failure]]\nop = 'WrongNan'\nclause = 'values'\nreason = 'max'\n";
    let report = excepted(entry, &["WrongNan"]);
    // The right twins pass: only the wrong kernel is excepted rightly.
    let named: Vec<String> = broken(&report).into_iter().map(|(name, _)| name).collect();
    assert!(named.contains(&"WrongNan on CPU 'right'".to_owned()), "{named:?}");
    assert!(!named.contains(&NAN.to_owned()), "{named:?}");
    let message = &tally(&report, &named[0], Clause::Values).failures.last().unwrap().message;
    assert!(message.contains("though it is an expected failure"), "{message}");
}

#[test]
fn an_entry_that_covers_nothing_is_a_failure() {
    let entry = "[[unsupported]]\nop = 'WrongNan'\ncase = 'no_such_case'\nreason = 'r'\n";
    let report = excepted_of(entry, &["WrongNan"], true);
    assert_eq!(report.problems.len(), 1, "{}", text(&report));
    assert!(report.problems[0].contains("covers nothing"), "{}", report.problems[0]);
    // A sample need not have the case.
    let report = excepted(entry, &["WrongNan"]);
    assert!(report.problems.is_empty(), "{}", text(&report));
    assert!(report.notes.iter().any(|note| note.contains("covers nothing")), "{:?}", report.notes);
    // An entry about what was not looked at is left alone.
    let entry = "[[unsupported]]\nop = 'WrongEmpty'\nreason = 'r'\n";
    let report = excepted(entry, &["WrongNan"]);
    assert!(report.problems.is_empty(), "{}", text(&report));
}

/// Expected ends of the process hide nothing: that the rest was not run is a failure then.
#[test]
fn what_expected_failures_keep_from_being_run_is_a_failure() {
    let entry = "[[expected_failure]]\nkernel = 'WrongAborts on CPU'\nreason = 'aborts'\nclause = 'values'\n";
    let report = excepted(entry, &["WrongAborts"]);
    let failures = &tally(&report, "WrongAborts on CPU", Clause::Progress).failures;
    let message = &failures.first().expect("a failure").message;
    assert!(message.contains("the process ended 3 times"), "{message}");
    assert!(message.contains("as unsupported"), "{message}");
}

/// What is unsupported as a whole is not run at all: a kernel that would end its process does not.
#[test]
fn what_is_unsupported_is_not_run() {
    let entry = "[[unsupported]]\nkernel = 'WrongAborts on CPU'\nreason = 'aborts'\n";
    let report = excepted(entry, &["WrongAborts"]);
    assert!(report.is_right(), "{}", text(&report));
    let values = tally(&report, "WrongAborts on CPU", Clause::Values);
    assert!(values.passed == 0 && values.skipped.contains_key("aborts"), "{values:?}");
}
