//! TensorFlow's C API: programs in C over `libtenon_tensorflow`.
//!
//! `core/capi/tests/c` has a program that calls each function and prints what it gives. The lines of `expected.txt` are those that it
//! prints with TensorFlow's own library (`.ci/c-api` compares them live).

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};
use tenon_cluster::{Server, ServerOptions};
use tenon_runtime::Worker;
use tenon_tests::{
    build::{deps, files, locked, output, repository, run},
    session,
};

/// The folder of the library's crate.
pub fn folder() -> PathBuf {
    repository().join("core/capi")
}

/// Compiles a program with the headers of `core/capi` and links the library. Sources whose names end in `.cpp` are C++.
pub fn program(name: &str, sources: &[PathBuf]) -> PathBuf {
    let made = output("c_api").join(name);
    let library = session::library("tenon_tensorflow");
    let is_cpp = sources.iter().any(|source| source.extension().is_some_and(|it| it == "cpp"));
    let (variable, usual, standard) = match is_cpp {
        true => ("CXX", "c++", "-std=c++17"),
        false => ("CC", "cc", "-std=c11"),
    };
    locked(name, || {
        run(Command::new(env::var_os(variable).unwrap_or_else(|| usual.into()))
            .args([
                standard,
                "-D_DEFAULT_SOURCE",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                "-O1",
                "-g",
            ])
            .arg("-I")
            .arg(folder().join("include"))
            .arg("-I")
            .arg(folder().join("tests/c"))
            .args(sources)
            .arg("-o")
            .arg(&made)
            .arg(&library)
            .arg(format!("-Wl,-rpath,{}", deps().display()))
            .arg("-lpthread"));
    });
    made
}

/// Runs a program, and gives what it prints.
pub fn printed(program: &Path, arguments: &[&str]) -> String {
    // Variables are a plugin's, and so are checkpoints and strings.
    let plugins = ["tenon_cpu", "tenon_data", "tenon_checkpoint", "tenon_text", "tenon_train"];
    let plugins = plugins.map(session::library);
    let plugins = env::join_paths(plugins).expect("paths");
    let done = Command::new(program)
        .args(arguments)
        .env("TENON_PLUGIN_PATH", plugins)
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{}: {}\n{text}{errors}", program.display(), done.status);
    text
}

#[test]
fn a_program_prints_what_it_prints_with_tensorflow() {
    let sources = files(&folder().join("tests/c"), &[".c"]);
    let models = repository().join("tests/goldens/saved_models").display().to_string();
    let found = printed(&program("like_tensorflow", &sources), &[&models]);
    let expected = fs::read_to_string(folder().join("tests/c/expected.txt")).expect("the lines");
    for (at, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {}", at + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn what_tensorflow_leaves_undefined_is_refused() {
    let sources = [folder().join("tests/c/own/own.c"), folder().join("tests/c/common.c")];
    let runtime = session::runtime(&["tenon_cpu"], &[]);
    let server = Server::start(Worker::new(&runtime), &ServerOptions::default()).expect("a server");
    let target = format!("grpc://{}", server.address());
    let plugin = session::library("zoo_rust").display().to_string();
    let found = printed(&program("own", &sources), &[&plugin, &target]);
    let served = "on a server: type 3, [ ], 4 bytes: -7\n\
        on a server, later: type 3, [ ], 4 bytes: 49\n\
        the first part on a server: type 3, [ ], 4 bytes: 9\n\
        the second part on a server: type 3, [ ], 4 bytes: 7\n";
    // On the server of this process, and on one of the program's own.
    let expected = format!("ops of the plugin: 1\n{served}{served}as expected\n");
    assert_eq!(found, expected);
}

/// The names that follow a mark at the begin of lines, up to a parenthesis.
fn declared(text: &str) -> BTreeSet<String> {
    let code: String =
        text.lines().filter(|line| !line.starts_with(" *")).collect::<Vec<_>>().join("\n");
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("TF_") {
        let begins = !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let name: String =
            code[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if begins && code[at + name.len()..].starts_with('(') {
            names.insert(name);
        }
    }
    names
}

/// The names with this start that the library exports; `None` without `nm`.
pub fn exported(start: &str) -> Option<BTreeSet<String>> {
    let library = session::library("tenon_tensorflow");
    let Ok(told) = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output() else {
        println!("skipped: no nm on this machine");
        return None;
    };
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned);
    Some(names.filter(|name| name.starts_with(start)).collect())
}

#[test]
fn the_header_declares_what_the_library_exports() {
    let text = fs::read_to_string(folder().join("include/tenon_tensorflow.h")).expect("the header");
    let declared = declared(&text);
    assert!(declared.len() > 150, "{} functions are declared", declared.len());
    if let Some(exported) = exported("TF_") {
        assert_eq!(declared, exported);
    }
}

/// A function that no program calls could be wrong without a test that sees it.
#[test]
fn the_programs_call_every_function() {
    let c = folder().join("tests/c");
    let sources = files(&c, &[".c"]).into_iter().chain([c.join("own/own.c")]);
    let text: String = sources.map(|file| fs::read_to_string(file).expect("a source")).collect();
    let header =
        fs::read_to_string(folder().join("include/tenon_tensorflow.h")).expect("the header");
    let called = declared(&text);
    let silent: Vec<String> = declared(&header).difference(&called).cloned().collect();
    assert_eq!(silent, [""; 0]);
}

#[test]
fn the_headers_are_c_and_cpp() {
    for header in ["tenon_tensorflow.h", "tenon_client.h"] {
        let header = folder().join("include").join(header);
        for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
            run(Command::new(compiler)
                .args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language])
                .arg(&header));
        }
    }
}
