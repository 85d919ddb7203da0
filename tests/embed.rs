//! The example of core/runtime for embedders, run as it is.

#[path = "../core/runtime/examples/embed.rs"]
mod embed;

use tenon_tests::session::{library, turn};

/// No example showed a runtime from its plugins to a result, so that the first program of an embedder found no device.
#[test]
fn the_example_for_embedders_loads_runs_and_replaces() {
    let _turn = turn();
    let plugins = ["tenon_cpu", "zoo_rust", "zoo_second"].map(library);
    let newer = library("zoo_second_next");
    let results = embed::embed(plugins.to_vec(), Some(newer)).expect("the example runs");
    assert_eq!(results, [[1.0, 1.5, 4.0]; 3]);
}
