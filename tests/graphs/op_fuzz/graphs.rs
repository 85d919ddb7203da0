//! Graphs that TensorFlow wrote, changed.

use super::watch::{DONE, FAULT, NEXT, PASSED, START, Watch};
use std::{
    io::Write,
    time::{Duration, Instant},
};
use tenon_testkit::fuzz::{
    bytes_of,
    graphs::{GraphFuzzer, MUTANT_BYTES, Reached},
};
use tenon_tests::{build::repository, session::runtime_of};

/// How long graphs are run, one after the other; for longer runs by hand, in seconds.
const SECONDS: u64 = 20;
const LONGER: &str = "TENON_TEST_FUZZ_SECONDS";

/// The number of the first graph, for other graphs by hand.
const FIRST: &str = "TENON_TEST_FUZZ_FIRST";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn fuzzer() -> GraphFuzzer {
    let mut fuzzer = GraphFuzzer::new(runtime_of(1, &["tenon_cpu"], &[]));
    for folder in ["graphs", "frozen"] {
        fuzzer.learn(&repository().join("tests/goldens").join(folder)).unwrap();
    }
    fuzzer
}

#[test]
#[ignore = "started by no_changed_graph_is_answered_wrongly, which watches it"]
fn run_the_graphs() {
    let Some(start) = number(START) else { return };
    let fuzzer = fuzzer();
    let limit = Duration::from_secs(number(LONGER).unwrap_or(SECONDS));
    let first = number(FIRST).unwrap_or(0);
    let mut out = std::io::stdout().lock();
    // The harness has begun a line.
    writeln!(out).unwrap();
    let (began, mut compiled) = (Instant::now(), 0);
    for at in start.. {
        if began.elapsed() > limit {
            break;
        }
        let mutant = fuzzer.mutant(&bytes_of(&format!("graph {}", first + at), MUTANT_BYTES));
        writeln!(out, "{NEXT}{at} {mutant:?}").unwrap();
        match fuzzer.judge(&mutant) {
            Ok(reached) => {
                compiled += usize::from(reached >= Reached::Step);
                if reached == Reached::Values {
                    writeln!(out, "{PASSED}").unwrap();
                }
            }
            Err(fault) => {
                writeln!(out, "{FAULT}{}", fault.to_string().replace('\n', "\u{1}")).unwrap()
            }
        }
    }
    writeln!(out, "{DONE}{compiled}").unwrap();
}

#[test]
fn no_changed_graph_is_answered_wrongly() {
    let mut watch = Watch::of("op_fuzz::graphs::run_the_graphs");
    watch.follow_to_the_end();
    println!("{} graphs, {} ran, {} to the end", watch.begun, watch.done, watch.passed);
    assert!(watch.faults.is_empty(), "{} faults:\n{}", watch.faults.len(), watch.faults.join("\n"));
    // Graphs that are all refused at once say little; about a seventh gets past compiling.
    assert!(watch.begun >= 20, "only {} graphs", watch.begun);
    assert!(watch.done * 12 > watch.begun, "{} of {} ran", watch.done, watch.begun);
}
