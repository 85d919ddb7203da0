//! Saved models that TensorFlow and Keras wrote (`tests/goldens/saved_models`): every signature gives what TensorFlow gives.

use std::{collections::BTreeMap, fs, path::PathBuf};
use tenon_import::{ImportError, LoadOptions, LoadedModel, SERVE, SavedModel};
use tenon_runtime::framework::{Code, DType, Tensor};
use tenon_testkit::npz::Npz;
use tenon_tests::{build::repository, session};

const MODELS: [&str; 6] =
    ["tf1_simple", "tf1_builder", "tf2_module", "keras_cnn", "keras_lstm", "keras_text"];

const PLUGINS: [&str; 4] = ["tenon_cpu", "tenon_data", "tenon_checkpoint", "tenon_text"];

fn folder() -> PathBuf {
    repository().join("tests/goldens/saved_models")
}

fn load(folder: PathBuf) -> Result<LoadedModel, ImportError> {
    let runtime = session::runtime(&PLUGINS, &[]);
    SavedModel::open(folder)?.load(&runtime, &[SERVE], &LoadOptions::default())
}

/// Arrays by signature and by name, of one role.
fn arrays(archive: &mut Npz, role: &str) -> BTreeMap<String, Vec<(String, Tensor)>> {
    let mut found: BTreeMap<String, Vec<(String, Tensor)>> = BTreeMap::new();
    for name in archive.names() {
        if let Some((signature, argument)) = name.split_once(role) {
            let tensor = archive.tensor(&name, None).expect("an array");
            found.entry(signature.to_owned()).or_default().push((argument.to_owned(), tensor));
        }
    }
    found
}

fn compare(what: &str, found: &Tensor, expected: &Tensor) {
    assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{what}");
    if found.dtype() != DType::FLOAT {
        assert_eq!(found.as_bytes().unwrap(), expected.as_bytes().unwrap(), "{what}");
        return;
    }
    let values = found.as_slice::<f32>().unwrap().iter().zip(expected.as_slice::<f32>().unwrap());
    for (at, (found, expected)) in values.enumerate() {
        let limit = 1e-4 * expected.abs().max(1.0);
        assert!((found - expected).abs() <= limit, "{what}[{at}]: {found}, expected {expected}");
    }
}

#[test]
fn every_signature_gives_what_tensorflow_gives() {
    let mut checked = 0;
    for name in MODELS {
        let model = load(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let file = folder().join("expected").join(format!("{name}.npz"));
        let mut archive = Npz::open(file).unwrap();
        let expected = arrays(&mut archive, ".out.");
        for (key, inputs) in arrays(&mut archive, ".in.") {
            let signature = model.signature(&key).unwrap_or_else(|error| panic!("{name}: {error}"));
            let inputs: Vec<(&str, Tensor)> =
                inputs.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            let found = signature.run(&inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(found.len(), expected[&key].len(), "{name}");
            for (result, value) in &expected[&key] {
                compare(&format!("{name}, {key}, {result}"), &found[result], value);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 10);
}

/// The model loads, since its start needs none of them.
#[test]
fn a_signature_names_all_ops_that_it_lacks() {
    let model = copy("keras_text");
    let file = model.path().join("saved_model.pb");
    let mut graph = fs::read(&file).unwrap();
    // Names of the same length, so that the message stays whole.
    let lacking = ["DenseBincounX", "RaggedTensorToTensoX"];
    for (op, other) in ["DenseBincount", "RaggedTensorToTensor"].into_iter().zip(lacking) {
        let is_op = |at: &usize| graph[*at..].starts_with(op.as_bytes());
        let places: Vec<usize> = (0..graph.len()).filter(is_op).collect();
        assert!(!places.is_empty(), "{op}");
        for at in places {
            graph[at..at + other.len()].copy_from_slice(other.as_bytes());
        }
    }
    fs::write(&file, graph).unwrap();
    let runtime = session::runtime(&PLUGINS, &[]);
    let model = SavedModel::open(model.path()).unwrap();
    let missing = model.meta_graph(&[SERVE]).unwrap().missing_ops(&runtime.registry());
    assert_eq!(missing, lacking);
    let model = model.load(&runtime, &[SERVE], &LoadOptions::default()).unwrap();
    match model.signature("serving_default") {
        Err(ImportError::MissingOps { ops, .. }) => assert_eq!(ops, lacking),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_default_takes_the_place_of_an_input_and_state_stays() {
    let model = load(folder().join("tf1_builder")).unwrap();
    let words = Tensor::from_strings(&[1, 3], &["film", "good", "book"]).unwrap();
    let signature = model.signature("serving_default").unwrap();
    let half = Tensor::from_slice(&[], &[0.5f32]).unwrap();
    let given = signature.run(&[("factor", half), ("words", words.clone())]).unwrap();
    let left_out = signature.run(&[("words", words)]).unwrap();
    compare("the default", &left_out["scaled"], &given["scaled"]);

    let model = load(folder().join("tf2_module")).unwrap();
    let counted = model.signature("counted").unwrap();
    let a = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
    let negate = Tensor::from_slice(&[], &[false]).unwrap();
    for count in 1..4i64 {
        let found = counted.run(&[("a", a.clone()), ("negate", negate.clone())]).unwrap();
        assert_eq!(found["count"].as_slice::<i64>().unwrap(), [count]);
    }
}

/// Copies a model, so that a file of it can be damaged.
fn copy(name: &str) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for inner in ["", "variables", "assets"] {
        let Ok(files) = fs::read_dir(folder().join(name).join(inner)) else { continue };
        fs::create_dir_all(to.path().join(inner)).unwrap();
        for file in files.map(|file| file.unwrap().path()).filter(|file| file.is_file()) {
            fs::copy(&file, to.path().join(inner).join(file.file_name().unwrap())).unwrap();
        }
    }
    to
}

#[test]
fn damaged_values_are_errors_of_the_load() {
    let model = copy("keras_cnn");
    let data = model.path().join("variables/variables.data-00000-of-00001");
    let whole = fs::read(&data).unwrap();
    let refused = |what: &str| {
        let error = load(model.path().to_owned()).expect_err(what);
        assert!(error.to_string().starts_with("restoring the model's variables: "), "{error}");
        error.code()
    };
    fs::write(&data, &whole[..whole.len() / 2]).unwrap();
    refused("half of the values");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&data, flipped).unwrap();
    assert_eq!(refused("a value that does not fit its checksum"), Code::DATA_LOSS);
    fs::remove_file(&data).unwrap();
    refused("no values");
    fs::write(&data, whole).unwrap();
    assert!(load(model.path().to_owned()).is_ok());
    fs::remove_dir_all(model.path().join("variables")).unwrap();
    let error = load(model.path().to_owned()).expect_err("no folder of variables");
    assert_eq!(error.code(), Code::NOT_FOUND);
}
