//! Gradients of whole graphs against TensorFlow's: `tests/goldens/gradient_graphs`.

use super::numeric::dense;
use serde_json::Value;
use std::{fs, path::PathBuf};
use tenon_gradient::{Options, gradients};
use tenon_graph::{Graph, GraphBuilder, Output};
use tenon_runtime::{Runtime, Session, SessionOptions, framework::Tensor, proto::decode_graph_def};
use tenon_tests::session::{run, runtime};

fn folder() -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let own = tests.join("goldens/gradient_graphs");
    if own.is_dir() { own } else { tests.join("../tests/goldens/gradient_graphs") }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn tensor(value: &Value) -> Tensor {
    let numbers = |name: &str| value[name].as_array().unwrap().clone();
    let dims: Vec<i64> = numbers("shape").iter().map(|n| n.as_i64().unwrap()).collect();
    let values: Vec<f64> = numbers("values").iter().map(|n| n.as_f64().unwrap()).collect();
    Tensor::from_slice(&dims, &values).unwrap()
}

/// Compares the gradients of one graph.
fn compare(runtime: &Runtime, case: &Value) {
    let name = case["name"].as_str().unwrap();
    let bytes = fs::read(folder().join(format!("{name}.pb"))).unwrap();
    let def = decode_graph_def(&bytes).unwrap();
    let registry = runtime.registry();
    let mut b = GraphBuilder::extending(Graph::import(&def, &registry).unwrap(), &registry);
    let outputs = |b: &GraphBuilder<'_>, key: &str| -> Vec<Output> {
        texts(&case[key]).iter().map(|name| b.graph().tensor(name).unwrap()).collect()
    };
    let (mut ys, xs) = (outputs(&b, "ys"), outputs(&b, "xs"));
    let mut made = Vec::new();
    for _ in 0..case["order"].as_u64().unwrap() {
        let found = gradients(&mut b, &ys, &xs, &Options::default());
        made = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        let given: Vec<_> = made.iter().zip(&xs).filter_map(|(g, x)| Some(((*g)?, *x))).collect();
        ys = given.into_iter().map(|(gradient, x)| dense(&mut b, gradient, x)).collect();
    }
    let fetches: Vec<String> = ys.iter().map(|&y| b.graph().output_name(y)).collect();
    let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
    let session = Session::new(runtime, SessionOptions::default()).unwrap();
    session.extend_graph(&b.finish()).unwrap();
    let feeds: Vec<Tensor> = case["feeds"].as_array().unwrap().iter().map(tensor).collect();
    let names = texts(&case["xs"]);
    let feeds: Vec<(&str, Tensor)> = names.iter().map(String::as_str).zip(feeds).collect();
    let results = run(&session, &feeds, &fetches).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut results = results.iter();
    for (at, expected) in case["gradients"].as_array().unwrap().iter().enumerate() {
        assert_eq!(made[at].is_none(), expected.is_null(), "{name}: gradient {at}");
        if expected.is_null() {
            continue;
        }
        let (found, expected) = (results.next().unwrap(), tensor(expected));
        assert_eq!(found.shape(), expected.shape(), "{name}: gradient {at}");
        let pairs =
            found.as_slice::<f64>().unwrap().iter().zip(expected.as_slice::<f64>().unwrap());
        for (found, expected) in pairs {
            let near = (found - expected).abs() <= 1e-11 * expected.abs().max(1.0);
            assert!(near, "{name}: gradient {at}: {found}, expected {expected}");
        }
    }
}

#[test]
fn whole_graphs() {
    let runtime = runtime(&["tenon_cpu", "tenon_data"], &[]);
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let cases = index["cases"].as_array().unwrap();
    let is_random = |case: &&Value| case["name"].as_str().unwrap().starts_with("random_");
    let random = cases.iter().filter(is_random).count();
    assert!(random >= 60, "expected 60 random graphs, found {random}");
    assert!(cases.len() >= random + 9, "expected 9 other graphs, found {}", cases.len() - random);
    for case in cases {
        compare(&runtime, case);
    }
}
