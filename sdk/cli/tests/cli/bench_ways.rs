//! `tenon bench`: ways to measure and to write what came of it. No speed is asserted.

use crate::support::{Place, stderr};
use serde_json::Value;
use std::fs;

const SHORT: [&str; 3] = ["--time", "0.003", "--no-roofline"];
const RELU: [&str; 6] = ["bench", "Relu:", "--shape", "70", "--device", "CPU"];

fn json(place: &Place, own: &[&str]) -> Value {
    place.json(&[&RELU[..], own, &SHORT].concat())
}

#[test]
fn numbers_of_threads_are_a_sweep() {
    let place = Place::new();
    let (page, csv) = (place.arg("threads.html"), place.arg("threads.csv"));
    let own = ["--threads", "1..3", "--html", &page, "--csv", &csv];
    let report = json(&place, &own);
    assert_eq!(
        report["run"]["sweep"],
        serde_json::json!({"symbol": "threads", "values": [1, 2, 3]})
    );
    let threads: Vec<(i64, i64)> = (report["records"].as_array().unwrap().iter())
        .map(|record| {
            let number = |value: &Value| value.as_i64().unwrap();
            (number(&record["threads"]), number(&record["case"]["at"]))
        })
        .collect();
    assert_eq!(threads, [(1, 1), (2, 2), (3, 3)]);
    let text = place.text(&[&RELU[..], &["--threads", "1,2"], &SHORT].concat());
    assert!(text.contains("THREADS") && text.contains("SCALING"), "{text}");
    assert!(fs::read_to_string(&page).unwrap().contains("threads"));
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 4);
    let sweep = ["bench", "Relu", "--shape", "[n]", "--sweep", "n=4..8", "--threads", "1,2"];
    let error = place.error(&[&sweep[..], &SHORT].concat());
    assert!(error.contains("leave --sweep out"), "{error}");
}

#[test]
fn cold_calls_are_timed_one_by_one_and_not_compared_with_warm_ones() {
    let place = Place::new();
    let (cold, warm) = (place.arg("cold.jsonl"), place.arg("warm.jsonl"));
    let report = json(&place, &["--cold", "--record", &cold]);
    let record = &report["records"][0];
    assert_eq!((&record["cold"], &record["kernel"]["batch"]), (&true.into(), &1.into()));
    json(&place, &["--record", &warm]);
    let output = place.tenon(&["bench", "--compare", &warm, &cold]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("the state of caches was warm, is cold"), "{text}");
    assert!(text.contains("(caches cold)"), "{text}");
}

#[test]
fn counters_are_told_or_why_not() {
    let place = Place::new();
    let output = place.tenon(&[&RELU[..], &["--counters"], &SHORT].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = stderr(&output);
    let why = error.contains("nothing is counted: ") && error.contains("perf stat -e cycles");
    assert!(why || text.contains("CYCLES"), "{text} {error}");
}

/// The records of a run in which every sample took `factor` times as long.
fn slower(lines: &str, factor: f64) -> String {
    let scale = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if let Some(samples) = value.pointer_mut("/kernel/ns").and_then(Value::as_array_mut) {
            samples.iter_mut().for_each(|ns| *ns = (ns.as_f64().unwrap() * factor).into());
        }
        format!("{value}\n")
    };
    lines.lines().map(scale).collect()
}

#[test]
fn two_records_are_compared_without_measuring() {
    let place = Place::new();
    let before = place.arg("before.jsonl");
    json(&place, &["--record", &before]);
    let lines = fs::read_to_string(&before).unwrap();
    fs::write(place.path("after.jsonl"), slower(&lines, 1000.0)).unwrap();
    let after = place.arg("after.jsonl");
    let (page, table) = (place.arg("two.html"), place.arg("two.md"));
    let compare = |first: &str, second: &str, own: &[&str]| {
        place.tenon(&[&["bench", "--compare", first, second], own].concat())
    };
    let output = compare(&before, &after, &["--html", &page, "--markdown", &table]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "a regression: {text}");
    for part in
        ["SLOWER: ", "before: before.jsonl", "after: after.jsonl", "1 regression in 1 comparison"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("Since the baseline") && page.contains("before.jsonl"));
    let table = fs::read_to_string(&table).unwrap();
    assert!(table.contains("| against the baseline |") && table.contains("slower"), "{table}");
    let same = compare(&before, &before, &["--json"]);
    assert_eq!(same.status.code(), Some(0));
    let found: Value = serde_json::from_slice(&same.stdout).unwrap();
    assert_eq!(
        (&found["baseline"]["regressions"], &found["baseline"]["compared"]),
        (&0.into(), &1.into())
    );
    let missing = place.error(&["bench", "--compare", &before, "none.jsonl"]);
    assert!(missing.contains("none.jsonl"), "{missing}");
}
