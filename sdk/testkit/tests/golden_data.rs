//! Reading golden data: all that is committed, and what is malformed.

use std::{
    fs,
    path::{Path, PathBuf},
};
use tenon_framework::{Code, DType};
use tenon_testkit::{
    GoldenCase,
    compare::{Rule, compare},
    golden::{Expected, indexes, read_op},
    graphs::{RunExpected, read_graphs},
};

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goldens")
}

/// The folders that hold cases of ops; the others hold graphs.
fn families() -> Vec<PathBuf> {
    let entries = fs::read_dir(goldens()).unwrap().map(|entry| entry.unwrap().path());
    let families: Vec<PathBuf> = entries.filter(|path| path.is_dir() && has_cases(path)).collect();
    assert!(families.len() >= 8, "{families:?}");
    families
}

/// Graphs, sequences, checkpoints and training have formats of their own.
fn has_cases(folder: &Path) -> bool {
    let is_other = folder.join("index.json").exists()
        || folder.ends_with("sequences")
        || folder.ends_with("checkpoints")
        || folder.ends_with("training");
    !is_other && indexes(folder).is_ok_and(|indexes| !indexes.is_empty())
}

fn case(file: &str, name: &str) -> GoldenCase {
    let cases = read_op(&goldens().join(file)).unwrap();
    cases.into_iter().find(|case| case.name == name).unwrap()
}

/// How many cases a family has stands in tests/tensorflow/goldens_cpu.rs.
#[test]
fn every_committed_case_is_read() {
    for family in families() {
        let (mut cases, mut errors) = (0, 0);
        for index in indexes(&family).unwrap() {
            for case in read_op(&index).unwrap() {
                cases += 1;
                errors += usize::from(matches!(case.expected, Expected::Error(_)));
            }
        }
        // What fused ops refuse is Tenon's own: TensorFlow has no word on it.
        let refuses = errors > 0 || family.ends_with("fused");
        assert!(cases > 2 * errors && refuses, "{}: {cases}, {errors}", family.display());
    }
}

#[test]
fn every_committed_graph_is_read() {
    let graphs = read_graphs(&goldens().join("graphs")).unwrap();
    let runs: Vec<_> = graphs.iter().flat_map(|graph| &graph.runs).collect();
    let refused = runs.iter().filter(|run| matches!(run.expected, RunExpected::Error { .. }));
    assert_eq!((graphs.len(), runs.len(), refused.count()), (21, 92, 18));
}

#[test]
fn values_attributes_and_tolerances_come_through() {
    let relu = case("nn/Relu.json", "bfloat16_scalar");
    assert_eq!(relu.inputs[0].dtype(), DType::BFLOAT16);
    let sum = case("nn/Conv2D.json", "half_pointwise");
    let Expected::Outputs(outputs) = &sum.expected else { panic!("an error") };
    let (value, rule) = outputs[0].value.as_ref().unwrap();
    assert_eq!((value.dtype(), value.shape().dims()), (DType::HALF, &[2, 3, 5, 3][..]));
    match rule {
        Rule::AbsTerms { factor, terms } => assert_eq!((*factor, terms.len()), (2.5, 90)),
        other => panic!("{other:?}"),
    }
    assert_eq!(format!("{:?}", sum.attrs["strides"]), "List(Int([1, 1, 1, 1]))");
    assert!(compare(value, value, rule).is_ok());
    let norm = case("nn/FusedBatchNormV3.json", "float_training");
    let Expected::Outputs(outputs) = &norm.expected else { panic!("an error") };
    assert!(outputs[5].value.is_none(), "the last output is undefined");
    let refused = case("array/ConcatV2.json", "error_axis_high");
    assert_eq!(refused.const_inputs, [2]);
    assert!(matches!(refused.expected, Expected::Error(Code::INVALID_ARGUMENT)));
}

/// Reads an index of this text, beside the archive of `Relu`.
fn error_of(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("Relu.json");
    fs::write(&index, text).unwrap();
    fs::copy(goldens().join("nn/Relu.npz"), index.with_extension("npz")).unwrap();
    read_op(&index).unwrap_err().to_string()
}

fn index(name: &str, input: &str, tolerance: &str) -> String {
    format!(
        r#"{{"op": "Relu", "cases": [{{"name": "{name}", "attrs": {{"T": {{"type": "float"}}}},
            "inputs": [{input}], "outputs": [{input}], "const_inputs": [],
            "tolerance": {tolerance}}}]}}"#
    )
}

#[test]
fn what_is_malformed_is_named() {
    let scalar = r#"{"dtype": "float", "shape": []}"#;
    let vector = r#"{"dtype": "float", "shape": [3]}"#;
    let other = r#"{"dtype": "double", "shape": []}"#;
    let unknown = r#"{"dtype": "float9", "shape": []}"#;
    for (text, expected) in [
        ("{".to_owned(), "EOF"),
        (
            index("none", scalar, "\"exact\""),
            "expected an array 'none.in0', found none of this name",
        ),
        (index("float_scalar", vector, "\"exact\""), "expected shape [3], found []"),
        (index("float_scalar", other, "\"exact\""), "expected double, found float"),
        (index("float_scalar", unknown, "\"exact\""), "case 'float_scalar', input 0: expected"),
        (index("float_scalar", scalar, "\"near\""), "tolerance of output 0: expected \"exact\""),
        (index("float_scalar", scalar, "{\"abs_terms\": 1}"), "'float_scalar.abs0'"),
    ] {
        let error = error_of(&text);
        assert!(error.contains(expected), "{error}");
    }
    assert!(indexes(&goldens().join("none")).is_err());
    assert!(read_op(&goldens().join("nn/None.json")).unwrap_err().code() == Code::NOT_FOUND);
}
