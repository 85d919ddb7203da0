//! TensorFlow's results against the kernels of ACCEL, the simulated accelerator: its own memory, streams,
//! commands that run later.

use std::path::Path;
use tenon_testkit::{Exception, Exceptions, Harness, WithoutKernel, run_folder};
use tenon_tests::{exceptions::REFUSED_WITH_SHAPES, session::runtime};

/// Forms that differ from TensorFlow's on the CPU. Ops and element types for which ACCEL has no kernel at all need
/// no entry: they are skipped and counted.
const EXCEPTIONS: Exceptions<'static> = Exceptions {
    unsupported: &UNSUPPORTED,
    refused_with_shapes: REFUSED_WITH_SHAPES,
    ..Exceptions::NONE
};

/// The device computes on a thread of its own, which keeps denormals as IEEE 754 says.
const UNSUPPORTED: [Exception; 10] = {
    const fn denormal(op: &'static str) -> Exception {
        Exception { op, case: "*_denormal", reason: "ACCEL does not flush denormals" }
    }
    [
        denormal("Add"),
        denormal("AddV2"),
        denormal("BiasAdd"),
        denormal("Maximum"),
        denormal("Minimum"),
        denormal("Mul"),
        denormal("RealDiv"),
        denormal("Relu"),
        denormal("Sub"),
        denormal("Tanh"),
    ]
};

/// Runs a family, and checks which ops ACCEL computes.
fn family(name: &str, ops: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[]);
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
    family(
        "array",
        &[
            "Const",
            "EnsureShape",
            "ExpandDims",
            "GuaranteeConst",
            "Identity",
            "IdentityN",
            "PlaceholderWithDefault",
            "PreventGradient",
            "Rank",
            "Reshape",
            "Shape",
            "ShapeN",
            "Size",
            "Snapshot",
            "Squeeze",
            "StopGradient",
            "Transpose",
        ],
    );
}

#[test]
fn linalg() {
    family("linalg", &["MatMul"]);
}

#[test]
fn math_binary() {
    family("math_binary", &["Add", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "Sub"]);
}

#[test]
fn math_unary() {
    family("math_unary", &["Exp", "Neg", "Sigmoid", "Square", "Tanh"]);
}

#[test]
fn nn() {
    family(
        "nn",
        &["BiasAdd", "Conv2D", "MaxPool", "Relu", "Softmax", "SparseSoftmaxCrossEntropyWithLogits"],
    );
}

#[test]
fn nn_grad() {
    family(
        "nn_grad",
        &["BiasAddGrad", "Conv2DBackpropFilter", "Conv2DBackpropInput", "MaxPoolGrad", "ReluGrad"],
    );
}

#[test]
fn reduction() {
    family("reduction", &["ArgMax", "Mean", "Sum"]);
}
