//! Graphs that bytes make (`tenon_testkit::fuzz::passes`): no pass changes the shape, the type, the error or the
//! deadness of a fetch, nor its value by more than rounding. tests/fuzz has the same under libFuzzer.

use proptest::{
    collection::vec,
    prelude::{any, prop_assert},
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};
use std::cell::Cell;
use tenon_testkit::fuzz::passes::{CASE_BYTES, Case, Ending};
use tenon_tests::session::runtime;

/// Graphs that are made.
const GRAPHS: u32 = 1500;
/// As many graphs, for longer runs by hand, and a number that makes them others.
const COUNT: &str = "TENON_TEST_FUZZ_GRAPHS";
const SEED: &str = "TENON_TEST_FUZZ_SEED";

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn no_pass_changes_shape_type_error_or_deadness_of_a_fetch() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let registry = runtime.registry();
    let config = Config {
        cases: number(COUNT).unwrap_or(GRAPHS),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..Config::default()
    };
    let mut seed = [7; 32];
    seed[..4].copy_from_slice(&number(SEED).unwrap_or(0).to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let (computed, failed) = (Cell::new(0u32), Cell::new(0u32));
    let ran =
        TestRunner::new_with_rng(config, random).run(&vec(any::<u8>(), CASE_BYTES), |bytes| {
            let Some(case) = Case::new(&registry, &bytes) else { return Ok(()) };
            let judged = case.judge(&runtime);
            prop_assert!(judged.is_ok(), "{}", judged.unwrap_err());
            let count = if judged == Ok(Ending::Computed) { &computed } else { &failed };
            count.set(count.get() + 1);
            Ok(())
        });
    if let Err(error) = ran {
        let case = match &error {
            TestError::Fail(_, bytes) => Case::new(&registry, bytes).map(|case| case.to_string()),
            TestError::Abort(_) => None,
        };
        panic!("{error}\n{}", case.unwrap_or_default());
    }
    // The graphs say something: many compute, and some fail.
    let (computed, failed) = (computed.get(), failed.get());
    println!("{computed} graphs computed, {failed} failed");
    assert!(computed > failed && failed > 0, "{computed} graphs computed, {failed} failed");
}
