//! TensorFlow's results against the kernels of the CPU plugin, as a loaded library: every case of every op,
//! by the kernel that the policy chooses and by each label.

use std::path::Path;
use tenon_runtime::{Runtime, RuntimeOptions};
use tenon_testkit::{Exception, Exceptions, Harness, OpReport, WithoutKernel, golden, run_op};

/// The label whose kernels are the specification; tests/goldens_reference.rs is about it.
const REFERENCE: &str = "reference";

/// Forms that the CPU plugin does not support.
const UNSUPPORTED: &[Exception] = &[];

/// Known defects.
const EXPECTED_FAILURE: &[Exception] = &[];

const EXCEPTIONS: Exceptions<'static> =
    Exceptions { unsupported: UNSUPPORTED, expected_failure: EXPECTED_FAILURE };

fn harness() -> Harness {
    let plugin = tenon_tests::plugin("cpu");
    let (runtime, report) = Runtime::new(RuntimeOptions::with_plugins([plugin])).unwrap();
    report.into_result().unwrap();
    Harness::new(&runtime, "CPU").unwrap()
}

/// Runs all ops of a family; `ops` and `cases` say how many there must be, so that none is lost.
fn family(name: &str, ops: usize, cases: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let harness = harness();
    let mut reports: Vec<OpReport> = Vec::new();
    let mut run = 0;
    let indexes = golden::indexes(&folder).unwrap();
    for index in &indexes {
        let cases = golden::read_op(index).unwrap();
        run += cases.len();
        reports.push(run_op(&harness, &cases, None, &EXCEPTIONS, WithoutKernel::Fails));
        let op = reports.last().map(|report| report.op().to_owned()).unwrap_or_default();
        for label in harness.labels(&op).iter().filter(|label| !["", REFERENCE].contains(&&***label)) {
            let skip = WithoutKernel::IsSkipped;
            reports.push(run_op(&harness, &cases, Some(label), &Exceptions::NONE, skip));
        }
    }
    reports.iter().for_each(|report| println!("{report}"));
    assert_eq!((indexes.len(), run), (ops, cases), "ops and cases of family {name}");
    let wrong: Vec<String> =
        reports.iter().filter(|report| !report.is_right()).map(OpReport::to_string).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

