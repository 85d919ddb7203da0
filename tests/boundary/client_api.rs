//! Tenon's own C API: programs in C and C++ over `tenon_client.h`.
//!
//! `core/capi/tests/client` has a program that calls each function, with right and with wrong arguments, and checks what it gives.
//! `sdk/c/examples/client` has the examples that guides name.

use crate::{
    c_api::{exported, folder, printed, program},
    client_header,
};
use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::PathBuf};
use tenon_tests::{
    build::{files, repository},
    session,
};

fn models() -> PathBuf {
    repository().join("tests/goldens/saved_models")
}

#[test]
fn every_function_does_what_the_header_says() {
    let sources = files(&folder().join("tests/client"), &[".c"]);
    let made = tempfile::tempdir().expect("a folder");
    let (plugins, own) = (made.path().join("plugins"), made.path().join("own"));
    fs::create_dir(&plugins).expect("a folder");
    fs::create_dir(&own).expect("a folder");
    symlink(session::library("tenon_cpu"), plugins.join("libtenon_cpu.so")).expect("a link");
    let arguments = [session::library("zoo_rust"), plugins, own, models()];
    let arguments = arguments.map(|path| path.display().to_string());
    let found = printed(&program("client", &sources), &arguments.each_ref().map(String::as_str));
    assert_eq!(found, "as expected\n");
}

#[test]
fn the_client_header_declares_what_the_library_exports() {
    let declared: BTreeSet<String> = client_header::functions().into_iter().collect();
    assert!(declared.len() > 120, "{} functions are declared", declared.len());
    if let Some(exported) = exported("tn_") {
        assert_eq!(declared, exported);
    }
}

/// A function that no program calls could be wrong without a test that sees it.
#[test]
fn the_program_calls_every_function() {
    let sources = files(&folder().join("tests/client"), &[".c"]);
    let text: String =
        sources.iter().map(|file| fs::read_to_string(file).expect("a source")).collect();
    let is_called = |name: &String| text.contains(&format!("{name}("));
    let silent: Vec<String> =
        client_header::functions().into_iter().filter(|name| !is_called(name)).collect();
    assert_eq!(silent, [""; 0]);
}

/// What an example prints.
fn example(name: &str, arguments: &[&str]) -> String {
    let source = repository().join("sdk/c/examples/client").join(name);
    printed(&program(&name.replace('.', "_"), &[source]), arguments)
}

#[test]
fn examples_print_what_they_are_for() {
    // The class and the score are TensorFlow's for the same image.
    let cnn = models().join("keras_cnn").display().to_string();
    assert_eq!(example("classify.c", &[&cnn]), "class 1 of 5, score 0.323\n");
    let made = tempfile::tempdir().expect("a folder");
    let text = example("train.c", &[&made.path().display().to_string()]);
    assert_eq!(text, "trained: w = 3.000, b = 1.000\nrestored: w = 3.000\nline-200: b w\n");
    assert_eq!(
        example("callable.c", &[]),
        "the tensor is the buffer: yes\nsum of squares: 338350\nreleased while they are bound: 0\nreleased: 2\n"
    );
    assert_eq!(
        example("dlpack.c", &[]),
        "imported: 2 x 3, the same memory: yes\n\
         exported: version 1, type 2 of 32 bits, strides 3 and 1, the same memory: yes\n\
         last element: 5\nthe producer's memory is free\n"
    );
    assert_eq!(
        example("cancel.cpp", &[]),
        "cancelled: CANCELLED, without a value\ntoo late: DEADLINE_EXCEEDED\n"
    );
    let plugin = session::library("tenon_cpu").display().to_string();
    assert_eq!(
        example("devices.cpp", &[&plugin]),
        "plugin tenon-cpu\ndevice /job:localhost/replica:0/task:0/device:CPU:0 of type CPU\n\
         it has most kernels: yes\na plugin that is not there\n"
    );
}
