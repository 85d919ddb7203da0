//! The header compiles as C11 and as C++17 without a warning, and compilers agree with its figures.

use crate::support::path;
use std::path::Path;
use std::process::Command;

/// Compiles `source` and runs what comes out; `None` when there is no such compiler.
fn compile_and_run(compiler: &str, standard: &str, source: &str) -> Option<String> {
    if Command::new(compiler).arg("--version").output().is_err() {
        println!("skipped: no {compiler} on this machine");
        return None;
    }
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.replace('.', "_"));
    let made = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"])
        .arg("-I")
        .arg(path("include"))
        .arg(path("tests/c").join(source))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(made.status.success(), "{compiler}: {}", String::from_utf8_lossy(&made.stderr));
    let ran = Command::new(&program).output().unwrap_or_else(|e| panic!("{source}: {e}"));
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{source}: {:?}: {said}", ran.status);
    Some(said)
}

/// Name and size of each struct, as this crate has them.
fn sizes() -> String {
    let lines = tenon_abi::layout::LAYOUTS.iter();
    lines.map(|one| format!("Tenon{} {}\n", one.name, one.size)).collect()
}

#[test]
fn header_compiles_as_c() {
    if let Some(said) = compile_and_run("gcc", "-std=c11", "plugin.c") {
        assert_eq!(said, sizes());
    }
}

#[test]
fn header_compiles_as_cpp() {
    if let Some(said) = compile_and_run("g++", "-std=c++17", "plugin.cpp") {
        assert_eq!(said, sizes());
    }
}
