//! TensorFlow's results against the reference kernels, which are the specification: label `reference` of the
//! CPU plugin, which runs on request only.

use std::path::Path;
use tenon_runtime::{Runtime, RuntimeOptions};
use tenon_testkit::{Exception, Exceptions, Harness, WithoutKernel, run_folder};

/// Known defects and forms that the reference kernels do not support.
const EXCEPTIONS: Exceptions<'static> =
    Exceptions { unsupported: UNSUPPORTED, expected_failure: EXPECTED_FAILURE };
const UNSUPPORTED: &[Exception] = &[];
const EXPECTED_FAILURE: &[Exception] = &[];

/// Runs a family by the label, and checks which ops have such a kernel at all.
fn family(name: &str, ops: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let options = RuntimeOptions::with_plugins([tenon_tests::plugin("tenon_cpu")]);
    let (runtime, report) = Runtime::new(options).unwrap();
    report.into_result().unwrap();
    let harness = Harness::new(&runtime, "CPU").unwrap();
    let ways = |_: &str| vec![(Some("reference".to_owned()), WithoutKernel::IsSkipped)];
    let report = run_folder(&harness, &folder, &EXCEPTIONS, ways).unwrap();
    println!("{report}");
    let wrong = report.wrong();
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(report.ops_that_pass(), ops, "ops with a reference kernel in family {name}");
}

#[test]
fn array() {
    family("array", &["ConcatV2", "Const", "ExpandDims", "Fill", "Identity", "Pack", "Pad", "PlaceholderWithDefault", "Reshape", "Shape", "Squeeze", "StridedSlice", "Transpose"]);
}

#[test]
fn linalg() {
    family("linalg", &["BatchMatMulV2", "MatMul"]);
}

#[test]
fn math_binary() {
    family("math_binary", &["Add", "AddN", "AddV2", "Cast", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"]);
}

#[test]
fn math_unary() {
    family("math_unary", &["Exp", "Log", "Neg", "Rsqrt", "Sigmoid", "Sqrt", "Square", "Tanh"]);
}

#[test]
fn nn() {
    family("nn", &["AvgPool", "BiasAdd", "Conv2D", "DepthwiseConv2dNative", "FusedBatchNormV3", "MaxPool", "Relu", "Relu6", "Softmax"]);
}

#[test]
fn reduction() {
    family("reduction", &["ArgMax", "Max", "Mean", "Sum"]);
}
