//! Ranges on a profiler's timeline: a profiler in small (`tests/ranges/tool.c`) is attached as VTune and Nsight Systems
//! are, by what they set in the environment, and writes down what it is told.
#![cfg(unix)]

use crate::support::{Place, plugin, stderr};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tenon_runtime::framework::{DType, PartialShape, Tensor};
use tenon_testkit::npy;

const ITT: &str = "INTEL_LIBITTNOTIFY64";
const NVTX: &str = "NVTX_INJECTION64_PATH";
const BOTH: [&str; 2] = [ITT, NVTX];

fn tool(place: &Place) -> PathBuf {
    let made = place.path("libtool.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let done = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-pthread"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ranges/tool.c"))
        .arg("-o")
        .arg(&made)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", stderr(&done));
    made
}

/// Runs the command with these variables naming a library, and no other profiler.
fn under(place: &Place, library: Option<&Path>, mode: &str, args: &[&str]) -> Output {
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_tenon")));
    for variable in BOTH {
        match library {
            Some(library) => command.env(variable, library),
            None => command.env_remove(variable),
        };
    }
    command.env("RANGES_TO", place.path("ranges.txt")).env("RANGES_TOOL", mode);
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

/// A range: those around it, from the outermost on, and itself.
type Range = Vec<String>;

/// The ranges that were written down, by interface, in the order in which they began, of threads one after the other.
fn written(place: &Place) -> BTreeMap<String, Vec<Range>> {
    let text = fs::read_to_string(place.path("ranges.txt")).unwrap();
    let mut threads: BTreeMap<(String, String), (Range, Vec<Range>)> = BTreeMap::new();
    for line in text.lines() {
        let [interface, what, thread, domain, name] =
            line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(domain, "tenon", "{line}");
        let (open, all) = threads.entry((interface.to_owned(), thread.to_owned())).or_default();
        if what == "push" {
            open.push(name.to_owned());
            all.push(open.clone());
        } else {
            assert!(open.pop().is_some(), "more ends than ranges: {text}");
        }
    }
    let mut ranges: BTreeMap<String, Vec<Range>> = BTreeMap::new();
    for ((interface, thread), (open, all)) in threads {
        assert!(open.is_empty(), "thread {thread} leaves {open:?} open: {text}");
        ranges.entry(interface).or_default().extend(all);
    }
    ranges
}

/// `tenon run` of a graph of two nodes, and what it is fed.
fn run_args(place: &Place) -> Vec<String> {
    let graph = place.graph("g.pb", |b| {
        let x = b.placeholder("x", DType::FLOAT, PartialShape::new(&[2, 2]).unwrap())?;
        let sum = b.op("AddV2").name("sum").input(x).input(x).build()?;
        b.op("MatMul").name("layer/y").input(sum).input(x).build().map(drop)
    });
    let x = Tensor::from_slice(&[2, 2], &[1f32, 2.0, 3.0, 4.0]).unwrap();
    let feed = format!("x={}", place.array("x.npy", &x));
    ["run", &graph, "--feed", &feed, "--fetch", "layer/y", "--out", &place.arg("out")]
        .map(str::to_owned)
        .to_vec()
}

fn words<'a>(args: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    args.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

fn y(place: &Place) -> Vec<f32> {
    let y = npy::read(place.path("out/layer_y.npy"), None).unwrap();
    y.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn steps_and_their_nodes_are_ranges_of_both_interfaces() {
    let place = Place::new();
    let (tool, args) = (tool(&place), run_args(&place));
    let trace = place.arg("trace.json");
    let args = words(&args, &["--repeat", "3", "--threads", "2", "--trace", &trace]);
    let output = under(&place, Some(&tool), "", &args);
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    let ranges = written(&place);
    let expected: Vec<Range> = (1..=3)
        .flat_map(|step| {
            let step = format!("step {step}");
            let node = |name: &str| vec![step.clone(), name.to_owned()];
            [vec![step.clone()], node("sum"), node("layer/y")]
        })
        .collect();
    assert_eq!(ranges, BTreeMap::from(["itt", "nvtx"].map(|it| (it.to_owned(), expected.clone()))));
    assert_eq!(y(&place), [14.0, 20.0, 30.0, 44.0]);
    // The last step's own trace is beside.
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["name"] == "layer/y").count(), 1);
}

#[test]
fn without_a_profiler_nothing_is_opened_or_written() {
    let place = Place::new();
    let args = run_args(&place);
    let output = under(&place, None, "", &words(&args, &[]));
    assert!(stderr(&output).is_empty() && !place.path("ranges.txt").exists());
    // An empty name is none.
    let output = under(&place, Some(Path::new("")), "", &words(&args, &[]));
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
}

#[test]
fn a_library_that_is_no_profiler_costs_a_warning() {
    let place = Place::new();
    let (tool, args) = (tool(&place), run_args(&place));
    fs::write(place.path("broken.so"), "no library").unwrap();
    let (missing, broken) = (place.path("none.so"), place.path("broken.so"));
    let other = plugin("fft");
    let cases: [(&Path, &str, [&str; 2]); 5] = [
        (&missing, "", ["cannot be opened"; 2]),
        (&broken, "", ["cannot be opened"; 2]),
        (&other, "", ["the function __itt_api_init", "the function InitializeInjectionNvtx2"]),
        (&tool, "none", ["takes none"; 2]),
        (&tool, "no", ["", "says that it cannot begin"]),
    ];
    for (library, mode, reasons) in cases {
        let output = under(&place, Some(library), mode, &words(&args, &["--repeat", "2"]));
        let said = stderr(&output);
        let told = BOTH.iter().zip(reasons).filter(|(_, reason)| !reason.is_empty());
        for (line, (variable, reason)) in said.lines().zip(told.clone()) {
            let file = library.display().to_string();
            let parts = ["warning: no ranges", variable, &file, reason];
            assert!(parts.iter().all(|part| line.contains(part)), "{reason}: {said}");
        }
        assert_eq!(said.lines().count(), told.count(), "{said}");
        assert_eq!(y(&place), [14.0, 20.0, 30.0, 44.0]);
    }
    // The interface that said yes has its ranges.
    assert_eq!(written(&place).keys().collect::<Vec<_>>(), ["itt"]);
}

#[test]
fn a_tool_that_takes_no_names_beforehand_gets_texts() {
    let place = Place::new();
    let (tool, args) = (tool(&place), run_args(&place));
    under(&place, Some(&tool), "texts", &words(&args, &[]));
    let nvtx = &written(&place)["nvtx"];
    assert_eq!(nvtx.last().unwrap(), &["step 1", "layer/y"]);
}

/// What a device computes is started, and copied, in ranges too.
#[test]
fn copies_and_started_kernels_are_ranges_also_where_the_device_is_lost() {
    let place = Place::new();
    let (tool, args) = (tool(&place), run_args(&place));
    let args = words(&args, &["--device", "ACCEL:0"]);
    under(&place, Some(&tool), "", &args);
    let ranges = written(&place);
    let names: Vec<&String> = ranges["nvtx"].iter().filter_map(|range| range.last()).collect();
    for node in ["step 1", "sum", "layer/y"] {
        assert_eq!(names.iter().filter(|name| **name == node).count(), 1, "{node}: {names:?}");
    }
    // The feed goes to the device, and the result comes back, by nodes that the graph has not.
    assert!(names.len() >= 5, "{names:?}");
    fs::remove_file(place.path("ranges.txt")).unwrap();
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_tenon")));
    command.env(NVTX, &tool).env("RANGES_TO", place.path("ranges.txt"));
    let lossy = ["--set", "accel.lose_after_commands=2", "--repeat", "9"];
    let output = command.args(&args).args(lossy).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    // None is left open.
    assert!(written(&place)["nvtx"].iter().any(|range| range.len() > 1));
}

#[test]
fn samples_of_a_benchmark_are_ranges_with_the_names_of_its_subjects() {
    let place = Place::new();
    let tool = tool(&place);
    let args = ["bench", "Relu", "--shape", "features=64", "--dtype", "float", "--time", "0.02"];
    let ranges = |args: &[&str]| {
        under(&place, Some(&tool), "", args);
        let ranges = written(&place);
        fs::remove_file(place.path("ranges.txt")).unwrap();
        assert_eq!(ranges["itt"], ranges["nvtx"]);
        ranges["itt"].clone()
    };
    let kernels = ranges(&[&args[..], &["--no-roofline"]].concat());
    assert!(kernels.iter().all(|range| range.len() == 1), "{kernels:?}");
    let of = |part: &str| kernels.iter().filter(|range| range[0].contains(part)).count();
    let name = "Relu[T=float] features=64: ordinary of tenon-cpu on CPU";
    // Five samples of each at least.
    assert!(of(name) >= 10 && of("whole call") >= 5, "{kernels:?}");
    let graph = place.relu("g.pb");
    let x = Tensor::from_slice(&[4], &[-1f32, 2.0, -3.0, 4.0]).unwrap();
    place.archive("data.npz", &[("x", x)]);
    let data = place.arg("data.npz");
    let steps = ranges(&["bench", &graph, "--data", &data, "--time", "0.02", "--no-roofline"]);
    assert!(steps.len() >= 5 && steps.iter().all(|it| it[0].contains("graph=g.pb")), "{steps:?}");
}
