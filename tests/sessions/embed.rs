//! The example of core/runtime for embedders, run as it is.

#[path = "../../core/runtime/examples/embed.rs"]
mod example;

use tenon_tests::session::{library, turn};

/// No example showed a runtime from its plugins to a result, so that the first program of an embedder found no device.
#[test]
fn the_example_for_embedders_loads_runs_and_replaces() {
    let _turn = turn();
    let plugins = ["tenon_cpu", "zoo_rust", "zoo_second"].map(library);
    let newer = library("zoo_second_next");
    let results = example::embed(plugins.to_vec(), Some(newer)).expect("the example runs");
    assert_eq!(results, [[1.0, 1.5, 4.0]; 3]);
}

/// Errors were printed as their fields, with the names of Rust's types.
#[test]
fn an_error_is_told_in_words_with_its_cause() {
    let _turn = turn();
    let newer = Some("nowhere/libzoo.so".into());
    let error =
        example::embed(vec![library("tenon_cpu")], newer).expect_err("there is no such file");
    let told = example::told(&*error);
    assert!(told.contains("nowhere/libzoo.so") && !told.contains('{'), "{told}");

    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the weights cannot be read")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let outer = Outer(std::io::Error::other("the disk is full"));
    assert_eq!(example::told(&outer), "the weights cannot be read\n  since the disk is full");
}
