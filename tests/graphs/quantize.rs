//! Quantised graphs: to the bit what NumPy makes of them, near the float ones, and without floats between layers.
//!
//! The models are the small ones of tests/goldens/frozen; with `TENON_FROZEN=FOLDER`, the large ones of
//! `tests/goldens/freeze.py FOLDER`.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use tenon_framework::{DType, PartialShape, Tensor};
use tenon_quantize::{Method, QuantizeOptions, Quantized, Sample, quantize};
use tenon_runtime::{
    RunOptions, Runtime, Session, SessionOptions,
    proto::{GraphDef, encode},
};
use tenon_testkit::{
    compare::compare,
    graphs::{GraphGolden, RunExpected, read_graphs},
};
use tenon_tests::session::runtime;

fn goldens(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(folder)
}

fn frozen() -> PathBuf {
    std::env::var_os("TENON_FROZEN").map_or_else(|| goldens("frozen"), PathBuf::from)
}

fn golden(folder: &Path, name: &str) -> GraphGolden {
    let goldens = read_graphs(folder).unwrap();
    goldens.into_iter().find(|golden| golden.name == name).unwrap()
}

fn plugins() -> Runtime {
    runtime(&["tenon_cpu", "tenon_int8"], &[])
}

/// What a golden's runs feed, but for empty batches.
fn samples(golden: &GraphGolden) -> Vec<Sample> {
    let runs = golden.runs.iter().filter(|run| matches!(run.expected, RunExpected::Fetches(_)));
    let full = |sample: &Sample| sample.iter().all(|(_, tensor)| tensor.elements() > 0);
    runs.map(|run| run.feeds.clone()).filter(full).collect()
}

fn quantized(golden: &GraphGolden, options: &QuantizeOptions) -> Quantized {
    let samples: Vec<Sample> = samples(golden).into_iter().take(2).collect();
    quantize(&plugins(), &golden.graph, &samples, options)
        .unwrap_or_else(|error| panic!("{}: {error}", golden.name))
}

fn fetching(names: &[&str], method: Method) -> QuantizeOptions {
    let fetches = names.iter().map(|name| (*name).to_owned()).collect();
    QuantizeOptions { fetches, method, ..QuantizeOptions::default() }
}

fn ops(graph: &GraphDef) -> BTreeSet<&str> {
    graph.node.iter().map(|node| node.op.as_str()).collect()
}

fn count(graph: &GraphDef, op: &str) -> usize {
    graph.node.iter().filter(|node| node.op == op).count()
}

/// The least signal to noise of the outputs, in decibels.
fn decibels(quantized: &Quantized) -> f64 {
    let each = quantized.outputs.iter().map(|output| output.noise.unwrap().decibels());
    each.fold(f64::INFINITY, f64::min)
}

/// The graphs in goldens/quantize, and what they are made of.
const MADE: [(&str, &str, &[&str]); 3] = [
    ("cnn", "graphs", &["logits"]),
    ("mlp", "graphs", &["logits"]),
    ("resnet50", "frozen", &["probabilities"]),
];

/// With `TENON_UPDATE=1` the files are written anew; then `generate.py quantize` makes the arrays again.
#[test]
fn graphs_are_quantised_as_they_were() {
    for (name, folder, fetches) in MADE {
        let made = quantized(&golden(&goldens(folder), name), &fetching(fetches, Method::MinMax));
        let file = goldens("quantize").join(format!("{name}.pb"));
        let found = encode(&made.graph).unwrap();
        if std::env::var_os("TENON_UPDATE").is_some() {
            std::fs::write(&file, &found).unwrap();
        }
        let expected = tenon_runtime::proto::decode_graph_def(&std::fs::read(&file).unwrap());
        let expected = expected.unwrap();
        // Scales follow from floats whose last bits depend on the CPU: names and ops do not.
        let shape = |graph: &GraphDef| -> Vec<(String, String, Vec<String>)> {
            let nodes = graph.node.iter();
            nodes.map(|node| (node.name.clone(), node.op.clone(), node.input.clone())).collect()
        };
        assert_eq!(shape(&made.graph), shape(&expected), "{name}: TENON_UPDATE=1 accepts");
    }
}

#[test]
fn every_node_on_8_bits_gives_to_the_bit_what_numpy_makes_of_it() {
    let runtime = plugins();
    for golden in read_graphs(&goldens("quantize")).unwrap() {
        let session = Session::new(&runtime, SessionOptions::default()).unwrap();
        session.extend(&golden.graph).unwrap();
        let run = &golden.runs[0];
        let RunExpected::Fetches(expected) = &run.expected else { panic!("{}", golden.name) };
        let feeds: Vec<_> =
            run.feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let names: Vec<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        let (found, _) = session.run(&feeds, &names, &[], &RunOptions::default()).unwrap();
        for ((name, expected), found) in expected.iter().zip(&found) {
            compare(found, expected, &golden.rule)
                .unwrap_or_else(|wrong| panic!("{} {name}: {wrong}", golden.name));
        }
        assert!(names.len() >= 3, "{}: {names:?}", golden.name);
    }
}

/// The float ops that a quantised model may still have: those behind its last layer.
fn check_model(name: &str, after: &[&str], least: f64) {
    let golden = golden(&frozen(), name);
    let made = quantized(&golden, &QuantizeOptions::default());
    let ops = ops(&made.graph);
    let float: Vec<&str> = (ops.iter().copied())
        .filter(|op| !op.starts_with("_Quantized") && !op.starts_with("Quantized"))
        .filter(|op| !["Const", "Placeholder", "_AffineQuantize", "PadV2", "Reshape"].contains(op))
        .collect();
    assert_eq!(float, after, "{name}: {ops:?}");
    assert_eq!(count(&made.graph, "_AffineQuantize"), 1, "{name}");
    assert!(made.left.is_empty(), "{name}: {:?}", made.left);
    let found = decibels(&made);
    println!("{name}: {found:.1} dB");
    assert!(found >= least, "{name}: {found} dB, expected {least}");
    let size = |graph: &GraphDef| encode(graph).unwrap().len();
    println!("{name}: {} bytes, {} before", size(&made.graph), size(&golden.graph));
}

#[test]
fn vgg19_runs_on_8_bits_from_the_image_to_the_last_product() {
    check_model("vgg19", &["Softmax"], 15.0);
}

#[test]
fn resnet50_runs_on_8_bits_with_its_residual_additions() {
    check_model("resnet50", &["Softmax"], 15.0);
}

#[test]
fn mobilenet_v2_runs_on_8_bits_with_its_depthwise_convolutions() {
    check_model("mobilenet_v2", &["Softmax"], 10.0);
}

#[test]
fn an_mlp_runs_on_8_bits() {
    let golden = golden(&goldens("graphs"), "mlp");
    for method in [Method::MinMax, Method::Percentile(99.9), Method::Entropy] {
        let made = quantized(&golden, &fetching(&["logits"], method));
        assert_eq!(count(&made.graph, "_QuantizedFusedMatMul"), 2, "{method:?}");
        assert_eq!(count(&made.graph, "_AffineDequantize"), 0, "{method:?}");
        assert!(decibels(&made) > 15.0, "{method:?}: {} dB", decibels(&made));
    }
}

#[test]
fn without_data_products_are_quantised_as_the_graph_runs() {
    let options = QuantizeOptions { dynamic: true, ..QuantizeOptions::default() };
    for name in ["vgg19", "resnet50", "bert_layer"] {
        let golden = golden(&goldens("frozen"), name);
        let blind = quantize(&plugins(), &golden.graph, &[], &options).unwrap();
        assert!(blind.outputs.iter().all(|output| output.noise.is_none()));
        let compared = quantized(&golden, &options);
        assert_eq!(blind.graph, compared.graph, "{name}: data must not matter");
        assert!(count(&compared.graph, "_AffineRange") > 0, "{name}");
        assert!(decibels(&compared) > 20.0, "{name}: {} dB", decibels(&compared));
    }
}

#[test]
fn what_is_kept_stays_in_float_and_only_that() {
    let golden = golden(&goldens("graphs"), "mlp");
    let first = golden.graph.node.iter().find(|node| node.op == "MatMul").unwrap().name.clone();
    let options =
        QuantizeOptions { keep: vec![first.clone()], ..fetching(&["logits"], Method::MinMax) };
    let made = quantized(&golden, &options);
    assert_eq!(made.left, [(first, "it is kept in float".to_owned())]);
    assert_eq!((count(&made.graph, "MatMul"), count(&made.graph, "_QuantizedFusedMatMul")), (1, 1));
    let unknown = QuantizeOptions { keep: vec!["dense/MatMull".to_owned()], ..options };
    let error = quantize(&plugins(), &golden.graph, &samples(&golden), &unknown).unwrap_err();
    assert!(error.to_string().contains("dense/MatMull"), "{error}");
}

#[test]
fn what_is_wrong_with_graph_or_data_is_said() {
    let golden = golden(&goldens("graphs"), "mlp");
    let options = fetching(&["logits"], Method::MinMax);
    let refused = |samples: &[Sample], options: &QuantizeOptions| {
        quantize(&plugins(), &golden.graph, samples, options).unwrap_err().to_string()
    };
    let good = samples(&golden);
    let error = refused(&[], &options);
    assert!(error.starts_with("expected calibration data of at least one sample"), "{error}");
    let renamed = vec![vec![("image".to_owned(), good[0][0].1.clone())]];
    let error = refused(&renamed, &options);
    assert!(error.contains("'image': expected one of the inputs 'x'"), "{error}");
    let error = refused(&[vec![]], &options);
    assert!(error.contains("for the input 'x', found none"), "{error}");
    let shape = good[0][0].1.shape().dims().to_vec();
    let mut values = good[0][0].1.as_slice::<f32>().unwrap().to_vec();
    values[1] = f32::NAN;
    let spoilt = Tensor::from_slice(&shape, &values).unwrap();
    let error = refused(&[good[0].clone(), vec![("x".to_owned(), spoilt)]], &options);
    assert!(error.contains("expected finite numbers, found NaN in sample 1"), "{error}");
    let narrow = Tensor::from_slice(&[1, 2], &[0f32, 1.0]).unwrap();
    let error = refused(&[vec![("x".to_owned(), narrow)]], &options);
    assert!(error.contains("[1,2]") || error.contains("[1, 2]"), "{error}");
    let error = refused(&good, &fetching(&["logits"], Method::Percentile(20.0)));
    assert!(error.contains("expected a percentile above 50"), "{error}");
    let names = golden.graph.node.iter().filter(|node| node.op == "MatMul");
    let keep = names.map(|node| node.name.clone()).collect();
    let error = refused(&good, &QuantizeOptions { keep, ..options });
    assert!(error.starts_with("expected a Conv2D, DepthwiseConv2dNative or MatMul"), "{error}");
}

/// Two products, of which each has one weight that is no number.
fn spoilt(runtime: &Runtime, first: f32, second: f32) -> (GraphDef, Vec<Sample>) {
    let graph = tenon_tests::session::graph(runtime, |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 3]).unwrap())?;
        let weights = |spoilt: f32| {
            Tensor::from_slice(&[3, 3], &[1f32, -2.0, 0.5, 0.25, spoilt, -1.0, 3.0, 2.0, 0.125])
        };
        let w = b.constant("w", weights(first).unwrap())?;
        let a = b.op("MatMul").name("a").input(x).input(w).build()?;
        let v = b.constant("v", weights(second).unwrap())?;
        b.op("MatMul").name("b").input(a).input(v).build().map(|_| ())
    });
    let values: Vec<f32> = (0..12).map(|at| (at * at % 7) as f32 - 3.0).collect();
    let sample = vec![("x".to_owned(), Tensor::from_slice(&[4, 3], &values).unwrap())];
    (graph.to_graph_def().unwrap(), vec![sample])
}

/// They would become finite numbers, silently.
#[test]
fn weights_that_are_not_finite_keep_their_product_in_float() {
    let runtime = plugins();
    for spoiler in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for dynamic in [false, true] {
            let options = QuantizeOptions { dynamic, ..fetching(&["b"], Method::MinMax) };
            let (graph, samples) = spoilt(&runtime, 0.5, spoiler);
            let made = quantize(&runtime, &graph, &samples, &options).unwrap();
            let reason = format!(
                "its weights 'v:0' hold {spoiler} at index 4, which no integer can represent"
            );
            assert_eq!(made.left, [("b".to_owned(), reason.clone())]);
            assert_eq!((count(&made.graph, "MatMul"), made.nodes.len()), (1, 1));
            let noise = made.outputs[0].noise.unwrap();
            assert!(noise.noise > 0.0 && noise.decibels() > 20.0, "{noise:?}");
            // Where nothing else is quantised either, that is said.
            let (graph, samples) = spoilt(&runtime, spoiler, spoiler);
            let error = quantize(&runtime, &graph, &samples, &options).unwrap_err().to_string();
            assert!(error.contains(&reason.replace("'v:0'", "'w:0'")), "{error}");
            assert!(error.contains("found 2 of them, such as 'a'"), "{error}");
        }
        // What the product gives is no number, and the next one cannot take it.
        let (graph, samples) = spoilt(&runtime, spoiler, 0.5);
        let options = fetching(&["b"], Method::MinMax);
        let error = quantize(&runtime, &graph, &samples, &options).unwrap_err().to_string();
        assert!(error.contains("'a:0': expected finite numbers, found"), "{error}");
    }
}
