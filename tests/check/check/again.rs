//! Failures are made smaller, written down, and fail again.

use super::support::{check, options, reproducing, tally, text};
use std::{fs, time::Duration};
use tenon_testkit::check::{
    CheckCase, Clause, Fill, Verdict,
    driver::again,
    json::case_from_json,
    report::junit::to_xml,
    reproducer::{Reproducer, What},
};
use tenon_tests::zoo::plugin;

/// The reproducer of a failure, after it was run again and failed again.
#[track_caller]
fn reproduced(op: &str, clause: Clause, limit: Duration) -> (Reproducer, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut with = reproducing(plugin("zoo_wrong"), &[op], folder.path());
    with.limit = limit;
    let report = check(&with);
    let subject = format!("{op} on CPU");
    let failure = &tally(&report, &subject, clause).failures[0];
    let file = failure.reproducer.clone();
    let file = file.unwrap_or_else(|| panic!("no reproducer\n{}", text(&report)));
    assert!(text(&report).contains(&format!("--case {}", file.display())), "{}", text(&report));
    assert!(to_xml(&report).unwrap().contains("--case"));
    let reproducer = Reproducer::read(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((reproducer.unit.name.as_str(), reproducer.clause), (&*subject, clause));
    let mut with = options(plugin("zoo_wrong"));
    with.limit = limit;
    let again = again(&with, &reproducer).unwrap_or_else(|error| panic!("{error}"));
    let failed = again.findings.iter().find_map(|finding| match &finding.verdict {
        Verdict::Failed(message) if finding.clause == clause => Some(message.clone()),
        _ => None,
    });
    let failed = failed.unwrap_or_else(|| panic!("{again:?}"));
    assert!(!again.is_right() && !again.changed);
    (reproducer, failed)
}

fn case(reproducer: &Reproducer) -> CheckCase {
    let What::Case(case) = &reproducer.run else { panic!("{:?}", reproducer.run) };
    case_from_json(case).unwrap_or_else(|problem| panic!("{problem}"))
}

const LONG: Duration = Duration::from_secs(10);

#[test]
fn a_wrong_value_is_shrunk_to_the_element_that_matters() {
    let (reproducer, message) = reproduced("WrongNan", Clause::Values, LONG);
    let case = case(&reproducer);
    let Fill::Explicit(value) = &case.inputs[0].fill else { panic!("{case:?}") };
    let values = value.as_slice::<f32>().expect("floats");
    assert!(values.len() <= 4 && values.iter().any(|value| value.is_nan()), "{values:?}");
    assert!(message.contains("NaN"), "{message}");
}

#[test]
fn a_crash_is_shrunk_to_the_smallest_input_that_crashes() {
    let (reproducer, message) = reproduced("WrongFaults", Clause::Values, LONG);
    assert_eq!(case(&reproducer).inputs[0].dims.iter().product::<i64>(), 3);
    assert!(message.contains("null pointer"), "{message}");
}

#[test]
fn an_endless_loop_is_shrunk_too() {
    let (reproducer, message) = reproduced("WrongHangs", Clause::Progress, Duration::from_secs(1));
    assert_eq!(case(&reproducer).inputs[0].dims.iter().product::<i64>(), 3);
    assert!(message.contains("did not return within 1 s"), "{message}");
}

#[test]
fn what_is_judged_once_is_run_again_as_a_whole() {
    let (reproducer, _) = reproduced("WrongLeak", Clause::Leak, LONG);
    assert_eq!(reproducer.run, What::Clause(Clause::Leak));
}

#[test]
fn a_reproducer_of_a_kernel_that_is_gone_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = check(&reproducing(plugin("zoo_wrong"), &["WrongNan"], folder.path()));
    let file = tally(&report, "WrongNan on CPU", Clause::Values).failures[0].reproducer.clone();
    let file = file.expect("a reproducer");
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("WrongNan on CPU", "WrongNan on GPU")).expect("a file");
    let reproducer = Reproducer::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let error = again(&options(plugin("zoo_wrong")), &reproducer).unwrap_err().to_string();
    assert!(error.contains("WrongNan on GPU") && error.contains("no such kernel"), "{error}");
}
