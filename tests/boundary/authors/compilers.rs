//! The headers under the compilers that this machine has, and what a library exports.

use std::{
    path::{Path, PathBuf},
    process::Command,
};
use tenon_tests::{
    build::{author, deps, files, include, output, repository, run},
    fixtures::authors,
    zoo::cpp_zoo,
};

/// Those of these compilers, under all the names that distributions give them, that start; each one once.
fn there(names: &[&str]) -> Vec<String> {
    let versions =
        (11..=22).flat_map(|version| names.iter().map(move |name| format!("{name}-{version}")));
    let (mut there, mut missing, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for name in names.iter().map(|name| (*name).to_owned()).chain(versions) {
        match Command::new(&name).arg("--version").output() {
            Ok(told) if told.status.success() => {
                // The first word may be the name that it was called by.
                let told = String::from_utf8_lossy(&told.stdout).into_owned();
                let version = told.split_once(' ').map_or("", |(_, rest)| rest).to_owned();
                if !seen.contains(&version) {
                    seen.push(version);
                    there.push(name);
                }
            }
            _ => missing.push(name),
        }
    }
    println!("compilers: {there:?}; not on this machine: {missing:?}");
    there
}

fn warn_nothing(compiler: &str, standard: &str, flags: &[&str], source: &Path) {
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]).args(flags);
    run(command.arg("-I").arg(include()).arg("-I").arg(author()).arg(source));
}

#[test]
fn c_compiles_without_a_warning_as_c99_c11_and_c17() {
    let zoo = repository().join("tests/zoo/c");
    let words = repository().join("tests/fixtures/authors/words.c");
    let sources = [words, zoo.join("attributes.c"), zoo.join("selection.c")];
    let compilers = there(&["gcc", "clang"]);
    assert!(!compilers.is_empty(), "a compiler for C is there");
    for compiler in compilers {
        for standard in ["-std=c99", "-std=c11", "-std=c17"] {
            for source in &sources {
                warn_nothing(&compiler, standard, &["-fsyntax-only"], source);
            }
        }
    }
}

#[test]
fn cpp_compiles_without_a_warning_as_cpp17_and_cpp20() {
    let compilers = there(&["g++", "clang++"]);
    assert!(!compilers.is_empty(), "a compiler for C++ is there");
    let example = repository().join("sdk/c/examples/rmsnorm.cpp");
    let made = output("compilers").join("rmsnorm.o").display().to_string();
    for compiler in compilers {
        for standard in ["-std=c++17", "-std=c++20"] {
            for source in files(&repository().join("tests/zoo/cpp"), &[".cpp"]) {
                warn_nothing(&compiler, standard, &["-fsyntax-only"], &source);
            }
            // Some warnings come with optimisation alone.
            warn_nothing(&compiler, standard, &["-O3", "-c", "-o", &made], &example);
        }
    }
}

/// The symbols that a library defines for others; `None` without `nm`.
fn exports(library: &Path) -> Option<Vec<String>> {
    let Ok(told) = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output() else {
        println!("skipped: no nm on this machine");
        return None;
    };
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    Some(text.lines().filter_map(|line| line.split(' ').next_back().map(str::to_owned)).collect())
}

/// The source of the fixture has a function that is not static, and its flags hide nothing.
#[test]
fn a_library_exports_its_door_alone_whatever_flags_it_is_built_with() {
    let made = output("compilers").join("libwords_plain.so");
    let words = repository().join("tests/fixtures/authors/words.c");
    let made_flag = made.display().to_string();
    warn_nothing("cc", "-std=c11", &["-fPIC", "-shared", "-o", &made_flag], &words);
    for library in [made, authors("words")] {
        if let Some(exported) = exports(&library) {
            assert_eq!(exported, ["tenon_plugin_v1"], "{}", library.display());
        }
    }
    // What the C++ library's own templates make is visible by its own word.
    let of_std = |name: &String| {
        let starts = ["_ZNS", "_ZNKS", "_ZS", "_ZZNS", "_ZN9__gnu_cxx", "_ZTIS", "_ZTSS", "_ZTVS"];
        let nested = ["_ZTINS", "_ZTSNS", "_ZTVNS"];
        starts.iter().chain(&nested).any(|start| name.starts_with(start))
    };
    if let Some(exported) = exports(&cpp_zoo()) {
        let own: Vec<&String> = exported.iter().filter(|name| !of_std(name)).collect();
        assert_eq!(own, ["tenon_plugin_v1"]);
    }
}

#[test]
fn the_cmake_package_has_the_version_of_the_workspace() {
    let file = author().join("tenonConfigVersion.cmake");
    let text = std::fs::read_to_string(&file).expect("the package says its version");
    let line = format!("set(PACKAGE_VERSION \"{}\")", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&line), "expected {line}");
}

fn tenon() -> PathBuf {
    let tenon = deps().parent().expect("deps has a parent").join("tenon");
    assert!(tenon.is_file(), "build the command first: cargo build -p tenon-cli");
    tenon
}

/// In the trial it took 163 lines in C++, and 161 in Rust.
#[test]
fn rmsnorm_in_cpp_is_right_in_a_hundred_lines() {
    let source = repository().join("sdk/c/examples/rmsnorm.cpp");
    let text = std::fs::read_to_string(&source).expect("the example is there");
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .count();
    assert!(lines <= 100, "{lines} lines");
    let library = output("compilers").join("librmsnorm.so");
    let made = library.display().to_string();
    warn_nothing("c++", "-std=c++17", &["-O3", "-fPIC", "-shared", "-o", &made], &source);
    let checked =
        Command::new(tenon()).arg("check").arg(&library).output().expect("the command starts");
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success() && told.contains(": right"),
        "{told}{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    let avx2 = if cfg!(target_arch = "x86_64") { "'avx2'" } else { "RmsNorm on CPU" };
    assert!(told.contains(avx2), "{told}");
}
