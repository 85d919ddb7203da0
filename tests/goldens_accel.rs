//! TensorFlow's results against the kernels of ACCEL, the simulated accelerator: its own memory, streams,
//! commands that run later.

use std::path::Path;
use tenon_runtime::{Runtime, RuntimeOptions};
use tenon_testkit::{Exception, Exceptions, Harness, WithoutKernel, run_folder};

/// Known defects and forms that ACCEL does not support. Ops and element types for which it has no kernel at all
/// need no entry: they are skipped and counted.
const EXCEPTIONS: Exceptions<'static> =
    Exceptions { unsupported: UNSUPPORTED, expected_failure: EXPECTED_FAILURE };
const UNSUPPORTED: &[Exception] = &[];
const EXPECTED_FAILURE: &[Exception] = &[];

/// Runs a family, and checks which ops ACCEL computes.
fn family(name: &str, ops: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let options = RuntimeOptions::with_plugins(["tenon_cpu", "tenon_accel"].map(tenon_tests::plugin));
    let (runtime, report) = Runtime::new(options).unwrap();
    report.into_result().unwrap();
    let harness = Harness::new(&runtime, "ACCEL").unwrap();
    let ways = |_: &str| vec![(None, WithoutKernel::IsSkipped)];
    let report = run_folder(&harness, &folder, &EXCEPTIONS, ways).unwrap();
    println!("{report}");
    let wrong = report.wrong();
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(report.ops_that_pass(), ops, "ops that ACCEL computes in family {name}");
}

#[test]
fn array() {
    family("array", &[]);
}

#[test]
fn linalg() {
    family("linalg", &[]);
}

#[test]
fn math_binary() {
    family("math_binary", &[]);
}

#[test]
fn math_unary() {
    family("math_unary", &[]);
}

#[test]
fn nn() {
    family("nn", &[]);
}

#[test]
fn reduction() {
    family("reduction", &[]);
}
