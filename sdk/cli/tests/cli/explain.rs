//! `tenon explain`.

use crate::support::Place;
use tenon_runtime::{
    framework::{
        DType, PartialShape, Tensor,
        attr::{AttrList, AttrValue},
        registry::Registry,
    },
    graph::{GraphBuilder, GraphError},
    host::Plugins,
};

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
    assert!(one.contains("identity: 'passed' is bypassed"), "{one}");
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

#[test]
fn a_variable_left_over_stops_only_what_needs_it() {
    let place = Place::new();
    let graph = place.leftover("g.pb");
    let text = place.text(&["explain", &graph]);
    assert!(text.contains("layer/y (Relu) on CPU:0"), "{text}");
    let lost = "step (NobodysVariable) cannot run: op 'NobodysVariable' is not registered";
    assert!(text.contains(lost), "{text}");
    let read = "step/read (Relu) cannot run: it needs node 'step', whose op 'NobodysVariable' is";
    assert!(text.contains(read), "{text}");
    let explained = place.json(&["explain", &graph, "step"]);
    assert_eq!(explained["nodes"][0]["blocked"], "op 'NobodysVariable' is not registered");
    let x = place.array("x.npy", &Tensor::from_slice(&[2], &[-1.0f32, 2.0]).unwrap());
    let feed = format!("x={x}");
    let output = place.tenon(&["run", &graph, "--feed", &feed, "--fetch", "layer/y"]);
    let said = crate::support::stderr(&output);
    assert!(output.status.success(), "{said}");
    let warning =
        "warning: attributes that their ops do not have are ignored: 'colour' of node 'layer/y'";
    assert_eq!(said.matches("do not have are ignored").count(), 1, "{said}");
    assert!(said.contains(warning), "{said}");
    let error = place.error(&["run", &graph, "--feed", &feed, "--fetch", "step/read"]);
    assert!(
        error.contains("needed ops are not registered: 'NobodysVariable' (node 'step')"),
        "{error}"
    );
    assert!(error.contains("TENON_PLUGIN_PATH") && error.contains("--plugin"), "{error}");
}

/// Defines a function of two numbers.
fn define(
    b: &mut GraphBuilder<'_>,
    registry: &Registry,
    name: &str,
    op: &str,
    value: i32,
) -> Result<(), GraphError> {
    let mut body = GraphBuilder::new(registry);
    let i = body.placeholder("i", DType::INT32, PartialShape::UNKNOWN)?;
    let value = body.constant("value", Tensor::scalar(value).unwrap())?;
    let y = body.op(op).name("y").input(i).input(value).build()?;
    b.define(name, &body.finish(), &[i], &[y.into()])
}

#[test]
fn loops_and_calls_are_shown_by_the_nodes_that_run() {
    let place = Place::new();
    let registry = Plugins::new().unwrap().registry();
    let graph = place.graph("g.pb", |b| {
        define(b, &registry, "below", "Less", 10)?;
        define(b, &registry, "next", "AddV2", 1)?;
        let x = b.placeholder("x", DType::INT32, PartialShape::UNKNOWN)?;
        let node = b.op("StatelessWhile").name("loop").input(x);
        node.attr("cond", AttrValue::function("below"))
            .attr("body", AttrValue::function("next"))
            .build()?;
        let call = b.op("PartitionedCall").name("call").input(x);
        let call = call.attr("f", AttrValue::function("next"));
        call.attr("Tout", AttrValue::List(AttrList::Type(vec![DType::INT32]))).build().map(drop)
    });
    let explained = place.json(&["explain", &graph]);
    let nodes = explained["nodes"].as_array().unwrap();
    let of = |op: &str, prefix: &str| {
        let found = nodes.iter().find(|node| {
            node["op"] == op && node["node"].as_str().is_some_and(|name| name.starts_with(prefix))
        });
        found.unwrap_or_else(|| panic!("no {op} of {prefix}: {explained}"))
    };
    assert_eq!(of("AddV2", "loop")["frame"], "loop");
    assert_eq!(of("Less", "loop")["frame"], "loop");
    assert!(of("AddV2", "call")["frame"].is_null(), "it is in no loop");
    let text = place.text(&["explain", &graph, "loop"]);
    assert!(text.contains("in loop 'loop'"), "{text}");
}
