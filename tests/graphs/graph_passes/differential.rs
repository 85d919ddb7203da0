//! The same results whichever passes run.

use super::random::{Maker, Plan};
use std::collections::BTreeMap;
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    framework::{DType, Tensor},
    optimize::BUILT_IN,
    proto::GraphDef,
};
use tenon_tests::session::{graph, runtime};

/// Graphs that are made; the seed of each is its number.
const GRAPHS: u64 = 120;
const NODES: usize = 40;

/// Knobs by which only this pass runs, or all, or none.
fn only(pass: &str) -> BTreeMap<String, String> {
    let set = |name: &str, on: bool| (format!("graph.{name}"), on.to_string());
    match pass {
        "all" => BTreeMap::new(),
        "none" => BTreeMap::from([set("optimize", false)]),
        only => {
            BUILT_IN.iter().filter(|name| **name != only).map(|name| set(name, false)).collect()
        }
    }
}

fn results(
    runtime: &Runtime,
    def: &GraphDef,
    plan: &Plan,
    pass: &str,
) -> Result<Vec<Tensor>, String> {
    let options = SessionOptions { knobs: only(pass), ..SessionOptions::default() };
    let session = Session::new(runtime, options).map_err(|error| error.to_string())?;
    session.extend(def).map_err(|error| error.to_string())?;
    let feeds: Vec<(&str, Tensor)> =
        plan.feeds.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let fetches: Vec<&str> = plan.fetches.iter().map(String::as_str).collect();
    let step = tenon_runtime::CallableOptions {
        feeds: plan.feeds.iter().map(|(name, _)| name.clone()).collect(),
        fetches: plan.fetches.clone(),
        targets: Vec::new(),
        ..tenon_runtime::CallableOptions::default()
    };
    let report = session.explain_passes(Some(&step)).map_err(|error| error.to_string())?;
    if let Some((pass, error)) = report.failures().next() {
        return Err(format!("pass {pass} fails: {error}"));
    }
    let run = session.run(&feeds, &fetches, &[], &RunOptions::default());
    run.map(|(values, _)| values).map_err(|error| error.to_string())
}

/// Passes that may have another kernel add up the same terms, in an order of its own.
const REORDERING: [&str; 2] = ["layout", "all"];
/// What a sum of a few hundred terms loses by its order, relative to the greatest number of the tensor.
const ROUNDINGS: f32 = 1e-5;

/// Whether two tensors are equal, NaN with any NaN; floats but for what the order of sums changes, where it may be another.
fn same(a: &Tensor, b: &Tensor, in_order: bool) -> bool {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return false;
    }
    match a.dtype() {
        DType::FLOAT => {
            let (a, b) =
                (a.as_slice::<f32>().expect("floats"), b.as_slice::<f32>().expect("floats"));
            let finite = a.iter().filter(|a| a.is_finite());
            let most = finite.fold(0.0, |most: f32, a| most.max(a.abs())) * ROUNDINGS;
            a.iter().zip(b).all(|(a, b)| {
                let is_near = !in_order && (a - b).abs() <= most;
                a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) || is_near
            })
        }
        _ => a.as_bytes().expect("plain elements") == b.as_bytes().expect("plain elements"),
    }
}

#[test]
fn random_graphs_give_the_same_whichever_passes_run() {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let (mut before, mut after) = (0, 0);
    for seed in 0..GRAPHS {
        let mut plan = Plan::default();
        let made = graph(&runtime, |b| {
            plan = Maker::build(b, seed, NODES)?;
            Ok(())
        });
        let def = made.to_graph_def().expect("a built graph can be written");
        let expected = results(&runtime, &def, &plan, "none");
        let expected = expected.unwrap_or_else(|error| panic!("graph {seed}: {error}"));
        for pass in BUILT_IN.iter().copied().chain(["all"]) {
            let found = results(&runtime, &def, &plan, pass);
            let found = found.unwrap_or_else(|error| panic!("graph {seed}, {pass}: {error}"));
            for ((name, a), b) in plan.fetches.iter().zip(&expected).zip(&found) {
                assert!(
                    same(a, b, !REORDERING.contains(&pass)),
                    "graph {seed}, {pass}: {name} is {b:?} {:?}, was {a:?} {:?}",
                    b.as_slice::<f32>(),
                    a.as_slice::<f32>()
                );
            }
        }
        let session = Session::new(&runtime, SessionOptions::default()).expect("a session");
        session.extend(&def).expect("a built graph can be read");
        let report = session.explain_passes(None).expect("the graph is right");
        (before, after) = (before + report.before, after + report.after);
    }
    // The graphs have something to simplify: the test would say nothing otherwise.
    assert!(after * 10 < before * 9, "{before} nodes before, {after} after");
}
