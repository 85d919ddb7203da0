//! `tenon tune`: what it measures, and what later commands know of it.

use crate::support::Place;
use serde_json::Value;
use std::fs;
use tenon_runtime::framework::{DType, PartialShape, Tensor};

/// A graph with a convolution, which several kernels take.
fn convolution(place: &Place) -> String {
    place.graph("g.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[1, 28, 28, 64]).unwrap())?;
        let filter: Vec<f32> = (0..3 * 3 * 64 * 64).map(|at| (at % 7) as f32 - 3.0).collect();
        let filter = b.constant("filter", Tensor::from_slice(&[3, 3, 64, 64], &filter).unwrap())?;
        let node = b.op("Conv2D").name("conv").input(x).input(filter);
        node.attr("strides", vec![1i64, 1, 1, 1]).attr("padding", "SAME").build().map(drop)
    })
}

fn measured(explained: &Value) -> usize {
    let candidates = explained["nodes"][0]["candidates"].as_array().unwrap();
    candidates.iter().filter(|candidate| candidate["measured_ns"].is_number()).count()
}

#[test]
fn a_graph_that_was_tuned_is_explained_with_times() {
    let place = Place::new();
    let graph = convolution(&place);
    let cache = format!("runtime.tune_cache={}", place.arg("times"));
    let any = ["--set", &cache, "--set", "runtime.tune_contract=any"];
    let explain = ["explain", &graph, "conv", "--set", "runtime.policy=measured"];
    let before = place.json(&[&explain[..], &any].concat());
    assert_eq!(measured(&before), 0, "explain measures nothing");
    let decisions = place.json(&[&["tune", &graph][..], &any].concat());
    let [decision] = &decisions.as_array().unwrap()[..] else { panic!("one node: {decisions}") };
    assert_eq!(decision["node"], "conv");
    assert!(decision["call"].as_str().unwrap().starts_with("Conv2D float[1,32,32,64] =float["));
    let kernels = decision["kernels"].as_array().unwrap();
    assert!(kernels.len() >= 2 && kernels.iter().all(|kernel| kernel["ns"].as_f64() > Some(0.0)));
    assert_eq!(fs::read_dir(place.path("times")).unwrap().count(), 1, "one file for this machine");
    let after = place.json(&[&explain[..], &any].concat());
    assert_eq!(measured(&after), kernels.len());
    let text = place.text(&[&["tune", &graph][..], &any].concat());
    assert!(text.contains("of 1 node with a choice runs on another kernel"), "{text}");
}

#[test]
fn every_kernel_is_told_with_its_time_or_why_it_was_left_out() {
    let place = Place::new();
    let graph = convolution(&place);
    let cache = format!("runtime.tune_cache={}", place.arg("times"));
    let text = place.text(&["tune", &graph, "--set", &cache]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("NODE") && lines[0].ends_with("WHY"), "{text}");
    assert!(lines[1].starts_with("conv") && lines[1].ends_with("runs"), "{text}");
    // The kernel that is labelled as the reference is never chosen, and one may promise less than the first.
    let left_out = lines.iter().filter(|line| line.contains("left out: ")).count();
    assert!(left_out > 0 && text.contains("runs on request only"), "{text}");
    let any = ["tune", &graph, "--set", &cache, "--set", "runtime.tune_contract=any"];
    let decisions = place.json(&any);
    let candidates = decisions[0]["candidates"].as_array().unwrap();
    let timed: Vec<f64> = candidates.iter().filter_map(|tried| tried["ns"].as_f64()).collect();
    assert_eq!(timed.len(), decisions[0]["kernels"].as_array().unwrap().len(), "{decisions}");
    assert!(candidates.iter().all(|tried| tried["why"] != ""), "{decisions}");
}

#[test]
fn a_node_that_passes_make_is_explained_with_times_too() {
    let place = Place::new();
    let graph = place.graph("g.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 28, 28, 64]).unwrap())?;
        let filter = Tensor::from_slice(&[3, 3, 64, 64], &[0.5f32; 3 * 3 * 64 * 64]).unwrap();
        let filter = b.constant("filter", filter)?;
        let conv = b.op("Conv2D").name("conv").input(x).input(filter);
        let conv = conv.attr("strides", vec![1i64, 1, 1, 1]).attr("padding", "SAME").build()?;
        let bias = b.constant("bias", Tensor::from_slice(&[64], &[1.0f32; 64]).unwrap())?;
        let sum = b.op("BiasAdd").name("sum").input(conv).input(bias).build()?;
        b.op("Relu").name("y").input(sum).build().map(drop)
    });
    let cache = format!("runtime.tune_cache={}", place.arg("times"));
    let any = ["--shape", "x=1x28x28x64", "--set", &cache, "--set", "runtime.tune_contract=any"];
    let decisions = place.json(&[&["tune", &graph][..], &any].concat());
    let node = decisions[0]["node"].as_str().expect("one node has a choice").to_owned();
    let explain = ["explain", &graph, &node, "--set", "runtime.policy=measured"];
    let explained = place.json(&[&explain[..], &any].concat());
    let made = explained["made"].as_array().unwrap();
    assert_eq!((made.len(), &made[0]["op"]), (1, &"_FusedConv2D".into()), "{explained}");
    let candidates = made[0]["candidates"].as_array().unwrap();
    let times = candidates.iter().filter(|candidate| candidate["measured_ns"].is_number());
    assert_eq!(times.count(), decisions[0]["kernels"].as_array().unwrap().len());
    let text = place.text(&[&["explain", &graph][..], &any[..2]].concat());
    assert!(text.contains(&format!("made by passes: {node} (_FusedConv2D)")), "{text}");
}

#[test]
fn what_cannot_be_tuned_is_said() {
    let place = Place::new();
    let same = place.graph("same.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[4]).unwrap())?;
        b.op("Identity").name("y").input(x).build().map(drop)
    });
    let none = place.json(&["tune", &same]);
    assert_eq!(none.as_array().unwrap().len(), 0, "one kernel leaves no choice");
    let open = place.graph("open.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1]).unwrap())?;
        b.op("Relu").name("y").input(x).build().map(drop)
    });
    let error = place.error(&["tune", &open]);
    assert!(error.contains("give its sizes by --shape x=SHAPE"), "{error}");
    let wrong = place.error(&["tune", &open, "--shape", "z=4"]);
    assert!(wrong.contains("has no placeholder 'z'"), "{wrong}");
}
