//! Whole models that TensorFlow froze, with its results: small variants of VGG19, ResNet50, MobileNetV2 and a layer of
//! BERT-base. With `TENON_FROZEN=FOLDER`, the large ones of `tests/goldens/freeze.py FOLDER` instead.

use std::{path::PathBuf, time::Instant};
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

/// Runs every run of a model in one session.
fn run(golden: &GraphGolden, knobs: &[(&str, &str)]) {
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
        let (fetched, _) = session.run(&feeds, &names, &[], &RunOptions::default()).unwrap();
        println!("{} run {}: {:?}", golden.name, run.number, start.elapsed());
        for ((name, expected), got) in expected.iter().zip(&fetched) {
            let compared = compare(got, expected, &golden.rule);
            compared.unwrap_or_else(|wrong| panic!("{} {name} {knobs:?}: {wrong}", golden.name));
        }
        assert_eq!(fetched.len(), expected.len());
    }
}

fn model(name: &str) {
    let goldens = read_graphs(&folder()).unwrap();
    let golden = goldens.iter().find(|golden| golden.name == name).unwrap();
    run(golden, &[]);
    run(golden, &[("graph.optimize", "false")]);
}

macro_rules! models {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                model(stringify!($name));
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

models!(vgg19, resnet50, mobilenet_v2, bert_layer);
