//! How import and compile grow with the graph: time and peak memory for a thousand, ten thousand and a hundred thousand
//! nodes of many shapes, and the exponent of the time. Linear is 1.
//!
//!     cargo run --release -p tenon-benches --example compile_growth [-- SHAPE...]
//!
//! Each graph is compiled in a process of its own, whose highest resident memory counts; of the small ones the fastest
//! of a few. Prints a JSON line for each graph and one for each shape. Fails where a graph takes more than
//! [`MOST_SECONDS`] or [`MOST_MIB`], or a shape grows faster than [`MOST_EXPONENT`] over the last decade.

mod shapes;

use serde_json::{Value, json};
use shapes::{SHAPES, Shape};
use std::{fs, process::Command, time::Instant};
use tenon_benches::{Failure, runtime};
use tenon_runtime::{CallableOptions, Session, SessionOptions, graph::GraphBuilder};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// Most seconds that a graph takes to compile.
const MOST_SECONDS: f64 = 10.0;
/// Most memory of the whole process.
const MOST_MIB: f64 = 2048.0;
/// Most that the time may grow: caches are left on the way from ten thousand nodes to a hundred thousand.
const MOST_EXPONENT: f64 = 1.35;

/// The highest resident memory of this process.
fn peak_mib() -> Result<f64, Failure> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("no VmHWM")?.parse()?;
    Ok(kib / 1024.0)
}

/// Builds, imports and compiles one graph in this process; its line.
fn one(shape: &Shape, size: usize) -> Result<Value, Failure> {
    let runtime = runtime()?;
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    (shape.make)(&mut builder, size)?;
    let graph = builder.finish();
    let (nodes, def) = (graph.len(), graph.to_graph_def()?);
    drop(graph);
    let session = Session::new(&runtime, SessionOptions::default())?;
    let begin = Instant::now();
    session.extend_owned(def)?;
    let import = begin.elapsed();
    let feeds = [("x", shape.feeds_x), ("p", shape.feeds_p)];
    let feeds: Vec<&str> = feeds.iter().filter(|(_, fed)| *fed).map(|(name, _)| *name).collect();
    let options = CallableOptions::new(&feeds, &["last"]);
    let begin = Instant::now();
    let callable = session.callable(options.clone())?;
    let compile = begin.elapsed();
    let peak = peak_mib()?;
    let plan = callable.nodes()?.len();
    let report = session.explain_passes(Some(&options))?;
    Ok(json!({
        "bench": "compile_growth", "shape": shape.name, "nodes": nodes, "kernels": plan,
        "import_ms": import.as_secs_f64() * 1e3, "compile_ms": compile.as_secs_f64() * 1e3,
        "peak_mib": peak.round(), "work": report.work, "limits": report.limits,
    }))
}

/// As [`one`], in a process of its own: the fastest of a few.
fn measured(shape: &Shape, size: usize) -> Result<Value, Failure> {
    let times = if size < 100_000 { 3 } else { 1 };
    let mut best: Option<Value> = None;
    for _ in 0..times {
        let mut child = Command::new(std::env::current_exe()?);
        let ran = child.args(["one", shape.name, &size.to_string()]).output()?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            return Err(format!("{} of {size}: {}: {said}", shape.name, ran.status).into());
        }
        let found: Value = serde_json::from_slice(&ran.stdout)?;
        let is_faster = |best: &Value| time(&found) < time(best);
        if best.as_ref().is_none_or(is_faster) {
            best = Some(found);
        }
    }
    best.ok_or_else(|| "nothing was measured".into())
}

fn time(line: &Value) -> f64 {
    line["compile_ms"].as_f64().unwrap_or(f64::INFINITY)
}

/// The exponent between two lines.
fn exponent(a: &Value, b: &Value) -> f64 {
    let nodes = |line: &Value| line["nodes"].as_f64().unwrap_or(1.0);
    (time(b) / time(a)).ln() / (nodes(b) / nodes(a)).ln()
}

/// Measures a shape; whether it keeps to the limits.
fn grow(shape: &Shape) -> Result<bool, Failure> {
    let mut lines = Vec::new();
    for size in SIZES {
        let line = measured(shape, size)?;
        println!("{line}");
        lines.push(line);
    }
    let [small, middle, large] = &lines[..] else { return Err("three sizes".into()) };
    let (all, last) = (exponent(small, large), exponent(middle, large));
    let peak = large["peak_mib"].as_f64().unwrap_or(f64::INFINITY);
    let fits = time(large) <= 1e3 * MOST_SECONDS && peak <= MOST_MIB && last <= MOST_EXPONENT;
    println!(
        "{}",
        json!({
            "bench": "compile_growth", "shape": shape.name, "exponent": (all * 100.0).round() / 100.0,
            "exponent_last": (last * 100.0).round() / 100.0, "fits": fits,
        })
    );
    eprintln!(
        "{:32} {:>8.0} {:>8.0} {:>8.0} ms {:>6} MiB  exponent {all:.2}, at last {last:.2}{}",
        shape.name,
        time(small),
        time(middle),
        time(large),
        peak,
        if fits { "" } else { "  TOO MUCH" }
    );
    Ok(fits)
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| SHAPES.iter().find(|shape| shape.name == name);
    if let [first, name, size] = &words[..]
        && first == "one"
    {
        let shape = named(name).ok_or_else(|| format!("{name}: no such shape"))?;
        println!("{}", one(shape, size.parse()?)?);
        return Ok(());
    }
    if let Some(unknown) = words.iter().find(|word| named(word).is_none()) {
        let known: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
        return Err(format!("{unknown}: expected one of: {}", known.join("; ")).into());
    }
    let mut fits = true;
    for shape in
        SHAPES.iter().filter(|shape| words.is_empty() || words.iter().any(|w| w == shape.name))
    {
        fits &= grow(shape)?;
    }
    if fits { Ok(()) } else { Err("a graph takes more than it may".into()) }
}
