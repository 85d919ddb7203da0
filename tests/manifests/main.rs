//! The list of everything that a plugin registers, as its `manifest.txt` has it: proof that the linker dropped nothing.
//! Run with `TENON_UPDATE=1` to rewrite the files.
//!
//! The plugins are linked here, so that nothing else can be tested in this program: every runtime of a process takes what
//! is linked in for its own.

use std::fs;
use tenon_author::reg::{Registration, registrations};
use tenon_checkpoint as _;
use tenon_cpu as _;
use tenon_cuda as _;
use tenon_data as _;
use tenon_fft as _;
use tenon_image as _;
use tenon_int8 as _;
use tenon_linalg as _;
use tenon_tests::build::repository;
use tenon_text as _;
use tenon_train as _;

/// Compares what `tenon-NAME` registers with its list.
#[track_caller]
fn registers_what_its_manifest_says(name: &str) {
    let package = format!("tenon-{name}");
    let of_it = |entry: &&Registration| entry.site().krate == package;
    let mut lines: Vec<String> =
        registrations().into_iter().filter(of_it).map(Registration::line).collect();
    lines.sort();
    for pair in lines.windows(2) {
        assert_ne!(pair[0], pair[1], "registered twice");
    }
    let found = lines.join("\n") + "\n";
    let path = repository().join("plugins").join(name).join("manifest.txt");
    if std::env::var_os("TENON_UPDATE").is_some() {
        fs::write(&path, &found).expect("manifest.txt can be written");
    }
    let expected = fs::read_to_string(&path).expect("manifest.txt can be read");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "run with TENON_UPDATE=1 to accept");
    }
    assert_eq!(
        found.lines().count(),
        expected.lines().count(),
        "run with TENON_UPDATE=1 to accept"
    );
}

#[test]
fn cpu() {
    registers_what_its_manifest_says("cpu");
}

#[test]
fn checkpoint() {
    registers_what_its_manifest_says("checkpoint");
}

#[test]
fn cuda() {
    registers_what_its_manifest_says("cuda");
}

#[test]
fn data() {
    registers_what_its_manifest_says("data");
}

#[test]
fn fft() {
    registers_what_its_manifest_says("fft");
}

#[test]
fn image() {
    registers_what_its_manifest_says("image");
}

#[test]
fn int8() {
    registers_what_its_manifest_says("int8");
}

#[test]
fn linalg() {
    registers_what_its_manifest_says("linalg");
}

#[test]
fn text() {
    registers_what_its_manifest_says("text");
}

#[test]
fn train() {
    registers_what_its_manifest_says("train");
}
