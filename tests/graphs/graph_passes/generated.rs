//! Graphs that bytes make (`tenon_testkit::fuzz::passes`): no pass changes the shape, the type, the error or the
//! deadness of a fetch, nor its value by more than rounding. tests/fuzz has the same under libFuzzer.

use proptest::{
    collection::vec,
    prelude::{any, prop_assert},
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};
use std::cell::Cell;
use tenon_runtime::Runtime;
use tenon_testkit::fuzz::passes::{CASE_BYTES, Case, Ending};
use tenon_tests::session::runtime;

/// Graphs that are made.
const GRAPHS: u32 = 1500;
/// Faults after which a run ends.
const MOST_FAULTS: u32 = 8;
/// As many graphs, for longer runs by hand, and a number that makes them others.
const COUNT: &str = "TENON_TEST_FUZZ_GRAPHS";
const SEED: &str = "TENON_TEST_FUZZ_SEED";

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

/// What was found over all graphs.
#[derive(Default)]
struct Found {
    computed: Cell<u32>,
    failed: Cell<u32>,
}

/// Judges so many graphs, which a number makes others; the first that passes change, made small.
fn first_fault(runtime: &Runtime, graphs: u32, seed: u32, found: &Found) -> Option<String> {
    let registry = runtime.registry();
    let config = Config {
        cases: graphs,
        failure_persistence: None,
        max_shrink_iters: 800,
        ..Config::default()
    };
    let mut seeds = [7; 32];
    seeds[..4].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seeds);
    let bytes = vec(any::<u8>(), CASE_BYTES / 4..=CASE_BYTES);
    let ran = TestRunner::new_with_rng(config, random).run(&bytes, |bytes| {
        let Some(case) = Case::new(&registry, &bytes) else { return Ok(()) };
        let judged = case.judge(runtime);
        prop_assert!(judged.is_ok(), "{}\n{case}", judged.unwrap_err());
        let count = if judged == Ok(Ending::Computed) { &found.computed } else { &found.failed };
        count.set(count.get() + 1);
        Ok(())
    });
    match ran {
        Ok(()) => None,
        Err(TestError::Fail(why, bytes)) => Some(format!("{why}\nof bytes {bytes:?}")),
        Err(TestError::Abort(why)) => Some(why.to_string()),
    }
}

#[test]
fn no_pass_changes_shape_type_error_or_deadness_of_a_fetch() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let seed = number(SEED).unwrap_or(0);
    let found = Found::default();
    let mut faults = Vec::new();
    let graphs = number(COUNT).unwrap_or(GRAPHS);
    // Further graphs after a fault, so that a longer run tells more than one.
    for part in 0..MOST_FAULTS {
        let left = graphs.saturating_sub(found.computed.get() + found.failed.get());
        match first_fault(&runtime, left, seed.wrapping_mul(MOST_FAULTS) + part, &found) {
            Some(fault) => faults.push(fault),
            None => break,
        }
    }
    let (computed, failed) = (found.computed.get(), found.failed.get());
    println!("{computed} graphs computed, {failed} failed");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n\n"));
    // The graphs say something: many compute, and some fail.
    assert!(computed > failed && failed > 0, "{computed} graphs computed, {failed} failed");
}
