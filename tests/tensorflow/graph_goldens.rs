//! Graphs written by TensorFlow, run in sessions: on the CPU, on ACCEL where it has the kernels, and split over
//! both, with TensorFlow's results and refusals.

use std::{collections::BTreeSet, path::Path, time::Duration};
use tenon_runtime::{RunOptions, Runtime, RuntimeError, Session, SessionOptions, proto::GraphDef};
use tenon_testkit::{
    compare::compare,
    graphs::{GraphGolden, GraphRun, RunExpected, read_graphs},
};
use tenon_tests::session::runtime;

/// Where the nodes of a graph are put that name no device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placing {
    /// All on the CPU.
    Cpu,
    /// On ACCEL, where it has a kernel.
    Accel,
    /// In turn on the CPU and on ACCEL, where it has a kernel.
    Split,
}

const PLACINGS: [Placing; 3] = [Placing::Cpu, Placing::Accel, Placing::Split];

/// Graphs of which ACCEL computes nothing: their nodes name other devices, or are with nodes that do, or it has no
/// kernels for their ops (`BatchMatMulV2`, `LeakyRelu`).
const NOTHING_ON_ACCEL: &[(&str, Placing)] = &[
    ("colocation", Placing::Split),
    ("partial_devices", Placing::Split),
    ("old_writer", Placing::Accel),
    ("old_writer", Placing::Split),
    ("silent_writer", Placing::Accel),
    ("silent_writer", Placing::Split),
    ("newer_writer", Placing::Accel),
    ("newer_writer", Placing::Split),
];

/// A step that hangs fails instead.
const DEADLINE: Duration = Duration::from_secs(30);

fn goldens() -> Vec<GraphGolden> {
    read_graphs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens/graphs")).unwrap()
}

/// The graph with devices for this way of placing. Nodes that name a device keep it, and those that stand with
/// another stay with it.
fn placed(graph: &GraphDef, placing: Placing) -> GraphDef {
    let mut graph = graph.clone();
    if placing == Placing::Split {
        for (at, node) in graph.node.iter_mut().enumerate() {
            if node.device.is_empty() && !node.attr.contains_key("_class") {
                let device = if at % 2 == 0 { "/device:CPU:0" } else { "/device:ACCEL:0" };
                node.device = device.to_owned();
            }
        }
    }
    graph
}

fn session(
    runtime: &Runtime,
    golden: &GraphGolden,
    placing: Placing,
) -> Result<Session, RuntimeError> {
    let device = match placing {
        Placing::Cpu => Some("/device:CPU:0"),
        Placing::Accel => Some("/device:ACCEL:0"),
        Placing::Split => None,
    };
    let options = SessionOptions {
        device: device.map(str::to_owned),
        soft_placement: Some(true),
        ..SessionOptions::default()
    };
    let session = Session::new(runtime, options)?;
    session.extend(&placed(&golden.graph, placing))?;
    Ok(session)
}

/// Runs one run; the types of devices that computed, or what is wrong.
pub fn check(
    session: &Session,
    golden: &GraphGolden,
    run: &GraphRun,
) -> Result<BTreeSet<String>, String> {
    let feeds: Vec<_> =
        run.feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let names: Vec<&str> = match &run.expected {
        RunExpected::Fetches(fetches) => fetches.iter().map(|(name, _)| name.as_str()).collect(),
        RunExpected::Error { fetches, .. } => fetches.iter().map(String::as_str).collect(),
    };
    let targets: Vec<&str> = run.targets.iter().map(String::as_str).collect();
    let options = RunOptions { deadline: Some(DEADLINE), ..RunOptions::default() };
    let ran = session.run(&feeds, &names, &targets, &options);
    let (fetched, metadata) = match (&run.expected, ran) {
        (RunExpected::Fetches(_), Ok(ran)) => ran,
        (RunExpected::Fetches(_), Err(error)) => return Err(format!("{}: {error}", error.code())),
        (RunExpected::Error { code, .. }, Ok(_)) => {
            return Err(format!("expected {code}, it was accepted"));
        }
        (RunExpected::Error { code, .. }, Err(error)) if error.code() == *code => {
            return Ok(BTreeSet::new());
        }
        (RunExpected::Error { code, .. }, Err(error)) => {
            return Err(format!("expected {code}, refused with {}: {error}", error.code()));
        }
    };
    let RunExpected::Fetches(expected) = &run.expected else { return Ok(BTreeSet::new()) };
    for ((name, expected), got) in expected.iter().zip(&fetched) {
        compare(got, expected, &golden.rule).map_err(|mismatch| format!("{name}: {mismatch}"))?;
    }
    if fetched.len() != expected.len() {
        return Err(format!("{} fetches give {} tensors", expected.len(), fetched.len()));
    }
    let device_type =
        |name: &str| name.rsplit_once("device:").map_or("", |(_, rest)| rest).to_owned();
    Ok(metadata.nodes.iter().map(|node| device_type(&node.device)).collect())
}

/// Runs all runs of a graph, each twice, since the second finds the step prepared and after an error the session
/// must go on.
fn run(runtime: &Runtime, golden: &GraphGolden, placing: Placing) -> Result<(), String> {
    let session = session(runtime, golden, placing).map_err(|error| error.to_string())?;
    let mut devices = BTreeSet::new();
    for round in 0..2 {
        for run in &golden.runs {
            let used = check(&session, golden, run)
                .map_err(|error| format!("run {} (round {round}): {error}", run.number))?;
            devices.extend(used);
        }
    }
    let on_accel = devices.contains("ACCEL:0");
    let expected =
        placing != Placing::Cpu && !NOTHING_ON_ACCEL.contains(&(golden.name.as_str(), placing));
    if on_accel != expected {
        return Err(format!("ACCEL is to compute: {expected}; the devices are {devices:?}"));
    }
    Ok(())
}

/// Runs one graph in each way.
fn graph(name: &str) {
    let goldens = goldens();
    let golden = goldens.iter().find(|golden| golden.name == name).unwrap();
    let runtime = runtime(&["tenon_cpu", "tenon_accel"], &[]);
    let mut wrong = Vec::new();
    for placing in PLACINGS {
        if let Err(error) = run(&runtime, golden, placing) {
            wrong.push(format!("{placing:?}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{name} ({}):\n{}", golden.about, wrong.join("\n"));
}

macro_rules! graphs {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                graph(stringify!($name));
            }
        )*

        #[test]
        fn every_graph_has_a_test() {
            let names: Vec<String> = goldens().into_iter().map(|golden| golden.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

graphs! {
    mlp,
    cnn,
    function_library,
    strings,
    unknown_dims,
    constants,
    control_dependencies,
    colocation,
    partial_devices,
    cond_v1,
    switch_merge,
    while_v1,
    while_nested_v1,
    while_less_v1,
    old_writer,
    silent_writer,
    strict_writer,
    newer_writer,
    broadcasting_constants,
    rounded_constants,
    unread_values,
}
