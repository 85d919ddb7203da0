//! Plugins that are right, and about which a check says nothing.

use super::support::{broken, check, of_ops, options, tally, text};
use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};
use tenon_testkit::check::{
    Clause,
    driver::{Options, Turns},
    exceptions::CheckExceptions,
    protocol::UnitKind,
    report::{Looked, UnitReport},
};
use tenon_tests::zoo::plugin;

#[test]
fn of_a_right_plugin_nothing_is_said() {
    let report = check(&options(plugin("zoo_right")));
    assert_eq!(broken(&report), BTreeSet::new(), "{}", text(&report));
    assert!(report.is_right(), "{}", text(&report));
    // Nothing is said because it was looked at, not because it was passed over.
    let judged = |unit: &&UnitReport| !unit.unit.op.is_empty() && unit.unit.label.is_empty();
    for unit in report.units.iter().filter(judged) {
        for clause in [Clause::Values, Clause::Bounds, Clause::Shapes, Clause::Leak] {
            let passed = unit.clauses.get(&clause).map_or(0, |tally| tally.passed);
            assert!(passed > 0, "{}: {clause}\n{}", unit.unit.name, text(&report));
        }
    }
}

/// A kernel may rely on the alignment that it is promised: what it reads to the byte is then not looked at, and said.
#[test]
fn a_kernel_that_needs_aligned_inputs_is_right() {
    let mut options = options(plugin("zoo_right"));
    options.setup.ops = vec!["RightSteps".into()];
    let report = check(&options);
    assert!(report.is_right(), "{}", text(&report));
    let bounds = tally(&report, "RightSteps on CPU", Clause::Bounds);
    let said: Vec<&String> = bounds.skipped.keys().collect();
    assert!(bounds.passed > 0 && said.len() == 1, "{bounds:?}");
    assert!(said[0].contains("multiples of 64 bytes"), "{said:?}");
}

/// The host flushes what is denormal on the way to a normal result: that is told, and no failure; with
/// `denormals = Denormals::Keep` there is nothing to tell.
#[test]
fn a_result_that_flushing_alone_makes_wrong_is_right() {
    let mut options = options(plugin("zoo_right"));
    options.setup.ops = vec!["RightNorm".into(), "RightCap".into()];
    let report = check(&options);
    assert!(report.is_right(), "{}", text(&report));
    for subject in ["RightNorm on CPU", "RightCap on CPU"] {
        let values = tally(&report, subject, Clause::Values);
        let said: Vec<&String> = values.skipped.keys().collect();
        assert!(values.passed > 0 && said.len() == 1, "{subject}: {values:?}");
        assert!(said[0].starts_with("right where denormals are kept"), "{said:?}");
    }
    let kept = tally(&report, "RightNorm on CPU 'gradual'", Clause::Values);
    assert!(kept.passed > 0 && kept.skipped.is_empty(), "{kept:?}");
}

/// Where time is up from the start, the first unit is looked at and no other: those are left, and not broken.
#[test]
fn a_check_whose_time_is_up_leaves_the_rest() {
    let options = Options { until: Some(Instant::now()), ..options(plugin("zoo_right")) };
    let report = check(&options);
    assert!(report.is_right(), "{}", text(&report));
    let looked: Vec<bool> = report.units.iter().map(|unit| !unit.clauses.is_empty()).collect();
    assert!(looked.len() > 2 && looked[0] && !looked[1..].contains(&true), "{looked:?}");
}

/// What had its turn before comes after the rest.
#[test]
fn a_check_begins_with_what_did_not_have_its_turn() {
    let options = options(plugin("zoo_right"));
    let first = check(&Options { until: Some(Instant::now()), ..options.clone() });
    let had = first.units.iter().filter(|unit| !unit.clauses.is_empty());
    let later: BTreeSet<String> = had.map(|unit| unit.unit.name.clone()).collect();
    let until = Some(Instant::now());
    let turns = Turns { later: later.clone(), ..Turns::default() };
    let second = check(&Options { until, turns, ..options });
    let has: Vec<&UnitReport> =
        second.units.iter().filter(|unit| !unit.clauses.is_empty()).collect();
    assert_eq!((later.len(), has.len()), (1, 1));
    assert!(!later.contains(&has[0].unit.name), "{}", has[0].unit.name);
}

/// What has to be known before anything of a build runs elsewhere: every kernel comes back from a call, whatever the
/// time, and what failed before is looked at in full before anything else.
#[test]
fn every_kernel_is_called_where_there_is_no_time() {
    let failed = BTreeSet::from(["RightSum on CPU".to_owned()]);
    let time = Some(Duration::ZERO);
    let turns = Turns { failed: failed.clone(), call_all: true, time, ..Turns::default() };
    let report = check(&Options { turns, ..options(plugin("zoo_right")) });
    assert!(report.is_right(), "{}", text(&report));
    let kernels = report.units.iter().filter(|unit| unit.unit.kind == UnitKind::Kernel);
    for unit in kernels {
        let expected = match failed.contains(&unit.unit.name) {
            true => Looked::Whole,
            false => Looked::Called,
        };
        assert_eq!(unit.looked, expected, "{}", unit.unit.name);
        // One is for another processor.
        let is_here = unit.unit.label != "elsewhere";
        assert_eq!(unit.not_run().is_none(), is_here, "{}\n{}", unit.unit.name, text(&report));
    }
}

/// Where a failure is enough, nothing further is begun.
#[test]
fn a_check_ends_with_the_first_failure_where_that_is_enough() {
    let mut options = of_ops(plugin("zoo_wrong"), &["WrongNan", "WrongLeak", "WrongVaries"]);
    options.jobs = 1;
    options.turns.failed = BTreeSet::from(["WrongNan on CPU".to_owned()]);
    options.turns.until_failure = true;
    let report = check(&options);
    let looked = report.units.iter().filter(|unit| unit.looked != Looked::Not);
    let looked: Vec<&str> = looked.map(|unit| unit.unit.name.as_str()).collect();
    assert_eq!(looked, ["WrongNan on CPU"], "{}", text(&report));
}

/// A kernel for another processor was skipped in every case, and counted as right.
#[test]
fn a_kernel_that_no_case_of_was_run_is_a_failure_where_the_check_is_strict() {
    let unit = "RightSum on CPU 'elsewhere'";
    let lenient = of_ops(plugin("zoo_right"), &["RightSum"]);
    let report = check(&lenient);
    assert!(report.is_right(), "{}", text(&report));
    let not_run: Vec<String> =
        report.not_run().into_iter().map(|(unit, _)| unit.name.clone()).collect();
    assert_eq!(not_run, [unit], "{}", text(&report));
    assert!(
        text(&report).ends_with("right, but of 1 of 3 subjects nothing was run\n"),
        "{}",
        text(&report)
    );

    let strict = Options { strict: true, ..lenient };
    let report = check(&strict);
    assert_eq!(broken(&report), BTreeSet::from([(unit.to_owned(), Clause::Covered)]));
    let failure = &tally(&report, unit, Clause::Covered).failures[0];
    assert!(failure.message.contains("nothing of it was run: this machine has no "), "{failure:?}");

    let entry = format!("[[unsupported]]\nkernel = \"{unit}\"\nreason = 'no such machine here'\n");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("exceptions.toml");
    fs::write(&file, entry).expect("a file");
    let exceptions = CheckExceptions::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let report = check(&Options { exceptions, ..strict });
    assert!(report.is_right(), "{}", text(&report));
    assert!(text(&report).contains("no such machine here"), "{}", text(&report));
}

/// Kernels that nothing here can run are not taken for right.
#[test]
fn a_kernel_without_a_device_is_uncovered() {
    let mut options = options(plugin("zoo_right"));
    options.setup.others.clear();
    options.setup.ops = vec!["RightSum".into()];
    let report = check(&options);
    assert!(!report.is_right(), "{}", text(&report));
    for (unit, clause, tally) in report.broken() {
        assert_eq!(clause, Clause::Covered, "{}", unit.name);
        let message = &tally.failures[0].message;
        assert!(
            message.contains("no device of type CPU") && message.contains("--plugin"),
            "{message}"
        );
    }
}

/// Another seed gives other cases, the same seed the same ones.
#[test]
fn a_seed_says_which_cases_there_are() {
    let cases = |seed: u64, jobs: usize| {
        let mut options = options(plugin("zoo_right"));
        options.setup.ops = vec!["RightSum".into()];
        options.setup.sampling.seed = seed;
        options.jobs = jobs;
        let report = check(&options);
        report.units.iter().map(|unit| (unit.unit.name.clone(), unit.cases)).collect::<Vec<_>>()
    };
    let first = cases(1, 2);
    assert_eq!(first, cases(1, 1));
    assert!(first.iter().all(|(_, cases)| *cases > 0), "{first:?}");
}
