//! Modules inside of crates, and tests beside them.

use super::tree;

/// The modules of integration tests: a file beside the folder would be a test program of its own.
const HELPERS_OF_TESTS: &[tree::Exception] = &[
    tree::Exception { place: "core/abi/tests/", reason: "helpers of integration tests" },
    tree::Exception { place: "plugins/accel/tests/", reason: "helpers of integration tests" },
    tree::Exception { place: "plugins/cuda/tests/", reason: "helpers of integration tests" },
];

#[test]
fn a_module_with_children_is_a_file_beside_its_folder() {
    let files = tree::sources(|name| name == "mod.rs");
    let inside = files.iter().map(|file| {
        let folder = file.path.trim_end_matches("/mod.rs");
        (file.path.clone(), format!("expected {folder}.rs"))
    });
    tree::expect_none("a module is named foo.rs, beside foo/", HELPERS_OF_TESTS, inside.collect());
}

/// The lines of a manifest's table for the library.
fn library(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[lib]").skip(1);
    lines.take_while(|line| !line.starts_with('[')).map(str::trim)
}

/// A crate without tests beside its code, or without examples in its documentation, says so: cargo would build it once
/// more, and read all of it, for nothing. What says so must stay true.
#[test]
fn tests_that_a_manifest_switches_off_are_not_there() {
    let manifests = tree::sources(|name| name == "Cargo.toml");
    let sources = tree::sources(|name| name.ends_with(".rs"));
    let (mut seen, mut found) = (0, Vec::new());
    for manifest in &manifests {
        let off = |line: &str| library(&manifest.text).any(|there| there == line);
        let (tests, examples) = (off("test = false"), off("doctest = false"));
        seen += usize::from(tests) + usize::from(examples);
        let code = format!("{}src/", manifest.path.trim_end_matches("Cargo.toml"));
        for source in sources.iter().filter(|source| source.path.starts_with(&code)) {
            let has = |what: &str| source.text.lines().any(|line| line.trim().starts_with(what));
            if tests && (has("#[test]") || has("proptest!")) {
                found.push((source.path.clone(), format!("{}: 'test = false'", manifest.path)));
            }
            if examples && (has("/// ```") || has("//! ```")) {
                found.push((source.path.clone(), format!("{}: 'doctest = false'", manifest.path)));
            }
        }
    }
    assert!(seen > 20, "found only {seen} lines that switch tests off");
    tree::expect_none("what is switched off in a manifest is not in the code", &[], found);
}
