//! Every kind of new plugin: it is made, builds without the network, passes its tests, is checked and timed.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
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
    cargo.env("TENON", env!("CARGO_BIN_EXE_tenon"));
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

/// The Makefile of a folder in C or C++, with warnings as errors.
fn make(folder: &Path) -> Command {
    let flags = "-O1 -Werror";
    let mut make = Command::new("make");
    make.current_dir(folder).env("CFLAGS", flags).env("CXXFLAGS", flags);
    make.arg(format!("TENON={}", env!("CARGO_BIN_EXE_tenon")));
    make
}

/// Whether there is such a program; says so where there is none.
fn there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: no {program} on this machine");
    }
    there
}

/// The library exports its door alone, not even what comes with the C++ library.
fn exports_its_door_alone(library: &Path) {
    if there("nm") {
        let exported = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
        let names: Vec<&str> =
            exported.lines().filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(names, ["tenon_plugin_v1"]);
    }
}

/// A folder in C or C++, built by its own Makefile, and by CMake where that is there.
fn made_by_make(name: &str, kind: &str, lang: &str, op: &str, device: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = made(temporary.path(), name, kind, lang);
    run(&mut make(&folder));
    let plugin = folder.join(library(name));
    check_and_bench(temporary.path(), &plugin, op, device);
    exports_its_door_alone(&plugin);
    made_by_cmake(&folder, name);
}

/// The same folder, built by its CMakeLists.txt: loading works, and the tests are those of the plugin.
fn made_by_cmake(folder: &Path, name: &str) {
    if !there("cmake") {
        return;
    }
    let mut configure = Command::new("cmake");
    configure.current_dir(folder).args(["-B", "build", "-DCMAKE_BUILD_TYPE=Debug"]);
    run(configure.arg(format!("-DTENON_COMMAND={}", env!("CARGO_BIN_EXE_tenon"))));
    run(Command::new("cmake").current_dir(folder).args(["--build", "build"]));
    let plugin = folder.join("build").join(library(name));
    exports_its_door_alone(&plugin);
    let inspected = run(tenon(folder).arg("inspect").arg(&plugin));
    assert!(inspected.contains("loading    works"), "{inspected}");
    let tests = run(Command::new("ctest").current_dir(folder).args(["--test-dir", "build", "-N"]));
    assert!(tests.contains("-check") && tests.contains("Total Tests: 1"), "{tests}");
}

#[test]
fn an_op_in_rust() {
    rust("new-op-rust", "op", "NewOpRust", "CPU");
}

#[test]
fn templates_of_ops_in_rust() {
    let temporary = tempfile::tempdir().unwrap();
    for (template, op) in [("rowwise", "NewRows"), ("matmul", "NewProduct")] {
        let name = format!("new-{template}-rust");
        let mut command = tenon(temporary.path());
        command.args(["new", &name, "--template", template, "--op", op, "--sdk"]).arg(root());
        run(&mut command);
        let folder = temporary.path().join(&name);
        let tested = run(cargo(&folder).args(["test", "--offline"]));
        assert!(tested.contains("test result: ok"), "{tested}");
        let plugin = target().join("debug/deps").join(library(&name));
        check_and_bench(temporary.path(), &plugin, op, "CPU");
    }
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

/// The template's Makefile named the op that the template had.
#[test]
fn make_bench_times_an_op_that_its_author_renamed() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = made(temporary.path(), "renamed-c", "op", "c");
    let source = folder.join("plugin.c");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text.replace("RenamedC", "Softened")).unwrap();
    let timed = run(make(&folder).arg("bench"));
    assert!(timed.contains("Softened") && timed.contains(" RATE"), "{timed}");
}

/// Without nvcc the Makefile says what is missing; with it the plugin is built, and loads without a GPU.
#[test]
fn an_op_and_a_kernel_in_cuda() {
    let temporary = tempfile::tempdir().unwrap();
    for (name, kind) in [("new-op-cuda", "op"), ("new-kernel-cuda", "kernel")] {
        let folder = made(temporary.path(), name, kind, "cuda");
        let output = make(&folder).arg("NVCC=no-such-nvcc").output().unwrap();
        let told = text(&output);
        assert!(!output.status.success(), "{told}");
        assert!(
            told.contains("no-such-nvcc is not there: install NVIDIA's CUDA toolkit"),
            "{told}"
        );
        if there("nvcc") {
            run(&mut make(&folder));
            let inspected = run(tenon(&folder).arg("inspect").arg(folder.join(library(name))));
            assert!(inspected.contains("CUDA") && inspected.contains("loading    works"));
        }
    }
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
    assert!(!temporary.path().join("a").exists());
    refused(
        &["new", "a", "--kind", "device", "--lang", "cuda"],
        "INVALID_ARGUMENT",
        "--kind op or --kind kernel",
    );
    made(temporary.path(), "there", "op", "c");
    refused(&["new", "there"], "ALREADY_EXISTS", "is there already");
}

/// It made a folder that could not be built: `no matching package named tenon-sdk found`.
#[test]
fn without_an_sdk_a_plugin_in_rust_is_refused_before_its_folder_is_made() {
    let temporary = tempfile::tempdir().unwrap();
    let alone = temporary.path().join("tenon");
    fs::copy(env!("CARGO_BIN_EXE_tenon"), &alone).unwrap();
    let new = |name: &str, lang: &str| {
        let mut command = Command::new(&alone);
        command.args(["new", name, "--lang", lang]).current_dir(temporary.path());
        command.env_remove("TENON_SDK");
        // A copy that was just made may be open for writing in a child that another test is about to start.
        loop {
            match command.output() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                result => return result.unwrap(),
            }
        }
    };
    let refused = new("mine", "rust");
    let told = text(&refused);
    assert!(!refused.status.success(), "{told}");
    for part in ["no SDK was found", "--sdk or TENON_SDK", "share/tenon/sdk", "--lang c"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!temporary.path().join("mine").exists());
    let made = new("mine", "c");
    assert!(made.status.success(), "headers are all that it needs: {}", text(&made));
    // Built in a clone, the command finds that.
    let told = run(tenon(temporary.path()).args(["new", "found"]).env_remove("TENON_SDK"));
    assert!(told.contains(root().to_str().unwrap()), "{told}");
}
