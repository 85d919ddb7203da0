//! `tenon explain`.

use crate::support::Place;

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
