//! Requests that clients choose at random, to a server without a socket (`tenon_cluster::rogue`): each is answered,
//! refused with a code of the caller's, or ends when its client is gone. The limit on host memory bounds what they take.

use std::collections::BTreeSet;
use tenon_cluster::rogue::Stage;
use tenon_runtime::Worker;
use tenon_tests::session::{runtime, turn};

/// The number of plays, unless the environment has another one.
const PLAYS: u64 = 300;
const COUNT: &str = "TENON_TEST_FUZZ_REQUESTS";
/// The seed of the first play, for others by hand.
const FIRST: &str = "TENON_TEST_FUZZ_FIRST";

/// The methods that a server answers to such clients: all of the master's, and those of a worker but RecvBuf and
/// CompleteInstance, which need members of a collective operation, and Tracing, which is not there.
const METHODS: usize = 10 + 13;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Bytes of a seed.
fn random(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let length = usize::from(next()) * 4 + 16;
    (0..length).map(|_| next()).collect()
}

#[test]
fn requests_at_random_are_answered_or_refused() {
    let _turn = turn();
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[("host.memory_limit_mb", "256")]);
    let stage = Stage::new(Worker::new(&runtime));
    let mut answered = BTreeSet::new();
    let first = number(FIRST).unwrap_or(0);
    for seed in first..first + number(COUNT).unwrap_or(PLAYS) {
        match stage.play(&random(seed)) {
            Ok(methods) => answered.extend(methods),
            Err(fault) => panic!("{FIRST}={seed}: {fault}"),
        }
    }
    // Otherwise the requests are refused before they reach what they are to test.
    assert_eq!(answered.len(), METHODS, "answered at least once: {answered:?}");
}
