//! The plugin in README.md: it has 30 lines at most, builds offline, loads, and computes.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tenon_runtime::{
    CallableOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The contents of the first fenced block in this language.
fn block(text: &str, language: &str) -> String {
    let fence = format!("```{language}\n");
    let begin = text.find(&fence).unwrap_or_else(|| panic!("README.md has no {language}"));
    let rest = &text[begin + fence.len()..];
    rest[..rest.find("```").unwrap()].to_owned()
}

fn checked(output: Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    let text = format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert!(output.status.success(), "{text}");
    text
}

/// Builds the plugin of the README; the library's file.
fn build(folder: &Path) -> PathBuf {
    let (manifest, code) = (block(&readme(), "toml"), block(&readme(), "rust"));
    let lines = manifest.lines().count() + code.lines().count();
    assert!(lines <= 30, "the plugin in README.md has {lines} lines");
    let written = "../tenon/sdk/author";
    assert!(manifest.contains(written));
    let sdk = root().join("sdk/author").display().to_string();
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest.replace(written, &sdk)).unwrap();
    fs::write(folder.join("src/lib.rs"), code).unwrap();
    // The versions that the workspace was built with are the ones at hand without a network.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    // What the SDK needs is there already, where it has the same features.
    let target = Path::new(env!("CARGO_BIN_EXE_tenon")).ancestors().nth(2).unwrap().to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline"]).current_dir(folder).env("CARGO_TARGET_DIR", &target);
    checked(cargo.env_remove("RUSTFLAGS").output().unwrap());
    target.join("debug").join(format!("libmy_ops{}", std::env::consts::DLL_SUFFIX))
}

fn cube(plugin: &Path) -> Vec<f32> {
    let (runtime, report) = Runtime::new(RuntimeOptions {
        plugins: vec![plugin.to_owned(), cpu_plugin()],
        search: false,
        ..RuntimeOptions::default()
    })
    .unwrap();
    report.into_result().unwrap();
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    let x = builder.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN).unwrap();
    builder.op("Cube").name("y").input(x).build().unwrap();
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend(&builder.finish().to_graph_def().unwrap()).unwrap();
    let callable = session.callable(CallableOptions::new(&["x"], &["y"])).unwrap();
    let mut fetched = Vec::new();
    let feed = Tensor::from_slice(&[3], &[1.0f32, -2.0, 0.5]).unwrap();
    callable.run(&[feed], &mut fetched).unwrap();
    fetched[0].as_slice().unwrap().to_vec()
}

fn cpu_plugin() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_tenon")).parent().unwrap();
    folder.join("deps").join(format!("libtenon_cpu{}", std::env::consts::DLL_SUFFIX))
}

#[test]
fn the_plugin_in_the_readme_builds_loads_and_computes() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = build(folder.path());
    let tenon = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        checked(command.args(args).env("XDG_DATA_HOME", folder.path()).output().unwrap())
    };
    let file = plugin.display().to_string();
    let inspected = tenon(&["inspect", &file]);
    assert!(inspected.contains("my-ops 0.1.0") && inspected.contains("Cube"), "{inspected}");
    let list = tenon(&["list", "--plugin", &file]);
    assert!(list.contains("my-ops") && list.contains("Cube"), "{list}");
    assert_eq!(cube(&plugin), [1.0, -8.0, 0.125]);
}

#[test]
fn the_test_command_is_marked_for_ci() {
    let text = readme();
    let (_, after) = text.split_once("<!-- ci: test -->\n").expect("a marker");
    assert!(after.starts_with("```sh\ncargo test --workspace\n```\n"));
}

#[test]
fn the_folders_of_the_map_are_there() {
    let text = readme();
    let (_, map) = text.split_once("## Map").unwrap();
    let rows =
        map.lines().skip_while(|line| !line.starts_with("| `")).take_while(|l| l.starts_with('|'));
    let mut folders = 0;
    for row in rows {
        let first = row.split('|').nth(1).unwrap();
        for folder in first.split('`').skip(1).step_by(2) {
            assert!(root().join(folder).is_dir(), "{folder}");
            folders += 1;
        }
    }
    assert!(folders >= 14, "{folders}");
}
