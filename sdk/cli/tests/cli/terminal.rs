//! Text of plugins and graphs on a terminal.

use crate::support::Place;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tenon_runtime::{
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
    host::Plugins,
    proto::encode,
};

/// The plugin in `terminal/escapes.c`.
fn escapes(place: &Place, name: &str, defined: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = place.path(name);
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let done = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared"])
        .args(defined)
        .arg("-I")
        .arg(folder.join("../../core/abi/include"))
        .arg("-I")
        .arg(folder.join("../c"))
        .arg(folder.join("tests/terminal/escapes.c"))
        .arg("-o")
        .arg(&made)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    made
}

/// What a terminal would obey.
fn commands(output: &Output) -> Vec<char> {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let text = String::from_utf8(text).unwrap();
    let obeyed = |&c: &char| c.is_control() && c != '\n' || c == '\u{202e}';
    text.chars().filter(obeyed).collect()
}

#[test]
fn a_manifest_cannot_command_the_terminal() {
    let place = Place::new();
    let file = escapes(&place, "libescapes.so", &[]).display().to_string();
    let lists = place.arg("trust.toml");
    let rows: [&[&str]; 5] = [
        &["inspect", &file],
        &["inspect", &file, "--json"],
        &["list", "--plugin", &file],
        &["install", &file],
        &["trust", "add", &file, "--file", &lists],
    ];
    for args in rows {
        let output = place.tenon(args);
        let text =
            String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat())
                .into_owned();
        assert_eq!(commands(&output), [], "{args:?}: {text:?}");
        assert!(text.contains("owned"), "{args:?} names it: {text}");
    }
}

#[test]
fn an_error_of_a_kernel_cannot_command_the_terminal() {
    let place = Place::new();
    let file = escapes(&place, "libescapes.so", &["-DPLAIN_NAME"]).display().to_string();
    let plugins = Plugins::new().unwrap();
    let report = plugins.load([PathBuf::from(&file)]);
    assert!(report.rejected.is_empty(), "{report:?}");
    let registry = plugins.registry();
    let mut builder = GraphBuilder::new(&registry);
    let x = builder.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN).unwrap();
    builder.op("CliEscapes").name("y").input(x).build().unwrap();
    std::fs::write(place.path("g.pb"), encode(&builder.finish().to_graph_def().unwrap()).unwrap())
        .unwrap();
    let x = place.array("x.npy", &Tensor::from_slice(&[1], &[1.0f32]).unwrap());
    let feed = format!("x={x}");
    let graph = place.arg("g.pb");
    let output = place.tenon(&["run", &graph, "--plugin", &file, "--feed", &feed, "--fetch", "y"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(commands(&output), []);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("\\u{1b}]0;owned\\u{7}\\u{1b}[31mred\\u{9b}"), "{text}");
}
