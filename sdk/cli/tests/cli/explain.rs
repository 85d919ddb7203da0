//! `tenon explain`.

use crate::support::Place;
use tenon_runtime::framework::{DType, PartialShape, Tensor};

#[test]
fn a_node_is_explained_with_candidates_winner_and_place() {
    let place = Place::new();
    let graph = place.relu("g.pb");
    let explained = place.json(&["explain", &graph, "layer/y"]);
    let nodes = explained["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0]["node"], "layer/y");
    assert!(nodes[0]["device"].as_str().unwrap().ends_with("/device:CPU:0"));
    let candidates = nodes[0]["candidates"].as_array().unwrap();
    let winners: Vec<_> = candidates.iter().filter(|c| c["wins"] == true).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(winners[0]["kernel"]["plugin"], "tenon-cpu");
    let on_request = candidates.iter().find(|c| c["kernel"]["label"] == "reference").unwrap();
    assert!(on_request["removed"].is_string() && on_request["wins"] == false);
    for candidate in candidates {
        assert_ne!(candidate["removed"].is_null(), candidate["wins"] == false, "{candidate}");
    }
}

#[test]
fn a_device_option_moves_nodes_and_text_says_so() {
    let place = Place::new();
    let graph = place.relu("g.pb");
    let text = place.text(&["explain", &graph, "--device", "ACCEL:1"]);
    assert!(text.contains("layer/y (Relu) on ACCEL:1"), "{text}");
    assert!(text.contains("x (Placeholder)") && text.contains("> kernel on ACCEL"), "{text}");
}

#[test]
fn an_unknown_node_is_an_error() {
    let place = Place::new();
    let graph = place.relu("g.pb");
    let error = place.error(&["explain", &graph, "layer/z"]);
    assert!(error.contains("layer/z") && error.contains("layer/y"), "{error}");
}

#[test]
fn passes_are_told_with_what_they_did_to_which_node() {
    let place = Place::new();
    let graph = place.graph("g.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        let one = b.constant("one", Tensor::scalar(1f32).unwrap())?;
        let scaled = b.op("Mul").name("scaled").input(x).input(one).build()?;
        let passed = b.op("Identity").name("passed").input(scaled).build()?;
        b.op("Relu").name("y").input(passed).build().map(drop)
    });
    let text = place.text(&["explain", &graph]);
    assert!(text.contains("passes: 4 nodes before, 1 after"), "{text}");
    assert!(
        text.contains("arithmetic") && text.contains("'scaled' has a neutral operand"),
        "{text}"
    );
    let one = place.text(&["explain", &graph, "passed"]);
    assert!(one.contains("identity: 'passed' is passed by"), "{one}");
    let off = place.json(&["explain", &graph, "--set", "graph.identity=false"]);
    let passes = off["passes"]["passes"].as_array().unwrap();
    let identity = passes.iter().find(|pass| pass["pass"] == "identity").unwrap();
    assert_eq!(identity["skipped"], "knob graph.identity is false");
    assert_eq!(off["passes"]["before"], 4);
    let none = place.text(&["explain", &graph, "--set", "graph.optimize=false"]);
    assert!(none.contains("no pass runs over the graph"), "{none}");
    let fetched = place.text(&["explain", &graph, "--fetch", "scaled"]);
    assert!(fetched.contains("passes: 2 nodes before, 1 after"), "{fetched}");
}
