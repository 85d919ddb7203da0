//! TensorFlow's results against the kernels of the CUDA plugin, on the fake CUDA stack: of each source in
//! plugins/cuda/src/kernels/cu an op or more, for one element type. `.ci/cuda-check` looks at all ops and types, and at
//! more than results: each kernel takes a second to compile for the processor.

use std::path::{Path, PathBuf};
use tenon_runtime::framework::{DType, attr::AttrValue};
use tenon_testkit::{
    GoldenCase, Harness, Outcome,
    check::exceptions::{CheckExceptions, Place},
    golden,
};
use tenon_tests::{build::repository, cuda::cuda_runtime, exceptions, session::turn};

fn goldens(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(family)
}

/// Whether all that a case says of types is this one.
fn is_of(case: &GoldenCase, dtype: DType) -> bool {
    let typed = ["T", "Ta", "Tb", "Tout", "dtype", "SrcT"];
    let mut types = typed.iter().filter_map(|name| case.attrs.get(*name));
    types.all(|attr| matches!(attr, AttrValue::Type(found) if *found == dtype))
}

/// Runs the cases of these ops, of this element type where one is given, by every kernel that CUDA has for them; each
/// op has at least so many.
fn family(name: &str, dtype: Option<DType>, ops: &[(&str, usize)]) {
    let _turn = turn();
    let harness = Harness::new(&cuda_runtime(&[]), "CUDA").expect("the device is there");
    let file = repository().join("plugins/cuda/libtenon_cuda.exceptions.toml");
    let known = CheckExceptions::read(&file).expect("the plugin's exceptions");
    let mut wrong = Vec::new();
    for &(op, least) in ops {
        let cases =
            golden::read_op(&goldens(name).join(format!("{op}.json"))).expect("golden data");
        let place = Place { op, device: "CUDA", subject: "" };
        let cases = cases
            .iter()
            .filter(|case| dtype.is_none_or(|dtype| is_of(case, dtype)))
            // TensorFlow's results are of a CPU that flushes denormals; a GPU keeps them.
            .filter(|case| !case.name.ends_with("_denormal"))
            .filter(|case| known.not_run(place, &format!("golden.{}", case.name)).is_none());
        let mut passed = 0;
        for (case, label) in
            cases.flat_map(|case| harness.labels(op).into_iter().map(move |label| (case, label)))
        {
            match exceptions::run(&harness, case, &label) {
                Outcome::Passed => passed += 1,
                Outcome::NoKernel(_) => {}
                Outcome::Failed(failure) => {
                    wrong.push(format!("{op} {label:?} {}: {failure}", case.name))
                }
            }
        }
        println!("{op}: {passed} passed");
        if passed < least {
            wrong.push(format!("{op}: expected {least} cases that a kernel takes, found {passed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const FLOAT: Option<DType> = Some(DType::FLOAT);

#[test]
fn array() {
    let ops = [
        ("ConcatV2", 1),
        ("DepthToSpace", 1),
        ("Fill", 1),
        ("GatherV2", 1),
        ("OneHot", 1),
        ("PadV2", 1),
        ("SpaceToBatchND", 1),
        ("StridedSlice", 1),
        ("Transpose", 1),
    ];
    family("array", FLOAT, &ops);
}

#[test]
fn elementwise() {
    family("math_unary", FLOAT, &[("Exp", 1), ("Sin", 1)]);
    family("math_binary", FLOAT, &[("AddN", 1), ("AddV2", 1), ("ClipByValue", 1), ("SelectV2", 1)]);
    family("fused", FLOAT, &[("_FusedElementwise", 1), ("_FusedGelu", 1)]);
    // Of every type: which of them divide is not known from one.
    let whole = ["Div", "FloorDiv", "FloorMod", "Mod", "Pow", "TruncateDiv", "TruncateMod"];
    family("math_binary", Some(DType::INT32), &whole.map(|op| (op, 1)));
}

#[test]
fn linalg() {
    family("linalg", FLOAT, &[("BatchMatMulV2", 1), ("MatMul", 1)]);
    family("fused", FLOAT, &[("_FusedMatMul", 1)]);
}

#[test]
fn nn() {
    let ops = [
        ("Conv2D", 1),
        ("DepthwiseConv2dNative", 1),
        ("FusedBatchNormV3", 1),
        ("MaxPool", 1),
        ("MaxPoolWithArgmax", 1),
        ("Softmax", 1),
        ("SparseSoftmaxCrossEntropyWithLogits", 1),
    ];
    family("nn", FLOAT, &ops);
    family("fused", FLOAT, &[("_FusedConv2D", 1), ("_FusedLayerNorm", 1)]);
}

#[test]
fn quantized() {
    family("quantization", None, &[("QuantizedMatMul", 1)]);
    family("fused", None, &[("_QuantizedFusedMatMul", 1)]);
}

#[test]
fn reduction() {
    family("reduction", FLOAT, &[("ArgMax", 1), ("Cumsum", 1), ("Sum", 1)]);
}
