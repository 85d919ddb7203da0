//! TensorFlow's results against the kernels of the CPU plugin, as a loaded library: every case of every op, by
//! the kernel that the policy chooses and by each label.

use std::path::Path;
use tenon_testkit::{Exceptions, Harness, WithoutKernel, run_folder};
use tenon_tests::{exceptions::REFUSED_WITH_SHAPES, session::runtime};

/// The label whose kernels are the specification; goldens_reference.rs is about it.
const REFERENCE: &str = "reference";

/// Known defects and forms that the CPU plugin does not support.
const EXCEPTIONS: Exceptions<'static> =
    Exceptions { refused_with_shapes: REFUSED_WITH_SHAPES, ..Exceptions::NONE };

/// Runs a family; `cases` says how many there must be, so that none is lost.
fn family(name: &str, cases: usize) {
    family_of(name, &["tenon_cpu"], cases);
}

/// Runs a family whose kernels come from several plugins.
fn family_of(name: &str, plugins: &[&str], cases: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(name);
    let harness = Harness::new(&runtime(plugins, &[]), "CPU").unwrap();
    let ways = |op: &str| {
        let mut ways = vec![(None, WithoutKernel::Fails)];
        let labels =
            harness.labels(op).into_iter().filter(|label| ![REFERENCE, ""].contains(&&**label));
        ways.extend(labels.map(|label| (Some(label), WithoutKernel::IsSkipped)));
        ways
    };
    let report = run_folder(&harness, &folder, &EXCEPTIONS, ways).unwrap();
    println!("{report}");
    assert_eq!(report.cases, cases, "cases of family {name}");
    let wrong = report.wrong();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn array() {
    family("array", 4603);
}

#[test]
fn fft() {
    family_of("fft", &["tenon_cpu", "tenon_fft"], 446);
}

#[test]
fn fused() {
    family_of("fused", &["tenon_cpu", "tenon_int8"], 602);
}

#[test]
fn image() {
    family_of("image", &["tenon_cpu", "tenon_image"], 1982);
}

#[test]
fn io() {
    family_of("io", &["tenon_cpu", "tenon_text"], 158);
}

#[test]
fn linalg() {
    family_of("linalg", &["tenon_cpu", "tenon_linalg"], 3442);
}

#[test]
fn logging() {
    family_of("logging", &["tenon_cpu", "tenon_text"], 8);
}

#[test]
fn math_binary() {
    family("math_binary", 4892);
}

#[test]
fn math_unary() {
    family("math_unary", 2159);
}

#[test]
fn nn() {
    family("nn", 1585);
}

#[test]
fn nn_grad() {
    family("nn_grad", 1793);
}

#[test]
fn quantization() {
    family_of("quantization", &["tenon_cpu", "tenon_int8"], 1333);
}

#[test]
fn ragged() {
    family_of("ragged", &["tenon_cpu", "tenon_data", "tenon_text"], 277);
}

#[test]
fn recurrent() {
    family("recurrent", 126);
}

#[test]
fn reduction() {
    family("reduction", 2935);
}

#[test]
fn random() {
    family("random", 912);
}

#[test]
fn sparse() {
    family_of("sparse", &["tenon_cpu", "tenon_data", "tenon_text"], 1039);
}

#[test]
fn speech() {
    family_of("speech", &["tenon_cpu", "tenon_fft"], 177);
}

#[test]
fn string() {
    family_of("string", &["tenon_cpu", "tenon_text"], 898);
}
