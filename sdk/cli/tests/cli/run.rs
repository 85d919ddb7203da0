//! `tenon run`: what it prints and writes, and what it refuses.

use crate::{
    check::wrong_plugin_with,
    support::{Place, output, stderr},
};
use std::fs;
use tenon_runtime::{
    framework::{DType, PartialShape, Tensor},
    graph::GraphBuilder,
    host::Plugins,
    proto::encode,
};
use tenon_testkit::npy;

fn input(place: &Place) -> String {
    let tensor = Tensor::from_slice(&[2, 2], &[-1.0f32, 2.0, -3.0, 4.0]).unwrap();
    format!("x={}", place.array("x.npy", &tensor))
}

#[test]
fn an_exit_in_a_kernel_is_an_error_and_no_success() {
    let place = Place::new();
    let library = wrong_plugin_with(&place, &["-DCLI_EXITS"]);
    let plugins = Plugins::new().unwrap();
    plugins.load([library.clone()]).into_result().unwrap();
    let registry = plugins.registry();
    let mut builder = GraphBuilder::new(&registry);
    let x = builder.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN).unwrap();
    builder.op("CliTwice").name("y").input(x).build().unwrap();
    let graph = builder.finish().to_graph_def().unwrap();
    fs::write(place.path("g.pb"), encode(&graph).unwrap()).unwrap();
    let library = library.display().to_string();
    let run = |elements: usize| {
        let x = Tensor::from_slice(&[elements as i64], &vec![1f32; elements]).unwrap();
        let feed = format!("x={}", place.array("x.npy", &x));
        let graph = place.arg("g.pb");
        place.tenon(&["run", &graph, "--plugin", &library, "--feed", &feed, "--fetch", "y"])
    };
    let well = run(4);
    assert!(well.status.success(), "{}", stderr(&well));
    let ended = run(5);
    assert_eq!(ended.status.code(), Some(1), "{}", stderr(&ended));
    let says = "error [INTERNAL]: exit was called while steps may run, by a kernel";
    assert!(stderr(&ended).contains(says), "{}", stderr(&ended));
}

#[test]
fn json_is_one_object_and_files_are_named_after_fetches() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let out = place.arg("out");
    let result = place.json(&[
        "run",
        &graph,
        "--feed",
        &feed,
        "--fetch",
        "layer/y",
        "--fetch",
        "x:0",
        "--out",
        &out,
        "--repeat",
        "5",
        "--threads",
        "1",
    ]);
    let keys: Vec<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["compile_ns", "fetches", "max_ns", "median_ns", "min_ns", "nodes", "steps"];
    assert_eq!(keys, expected);
    assert_eq!(result["steps"], 5);
    let figure = |key: &str| result[key].as_u64().unwrap();
    assert!(figure("compile_ns") > 0 && figure("min_ns") > 0);
    assert!(figure("min_ns") <= figure("median_ns") && figure("median_ns") <= figure("max_ns"));
    let fetches = result["fetches"].as_array().unwrap();
    assert_eq!(fetches[0]["name"], "layer/y");
    assert_eq!((&fetches[0]["dtype"], &fetches[0]["shape"]), (&"float".into(), &vec![2, 2].into()));
    assert_eq!(fetches[0]["file"].as_str(), Some(place.arg("out/layer_y.npy").as_str()));
    assert_eq!(fetches[1]["file"].as_str(), Some(place.arg("out/x_0.npy").as_str()));
    let y = npy::read(place.path("out/layer_y.npy"), None).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [0.0, 2.0, 0.0, 4.0]);
    let nodes = result["nodes"].as_object().unwrap();
    assert!(nodes.keys().all(|device| device.ends_with("/device:CPU:0")), "{nodes:?}");
}

#[test]
fn nodes_go_to_the_device_that_is_asked_for_with_the_same_result() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let args = ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--device", "ACCEL:0"];
    let out = place.arg("out");
    let result = place.json(&[&args[..], &["--out", &out]].concat());
    let nodes = result["nodes"].as_object().unwrap();
    assert!(nodes.keys().any(|device| device.ends_with("/device:ACCEL:0")), "{nodes:?}");
    let y = npy::read(place.path("out/layer_y.npy"), None).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [0.0, 2.0, 0.0, 4.0]);
}

/// Copies to the accelerator take longer than all that computing there could save.
#[test]
fn placement_by_cost_measures_first_and_keeps_a_cheap_node_near_its_feed() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let (out, slow) = (place.arg("out"), "accel.copy_delay_us=20000");
    let args = ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--place-by-cost"];
    let result = place.json(&[&args[..], &["--set", slow, "--out", &out]].concat());
    let nodes = result["nodes"].as_object().unwrap();
    assert!(nodes.keys().all(|device| device.ends_with("/device:CPU:0")), "{nodes:?}");
    let y = npy::read(place.path("out/layer_y.npy"), None).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [0.0, 2.0, 0.0, 4.0]);
}

/// Exit 0 and the values of the CPU: nothing told that the device was not there.
#[test]
fn a_device_that_is_not_there_was_passed_over_in_silence() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let named = place.graph("named.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::UNKNOWN)?;
        b.op("Relu").name("layer/y").input(x).device("/device:NPU:0").build().map(drop)
    });
    let by_option = ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--device", "FOO:0"];
    let by_node = ["run", &named, "--feed", &feed, "--fetch", "layer/y"];
    for (args, name) in [(&by_option[..], "FOO:0"), (&by_node[..], "/device:NPU:0")] {
        let error = place.error(args);
        for part in [name, "there", "/device:CPU:0", "/device:ACCEL:1", "--soft-placement"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let result = place.json(&[args, &["--soft-placement"]].concat());
        assert!(result["nodes"].as_object().unwrap().keys().all(|key| key.ends_with("CPU:0")));
        place.json(&[args, &["--set", "runtime.soft_placement=true"]].concat());
    }
    let explained = place.text(&["explain", &named, "layer/y", "--soft-placement"]);
    assert!(explained.contains("moved by soft placement"), "{explained}");
}

/// "there are no devices" did not say where plugins had been looked for.
#[test]
fn without_plugins_the_error_says_where_they_were_looked_for() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let alone = place.alone();
    let mut command = place.command(&alone);
    command.args(["run", &graph, "--feed", &feed, "--fetch", "layer/y"]);
    let error = stderr(&output(command.env("TENON_PLUGIN_PATH", place.path("nowhere"))));
    let folders =
        ["nowhere (TENON_PLUGIN_PATH): not there", "data/tenon/plugins (the user's plugins)"];
    for part in
        [&["there are no devices", "--plugin FILE", "RuntimeOptions::plugins"][..], &folders]
            .concat()
    {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn text_shows_values_and_times_and_a_trace_is_written() {
    let place = Place::new();
    let graph = place.graph("g.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2, 2]).unwrap())?;
        b.op("Relu").name("layer/y").input(x).build().map(drop)
    });
    let feed = input(&place);
    let trace = place.arg("trace.json");
    let args = ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--trace", &trace];
    let text = place.text(&[&args[..], &["--repeat", "3"]].concat());
    assert!(text.contains("0 2 0 4") && text.contains("3 steps: median"), "{text}");
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let relu: Vec<_> = events.iter().filter(|event| event["name"] == "layer/y").collect();
    assert_eq!(relu.len(), 1, "only the last step is traced: {events:?}");
    let args = &relu[0]["args"];
    assert_eq!((&args["op"], &args["plugin"]), (&"Relu".into(), &"tenon-cpu".into()), "{args}");
    assert_eq!(args["inputs"][0], "float [2,2]", "{args}");
}

#[test]
fn a_trace_shows_copies_to_and_from_a_device_with_their_bytes() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let file = place.arg("trace.json");
    let args = ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--device", "ACCEL:0"];
    place.text(&[&args[..], &["--trace", &file]].concat());
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let copies: Vec<_> = events.iter().filter(|event| event["cat"] == "copy").collect();
    for name in ["copy to ACCEL:0", "copy from ACCEL:0"] {
        let copy = copies.iter().find(|event| event["name"] == name);
        let copy = copy.unwrap_or_else(|| panic!("{name}: {events:?}"));
        assert_eq!((&copy["pid"], &copy["args"]["bytes"]), (&2.into(), &16.into()), "{copy}");
    }
}

#[test]
fn a_target_runs_without_a_fetch() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let result = place.json(&["run", &graph, "--feed", &feed, "--target", "layer/y"]);
    assert_eq!(result["fetches"], serde_json::json!([]));
    assert_eq!(result["steps"], 1);
    let error = place.error(&["run", &graph, "--feed", &feed]);
    assert!(error.contains("--fetch NAME or --target NAME"), "{error}");
}

#[test]
fn what_is_wrong_with_names_files_and_types_is_said() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let run = |args: &[&str]| place.error(&[&["run", &graph], args].concat());
    let fetch = run(&["--feed", &feed, "--fetch", "layer/z"]);
    assert!(fetch.contains("layer/z"), "{fetch}");
    let unknown = run(&["--feed", &feed.replace("x=", "q="), "--fetch", "layer/y"]);
    assert!(unknown.contains("'q'") || unknown.contains("'q:0'"), "{unknown}");
    let unfed = run(&["--fetch", "layer/y"]);
    assert!(unfed.contains("'x'"), "{unfed}");
    let missing = run(&["--feed", "x=none.npy", "--fetch", "layer/y"]);
    assert!(missing.starts_with("error [NOT_FOUND]: none.npy"), "{missing}");
    let ints = place.array("ints.npy", &Tensor::from_slice(&[1], &[1i32]).unwrap());
    let dtype = run(&["--feed", &format!("x={ints}"), "--fetch", "layer/y"]);
    assert!(dtype.contains("expected elements of type float, found int32"), "{dtype}");
    let twice =
        run(&["--feed", &feed, "--feed", &feed.replace("x=", "x:0="), "--fetch", "layer/y"]);
    assert!(twice.contains("fed twice"), "{twice}");
    let device = run(&["--feed", &feed, "--fetch", "layer/y", "--device", "no such device"]);
    assert!(device.contains("no such device"), "{device}");
    let same = run(&["--feed", &feed, "--fetch", "layer/y", "--fetch", "layer:y", "--out", "o"]);
    assert!(same.contains("layer_y.npy"), "{same}");
    let bad = place.array("bad.npy", &Tensor::from_slice(&[1], &[1.0f32]).unwrap());
    fs::write(&bad, &fs::read(&bad).unwrap()[..20]).unwrap();
    let cut = run(&["--feed", &format!("x={bad}"), "--fetch", "layer/y"]);
    assert!(cut.contains("bad.npy: expected a .npy file"), "{cut}");
}

#[test]
fn a_file_that_is_no_graph_is_an_error() {
    let place = Place::new();
    let missing = place.error(&["run", "none.pb", "--fetch", "y"]);
    assert!(missing.starts_with("error [NOT_FOUND]: none.pb"), "{missing}");
    fs::write(place.path("bad.pb"), b"\xff\xff\xff\xff").unwrap();
    let bad = place.error(&["run", "bad.pb", "--fetch", "y"]);
    assert!(bad.starts_with("error [INVALID_ARGUMENT]: bad.pb: tensorflow.GraphDef"), "{bad}");
}

#[test]
fn a_wrong_command_line_has_code_2() {
    let place = Place::new();
    for args in [
        &[][..],
        &["unknown"],
        &["run"],
        &["run", "g.pb", "--repeat", "0"],
        &["run", "g.pb", "--feed", "x"],
        &["run", "g.pb", "--fetch", "y", "--place-by-cost", "--device", "CPU:0"],
    ] {
        let output = place.tenon(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_device_that_fails_fails_the_step_and_says_where() {
    let place = Place::new();
    let (graph, feed) = (place.relu("g.pb"), input(&place));
    let error = place.error(&[
        "run",
        &graph,
        "--feed",
        &feed,
        "--fetch",
        "layer/y",
        "--device",
        "ACCEL:0",
        "--set",
        "accel.lose_after_commands=1",
        "--repeat",
        "50",
    ]);
    assert!(error.contains("ACCEL") && error.starts_with("error [UNAVAILABLE]"), "{error}");
}

#[test]
fn targets_run_once_and_in_order_before_the_steps() {
    let place = Place::new();
    let plugins = Plugins::new().unwrap();
    let registry = plugins.registry();
    let mut b = GraphBuilder::new(&registry);
    let shape = PartialShape::new(&[]).unwrap();
    let variable = b.op("VarHandleOp").name("v").attr("dtype", DType::FLOAT);
    let variable = variable.attr("shape", shape).build().unwrap();
    let number = |b: &mut GraphBuilder<'_>, name: &str, value: f32| {
        b.constant(name, Tensor::scalar(value).unwrap()).unwrap()
    };
    let (two, three) = (number(&mut b, "two", 2.0), number(&mut b, "three", 3.0));
    let set = b.op("AssignVariableOp").name("set").input(variable).input(two);
    set.attr("dtype", DType::FLOAT).build().unwrap();
    let add = b.op("AssignAddVariableOp").name("add").input(variable).input(three);
    add.attr("dtype", DType::FLOAT).build().unwrap();
    b.op("ReadVariableOp").name("y").input(variable).attr("dtype", DType::FLOAT).build().unwrap();
    let graph = b.finish().to_graph_def().unwrap();
    fs::write(place.path("g.pb"), encode(&graph).unwrap()).unwrap();
    let (graph, out) = (place.arg("g.pb"), place.arg("out"));
    let run = |init: &[&str]| {
        let mut args = vec!["run", &graph, "--fetch", "y", "--repeat", "3", "--out", &out];
        args.extend(init.iter().flat_map(|target| ["--init", target]));
        place.tenon(&args)
    };
    let well = run(&["set", "add", "add"]);
    assert!(well.status.success(), "{}", stderr(&well));
    let y = npy::read(place.path("out/y.npy"), None).unwrap();
    assert_eq!(y.as_slice::<f32>().unwrap(), [8.0]);
    let wrong_order = run(&["add", "set"]);
    assert_eq!(wrong_order.status.code(), Some(1), "{}", stderr(&wrong_order));
    assert!(stderr(&wrong_order).contains("run its initialiser first"), "{}", stderr(&wrong_order));
    let unknown = run(&["sett"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("sett"), "{}", stderr(&unknown));
}
