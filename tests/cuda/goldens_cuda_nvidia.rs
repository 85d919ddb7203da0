//! TensorFlow's results against the kernels of the CUDA plugin that go through cuBLASLt and cuDNN, on the fake CUDA stack:
//! the ops that have one, in every type of theirs. The golden data of `_FusedConv2D` has no case that cuDNN takes (its
//! filters are even, so that the padding is one-sided): cuda_nvidia.rs compares it with the CPU's kernel, which agrees with
//! that data.

use std::path::Path;
use tenon_testkit::{
    Harness, Outcome,
    check::exceptions::{CheckExceptions, Place},
    golden,
};
use tenon_tests::{build::repository, cuda::cuda_runtime, exceptions, session::turn};

/// Runs the cases of these ops by the kernels of a label; each op has at least so many that such a kernel takes.
fn family(name: &str, label: &str, knobs: &[(&str, &str)], ops: &[(&str, usize)]) {
    let _turn = turn();
    let harness = Harness::new(&cuda_runtime(knobs), "CUDA").expect("the device is there");
    let file = repository().join("plugins/cuda/libtenon_cuda.exceptions.toml");
    let known = CheckExceptions::read(&file).expect("the plugin's exceptions");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let mut wrong = Vec::new();
    for &(op, least) in ops {
        let cases = golden::read_op(&folder.join(format!("{op}.json"))).expect("golden data");
        let subject = format!("{op}[] on CUDA '{label}'");
        let place = Place { op, device: "CUDA", subject: &subject };
        let mut passed = 0;
        // TensorFlow's results are of a CPU that flushes denormals; a GPU keeps them.
        for case in cases.iter().filter(|case| !case.name.ends_with("_denormal")) {
            if known.not_run(place, &format!("golden.{}", case.name)).is_some() {
                continue;
            }
            match exceptions::run(&harness, case, label) {
                Outcome::Passed => passed += 1,
                Outcome::NoKernel(_) => {}
                Outcome::Failed(failure) => wrong.push(format!("{op} {}: {failure}", case.name)),
            }
        }
        println!("{op} '{label}': {passed} passed");
        if passed < least {
            wrong.push(format!("{op}: expected {least} cases that a kernel takes, found {passed}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn products() {
    let ops = [("MatMul", 20), ("BatchMatMulV2", 20), ("BatchMatMulV3", 5)];
    family("linalg", "cublaslt", &[], &ops);
    family("fused", "cublaslt", &[], &[("_FusedMatMul", 10)]);
}

#[test]
fn products_with_a_relu_of_the_library() {
    family("fused", "cublaslt", &[("cuda.fuse_relu", "true")], &[("_FusedMatMul", 10)]);
}

#[test]
fn convolutions() {
    family("nn", "cudnn", &[], &[("Conv2D", 14)]);
}

#[test]
fn poolings() {
    family("nn", "cudnn", &[], &[("MaxPool", 13), ("AvgPool", 9)]);
}

#[test]
fn batch_normalisations() {
    let ops = [("FusedBatchNorm", 8), ("FusedBatchNormV2", 5), ("FusedBatchNormV3", 20)];
    family("nn", "cudnn", &[], &ops);
}
