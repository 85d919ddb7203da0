//! Plugins that are deliberately broken.

use crate::build::{
    c_library, c_program, cpp_library, files, is_current, locked, output, repository, run,
    target_of_others,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn folder() -> PathBuf {
    repository().join("tests/fixtures")
}

/// The fixture in `tests/fixtures/c` of this name.
pub fn c(name: &str) -> PathBuf {
    let folder = folder().join("c");
    let source = folder.join(format!("{name}.c"));
    c_library(&format!("fixture_{name}"), &[source], &files(&folder, &[".h"]))
}

/// The fixture in `tests/fixtures/authors` of this name, by `tenon_plugin.h`.
pub fn authors(name: &str) -> PathBuf {
    let source = folder().join("authors").join(format!("{name}.c"));
    c_library(&format!("fixture_{name}"), &[source], &[])
}

/// The fixture in `tests/fixtures/check` of this name, `-` for `_`.
pub fn check(name: &str) -> PathBuf {
    let name = name.replace('-', "_");
    let source = folder().join("check").join(format!("{name}.c"));
    c_library(&format!("fixture_{name}"), &[source], &files(&folder().join("c"), &[".h"]))
}

/// The fixture in `tests/fixtures/opening` of this name, in C or C++.
pub fn opening(name: &str) -> PathBuf {
    let opening = folder().join("opening");
    let mut headers = files(&opening, &[".hpp"]);
    headers.extend(files(&folder().join("c"), &[".h"]));
    let (c, cpp) = (opening.join(format!("{name}.c")), opening.join(format!("{name}.cpp")));
    let made = format!("fixture_{name}");
    match c.is_file() {
        true => c_library(&made, &[c], &headers),
        false => cpp_library(&made, &[cpp], &headers),
    }
}

/// Names of all fixtures in `tests/fixtures/c`.
pub fn c_names() -> Vec<String> {
    let stem = |path: PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    files(&folder().join("c"), &[".c"]).into_iter().filter_map(stem).collect()
}

fn growth_sources(name: &str) -> (PathBuf, Vec<PathBuf>) {
    let growth = folder().join("growth");
    let mut headers = files(&growth, &[".h"]);
    headers.extend(files(&folder().join("c"), &[".h"]));
    (growth.join(format!("{name}.c")), headers)
}

/// The plugin in `tests/fixtures/growth` of this name.
pub fn growth(name: &str) -> PathBuf {
    let (source, headers) = growth_sources(name);
    c_library(&format!("growth_{name}"), &[source], &headers)
}

/// The same plugin, linked into a program that is a later host: see `tests/fixtures/growth/host`.
pub fn later_host(name: &str) -> PathBuf {
    let (source, headers) = growth_sources(name);
    let host = folder().join("growth/host/later.c");
    c_program(&format!("later_host_{name}"), &[host, source], &headers)
}

/// A text file under the name of a library.
///
/// # Panics
/// When it cannot be written.
pub fn text() -> PathBuf {
    let path = output("c").join("libfixture_text.so");
    locked("fixture_text", || fs::write(&path, "This is a text, whatever its name says.\n"))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The library that a workspace's package was built to.
fn built(target: &Path, profile: &str, name: &str) -> PathBuf {
    let (prefix, suffix) = (env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let path = target.join(profile).join(format!("{prefix}{name}{suffix}"));
    assert!(path.is_file(), "{}: not built", path.display());
    path
}

/// Takes the versions of the root workspace, so that everything that is needed is there without a network.
fn copy_lock(to: &Path) {
    let (from, to) = (repository().join("Cargo.lock"), to.join("Cargo.lock"));
    if !is_current(&to, std::slice::from_ref(&from)) {
        fs::copy(&from, &to).unwrap_or_else(|e| panic!("{}: {e}", to.display()));
    }
}

/// The fixture in Rust of this name, built with a profile of the fixtures' workspace.
fn rust(name: &str, profile: &str) -> PathBuf {
    let target = target_of_others();
    locked("fixtures", || {
        copy_lock(&folder());
        let package = format!("fixture-{}", name.replace('_', "-"));
        run(cargo()
            .args(["build", "--offline", "--quiet", "--profile", profile, "-p", &package])
            .env_remove("RUSTFLAGS")
            .env("CARGO_TARGET_DIR", &target)
            .current_dir(folder()));
    });
    built(&target, if profile == "dev" { "debug" } else { profile }, &format!("fixture_{name}"))
}

/// A plugin that is built to abort on panics.
pub fn panic_abort() -> PathBuf {
    rust("panic_abort", "aborting")
}

/// A plugin that panics while it registers.
pub fn panics_registering() -> PathBuf {
    rust("panics_registering", "dev")
}

/// A plugin in Rust with a kernel that needs a feature which no processor has.
pub fn unknown_feature() -> PathBuf {
    rust("unknown_feature", "dev")
}

/// Where one field of the boundary has another type.
const CHANGED: (&str, &str, &str) =
    ("src/tensor.rs", "    pub flags: u32,\n", "    pub flags: i32,\n");

/// A plugin built against a copy of `core/abi` in which [`Slot::flags`](tenon_abi::Slot::flags) is signed.
///
/// # Panics
/// When the copy cannot be made, or the field is not found in it.
pub fn changed_layout() -> PathBuf {
    let (workspace, target) = (output("changed_layout"), target_of_others());
    locked("fixtures", || {
        copy_tree(&repository().join("core/abi/src"), &workspace.join("abi/src"));
        copy_tree(&folder().join("changed_layout/src"), &workspace.join("plugin/src"));
        copy(&folder().join("changed_layout/Cargo.toml"), &workspace.join("plugin/Cargo.toml"));
        write_changed(&workspace.join("abi").join(CHANGED.0));
        write(&workspace.join("abi/Cargo.toml"), &abi_manifest());
        write(&workspace.join("Cargo.toml"), &workspace_manifest());
        copy_lock(&workspace);
        run(cargo()
            .args(["build", "--offline", "--quiet", "-p", "fixture-changed-layout"])
            .env_remove("RUSTFLAGS")
            .env("CARGO_TARGET_DIR", &target)
            .current_dir(&workspace));
    });
    built(&target, "debug", "fixture_changed_layout")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Writes a file only when it changes: cargo goes by times.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return;
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    }
    fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn copy(from: &Path, to: &Path) {
    write(to, &read(from));
}

fn copy_tree(from: &Path, to: &Path) {
    let listed = fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
    for path in listed.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy_tree(&path, &to.join(name));
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with(CHANGED.0) {
            copy(&path, &to.join(name));
        }
    }
}

/// The file with the field, changed.
fn write_changed(path: &Path) {
    let (file, from, to) = CHANGED;
    let text = read(&repository().join("core/abi").join(file));
    assert_eq!(text.matches(from).count(), 1, "{file} has one line {from:?}");
    write(path, &text.replace(from, to));
}

/// The manifest of `core/abi`, without its tests.
fn abi_manifest() -> String {
    let text = read(&repository().join("core/abi/Cargo.toml"));
    let end = text.find("[dev-dependencies]").unwrap_or(text.len());
    let tests = text.find("[[test]]").zip(text.find("[lints]"));
    match tests {
        Some((begin, after)) if begin < after => format!("{}{}", &text[..begin], &text[after..end]),
        _ => text[..end].to_owned(),
    }
}

/// A workspace of the two packages, with the versions of the root's.
fn workspace_manifest() -> String {
    let root = read(&repository().join("Cargo.toml"));
    let line = |name: &str| {
        let found = root.lines().find(|line| line.starts_with(&format!("{name} = ")));
        found.unwrap_or_else(|| panic!("the root's Cargo.toml has a line of {name}")).to_owned()
    };
    let begin = root.find("[workspace.package]").expect("the root has workspace.package");
    let after = root[begin..].find("\n\n").map_or(root.len(), |end| begin + end);
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"abi\", \"plugin\"]\n\n{}\n\n\
         [workspace.dependencies]\ntenon-abi = {{ path = \"abi\" }}\n{}\n\n\
         [workspace.lints.rust]\nunsafe_op_in_unsafe_fn = \"deny\"\n\n\
         [profile.dev]\ndebug = false\n",
        &root[begin..after],
        line("abi_stable"),
    )
}
