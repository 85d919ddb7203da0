//! The limit on host memory: tensors and the values of strings count for it, and a step that goes beyond it fails with
//! its node, the figures and what to do, while there is memory for the text.

use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    RunOptions, Session,
    framework::{Code, DType, PartialShape, Tensor},
    host::memory::HostMemory,
};
use tenon_tests::session::{runtime, session_as_written, turn};

/// A step of `Fill` with as many elements as the feed says, of a value.
fn filling(knobs: &[(&str, &str)], value: Tensor) -> Session {
    let runtime = runtime(&["tenon_cpu"], knobs);
    session_as_written(&runtime, |b: &mut GraphBuilder<'_>| -> Result<(), GraphError> {
        let dims = b.placeholder("dims", DType::INT32, PartialShape::UNKNOWN)?;
        let value = b.constant("value", value)?;
        b.op("Fill").name("many").input(dims).input(value).build().map(|_| ())
    })
}

fn fill(session: &Session, count: i32) -> Result<Vec<Tensor>, String> {
    let feeds = [("dims", Tensor::from_slice(&[1], &[count]).unwrap())];
    let result = session.run(&feeds, &["many"], &[], &RunOptions::default());
    result.map(|(fetched, _)| fetched).map_err(|error| {
        assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
        error.to_string()
    })
}

#[track_caller]
fn says(error: &str, words: &[&str]) {
    for word in words {
        assert!(error.contains(word), "expected '{word}' in: {error}");
    }
}

const LIMIT: [(&str, &str); 1] = [("host.memory_limit_mb", "48")];

/// What is said of any request beyond 48 MiB.
const FIGURES: [&str; 4] =
    ["many", " are in use", "the limit is 50331648", "free tensors, or raise host.memory_limit_mb"];

#[test]
fn tensors_beyond_the_limit_are_refused() {
    let _turn = turn();
    let session = filling(&LIMIT, Tensor::scalar(1.0f32).unwrap());
    assert_eq!(HostMemory::shared().stats().limit_bytes, 48 << 20);
    let error = fill(&session, 16 << 20).unwrap_err();
    says(&error, &FIGURES);
    says(&error, &["asked for 67108864 bytes"]);
    assert_eq!(fill(&session, 1 << 20).unwrap()[0].elements(), 1 << 20);
}

/// Each value is small: it is their number that goes beyond the limit.
#[test]
fn values_of_strings_count_for_the_limit() {
    let _turn = turn();
    let session = filling(&LIMIT, Tensor::from_strings(&[], &["x".repeat(100)]).unwrap());
    let before = HostMemory::shared().stats();
    for _ in 0..3 {
        let error = fill(&session, 500_000).unwrap_err();
        says(&error, &FIGURES);
        says(&error, &["no memory for string", "asked for 100 bytes"]);
    }
    // What the failed steps wrote is given back, as far as each thread has told.
    let after = HostMemory::shared().stats();
    assert!(after.string_bytes <= before.string_bytes + (1 << 20), "{after:?} after {before:?}");
    let fetched = fill(&session, 100_000).unwrap();
    let held = HostMemory::shared().stats().string_bytes;
    assert!(held >= 9_500_000, "{held} bytes are counted for 100,000 strings of 100 bytes");
    assert_eq!(fetched[0].as_strings().unwrap()[99_999], "x".repeat(100).as_bytes());
}

#[test]
fn a_limit_of_zero_is_none_and_the_system_suggests_one() {
    let _turn = turn();
    drop(filling(&[("host.memory_limit_mb", "0")], Tensor::scalar(1.0f32).unwrap()));
    assert_eq!(HostMemory::shared().stats().limit_bytes, 0);
    // Without the knob the limit stays as it is.
    drop(filling(&[], Tensor::scalar(1.0f32).unwrap()));
    assert_eq!(HostMemory::shared().stats().limit_bytes, 0);
}
