//! Every plugin of the zoo that is wrong is found, and named by kernel and clause.

use super::support::{check, of_ops, options, tally, text};
use std::{collections::BTreeMap, time::Duration};
use tenon_testkit::check::{Clause, report::Report};
use tenon_tests::zoo::plugin;

/// An op of `zoo-wrong`, the clause under which its wrong kernel is named, and what the message says.
type Row = (&'static str, Clause, &'static str);

#[rustfmt::skip]
const WRONG: &[Row] = &[
    ("WrongWrite", Clause::Bounds, ""),
    ("WrongWriteBefore", Clause::Bounds, ""),
    ("WrongRead", Clause::Bounds, ""),
    ("WrongLook", Clause::Bounds, "beyond its end"),
    ("WrongTail", Clause::Bounds, "just beyond its end"),
    ("WrongInput", Clause::Inputs, ""),
    ("WrongUninitialised", Clause::Uninitialised, ""),
    ("WrongUnwritten", Clause::Uninitialised, ""),
    ("WrongLeak", Clause::Leak, ""),
    ("WrongRacy", Clause::Concurrent, ""),
    ("WrongVaries", Clause::Repeatable, ""),
    ("WrongRarely", Clause::Repeatable, ""),
    ("WrongSecond", Clause::Repeatable, ""),
    ("WrongNan", Clause::Values, "NaN"),
    ("WrongEmpty", Clause::Values, "panicked"),
    ("WrongPrecision", Clause::Values, "elements are wrong"),
    ("WrongAttribute", Clause::Values, "elements are wrong"),
    ("WrongFlushed", Clause::Values, "; where denormals are kept: "),
    ("WrongShape", Clause::Shapes, ""),
    ("WrongSize", Clause::Refusals, "times=4294967297: it was accepted"),
    ("WrongDivision", Clause::Refusals, "attribute by=0: the kernel panicked: attempt to divide by zero"),
    ("WrongZero", Clause::Values, "elements are wrong"),
    ("WrongForgets", Clause::Leak, "attribute by=-1: the heap grows by 272 bytes with each call that is refused"),
    ("WrongSquare", Clause::Values, "got inf"),
    ("WrongLength", Clause::Values, "got inf"),
    ("WrongRest", Clause::Bounds, "just beyond its end"),
];

/// Ops that are wrong themselves, whatever the kernel.
#[rustfmt::skip]
const OPS: &[Row] = &[
    ("WrongShapeSize", Clause::Shapes, "attribute times: for 2 the shape function says"),
    ("WrongVectors", Clause::Shapes, "the shape function panicked: index out of bounds"),
    ("WrongUnread", Clause::Attributes, "attribute 'times' of op WrongUnread: nobody asks for it"),
];

/// The clauses that fail, by subject.
fn broken(report: &Report) -> BTreeMap<&str, Vec<Clause>> {
    let mut all: BTreeMap<&str, Vec<Clause>> = BTreeMap::new();
    for (unit, clause, _) in report.broken() {
        all.entry(&unit.name).or_default().push(clause);
    }
    all
}

/// The clauses under which an op's wrong kernel is named: one, but for a panic that an ordinary case shows as well as
/// a wrong input.
fn clauses(op: &str, clause: Clause) -> Vec<Clause> {
    match op {
        "WrongEmpty" => vec![clause, Clause::Refusals],
        _ => vec![clause],
    }
}

/// Each wrong kernel is named under its clause and no other, and no right one is named at all.
#[track_caller]
fn expect(report: &Report, rows: &[Row]) {
    let broken = broken(report);
    for (op, clause, said) in rows {
        let subject = format!("{op} on CPU");
        let found = broken.get(subject.as_str()).map(Vec::as_slice);
        assert_eq!(found, Some(&clauses(op, *clause)[..]), "{subject}\n{}", text(report));
        let message = &tally(report, &subject, *clause).failures[0].message;
        assert!(message.contains(said), "{subject}: {message}");
        // Told where flushing makes the element wrong that is told, and not once more for each other reason.
        let is_flushed = message.contains("where denormals are kept");
        assert_eq!(is_flushed, *op == "WrongFlushed", "{subject}: {message}");
    }
    let right: Vec<_> = broken.keys().filter(|subject| subject.ends_with('\'')).collect();
    assert!(right.is_empty(), "{right:?}\n{}", text(report));
    assert_eq!(broken.len(), rows.len(), "{broken:?}");
}

#[test]
fn every_wrong_kernel_is_named_and_no_right_one() {
    let ops: Vec<&str> = WRONG.iter().map(|(op, ..)| *op).collect();
    let report = check(&of_ops(plugin("zoo_wrong"), &ops));
    expect(&report, WRONG);
    assert!(!report.is_right());
}

/// Whatever an index is, nothing beside the input is read. A kernel that does not look is told at the first one before
/// the input, and dies of others.
#[test]
fn an_index_out_of_range_is_tried() {
    let report = check(&of_ops(plugin("zoo_wrong"), &["WrongIndex"]));
    let bounds = tally(&report, "WrongIndex on CPU", Clause::Bounds);
    let failure = bounds.failures.first().unwrap_or_else(|| panic!("{}", text(&report)));
    assert!(failure.case.ends_with(":before"), "{}", failure.case);
    assert!(failure.message.contains("of input 0") && failure.message.contains("before its start"));
    let broken = broken(&report);
    let others: Vec<_> = broken.keys().filter(|subject| subject.ends_with('\'')).collect();
    assert!(others.is_empty(), "{}", text(&report));
}

#[test]
fn an_op_that_is_wrong_is_named_with_each_of_its_kernels() {
    let ops: Vec<&str> = OPS.iter().map(|(op, ..)| *op).collect();
    let report = check(&of_ops(plugin("zoo_wrong"), &ops));
    let broken = broken(&report);
    for (op, clause, said) in OPS {
        for subject in [format!("{op} on CPU"), format!("{op} on CPU 'reference'")] {
            let found = broken.get(subject.as_str()).map(Vec::as_slice);
            assert_eq!(found, Some(&[*clause][..]), "{subject}\n{}", text(&report));
            let message = &tally(&report, &subject, *clause).failures[0].message;
            assert!(message.contains(said), "{subject}: {message}");
        }
    }
    assert_eq!(broken.len(), 2 * OPS.len(), "{broken:?}");
}

#[rustfmt::skip]
const ENDS: &[Row] = &[
    ("WrongAborts", Clause::Values, "SIGABRT"),
    ("WrongFaults", Clause::Values, "address 8: a null pointer"),
    ("WrongExits", Clause::Values, "ended itself with code 0"),
    ("WrongHangs", Clause::Progress, "did not return within 4 s"),
];

/// A kernel that ends its process is named with the case, the rest of the plugin is checked all the same.
#[test]
fn a_kernel_that_ends_its_process_is_named_and_the_others_are_checked() {
    let ops: Vec<&str> = ENDS.iter().map(|(op, ..)| *op).chain(["WrongNan"]).collect();
    let mut options = of_ops(plugin("zoo_wrong"), &ops);
    options.limit = Duration::from_secs(4);
    let report = check(&options);
    let nan = ("WrongNan", Clause::Values, "NaN");
    expect(&report, &[ENDS, &[nan]].concat());
    let failure = &tally(&report, "WrongAborts on CPU", Clause::Values).failures[0];
    assert!(!failure.case.is_empty(), "the case is named");
    assert!(failure.said.contains("the wrong kernel aborts"), "{}", failure.said);
    // Three ends are enough: the rest is not run, and is said not to be.
    let left = tally(&report, "WrongAborts on CPU", Clause::Leak);
    let reason = left.skipped.keys().next().expect("it is said");
    assert!(reason.contains("steps were not run: the process ended 3 times"), "{reason}");
    // The right twins of all of them were run to the end.
    for (op, ..) in ENDS {
        let twin = format!("{op} on CPU 'right'");
        assert!(tally(&report, &twin, Clause::Leak).passed > 0, "{}", text(&report));
    }
}

/// Checks one op whose kernels share a worker.
fn of_one_worker(op: &str) -> Report {
    let mut options = of_ops(plugin("zoo_wrong"), &[op]);
    options.jobs = 1;
    check(&options)
}

/// A kernel that wrote beyond a block of the heap ended the process in a step of another one, which was blamed.
#[test]
fn the_kernel_that_corrupts_the_heap_is_named_and_not_the_one_that_dies_of_it() {
    let report = of_one_worker("WrongHeap");
    let expected = BTreeMap::from([("WrongHeap on CPU", vec![Clause::Bounds])]);
    assert_eq!(broken(&report), expected, "{}", text(&report));
    assert_eq!(report.problems, [""; 0], "{}", text(&report));
    let failure = &tally(&report, "WrongHeap on CPU", Clause::Bounds).failures[0];
    for part in
        ["it corrupts memory: alone", "SIGABRT", "WrongHeap on CPU 'right' did not come back"]
    {
        assert!(failure.message.contains(part), "{part}: {}", failure.message);
    }
    // The one that died was run to the end, alone.
    assert!(
        tally(&report, "WrongHeap on CPU 'right'", Clause::Leak).passed > 0,
        "{}",
        text(&report)
    );
}

/// A buffer that was given back is touched by whoever kept its address: a thread of an earlier kernel, perhaps.
#[test]
fn who_touches_memory_that_was_given_back_is_not_blamed_for_what_another_left() {
    let report = of_one_worker("WrongLate");
    let expected = BTreeMap::from([("WrongLate on CPU", vec![Clause::Bounds])]);
    assert_eq!(broken(&report), expected, "{}", text(&report));
    assert_eq!(report.problems, [""; 0], "{}", text(&report));
    let message = &tally(&report, "WrongLate on CPU", Clause::Bounds).failures[0].message;
    for part in
        ["it corrupts memory: alone", "WrongLate on CPU 'right' did not come back", "given back"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// Advice that leads nowhere costs an author more than none.
#[test]
fn what_is_wrong_with_a_registration_is_told_as_such() {
    let report = check(&of_ops(plugin("zoo_wrong"), &["WrongTwin", "WrongTypes"]));
    let twin = &tally(&report, "WrongTwin on CPU", Clause::Verified).failures[0].message;
    assert!(twin.contains("is the same function as this one"), "{twin}");
    let types = &tally(&report, "WrongTypes[T=double] on CPU", Clause::Covered).failures[0].message;
    let advice = "its registration does not say for which types of 'T' it is";
    assert!(types.contains(advice) && !types.contains("`supports`"), "{types}");
}

/// Where nobody dies alone, nobody is blamed alone, and the check fails all the same.
#[test]
fn who_dies_only_after_others_is_told_with_them() {
    let report = of_one_worker("WrongTrap");
    assert_eq!(broken(&report), BTreeMap::new(), "{}", text(&report));
    let [problem] = &report.problems[..] else { panic!("{}", text(&report)) };
    for part in [
        "WrongTrap on CPU 'right': ",
        "SIGABRT",
        "had run WrongTrap on CPU, WrongTrap on CPU 'reference'",
    ] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
    assert!(!report.is_right());
}

/// A device that is lost under a kernel ends that worker; what comes after is run by another.
#[test]
fn a_kernel_that_loses_its_device_is_named() {
    let mut options = options(plugin("zoo_device"));
    options.setup.ops = vec!["ZooDeviceLose".into(), "ZooDeviceScale".into()];
    let report = check(&options);
    let named: Vec<&str> = (report.broken())
        .filter(|(_, clause, _)| *clause == Clause::Loss)
        .map(|(unit, ..)| unit.op.as_str())
        .collect();
    assert_eq!(named, ["ZooDeviceLose"], "{}", text(&report));
}
