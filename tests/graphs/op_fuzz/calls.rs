//! Calls of the standard ops.

use super::watch::{DONE, FAULT, NEXT, PASSED, START, Watch};
use std::io::Write;
use tenon_testkit::fuzz::{CALL_BYTES, Ending, FAMILIES, Fuzzer, PLUGINS, bytes_of};
use tenon_tests::{build::repository, session::runtime};

/// Calls of each op.
const CALLS: u64 = 40;

/// Calls of each op, for longer runs by hand, and the only op.
const COUNT: &str = "TENON_TEST_FUZZ_CALLS";
const ONLY: &str = "TENON_TEST_FUZZ_OP";

fn calls() -> u64 {
    std::env::var(COUNT).ok().and_then(|count| count.parse().ok()).unwrap_or(CALLS)
}

fn fuzzer() -> Fuzzer {
    let plugins = PLUGINS.map(|package| package.replace('-', "_"));
    let runtime = runtime(&plugins.each_ref().map(String::as_str), &[]);
    let mut fuzzer = Fuzzer::new(&runtime, &FAMILIES).unwrap();
    for family in FAMILIES {
        fuzzer.learn(&repository().join("tests/goldens").join(family)).unwrap();
    }
    fuzzer
}

#[test]
#[ignore = "started by no_call_is_answered_wrongly, which watches it"]
fn make_the_calls() {
    let Ok(start) = std::env::var(START) else { return };
    let start: usize = start.parse().unwrap();
    let fuzzer = fuzzer();
    let only = std::env::var(ONLY).ok();
    let ops = fuzzer.ops();
    let wanted = ops.iter().filter(|op| only.as_ref().is_none_or(|only| only == *op));
    let all = wanted.flat_map(|op| (0..calls()).map(move |seed| (*op, seed)));
    let mut out = std::io::stdout().lock();
    // The harness has begun a line.
    writeln!(out).unwrap();
    for (at, (op, seed)) in all.enumerate().skip(start) {
        writeln!(out, "{NEXT}{at} {op} {seed}").unwrap();
        let Some(call) = fuzzer.call_of(op, &bytes_of(&format!("{op} {seed}"), CALL_BYTES)) else {
            continue;
        };
        match fuzzer.judge(&call) {
            Ok(Ending::Computed) => writeln!(out, "{PASSED}").unwrap(),
            Ok(Ending::Refused(_)) => {}
            Err(fault) => {
                let text = format!("{fault}\n    {call}").replace('\n', "\u{1}");
                writeln!(out, "{FAULT}{text}").unwrap();
            }
        }
    }
    writeln!(out, "{DONE}{}", ops.len()).unwrap();
}

#[test]
fn no_call_is_answered_wrongly() {
    let mut watch = Watch::of("op_fuzz::calls::make_the_calls");
    watch.follow_to_the_end();
    println!("{} calls of {} ops, {} computed", watch.begun, watch.done, watch.passed);
    assert!(watch.faults.is_empty(), "{} faults:\n{}", watch.faults.len(), watch.faults.join("\n"));
    // As many as are refused at least a third of the calls reach the end, or the calls say little.
    assert!(watch.passed * 4 > watch.begun, "{} of {} computed", watch.passed, watch.begun);
}
