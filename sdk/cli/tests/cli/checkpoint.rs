//! `tenon checkpoint`: lists, values, other forms and differences.

use crate::support::{Place, goldens, stderr};
use serde_json::Value;
use std::fs;
use tenon_runtime::framework::{DType, Tensor};
use tenon_testkit::npz::Npz;

/// A checkpoint that TensorFlow wrote.
fn golden(name: &str) -> String {
    goldens().join("../checkpoints").join(name).display().to_string()
}

fn names(list: &Value) -> Vec<&str> {
    let tensors = list["tensors"].as_array().unwrap();
    tensors.iter().map(|tensor| tensor["name"].as_str().unwrap()).collect()
}

#[test]
fn a_list_has_types_shapes_sizes_and_checksums() {
    let place = Place::new();
    let text = place.text(&["checkpoint", "list", &golden("sliced.index")]);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(words).collect();
    assert!(text.contains("bundle, 4 tensors, 48 bytes"), "{text}");
    assert_eq!(lines[1], ["NAME", "DTYPE", "SHAPE", "BYTES", "CHECKSUM", "SLICES"]);
    assert_eq!(lines[2], ["boxes", "float", "[4,3]", "3"]);
    assert_eq!(lines[3][..4], ["full", "float", "[4,3]", "48"]);
    assert_eq!(lines[3][4].len(), 8);
    let list = place.json(&["checkpoint", "list", &golden("sharded")]);
    assert_eq!(names(&list), ["a", "b", "c"]);
    assert_eq!(list["tensors"][1]["file"], "sharded.data-00001-of-00002");
    let list = place.json(&["checkpoint", "list", &golden("old_sharded-?????-of-?????")]);
    assert_eq!((&list["kind"], names(&list)), (&"V1 file".into(), vec!["a", "b", "c"]));
}

#[test]
fn values_are_shown() {
    let place = Place::new();
    let text = place.text(&["checkpoint", "show", &golden("whole"), "float", "bool/s*", "uint64"]);
    let expected = "bool/scalar bool []\n  true\nfloat float [2,3]\n  inf, -0.0, 4.0, 0.0, -4.0, 3.0\n\
                    uint64 uint64 [2,3]\n  18446744073709551615, ";
    assert!(text.starts_with(expected), "{text}");
    let text = place.text(&["checkpoint", "show", &golden("strings"), "some", "--max", "2"]);
    assert_eq!(text, "some string [2,3]\n  'ab', '', … (6 elements)\n");
    let error = place.error(&["checkpoint", "show", &golden("whole"), "flaot"]);
    assert!(error.contains("error [NOT_FOUND]") && error.contains("no tensor 'flaot'"), "{error}");
}

#[test]
fn a_bundle_becomes_other_forms_and_a_bundle_again() {
    let place = Place::new();
    for (form, unsupported) in [("x.safetensors", 12), ("x.npz", 0)] {
        let (from, to) = (golden("whole"), place.arg(form));
        if unsupported > 0 {
            let error = place.error(&["checkpoint", "convert", &from, &to]);
            assert!(error.contains("error [UNIMPLEMENTED]"), "{error}");
            assert!(error.contains("of type complex128 has no place in safetensors"), "{error}");
            assert!(!place.path(form).exists());
        }
        let report = place.json(&["checkpoint", "convert", &from, &to, "--skip"]);
        assert_eq!(report["skipped"].as_array().unwrap().len(), unsupported, "{report}");
        let back = place.arg(&format!("{form}-back"));
        place.text(&["checkpoint", "convert", &to, &back]);
        let done = place.tenon(&["checkpoint", "diff", &from, &back, "--json"]);
        let found: Value = serde_json::from_slice(&done.stdout).unwrap();
        // An archive keeps the bits of quantised numbers, and not that they are quantised.
        let types = if unsupported == 0 { 9 } else { 0 };
        let rows = found["differences"].as_array().unwrap();
        let count = |what: &str| rows.iter().filter(|row| row["what"] == what).count();
        assert_eq!((count("only in the first"), count("dtype")), (unsupported, types), "{found}");
        assert_eq!(rows.len(), unsupported + types, "{found}");
        assert_eq!(found["same"], 54 - unsupported - types);
    }
}

#[test]
fn an_archive_of_numpy_is_read_and_written() {
    let place = Place::new();
    let w = Tensor::from_slice(&[2, 2], &[1.5f32, -2.0, 3.0, 4.0]).unwrap();
    let archive = place.archive("a.npz", &[("w", w.clone())]);
    let (prefix, again) = (place.arg("model"), place.arg("again.npz"));
    place.text(&["checkpoint", "convert", &archive, &prefix, "--rename", "w=dense/kernel"]);
    assert_eq!(names(&place.json(&["checkpoint", "list", &prefix])), ["dense/kernel"]);
    place.text(&["checkpoint", "convert", &prefix, &again]);
    let found = Npz::open(&again).unwrap().tensor("dense/kernel", None).unwrap();
    assert_eq!(found.dtype(), DType::FLOAT);
    assert_eq!(found.as_slice::<f32>().unwrap(), w.as_slice::<f32>().unwrap());
    let error = place.error(&["checkpoint", "convert", &archive, &prefix, "--rename", "x=y"]);
    assert!(error.contains("there is no tensor 'x'"), "{error}");
}

#[test]
fn differences_are_told_and_counted() {
    let place = Place::new();
    let write = |name: &str, arrays: &[(&str, Tensor)]| {
        let archive = place.archive(&format!("{name}.npz"), arrays);
        let prefix = place.arg(name);
        place.text(&["checkpoint", "convert", &archive, &prefix]);
        prefix
    };
    let float = |values: &[f32]| Tensor::from_slice(&[values.len() as i64], values).unwrap();
    let number = |value: i32| Tensor::from_slice(&[1], &[value]).unwrap();
    let a = write(
        "a",
        &[
            ("gone", number(1)),
            ("same", number(1)),
            ("shape", float(&[1.0])),
            ("type", number(1)),
            ("values", float(&[1.0, 2.0, 3.0])),
        ],
    );
    let b = write(
        "b",
        &[
            ("new", number(1)),
            ("same", number(1)),
            ("shape", float(&[1.0, 2.0])),
            ("type", float(&[1.0])),
            ("values", float(&[1.0, 2.5, 2.0])),
        ],
    );
    let done = place.tenon(&["checkpoint", "diff", &a, &b]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").filter(|w| !w.is_empty()).map(str::trim).collect())
        .collect();
    assert_eq!(
        lines[1..],
        [
            vec!["gone", "only in the first"],
            vec!["new", "only in the second"],
            vec!["shape", "shape", "[1]", "[2]"],
            vec!["type", "dtype", "int32", "float"],
            vec!["values", "2 of 3 elements, by 1e0 at most"],
            vec!["the same: 1 tensor"],
        ]
    );
    assert_eq!(place.text(&["checkpoint", "diff", &a, &a]), "the same: 5 tensors\n");
}

#[test]
fn the_largest_difference_is_exact_or_has_a_name() {
    let place = Place::new();
    let real = |values: &[f64]| Tensor::from_slice(&[values.len() as i64], values).unwrap();
    let whole = |values: &[i64]| Tensor::from_slice(&[values.len() as i64], values).unwrap();
    let large = u64::MAX - 1;
    let natural = |value: u64| Tensor::from_slice(&[1], &[value]).unwrap();
    let a = place.archive(
        "a.npz",
        &[
            ("inf", real(&[1.0, 2.0])),
            ("int", whole(&[1 << 53, 0])),
            ("nan", real(&[f64::NAN, 1.0])),
            ("uint", natural(large)),
            ("wide", whole(&[i64::MIN])),
        ],
    );
    let b = place.archive(
        "b.npz",
        &[
            ("inf", real(&[f64::INFINITY, 3.0])),
            ("int", whole(&[(1 << 53) + 1, 0])),
            ("nan", real(&[1.0, 9.0])),
            ("uint", natural(u64::MAX)),
            ("wide", whole(&[i64::MAX])),
        ],
    );
    let done = place.tenon(&["checkpoint", "diff", &a, &b, "--json"]);
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    let rows = found["differences"].as_array().unwrap();
    let largest: Vec<&Value> = rows.iter().map(|row| &row["largest"]).collect();
    let expected: [Value; 5] = ["inf".into(), 1.into(), "NaN".into(), 1.into(), u64::MAX.into()];
    assert_eq!(largest, expected.iter().collect::<Vec<_>>());
    let done = place.tenon(&["checkpoint", "diff", &a, &b]);
    let text = String::from_utf8(done.stdout).unwrap();
    for (name, by) in [("nan", "by NaN at most"), ("wide", "by 18446744073709551615 at most")] {
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains(by)), "{text}");
    }
}

#[test]
fn complex_numbers_are_shown_with_one_sign() {
    let place = Place::new();
    for end in ["index", "data-00000-of-00001"] {
        fs::copy(golden(&format!("whole.{end}")), place.path(&format!("w.{end}"))).unwrap();
    }
    let shown = place.json(&["checkpoint", "show", &place.arg("w"), "complex128", "--max", "99"]);
    let values: Vec<&str> = shown[0]["values"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_str().unwrap())
        .collect();
    assert!(values.iter().any(|value| value[1..].contains('-')), "{values:?}");
    assert!(values.iter().all(|value| !value.contains("+-") && value.ends_with('i')), "{values:?}");
}

#[test]
fn a_file_of_one_array_is_not_written() {
    let place = Place::new();
    let archive = place.archive("a.npz", &[("w", Tensor::from_slice(&[1], &[1i32]).unwrap())]);
    for skip in [&[][..], &["--skip"]] {
        let to = place.arg("b.npy");
        let args = [&["checkpoint", "convert", archive.as_str(), to.as_str()], skip].concat();
        let error = place.error(&args);
        assert!(error.contains("error [UNIMPLEMENTED]"), "{error}");
        assert!(error.contains("an .npy file is read, and not written"), "{error}");
        assert!(!place.path("b.npy.index").exists());
    }
}

#[cfg(unix)]
#[test]
fn an_archive_has_the_mode_of_other_new_files() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let archive = place.archive("a.npz", &[("w", Tensor::from_slice(&[1], &[1i32]).unwrap())]);
    place.text(&["checkpoint", "convert", &archive, &place.arg("b.npz")]);
    fs::write(place.path("usual"), "").unwrap();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("b.npz"), mode("usual"));
}

#[test]
fn what_is_no_checkpoint_is_an_error() {
    let place = Place::new();
    let error = place.error(&["checkpoint", "list", &place.arg("none")]);
    assert!(error.contains("error [NOT_FOUND]") && error.contains("none"), "{error}");
    fs::write(place.path("text"), "no checkpoint at all, but long enough for a footer").unwrap();
    let error = place.error(&["checkpoint", "list", &place.arg("text")]);
    assert!(error.contains("error [DATA_LOSS]") && error.contains("not a table"), "{error}");
    fs::write(place.path("x.safetensors"), "short").unwrap();
    let error = place.error(&["checkpoint", "list", &place.arg("x.safetensors")]);
    assert!(error.contains("expected the length of a header"), "{error}");
    for end in ["index", "data-00000-of-00001"] {
        fs::copy(golden(&format!("whole.{end}")), place.path(&format!("w.{end}"))).unwrap();
    }
    let mut bytes = fs::read(place.path("w.data-00000-of-00001")).unwrap();
    bytes[0] ^= 1;
    fs::write(place.path("w.data-00000-of-00001"), bytes).unwrap();
    let error = place.error(&["checkpoint", "convert", &place.arg("w"), &place.arg("v")]);
    assert!(error.contains("error [DATA_LOSS]"), "{error}");
    assert!(error.contains("Checksum does not match"), "{error}");
    assert!(!place.path("v.index").exists(), "a part of a checkpoint is left");
}
