//! `tenon bench`. Budgets are tiny and no speed is asserted: how fast a machine is says nothing of the program.

use crate::support::{Place, goldens, plugin, stderr};
use serde_json::Value;
use std::{collections::BTreeSet, fs, process::Output};
use tenon_runtime::framework::Tensor;

/// A run of a few milliseconds, without the machine's limits.
const SHORT: [&str; 3] = ["--time", "0.003", "--no-roofline"];

fn args<'a>(own: &[&'a str]) -> Vec<&'a str> {
    [&["bench"], own, &SHORT].concat()
}

fn run(place: &Place, own: &[&str]) -> Output {
    place.command(env!("CARGO_BIN_EXE_tenon").as_ref()).args(args(own)).output().unwrap()
}

fn json(place: &Place, own: &[&str]) -> Value {
    place.json(&args(own))
}

fn records(report: &Value) -> &Vec<Value> {
    report["records"].as_array().unwrap()
}

/// Device and label of each record.
fn variants(report: &Value) -> Vec<(String, String)> {
    let text = |record: &Value, key: &str| record["variant"][key].as_str().unwrap().to_owned();
    records(report).iter().map(|record| (text(record, "device"), text(record, "label"))).collect()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_variant_is_checked_and_measured_side_by_side() {
    let devices = ["--device", "CPU", "--device", "ACCEL"];
    let own = [&["Relu", "--shape", "features=70"], &devices[..]].concat();
    let report = json(&Place::new(), &own);
    let found = variants(&report);
    for (device, label) in [("CPU", ""), ("CPU", "reference"), ("ACCEL", "")] {
        assert!(found.contains(&(device.into(), label.into())), "{found:?}");
    }
    // Nothing but a variant whose instructions this CPU lacks.
    let problems = report["problems"].as_array().unwrap();
    let lacking = |problem: &Value| problem["message"].as_str().unwrap().starts_with("needs ");
    assert!(problems.iter().all(|p| p["kind"] == "refused" && lacking(p)), "{problems:?}");
    for record in records(&report) {
        assert!(
            record["checked"].is_string() && record["dispatch"]["through"].is_string(),
            "{record}"
        );
        assert_eq!(record["case"]["inputs"][0]["dims"], serde_json::json!([70]));
        assert_eq!(record["work"]["read"].as_f64(), Some(280.0));
        let kernel = &record["kernel"];
        let count = kernel["ns"].as_array().unwrap().len();
        assert!(count >= 5 && kernel["rounds"].as_array().unwrap().len() == count);
        assert!(record["median_ns"].as_f64().unwrap() > 0.0);
    }
    // Each but the base is compared with it.
    assert_eq!(report["comparisons"].as_array().unwrap().len(), found.len() - 1);
    let plugins = report["run"]["plugins"].as_array().unwrap();
    assert!(
        plugins
            .iter()
            .any(|p| p["name"] == "tenon-cpu" && p["digest"].as_str().unwrap().len() == 64)
    );
}

#[test]
fn text_has_a_table_and_says_what_is_compared() {
    let place = Place::new();
    let output = run(&place, &["Relu:reference", "Relu", "--shape", "70", "--device", "CPU"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = text(&output);
    for part in
        ["Relu  T=float", "SHAPES", "KERNEL", "DISPATCH", "features=70", "reference", "GB/s"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("ACCEL") && text.lines().all(|line| line == line.trim_end()), "{text}");
}

#[test]
fn a_simulated_device_takes_part_only_when_it_is_named() {
    let place = Place::new();
    let devices = |own: &[&str]| {
        let report = json(&place, &[&["Relu", "--shape", "70"], own].concat());
        let found: BTreeSet<String> = variants(&report).into_iter().map(|(on, _)| on).collect();
        found.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(devices(&[]), ["CPU"]);
    assert_eq!(devices(&["--device", "ACCEL"]), ["ACCEL"]);
    // Whoever gives the file of its plugin means it.
    let file = plugin("accel").display().to_string();
    assert_eq!(devices(&["--plugin", &file]), ["ACCEL", "CPU"]);
}

#[test]
fn a_sweep_is_measured_at_each_value_against_a_label() {
    let place = Place::new();
    let own = [
        "MatMul:portable",
        "--shape",
        "a=[n,3],b=[3,n]",
        "--sweep",
        "n=4..16",
        "--vs",
        "reference",
    ];
    let report = json(&place, &own);
    assert_eq!(report["run"]["sweep"]["values"], serde_json::json!([4, 8, 16]));
    let at: Vec<i64> =
        records(&report).iter().map(|record| record["case"]["at"].as_i64().unwrap()).collect();
    assert_eq!(at, [4, 4, 8, 8, 16, 16]);
    let labels: Vec<String> = variants(&report).into_iter().map(|(_, label)| label).collect();
    assert_eq!(labels[..2], ["portable", "reference"]);
    let comparisons = report["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len(), 3);
    assert!(comparisons.iter().all(|c| c["against"] == "reference" && c["paired"] == true));
    // 2 * 4 * 4 * 3 operations.
    assert_eq!(records(&report)[0]["work"]["flops"].as_f64(), Some(96.0));
    assert_eq!(records(&report)[0]["unit"], "GFLOP/s");
}

#[test]
fn attributes_types_values_and_constants_reach_the_call() {
    let place = Place::new();
    let own = [
        "MatMul",
        "--shape",
        "a=3x2,b=3x5",
        "--attr",
        "transpose_a=true",
        "--dtype",
        "double",
        "--const",
        "b",
        "--label",
        "",
        "--device",
        "CPU",
    ];
    let report = json(&place, &own);
    let case = &records(&report)[0]["case"];
    assert_eq!(
        (&case["attrs"]["transpose_a"], &case["attrs"]["T"]),
        (&"true".into(), &"double".into())
    );
    assert_eq!(
        (&case["inputs"][0]["constant"], &case["inputs"][1]["constant"]),
        (&false.into(), &true.into())
    );
    let sum = json(
        &place,
        &["Sum", "--shape", "input=4x5", "--value", "reduction_indices=[1]", "--device", "CPU"],
    );
    assert_eq!(records(&sum)[0]["work"]["written"].as_f64(), Some(16.0));
}

#[test]
fn a_record_is_a_baseline_and_a_slower_kernel_fails_against_it() {
    let place = Place::new();
    let own = ["Relu:", "--shape", "70", "--device", "CPU"];
    let record = place.arg("records.jsonl");
    assert!(run(&place, &[&own[..], &["--record", &record]].concat()).status.success());
    let lines = fs::read_to_string(&record).unwrap();
    assert_eq!(lines.lines().count(), 2);
    // The same machine may be ten times slower a moment later; not a thousand times.
    let against = |file: &str, threshold: &str| {
        run(&place, &[&own[..], &["--baseline", file, "--threshold", threshold, "--json"]].concat())
    };
    let same = against(&record, "1000");
    let report: Value = serde_json::from_slice(&same.stdout).unwrap();
    assert_eq!((same.status.code(), &report["baseline"]["compared"]), (Some(0), &1.into()));
    let scaled = scaled(&lines, 1e-4);
    fs::write(place.path("fast.jsonl"), scaled).unwrap();
    let slower = against(&place.arg("fast.jsonl"), "1000");
    let report: Value = serde_json::from_slice(&slower.stdout).unwrap();
    assert_eq!((slower.status.code(), &report["baseline"]["regressions"]), (Some(1), &1.into()));
    let told = run(&place, &[&own[..], &["--baseline", &place.arg("fast.jsonl")]].concat());
    assert!(
        text(&told).contains("SLOWER") && text(&told).contains("1 regression"),
        "{}",
        text(&told)
    );
    // What compares nothing does not pass.
    fs::write(place.path("other.jsonl"), lines.replace("\"threads\":1", "\"threads\":3")).unwrap();
    let other = run(&place, &[&own[..], &["--baseline", &place.arg("other.jsonl")]].concat());
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other).contains("the number of threads was 3, is 1"), "{}", text(&other));
    assert!(text(&other).contains("nothing could be compared"), "{}", text(&other));
}

/// The same file with all samples times `factor`.
fn scaled(lines: &str, factor: f64) -> String {
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
fn records_and_other_builds_are_compared_with() {
    let place = Place::new();
    let own = ["Relu:", "--shape", "70", "--device", "CPU"];
    let record = place.arg("records.jsonl");
    assert!(run(&place, &[&own[..], &["--record", &record]].concat()).status.success());
    let report = json(&place, &[&own[..], &["--vs", &record]].concat());
    let comparison = &report["comparisons"][0];
    assert_eq!((&comparison["paired"], comparison["p"].is_number()), (&false.into(), true));
    // Another file of the same plugin: its kernels stand beside those that are loaded.
    let build = place.arg("libtenon_cpu.so");
    fs::copy(plugin("cpu"), &build).unwrap();
    let report = json(&place, &[&own[..], &["--vs", &build]].concat());
    assert_eq!(variants(&report).len(), 2, "{:?}", variants(&report));
    assert_eq!(report["comparisons"].as_array().unwrap().len(), 1);
}

#[test]
fn the_calls_of_a_graph_are_measured_with_their_values() {
    let place = Place::new();
    let graph = goldens().join("cnn.pb").display().to_string();
    let report = json(
        &place,
        &[
            &graph,
            "--calls",
            "--shape",
            "x=1x17x13x3",
            "--label",
            "",
            "--device",
            "CPU",
            "--no-dispatch",
        ],
    );
    let ops: Vec<&str> =
        records(&report).iter().map(|record| record["bench"].as_str().unwrap()).collect();
    assert!(ops.contains(&"Conv2D") && ops.contains(&"MatMul"), "{ops:?}");
    let conv = records(&report).iter().find(|record| record["bench"] == "Conv2D").unwrap();
    assert!(
        conv["case"]["node"].is_string() && conv["case"]["inputs"][1]["constant"] == true,
        "{conv}"
    );
    assert!(conv["dispatch"].is_null());
}

#[test]
fn a_variable_left_over_does_not_keep_the_rest_from_being_measured() {
    let place = Place::new();
    let graph = place.leftover("g.pb");
    let report = json(&place, &[&graph, "--shape", "x=4"]);
    let [record] = &records(&report)[..] else { panic!("one step: {report}") };
    assert_eq!((&record["bench"], &record["size"]), (&"step".into(), &"x=4".into()));
    let output = run(&place, &[&graph, "--shape", "x=4", "--calls", "--no-dispatch"]);
    let said = stderr(&output);
    let lost = "left out: node 'step/read' needs op 'NobodysVariable', which is not registered";
    assert!(output.status.success() && said.contains(lost), "{said}");
}

#[test]
fn a_step_of_a_graph_is_measured_with_its_profile() {
    let place = Place::new();
    let graph = goldens().join("cnn.pb").display().to_string();
    let own = [graph.as_str(), "--shape", "x=2x17x13x3"];
    let report = json(&place, &own);
    let [record] = &records(&report)[..] else { panic!("one step: {report}") };
    assert_eq!((&record["bench"], &record["size"]), (&"step".into(), &"x=2x17x13x3".into()));
    assert_eq!(record["checked"], "the graph as it is written");
    let profile = &record["profile"];
    let nodes = profile["nodes"].as_array().unwrap();
    let node = |op: &str| nodes.iter().find(|node| node["op"] == op).unwrap();
    let flops = |op: &str| node(op)["work"]["flops"].as_f64().unwrap();
    assert!(flops("_FusedConv2D") > 0.0 && node("_FusedConv2D")["rate"].as_f64().unwrap() > 0.0);
    assert_eq!(node("_FusedConv2D")["plugin"], "tenon-cpu");
    // The step's work is that of its products.
    let products = nodes.iter().filter(|node| node["unit"] == "GFLOP/s");
    let sum: f64 = products.map(|node| node["work"]["flops"].as_f64().unwrap()).sum();
    assert_eq!(record["work"]["flops"].as_f64(), Some(sum));
    let memory = &profile["memory"][0];
    let figure = |name: &str| memory[name].as_u64().unwrap();
    assert!(figure("planned") > 0 && figure("planned") <= figure("without_reuse"), "{memory}");
    assert!(figure("held") > 0, "{memory}");
    let shown = text(&run(&place, &own));
    for part in ["step  graph=cnn.pb", "ordinary of tenon-cpu", "memory on CPU:0:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_step_is_compared_with_the_values_of_a_file() {
    let place = Place::new();
    let graph = place.relu("relu.pb");
    let data = |name: &str, arrays: &[(&str, &[f32])]| {
        let tensor = |values: &[f32]| Tensor::from_slice(&[3], values).unwrap();
        let arrays: Vec<_> = arrays.iter().map(|(name, values)| (*name, tensor(values))).collect();
        place.archive(name, &arrays)
    };
    let x: &[f32] = &[-1.0, 2.0, 4.0];
    let right = data("right.npz", &[("x", x), ("layer/y", &[0.0, 2.0, 4.0])]);
    let report = json(&place, &[&graph, "--data", &right]);
    assert_eq!(records(&report)[0]["checked"], "values given, the graph as it is written");
    let wrong = data("wrong.npz", &[("x", x), ("layer/y", &[0.0, 2.5, 4.0])]);
    let output = run(&place, &[&graph, "--data", &wrong]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("WRONG, not timed: session"), "{}", text(&output));
    assert!(text(&output).contains("layer/y:0 is not what the file expects"), "{}", text(&output));
    let unknown = data("unknown.npz", &[("x", x), ("z", x)]);
    let error = place.error(&args(&[&graph, "--data", &unknown]));
    assert!(error.contains("has no tensor 'z'"), "{error}");
    let error = place.error(&args(&[&graph]));
    assert!(error.contains("placeholder 'x' has shape"), "{error}");
}

#[test]
fn several_processes_measure_into_one_report() {
    let place = Place::new();
    let report = json(&place, &["Relu:", "--shape", "70", "--device", "CPU", "--processes", "3"]);
    assert_eq!(report["run"]["processes"], 3);
    let record = &records(&report)[0];
    let mut processes: Vec<u64> = record["kernel"]["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p.as_u64().unwrap())
        .collect();
    assert_eq!(record["samples"].as_u64(), Some(processes.len() as u64));
    processes.dedup();
    assert_eq!(processes, [0, 1, 2]);
    let failed = place.error(&args(&["Relo", "--processes", "2"]));
    assert!(failed.contains("did you mean 'Relu'"), "{failed}");
}

#[test]
fn limits_of_the_machine_are_measured_once_and_kept() {
    let place = Place::new();
    let own = ["bench", "Relu:", "--shape", "70", "--device", "CPU", "--time", "0.003", "--json"];
    let run = || {
        let mut command = place.command(env!("CARGO_BIN_EXE_tenon").as_ref());
        let output = command.args(own).env("XDG_CACHE_HOME", place.path("cache")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let first = run();
    let limits = &first["run"]["roofline"];
    assert!(limits["peaks"].as_array().unwrap().iter().any(|peak| peak["dtype"] == "float"));
    assert!(limits["levels"].as_array().unwrap().iter().any(|level| level["name"] == "memory"));
    let reached = &records(&first)[0]["reached"];
    assert!(reached["fraction"].as_f64().unwrap() > 0.0 && reached["bound"].is_string());
    // To the last digit: it was read, not measured.
    assert_eq!(run()["run"]["roofline"], *limits);
}

#[test]
fn a_variant_that_fails_is_reported_and_not_timed() {
    let place = Place::new();
    let fault = ["--set", "accel.fail_command_after=1"];
    let devices = ["--device", "CPU", "--device", "ACCEL"];
    let own = [&["Relu:", "--shape", "70"], &fault[..], &devices[..]].concat();
    let output = run(&place, &own);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let text = text(&output);
    assert!(text.contains("FAILED, not timed: ordinary of tenon-accel on ACCEL"), "{text}");
    assert!(text.contains("  features=70  ordinary  "), "{text}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let place = Place::new();
    let error = |own: &[&str]| place.error(&args(own));
    assert!(error(&["Matmul"]).contains("op 'Matmul' is not registered (did you mean 'MatMul'?)"));
    // Some CPUs have more.
    let labels = error(&["MatMul:fast"]);
    assert!(labels.contains("no kernel with label 'fast': the labels are '', "), "{labels}");
    assert!(labels.contains("'portable'"), "{labels}");
    assert!(error(&["Relu", "--device", "TPU"]).contains("no kernel for a device TPU"));
    assert!(error(&["none.so"]).contains("none.so: there is no such file"));
    assert!(error(&["Relu", "--shape", "x=3"]).contains("no input 'x': its inputs are features"));
    assert!(error(&["Relu", "--dtype", "string"]).contains("no kernel takes string for T"));
    assert!(error(&["Relu", "--sweep", "n=1..4"]).contains("--shape x=[n,n]"));
    assert!(error(&["Relu", "--shape", "[k]"]).contains("'k' has no value"));
    assert!(error(&["Add", "--shape", "x=2,y=3"]).contains("do not broadcast"));
    assert!(error(&["Relu", "--baseline", "none.jsonl"]).contains("none.jsonl: cannot be read"));
    fs::write(place.path("bad.jsonl"), "{\"form\":99}\n").unwrap();
    assert!(error(&["Relu", "--baseline", &place.arg("bad.jsonl")]).contains("has form 99"));
    let cnn = goldens().join("cnn.pb").display().to_string();
    assert!(
        error(&[&cnn])
            .contains("placeholder 'x' has shape [?,17,13,3]: give its sizes by --shape x=")
    );
    assert!(
        error(&[&cnn, "--shape", "y=1"]).contains("no placeholder 'y': its placeholders are x")
    );
    let graph = goldens().join("while_v1.pb").display().to_string();
    assert!(error(&[&graph, "--dtype", "half"]).contains("its own attributes and types"));
}

#[test]
fn bad_options_are_refused_before_anything_starts() {
    let place = Place::new();
    for (own, wanted) in [
        (vec![], "TARGET"),
        (vec!["Relu", "--shape", "x="], "a size at the end"),
        (vec!["Relu", "--sweep", "n"], "n=64..4096"),
        (vec!["Relu", "--attr", "T"], "NAME=VALUE"),
        (vec!["Relu", "--dtype", "float9"], "float, double"),
        (vec!["Relu", "--time", "0"], "seconds"),
        (vec!["Relu", "--threads", "0"], "--threads"),
        (vec!["Relu", "--threads", "4..2"], "the smaller number first"),
        (vec!["--compare", "a.jsonl"], "2 values"),
        (vec!["Relu", "--compare", "a.jsonl", "b.jsonl"], "cannot be used with"),
        (vec!["Relu", "--threshold=-3"], "per cent"),
    ] {
        let output = place.tenon(&[&["bench"], &own[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{own:?}");
        assert!(stderr(&output).contains(wanted), "{own:?}: {}", stderr(&output));
    }
}

#[test]
fn the_example_of_the_help_runs() {
    let place = Place::new();
    let help = place.text(&["bench", "--help"]);
    let example =
        help.split("Example:").nth(1).unwrap().lines().map(str::trim).find(|line| !line.is_empty());
    let words: Vec<&str> = example.unwrap().split_whitespace().collect();
    assert_eq!(words[0], "tenon");
    // Short, and without the limits, which another test measures.
    let words: Vec<&str> =
        words[1..].iter().map(|&word| if word == "0.2" { "0.003" } else { word }).collect();
    let text = place.text(&[&words[..], &["--no-roofline"]].concat());
    assert!(text.contains("features=1000"), "{text}");
}
