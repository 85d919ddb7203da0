//! Graphs that TensorFlow wrote, from files to files, against TensorFlow's results.

use crate::support::{Place, goldens, stderr};
use serde_json::Value;
use tenon_runtime::framework::{DType, Tensor};
use tenon_testkit::{npy, npz::Npz};

fn read_array(archive: &mut Npz, name: &str, dtype: DType) -> Tensor {
    let tensor = archive.tensor(name, Some(dtype)).unwrap();
    assert_eq!(tensor.dtype(), dtype, "{name}");
    tensor
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn dtype(value: &Value) -> DType {
    DType::from_name(text(value, "dtype")).unwrap()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Absolute and relative tolerance; zeros for `"exact"`.
fn tolerance(value: &Value) -> (f64, f64) {
    let figure = |key: &str| value[key].as_f64().unwrap_or(0.0);
    if value == "exact" { (0.0, 0.0) } else { (figure("absolute"), figure("relative")) }
}

fn same(found: &Tensor, expected: &Tensor, (absolute, relative): (f64, f64)) -> bool {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        return false;
    }
    let near = |a: f64, b: f64| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= absolute + relative * b.abs()
    };
    match found.dtype() {
        DType::STRING => found.as_strings().unwrap() == expected.as_strings().unwrap(),
        DType::FLOAT => {
            let (a, b) = (found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
            a.iter().zip(b).all(|(a, b)| near(f64::from(*a), f64::from(*b)))
        }
        DType::DOUBLE => {
            let (a, b) = (found.as_slice::<f64>().unwrap(), expected.as_slice::<f64>().unwrap());
            a.iter().zip(b).all(|(a, b)| near(*a, *b))
        }
        _ => found.as_bytes().unwrap() == expected.as_bytes().unwrap(),
    }
}

fn run_one(place: &Place, graph: &Value, run: &Value, archive: &mut Npz) -> Vec<String> {
    let mut args =
        vec!["run".to_owned(), goldens().join(text(graph, "file")).display().to_string()];
    for (at, feed) in list(run, "feeds").iter().enumerate() {
        let tensor = read_array(archive, text(feed, "array"), dtype(feed));
        let file = place.array(&format!("feed{at}.npy"), &tensor);
        args.extend(["--feed".to_owned(), format!("{}={file}", text(feed, "tensor"))]);
    }
    for fetch in list(run, "fetches") {
        args.extend(["--fetch".to_owned(), text(fetch, "tensor").to_owned()]);
    }
    for target in list(run, "targets") {
        args.extend(["--target".to_owned(), target.as_str().unwrap().to_owned()]);
    }
    args.extend(["--out".to_owned(), place.arg("out")]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let name = text(graph, "name");
    let output = place.tenon(&[&args[..], &["--json"]].concat());
    let error = stderr(&output);
    if let Some(code) = run["error"].as_str() {
        let same = error.starts_with(&format!("error [{code}]"));
        return if same { Vec::new() } else { vec![format!("{name}: expected {code}: {error}")] };
    }
    if !output.status.success() {
        return vec![format!("{name}: {error}")];
    }
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut wrong = Vec::new();
    for (fetch, given) in list(run, "fetches").iter().zip(list(&result, "fetches")) {
        let name = text(fetch, "tensor");
        assert_eq!(text(given, "name"), name);
        assert_eq!(
            (text(given, "dtype"), &given["shape"]),
            (text(fetch, "dtype"), &fetch["shape"])
        );
        let found = npy::read(text(given, "file"), Some(dtype(fetch))).unwrap();
        let expected = read_array(archive, text(fetch, "array"), dtype(fetch));
        let allowed = fetch.get("tolerance").unwrap_or(&graph["tolerance"]);
        if !same(&found, &expected, tolerance(allowed)) {
            wrong.push(format!("{} {name}", text(graph, "name")));
        }
    }
    wrong
}

#[test]
fn graphs_that_tensorflow_wrote_give_its_results() {
    let index = std::fs::read_to_string(goldens().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let place = Place::new();
    let (mut wrong, mut runs) = (Vec::new(), 0);
    for graph in list(&index, "graphs") {
        let mut archive = Npz::open(goldens().join(text(graph, "arrays"))).unwrap();
        for run in list(graph, "runs") {
            wrong.extend(run_one(&place, graph, run, &mut archive));
            runs += 1;
        }
    }
    assert!(runs >= 40, "{runs} runs");
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
}
