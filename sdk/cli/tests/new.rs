//! Every kind of new plugin: it is made, builds without the network, passes its tests, is checked and timed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder that cargo builds the workspace into: what the SDK needs is there already.
fn target() -> PathBuf {
    let tenon = Path::new(env!("CARGO_BIN_EXE_tenon"));
    tenon.ancestors().nth(2).unwrap().to_owned()
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", text(&output));
    text(&output)
}

fn tenon(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.current_dir(folder).env("XDG_DATA_HOME", folder).env("XDG_CACHE_HOME", folder);
    command
}

fn made(folder: &Path, name: &str, kind: &str, lang: &str) -> PathBuf {
    let mut command = tenon(folder);
    command.args(["new", name, "--kind", kind, "--lang", lang, "--sdk"]).arg(root());
    let told = run(&mut command);
    assert!(told.contains("README.md"), "{told}");
    folder.join(name)
}

fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", target()).env_remove("RUSTFLAGS");
    cargo
}

fn library(name: &str) -> String {
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    format!("{prefix}{}{suffix}", name.replace('-', "_"))
}

/// Checks and times a plugin; the op is the one to time, on this type of device.
fn check_and_bench(folder: &Path, plugin: &Path, op: &str, device: &str) {
    let checked = run(tenon(folder).arg("check").arg(plugin));
    assert!(checked.contains(op) && checked.contains(device), "{checked}");
    let mut bench = tenon(folder);
    // On its own device and without the machine's limits: what is looked at is that it is timed.
    bench.args(["bench", op, "--time", "0.1", "--dtype", "float", "--no-roofline"]);
    bench.args(["--device", device, "--plugin"]).arg(plugin);
    let timed = run(&mut bench);
    assert!(timed.contains(op) && timed.contains(" RATE"), "{timed}");
}

fn rust(name: &str, kind: &str, op: &str, device: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = made(temporary.path(), name, kind, "rust");
    let tested = run(cargo(&folder).args(["test", "--offline"]));
    assert!(tested.contains("test result: ok"), "{tested}");
    let plugin = target().join("debug/deps").join(library(name));
    check_and_bench(temporary.path(), &plugin, op, device);
    if kind != "device" {
        develop(&folder, op);
    }
}

/// `tenon dev` finds the library by what cargo says.
fn develop(folder: &Path, op: &str) {
    let mut dev = tenon(folder);
    dev.env("CARGO_TARGET_DIR", target()).env("CARGO_NET_OFFLINE", "true").env_remove("RUSTFLAGS");
    let told = run(dev.args(["dev", "--debug", "--once", "--op", op, "--check-time", "60"]));
    assert!(told.contains("check: right") && told.contains(" runs: "), "{told}");
}

/// A folder in C or C++, built by its own Makefile with warnings as errors.
fn made_by_make(name: &str, kind: &str, lang: &str, op: &str, device: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = made(temporary.path(), name, kind, lang);
    let flags = "-O1 -Werror";
    let mut make = Command::new("make");
    make.current_dir(&folder).env("CFLAGS", flags).env("CXXFLAGS", flags);
    run(make.arg(format!("TENON={}", env!("CARGO_BIN_EXE_tenon"))));
    check_and_bench(temporary.path(), &folder.join(library(name)), op, device);
}

#[test]
fn an_op_in_rust() {
    rust("new-op-rust", "op", "NewOpRust", "CPU");
}

#[test]
fn a_kernel_in_rust() {
    rust("new-kernel-rust", "kernel", "Relu", "CPU");
}

#[test]
fn a_device_in_rust() {
    rust("new-device-rust", "device", "Relu", "NEW_DEVICE_RUST");
}

#[test]
fn an_op_in_c() {
    made_by_make("new-op-c", "op", "c", "NewOpC", "CPU");
}

#[test]
fn a_kernel_in_c() {
    made_by_make("new-kernel-c", "kernel", "c", "Relu", "CPU");
}

#[test]
fn a_device_in_c() {
    made_by_make("new-device-c", "device", "c", "Relu", "NEW_DEVICE_C");
}

#[test]
fn an_op_in_cpp() {
    made_by_make("new-op-cpp", "op", "cpp", "NewOpCpp", "CPU");
}

#[test]
fn a_kernel_in_cpp() {
    made_by_make("new-kernel-cpp", "kernel", "cpp", "Relu", "CPU");
}

#[test]
fn a_device_in_cpp() {
    made_by_make("new-device-cpp", "device", "cpp", "Relu", "NEW_DEVICE_CPP");
}

/// Lines that are no comment and not blank.
fn lines_of_code(text: &str) -> usize {
    let code = |line: &&str| {
        let line = line.trim();
        let comment = ["//", "/*", "*"].iter().any(|mark| line.starts_with(mark));
        !line.is_empty() && !comment
    };
    text.lines().filter(code).count()
}

#[test]
fn a_new_op_with_a_kernel_is_at_most_forty_lines() {
    let temporary = tempfile::tempdir().unwrap();
    for (lang, file) in [("rust", "src/lib.rs"), ("c", "plugin.c"), ("cpp", "plugin.cpp")] {
        let folder = made(temporary.path(), &format!("lines-{lang}"), "op", lang);
        let lines = lines_of_code(&fs::read_to_string(folder.join(file)).unwrap());
        assert!(lines <= 40, "{lang}: {lines} lines");
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], code: &str, said: &str| {
        let output = tenon(temporary.path()).args(args).env("TENON_SDK", root()).output().unwrap();
        let told = text(&output);
        assert!(!output.status.success() && told.contains(code) && told.contains(said), "{told}");
    };
    refused(&["new", "My"], "INVALID_ARGUMENT", "lower-case letters");
    refused(&["new", "a", "--sdk", "nowhere"], "NOT_FOUND", "sdk/author/Cargo.toml");
    made(temporary.path(), "there", "op", "c");
    refused(&["new", "there"], "ALREADY_EXISTS", "is there already");
}
