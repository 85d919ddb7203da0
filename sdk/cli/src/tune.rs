//! `tenon tune`: times the kernels that could run a graph, and keeps the times for policy `measured`.

use crate::{
    args::{Global, threads},
    error::CliError,
    output::{complain, count, print, print_json, time},
    progress::NamedSteps,
    start::{read_graph, start_whole},
    table::Table,
};
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
};
use tenon_benchkit::{feeds::GraphWish, step::Step, wanted::Shapes};
use tenon_runtime::{
    Decision, NodeExplanation, Runtime, Session, SessionOptions,
    framework::registry::{KernelDef, Removal},
};

/// What `tenon tune --help` says.
pub const ABOUT: &str = "\
Time the kernels that could run each node of a graph, and keep the times.

Where several kernels take a node, each is timed on made-up inputs of the node's types and shapes; those whose
numerics contract is weaker than that of the one that runs by priority are left out. The times are kept in the
cache folder, for this machine, this number of threads and these builds of the plugins. A kernel takes the place of
the one by priority when it is faster by 3 % or more. Printed are all kernels of a node's types: the one that runs first,
then the others with their times, or why they were left out.

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
    let steps = NamedSteps::new("tune");
    steps.at(0, 1, &step.size());
    let prepared = prepare(&runtime, &step, args);
    steps.finish();
    let nodes = prepared?;
    let decisions = runtime.measured();
    if global.json {
        let values = decisions.iter().map(|decision| decision_json(decision, &nodes));
        return print_json(&Value::Array(values.collect()));
    }
    if nodes.is_empty() {
        complain("no node of the graph has more than one kernel for its types");
        return Ok(());
    }
    print(&text(&decisions, &nodes))
}

/// Compiles the graph's step under policy `measured`, with time to measure. Gives the nodes that run and have more than
/// one kernel for their types.
fn prepare(runtime: &Runtime, step: &Step, args: &TuneArgs) -> Result<Vec<Node>, CliError> {
    let knobs = BTreeMap::from([
        ("runtime.policy".to_owned(), "measured".to_owned()),
        ("runtime.tune_budget_ms".to_owned(), (u64::from(args.budget) * 1000).to_string()),
    ]);
    let options =
        SessionOptions { device: args.device.clone(), knobs, ..SessionOptions::default() };
    let session = Session::new(runtime, options)?;
    session.extend(step.def())?;
    let callable = session.callable(step.options().clone())?;
    let run: BTreeSet<String> = callable.nodes()?.iter().map(|node| node.name.clone()).collect();
    let mut explained = session.explain(None)?;
    // A node that passes made again has the name of one that was written.
    let made = session.explain_made(Some(step.options()))?;
    explained.retain(|node| made.iter().all(|other| other.node != node.node));
    explained.extend(made);
    explained.retain(|node| run.contains(&node.node));
    Ok(explained.iter().filter_map(Node::of).collect())
}

/// A node with the kernels that could run it.
struct Node {
    name: String,
    op: String,
    /// The one that runs first.
    candidates: Vec<Tried>,
}

/// A kernel that could run a node: its time, and what became of it.
struct Tried {
    kernel: String,
    ns: Option<f64>,
    why: String,
}

impl Node {
    /// The kernels of a node's types; `None` if there is only the one that runs.
    fn of(node: &NodeExplanation) -> Option<Node> {
        let kernels = node.kernels.as_ref()?;
        let runs = |kernel: &Arc<KernelDef>| {
            kernels.winner.as_ref().is_some_and(|winner| Arc::ptr_eq(winner, kernel))
        };
        let mut candidates: Vec<(bool, Tried)> = (kernels.candidates.iter())
            .filter(|candidate| runs(&candidate.kernel) || is_choice(candidate.removed.as_ref()))
            .map(|candidate| {
                let def = &candidate.kernel;
                let why = match &candidate.removed {
                    _ if !kernels.per_shape.is_empty() => "chosen for each shape".to_owned(),
                    _ if runs(def) => "runs".to_owned(),
                    None => String::new(),
                    Some(Removal::Measured { .. }) => "slower".to_owned(),
                    Some(Removal::LowerPriority { own, higher, .. }) => {
                        format!("not chosen: lower priority ({own} < {higher})")
                    }
                    Some(removal) => format!("left out: {removal}"),
                };
                let (kernel, ns) = (named(&def.plugin_name, &def.label), candidate.measured_ns);
                (runs(def), Tried { kernel, ns, why })
            })
            .collect();
        let order = |(runs, tried): &(bool, Tried)| (*runs, tried.ns.unwrap_or(f64::INFINITY));
        candidates.sort_by(|a, b| {
            let ((a_runs, a), (b_runs, b)) = (order(a), order(b));
            b_runs.cmp(&a_runs).then(a.total_cmp(&b))
        });
        let candidates: Vec<Tried> = candidates.into_iter().map(|(_, tried)| tried).collect();
        let (name, op) = (node.node.clone(), node.op.clone());
        (candidates.len() > 1).then_some(Node { name, op, candidates })
    }
}

/// Whether a kernel is one that the user could have: it is for this op, device type and element types.
fn is_choice(removed: Option<&Removal>) -> bool {
    !matches!(
        removed,
        Some(
            Removal::DeviceType { .. }
                | Removal::MissingAttr { .. }
                | Removal::DType { .. }
                | Removal::Label { .. }
        )
    )
}

/// `tenon-cpu 'avx512'`
fn named(plugin: &str, label: &str) -> String {
    if label.is_empty() { plugin.to_owned() } else { format!("{plugin} '{label}'") }
}

/// What the graph's step is expected to gain: the sums of the times by priority and by choice.
fn sums(decisions: &[Decision]) -> (f64, f64) {
    let known = decisions.iter().filter_map(|decision| {
        Some((decision.kernels.first()?.1?, decision.kernels.get(decision.chosen)?.1?))
    });
    known.fold((0.0, 0.0), |(before, after), (first, chosen)| (before + first, after + chosen))
}

fn text(decisions: &[Decision], nodes: &[Node]) -> String {
    let mut table = Table::new(["node", "op", "kernel", ">time", ">ratio", "why"]);
    for node in nodes {
        let first = node.candidates.first().and_then(|tried| tried.ns);
        for (at, tried) in node.candidates.iter().enumerate() {
            let head = |text: &str| if at == 0 { text.to_owned() } else { String::new() };
            let ratio = tried.ns.zip(first).map(|(own, of)| format!("{:.2}", own / of));
            table.row([
                head(&node.name),
                head(&node.op),
                tried.kernel.clone(),
                tried.ns.map(time).unwrap_or_default(),
                ratio.unwrap_or_default(),
                tried.why.clone(),
            ]);
        }
    }
    let mut text = table.render(0);
    if decisions.is_empty() {
        text.push_str("nothing was timed: no node has two kernels that may run\n");
        return text;
    }
    let (before, after) = sums(decisions);
    let changed = decisions.iter().filter(|decision| decision.chosen != 0).count();
    let run = if decisions.len() == 1 { "runs" } else { "run" };
    text.push_str(&format!(
        "{changed} of {} with a choice {run} on another kernel: {} instead of {} a step\n",
        count(decisions.len(), "node"),
        time(after),
        time(before),
    ));
    text
}

fn decision_json(decision: &Decision, nodes: &[Node]) -> Value {
    let kernels: Vec<Value> =
        decision.kernels.iter().map(|(kernel, ns)| json!({ "kernel": kernel, "ns": ns })).collect();
    let of_node = nodes.iter().filter(|node| node.name == decision.node);
    let candidates: Vec<Value> = of_node
        .flat_map(|node| &node.candidates)
        .map(|tried| json!({ "kernel": tried.kernel, "ns": tried.ns, "why": tried.why }))
        .collect();
    json!({
        "node": decision.node,
        "call": decision.call,
        "kernels": kernels,
        "by_priority": 0,
        "chosen": decision.chosen,
        "candidates": candidates,
    })
}
