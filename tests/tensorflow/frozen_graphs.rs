//! Whole models that TensorFlow froze, with its results: small variants of VGG19, ResNet50, MobileNetV2, a layer of
//! BERT-base, Keras' attention and a multilayer perceptron. With `TENON_FROZEN=FOLDER`, the large ones of
//! `tests/goldens/freeze.py FOLDER` instead.

use std::{collections::BTreeSet, path::PathBuf, time::Instant};
use tenon_runtime::{RunOptions, Session, SessionOptions};
use tenon_testkit::{
    compare::compare,
    graphs::{GraphGolden, RunExpected, read_graphs},
};
use tenon_tests::session::runtime;

fn folder() -> PathBuf {
    let small = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("goldens/frozen");
    std::env::var_os("TENON_FROZEN").map_or_else(small, PathBuf::from)
}

/// Runs every run of a model in one session; the ops of the nodes that ran.
fn run(golden: &GraphGolden, knobs: &[(&str, &str)]) -> BTreeSet<String> {
    let mut ran = BTreeSet::new();
    let runtime = runtime(&["tenon_cpu"], knobs);
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend(&golden.graph).unwrap();
    for run in &golden.runs {
        let RunExpected::Fetches(expected) = &run.expected else {
            panic!("{}: a frozen model refuses nothing", golden.name);
        };
        let feeds: Vec<_> =
            run.feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        let start = Instant::now();
        let (fetched, metadata) = session.run(&feeds, &names, &[], &RunOptions::default()).unwrap();
        ran.extend(metadata.nodes.iter().map(|node| node.op.clone()));
        println!("{} run {}: {:?}", golden.name, run.number, start.elapsed());
        for ((name, expected), got) in expected.iter().zip(&fetched) {
            let compared = compare(got, expected, &golden.rule);
            compared.unwrap_or_else(|wrong| panic!("{} {name} {knobs:?}: {wrong}", golden.name));
        }
        assert_eq!(fetched.len(), expected.len());
    }
    ran
}

/// Number of nodes that passes leave.
fn nodes_after(golden: &GraphGolden) -> usize {
    let runtime = runtime(&["tenon_cpu"], &[]);
    let session = Session::new(&runtime, SessionOptions::default()).unwrap();
    session.extend(&golden.graph).unwrap();
    session.explain_passes(None).unwrap().after
}

/// With passes on, the model gives TensorFlow's results through these fused ops; without, through none. Of a small
/// model so many nodes are left: none runs for its errors alone.
fn model(name: &str, fused: &[&str], nodes: usize) {
    let goldens = read_graphs(&folder()).unwrap();
    let golden = goldens.iter().find(|golden| golden.name == name).unwrap();
    let is_fused = |op: &&String| op.starts_with("_Fused");
    let ran = run(golden, &[]);
    let missing = fused.iter().find(|op| !ran.contains(**op));
    assert_eq!(missing, None, "{name}: {ran:?}");
    if std::env::var_os("TENON_FROZEN").is_none() {
        assert_eq!(nodes_after(golden), nodes, "{name}");
    }
    let ran = run(golden, &[("graph.optimize", "false")]);
    assert_eq!(ran.iter().find(is_fused), None, "{name}");
}

macro_rules! models {
    ($($name:ident: $fused:expr, $nodes:literal;)*) => {
        $(
            #[test]
            fn $name() {
                model(stringify!($name), &$fused, $nodes);
            }
        )*

        #[test]
        fn every_model_has_a_test() {
            let names: Vec<String> =
                read_graphs(&folder()).unwrap().into_iter().map(|golden| golden.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

models! {
    vgg19: ["_FusedConv2D", "_FusedMatMul"], 65;
    resnet50: ["_FusedConv2D", "_FusedMatMul"], 327;
    mobilenet_v2: ["_FusedConv2D", "_FusedDepthwiseConv2dNative", "_FusedMatMul"], 358;
    bert_layer: ["_FusedAttention", "_FusedLayerNorm", "_FusedMatMul"], 40;
    keras_attention: ["_FusedAttention"], 26;
    keras_attention_masked: ["_FusedAttention"], 34;
    mlp: ["_FusedMatMul"], 10;
}
