//! `tenon saved-model`, and `tenon run` of a saved model.

use crate::support::{Place, goldens};
use tenon_runtime::framework::Tensor;
use tenon_testkit::{npy, npz::Npz};

/// A model that TensorFlow wrote.
fn golden(name: &str) -> String {
    goldens().join("../saved_models").join(name).display().to_string()
}

/// Writes an array of a model's golden data.
fn array(place: &Place, model: &str, name: &str, file: &str) -> Tensor {
    let mut archive = Npz::open(golden(&format!("expected/{model}.npz"))).unwrap();
    let tensor = archive.tensor(name, None).unwrap();
    place.array(file, &tensor);
    tensor
}

#[test]
fn a_model_is_shown() {
    let place = Place::new();
    let text = place.text(&["saved-model", "show", &golden("tf1_builder")]);
    assert!(text.contains(": 2 graphs\n"), "{text}");
    assert!(text.contains("graph {train}") && text.contains("graph {serve}"), "{text}");
    assert!(text.contains("assets/vocabulary.txt\n"), "{text}");
    let one = place.json(&["saved-model", "show", &golden("tf1_builder"), "--tags", "serve"]);
    let graphs = one["graphs"].as_array().unwrap();
    assert_eq!(graphs.len(), 1);
    let signature = &graphs[0]["signatures"][0];
    assert_eq!(
        (&signature["key"], &signature["inputs"][0]["default"]),
        (&"serving_default".into(), &"0.5".into())
    );
    assert_eq!(signature["inputs"][1]["shape"], serde_json::json!([-1, 3]));
    assert_eq!(graphs[0]["ops"]["VariableV2"], 3);
    assert_eq!(one["variables"][1]["name"], "embedding");
    let error = place.error(&["saved-model", "show", &golden("tf1_builder"), "--tags", "gpu"]);
    assert!(error.contains("no graph has the tags {gpu}; there are {train}, {serve}"), "{error}");
    let error = place.error(&["saved-model", "show", &golden("")]);
    assert!(error.contains("error [NOT_FOUND]") && error.contains("saved_model.pb"), "{error}");
}

#[test]
fn a_signature_runs_from_files_to_files() {
    let place = Place::new();
    array(&place, "tf2_module", "serving_default.in.x", "x.npy");
    let model = golden("tf2_module");
    let feed = format!("x={}", place.arg("x.npy"));
    let report = place.json(&["run", &model, "--feed", &feed, "--out", &place.arg("out")]);
    assert_eq!(report["fetches"][1]["name"], "product");
    let mut archive = Npz::open(golden("expected/tf2_module.npz")).unwrap();
    let expected = archive.tensor("serving_default.out.product", None).unwrap();
    let found = npy::read(place.path("out/product.npy"), None).unwrap();
    let pairs = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
    assert!(found.shape() == expected.shape());
    pairs.for_each(|(found, expected)| assert!((found - expected).abs() < 1e-4));
    let some = place.json(&["saved-model", "run", &model, "--feed", &feed, "--fetch", "positive"]);
    assert_eq!(some["fetches"].as_array().unwrap().len(), 1);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let place = Place::new();
    let (model, graph) = (golden("tf2_module"), place.relu("model.pb"));
    let refused = |args: &[&str], text: &str| {
        let error = place.error(args);
        assert!(error.contains("error [") && error.contains(text), "{args:?}: {error}");
    };
    refused(
        &["run", &graph, "--signature", "s", "--fetch", "layer/y"],
        "--signature: expected the folder",
    );
    refused(
        &["saved-model", "run", &graph],
        "saved-model run: expected the folder of a SavedModel",
    );
    refused(&["run", &model, "--place-by-cost"], "--place-by-cost: expected a graph");
    refused(&["run", &model], "found none for 'x'");
    refused(&["run", &model, "--signature", "s"], "no signature 's'; there are");
    refused(&["run", &model, "--tags", "train"], "there are {serve}");
    let feed = format!("x={model}/saved_model.pb");
    refused(&["run", &model, "--feed", &feed], "saved_model.pb");
}
