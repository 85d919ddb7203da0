//! `tenon quantize`: what it writes and reports, and what it refuses.

use crate::support::Place;
use std::{fs, path::Path};
use tenon_runtime::framework::{DType, PartialShape, Tensor};
use tenon_testkit::npy;

fn asset(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo").join(name).display().to_string()
}

/// Writes the calibration images, so many of them, as this file.
fn images(place: &Place, name: &str, count: usize) -> String {
    let images = npy::read(asset("calibration_images.npy"), None).unwrap();
    let values = &images.as_slice::<f32>().unwrap()[..count * 64];
    place.array(name, &Tensor::from_slice(&[count as i64, 8, 8, 1], values).unwrap())
}

#[test]
fn the_digit_classifier_becomes_a_quarter_and_says_what_it_loses() {
    let place = Place::new();
    let (graph, out) = (asset("digits.pb"), place.arg("q.pb"));
    let images = images(&place, "images.npy", 20);
    let report = place.json(&["quantize", &graph, "--calibration", &images, "--out", &out]);
    let names: Vec<&str> =
        report["nodes"].as_array().unwrap().iter().map(|n| n["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["conv1/Relu", "conv2/Relu", "dense1/Relu", "logits"]);
    for node in report["nodes"].as_array().unwrap() {
        let loss = node["loss"]["signal_to_noise_db"].as_f64().unwrap();
        assert!((20.0..80.0).contains(&loss), "{node}");
        assert_eq!(node["scale"].is_null(), node["name"] == "logits", "{node}");
    }
    let bytes = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(bytes("bytes_before"), fs::metadata(&graph).unwrap().len());
    assert_eq!(bytes("bytes_after"), fs::metadata(&out).unwrap().len());
    // 13,584 weights of a byte for one of four, and what belongs to a graph.
    assert!(bytes("bytes_after") < 13_584 + 8_000, "{}", bytes("bytes_after"));
    assert_eq!(report["samples"], 20);
    let feed = format!("images={images}");
    let run = place.json(&["run", &out, "--feed", &feed, "--fetch", "logits", "classes"]);
    assert_eq!(run["fetches"][0]["shape"], serde_json::json!([20, 10]));
}

#[test]
fn a_folder_of_arrays_is_calibrated_on_and_the_table_says_so() {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    images(&place, "data/a.npy", 3);
    images(&place, "data/b.npy", 2);
    let (graph, out, data) = (asset("digits.pb"), place.arg("q.pb"), place.arg("data"));
    let args =
        ["quantize", &graph, "--calibration", &data, "--out", &out, "--keep", "conv2/Conv2D"];
    let text = place.text(&args);
    for part in ["on 5 samples", "SIGNAL TO NOISE", "'conv2/Conv2D' stays in float", "3 layers"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn data_and_names_that_do_not_fit_are_refused() {
    let place = Place::new();
    let (graph, out) = (asset("digits.pb"), place.arg("q.pb"));
    let refused = |data: &str, more: &[&str]| {
        let args = ["quantize", &graph, "--calibration", data, "--out", &out];
        let error = place.error(&[&args[..], more].concat());
        assert!(!place.path("q.pb").exists());
        error
    };
    let missing = refused(&place.arg("none.npz"), &[]);
    assert!(missing.contains("none.npz: cannot be read"), "{missing}");
    fs::create_dir(place.path("empty")).unwrap();
    let empty = refused(&place.arg("empty"), &[]);
    assert!(empty.contains("expected .npz or .npy files in the folder, found none"), "{empty}");
    fs::write(place.path("none.npz"), b"PK no archive").unwrap();
    let broken = refused(&place.arg("none.npz"), &[]);
    assert!(
        broken.contains("none.npz: expected a .npz archive, found a file that is none"),
        "{broken}"
    );
    assert!(broken.contains("INVALID_ARGUMENT") && !broken.contains("golden"), "{broken}");
    let doubles = Tensor::from_slice(&[1, 8, 8, 1], &[0f64; 64]).unwrap();
    let double = refused(&place.archive("double.npz", &[("images", doubles)]), &[]);
    assert!(double.contains("array 'images': expected float, found double"), "{double}");
    let flat = place.array("flat.npy", &Tensor::from_slice(&[2, 64], &[0f32; 128]).unwrap());
    let flat = refused(&flat, &[]);
    assert!(flat.contains("expected 4 dimensions, the first one counting samples"), "{flat}");
    let wide = Tensor::from_slice(&[1, 8, 9, 1], &[0f32; 72]).unwrap();
    let wide = refused(&place.array("wide.npy", &wide), &[]);
    assert!(wide.contains("images") && wide.contains('9'), "{wide}");
    let nan = Tensor::from_slice(&[1, 8, 8, 1], &[f32::NAN; 64]).unwrap();
    let nan = refused(&place.array("nan.npy", &nan), &[]);
    assert!(nan.contains("expected finite numbers, found NaN in sample 0"), "{nan}");
    let good = images(&place, "images.npy", 2);
    let keep = refused(&good, &["--keep", "conv1/Conv2"]);
    assert!(keep.contains("conv1/Conv2"), "{keep}");
    let percentile = refused(&good, &["--method", "percentile", "--percentile", "7"]);
    assert!(percentile.contains("expected a percentile above 50"), "{percentile}");
    let relu = place.relu("relu.pb");
    let nothing = place.error(&["quantize", &relu, "--dynamic", "--out", &out]);
    assert!(nothing.contains("with constant weights to quantise, found no such node"), "{nothing}");
}

/// Its weight would become a finite number.
#[test]
fn a_product_with_a_weight_that_is_not_finite_stays_in_float_and_the_table_says_so() {
    let place = Place::new();
    let graph = place.graph("net.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[-1, 2]).unwrap())?;
        let weights = |last: f32| Tensor::from_slice(&[2, 2], &[0.5f32, -2.0, 1.0, last]).unwrap();
        let first = b.constant("first/weights", weights(3.0))?;
        let first = b.op("MatMul").name("first").input(x).input(first).build()?;
        let second = b.constant("second/weights", weights(f32::NAN))?;
        b.op("MatMul").name("second").input(first).input(second).build().map(drop)
    });
    let x = Tensor::from_slice(&[3, 2], &[1f32, 2.0, -3.0, 0.25, 0.0, 7.0]).unwrap();
    let data = place.archive("x.npz", &[("x", x)]);
    let out = place.arg("q.pb");
    let text = place.text(&["quantize", &graph, "--calibration", &data, "--out", &out]);
    let reason = "'second' stays in float: its weights 'second/weights:0' hold NaN at index 3";
    assert!(
        text.contains(reason) && text.contains("1 layers") && !text.contains("exact"),
        "{text}"
    );
}
