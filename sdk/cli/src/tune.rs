//! `tenon tune`: times the kernels that could run a graph, and keeps the times for policy `measured`.

use crate::{
    args::{Global, threads},
    error::CliError,
    output::{complain, print, print_json, progress_by_name, time},
    start::{read_graph, start_whole},
    table::Table,
};
use clap::Args;
use serde_json::{Value, json};
use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf};
use tenon_benchkit::{feeds::GraphWish, step::Step, wanted::Shapes};
use tenon_runtime::{Decision, Runtime, Session, SessionOptions};

/// What `tenon tune --help` says.
pub const ABOUT: &str = "\
Time the kernels that could run each node of a graph, and keep the times.

Where several kernels take a node, each is timed on made-up inputs of the node's types and shapes; those whose
numerics contract is weaker than that of the one that runs by priority are left out. The times are kept in the
cache folder, for this machine, this number of threads and these builds of the plugins. A kernel takes the place of
the one by priority when it is faster by 3 % or more.

With --set runtime.tune_contract=relative:1e-30,8e-6 (or exact, ulps:N, any) those that promise this are timed too.

Graphs run on the fastest kernels with --set runtime.policy=measured; `tenon explain` shows the times with the same
setting.";

/// An example.
pub const EXAMPLE: &str = "\
Example:
  tenon tune model.pb --shape x=2x3";

/// Options of `tenon tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// The graph: a binary GraphDef
    #[arg(value_name = "GRAPH.pb")]
    graph: PathBuf,
    /// Shapes of placeholders that leave theirs open
    #[arg(long = "shape", value_name = "NAME=SHAPE,...", value_parser = Shapes::parse)]
    shapes: Option<Shapes>,
    /// Seconds that each call of the graph may take to be measured
    #[arg(long, value_name = "S", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    budget: u32,
    /// Threads that kernels compute on, the caller's included; one per core without this option
    #[arg(long, value_name = "N", value_parser = threads)]
    threads: Option<NonZeroUsize>,
    /// Device for nodes that name none, such as ACCEL:0
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
}

/// Times what a graph needs.
///
/// # Errors
/// A graph that cannot be read or run; placeholders without shapes.
pub fn tune(global: &Global, args: &TuneArgs) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, args.threads.map(NonZeroUsize::get))?;
    let def = read_graph(&args.graph)?;
    let wish =
        GraphWish { shapes: args.shapes.clone().unwrap_or_default(), ..GraphWish::default() };
    let step = Step::new(&runtime, &args.graph, &def, &wish, None)?;
    let bar = progress_by_name("tune");
    bar.set_message(step.size());
    let prepared = prepare(&runtime, &step, args);
    bar.finish_and_clear();
    prepared?;
    let decisions = runtime.measured();
    if global.json {
        return print_json(&Value::Array(decisions.iter().map(decision_json).collect()));
    }
    if decisions.is_empty() {
        complain("no node of the graph has several kernels to choose from");
        return Ok(());
    }
    print(&text(&decisions))
}

/// Compiles the graph's step under policy `measured`, with time to measure.
fn prepare(runtime: &Runtime, step: &Step, args: &TuneArgs) -> Result<(), CliError> {
    let knobs = BTreeMap::from([
        ("runtime.policy".to_owned(), "measured".to_owned()),
        ("runtime.tune_budget_ms".to_owned(), (u64::from(args.budget) * 1000).to_string()),
    ]);
    let options =
        SessionOptions { device: args.device.clone(), knobs, ..SessionOptions::default() };
    let session = Session::new(runtime, options)?;
    session.extend(step.def())?;
    session.callable(step.options().clone())?;
    Ok(())
}

/// What the graph's step is expected to gain: the sums of the times by priority and by choice.
fn sums(decisions: &[Decision]) -> (f64, f64) {
    let known = decisions.iter().filter_map(|decision| {
        Some((decision.kernels.first()?.1?, decision.kernels.get(decision.chosen)?.1?))
    });
    known.fold((0.0, 0.0), |(before, after), (first, chosen)| (before + first, after + chosen))
}

fn text(decisions: &[Decision]) -> String {
    let mut table = Table::new(["node", "by priority", ">time", "measured", ">time", ">ratio"]);
    let mut same = 0;
    for decision in decisions {
        if decision.chosen == 0 {
            same += 1;
            continue;
        }
        let (first, chosen) = (&decision.kernels[0], &decision.kernels[decision.chosen]);
        let shown = |ns: Option<f64>| ns.map_or("failed".to_owned(), time);
        let ratio =
            chosen.1.zip(first.1).map_or(String::new(), |(own, of)| format!("{:.2}", own / of));
        table.row([
            decision.node.clone(),
            kernel(&first.0),
            shown(first.1),
            kernel(&chosen.0),
            shown(chosen.1),
            ratio,
        ]);
    }
    let (before, after) = sums(decisions);
    let changed = decisions.len() - same;
    let mut text = table.render(0);
    text.push_str(&format!(
        "{changed} of {} nodes with a choice run on another kernel: {} instead of {} a step\n",
        decisions.len(),
        time(after),
        time(before),
    ));
    text
}

/// A kernel's name without the build of its plugin and what all of the node's kernels share.
fn kernel(name: &str) -> String {
    let (plugin, def) = name.split_once('@').unwrap_or(("", name));
    let label = def.split_once("kernel '").and_then(|(_, rest)| rest.split_once('\''));
    match label {
        Some((label, _)) => format!("{plugin} '{label}'"),
        None => plugin.to_owned(),
    }
}

fn decision_json(decision: &Decision) -> Value {
    let kernels: Vec<Value> =
        decision.kernels.iter().map(|(kernel, ns)| json!({ "kernel": kernel, "ns": ns })).collect();
    json!({
        "node": decision.node,
        "call": decision.call,
        "kernels": kernels,
        "by_priority": 0,
        "chosen": decision.chosen,
    })
}
