//! Modules inside of crates.

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
