//! TensorFlow's results against the reference kernels, which are the specification: label `reference` of the
//! CPU plugin, which runs on request only.

use std::path::Path;
use tenon_testkit::{Exception, Exceptions, Harness, WithoutKernel, run_folder};
use tenon_tests::{exceptions::REFUSED_WITH_SHAPES, session::runtime};

/// Forms that differ from TensorFlow's kernels.
const EXCEPTIONS: Exceptions<'static> = Exceptions {
    unsupported: &UNSUPPORTED,
    refused_with_shapes: REFUSED_WITH_SHAPES,
    ..Exceptions::NONE
};

/// Reference kernels leave denormals to the processor. Where one is selected, or where bfloat16 is widened, no
/// arithmetic flushes it, and which instruction selects is the compiler's choice.
const UNSUPPORTED: [Exception; 9] = {
    const fn denormal(op: &'static str) -> Exception {
        Exception { op, case: "*_denormal", reason: "no arithmetic that would flush denormals" }
    }
    [
        denormal("EuclideanNorm"),
        denormal("Log"),
        denormal("Maximum"),
        denormal("Minimum"),
        denormal("Relu"),
        denormal("Relu6"),
        denormal("Rsqrt"),
        denormal("Sqrt"),
        denormal("Tanh"),
    ]
};

/// Runs a family by the label, and checks which ops have such a kernel at all.
fn family(name: &str, ops: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let runtime = runtime(&["tenon_cpu"], &[]);
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
    family("array", &["ConcatV2", "Fill", "Pack", "Pad", "StridedSlice", "Transpose"]);
}

#[test]
fn linalg() {
    family("linalg", &["BatchMatMulV2", "MatMul"]);
}

#[test]
fn math_binary() {
    family(
        "math_binary",
        &[
            "Add",
            "AddN",
            "AddV2",
            "Atan2",
            "Cast",
            "Div",
            "Maximum",
            "Minimum",
            "Mul",
            "Pow",
            "RealDiv",
            "SquaredDifference",
            "Sub",
        ],
    );
}

#[test]
fn math_unary() {
    family(
        "math_unary",
        &[
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Cos",
            "Cosh",
            "Erf",
            "Erfc",
            "Exp",
            "Expm1",
            "Inv",
            "Log",
            "Log1p",
            "Neg",
            "Reciprocal",
            "Rsqrt",
            "Sigmoid",
            "Sin",
            "Sinh",
            "Sqrt",
            "Square",
            "Tan",
            "Tanh",
        ],
    );
}

#[test]
fn nn() {
    family(
        "nn",
        &[
            "AvgPool",
            "BiasAdd",
            "Conv2D",
            "DepthwiseConv2dNative",
            "FusedBatchNormV3",
            "MaxPool",
            "Relu",
            "Relu6",
            "Softmax",
        ],
    );
}

#[test]
fn reduction() {
    family(
        "reduction",
        &["All", "Any", "ArgMax", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum"],
    );
}
