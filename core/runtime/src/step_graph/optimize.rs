//! Optimising a step's graph: which passes run, with what, and what becomes of those that fail.

use super::{Context, evaluate::Evaluator, named::Named, placed::Placed};
use crate::{
    error::RuntimeError,
    options::CallableOptions,
    patience::{ENDLESS, Patience},
};
use std::sync::Arc;
use tenon_abi::Range;
use tenon_framework::registry::Registry;
use tenon_graph::{
    BufferRules, Evaluate, Graph, NodeId, Output, Shapes, Subgraph,
    optimize::{self, LibraryPass, Options, Pass, Report, Step, built_in, knobs},
    plan_memory,
};
use tenon_host::call::KEEP_BYTES;

/// What the passes make of a placed step; with the report.
pub(super) fn optimized(placed: Placed<'_>) -> Result<(Placed<'_>, Report), RuntimeError> {
    optimized_by(placed, &|_| None)
}

/// As [`optimized`], without the passes that `skip` has a reason against.
fn optimized_by<'s>(
    placed: Placed<'s>,
    skip: &dyn Fn(&dyn Pass) -> Option<String>,
) -> Result<(Placed<'s>, Report), RuntimeError> {
    let settings = Arc::clone(&placed.context.version.knobs);
    if !knobs::is_on(&settings) {
        let nodes = placed.sub.order.len();
        return Ok((placed, Report { before: nodes, after: nodes, ..Report::default() }));
    }
    let evaluator = Evaluator::new(&placed);
    let own = built_in();
    let brought: Vec<LibraryPass> =
        placed.context.version.registry.passes().cloned().map(LibraryPass::new).collect();
    let of_plugins = brought.iter().map(|pass| pass as &dyn Pass);
    let passes: Vec<&dyn Pass> = own.iter().map(|pass| &**pass).chain(of_plugins).collect();
    let Placed { context, graph, sub, shapes, placement, view, scope, patience, .. } = placed;
    let step = Step { graph: &graph, sub: &sub, shapes, placement };
    let is_given_up = || patience.ended().is_some();
    let options = Options {
        registry: &context.version.registry,
        view: &view,
        evaluate: &evaluator,
        skip: &|pass| match brought.iter().find(|own| is_same(*own, pass)) {
            _ if let Some(reason) = skip(pass) => Some(reason),
            Some(own) => knobs::skipped_of(&settings, own.def()),
            _ => knobs::skipped(&settings, pass.name()).or_else(|| labelled(context, pass.name())),
        },
        rounds: knobs::rounds(&settings),
        folding_limit: knobs::folding_limit(&settings),
        limits: knobs::limits(&settings, &is_given_up),
    };
    let done =
        optimize::optimize(step, &passes, &options).map_err(|error| patience.reason(error))?;
    for limit in &done.report.limits {
        tracing::warn!("a limit of graph optimisation was met: {limit}");
    }
    for (pass, error) in done.report.failures() {
        tracing::warn!(pass, error, "a graph pass failed: the graph is as it was before it");
    }
    let own_graph = context.next_graph();
    let graph: Arc<Graph> = Arc::new(done.graph);
    let (sub, shapes, placement) = (done.sub, done.shapes, done.placement);
    let placed =
        Placed { context, graph, own_graph, sub, shapes, placement, view, scope, patience };
    Ok((placed, done.report))
}

/// Whether two passes are the one of this name that this plugin brings.
fn is_same(a: &dyn Pass, b: &dyn Pass) -> bool {
    a.name() == b.name() && a.plugin() == b.plugin()
}

/// Why no pass makes fused ops: whoever asks for kernels of a label asks for those of the ops that are there.
fn labelled(context: Context<'_>, pass: &str) -> Option<String> {
    let label = context.options.kernel_label.as_deref().or(context.kernel_label_by_knob())?;
    let fuses = matches!(pass, "layout" | "remapping" | "elementwise_fusion");
    fuses.then(|| format!("kernels of label '{label}' are asked for"))
}

/// A step as the passes leave it; without a step, that of all nodes.
pub(super) fn optimized_step<'s>(
    context: Context<'s>,
    step: Option<&CallableOptions>,
) -> Result<(Placed<'s>, Report), RuntimeError> {
    let named = match step {
        Some(step) => Named::find(&context.version.graph, step)?,
        None => whole(&context.version.graph, &context.version.registry)?,
    };
    let Named { feeds, fetches, targets } = named;
    let patience = Patience::default();
    optimized(Placed::new(context, &feeds, &fetches, &targets, &patience)?)
}

/// What the passes do to the graph of a step.
pub(crate) fn explain(
    context: Context<'_>,
    step: Option<&CallableOptions>,
) -> Result<Report, RuntimeError> {
    let (placed, mut report) = optimized_step(context, step)?;
    let in_place = |id| in_place(&placed, id);
    let Placed { graph, sub, shapes, placement, view, .. } = &placed;
    let rules = BufferRules {
        in_place: &in_place,
        kept_bytes: KEEP_BYTES as u64,
        holds_all: &|device| view.holds_all(device),
    };
    report.memory = plan_memory(graph, sub, shapes, placement, view, rules);
    Ok(report)
}

/// Shows what the passes make of the step that gives these tensors from all placeholders, but those passes that make
/// few large nodes of many; without tensors, of the step that gives what no node uses.
pub(crate) fn simplified<R>(
    context: Context<'_>,
    fetches: &[String],
    show: impl FnOnce(Simplified<'_>) -> R,
) -> Result<R, RuntimeError> {
    let Named { feeds, fetches: unused, .. } =
        whole(&context.version.graph, &context.version.registry)?;
    let named = fetches.iter().map(|name| Ok(context.version.graph.tensor(name)?));
    let mut fetches = named.collect::<Result<Vec<Output>, RuntimeError>>()?;
    if fetches.is_empty() {
        fetches = unused;
        fetches.retain(|fetch| !context.version.graph.node(fetch.node).op.is_constant());
    }
    let placed = Placed::new(context, &feeds, &fetches, &[], &ENDLESS)?;
    let late = "the single nodes are asked for";
    let (placed, _) = optimized_by(placed, &|pass| pass.is_late().then(|| late.to_owned()))?;
    let evaluate = Evaluator::new(&placed);
    let Placed { graph, sub, shapes, .. } = &placed;
    let registry = &context.version.registry;
    Ok(show(Simplified { graph, sub, shapes, registry, evaluate: &evaluate }))
}

/// What [`Session::simplified`](crate::Session::simplified) shows: a step's graph after the passes, before any makes
/// fused ops.
#[derive(Clone, Copy)]
pub struct Simplified<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The nodes of it that run.
    pub sub: &'a Subgraph,
    /// Its shapes and constants.
    pub shapes: &'a Shapes,
    /// All registrations.
    pub registry: &'a Registry,
    /// Computes a node ahead of any step.
    pub evaluate: &'a dyn Evaluate,
}

/// The inputs whose buffers the kernel of a node can take over, and for which outputs.
fn in_place(placed: &Placed<'_>, id: NodeId) -> Vec<(usize, usize)> {
    let Ok(Some(chosen)) = placed.choose(id) else { return Vec::new() };
    let signature = &placed.graph.node(id).signature;
    let range = |ranges: &[Range], at: u32| ranges.get(at as usize).copied();
    let mut pairs = Vec::new();
    for pair in &chosen.kernel.in_place {
        let from = range(&signature.input_args, pair.input);
        let to = range(&signature.output_args, pair.output);
        if let (Some(from), Some(to)) = (from, to) {
            let both = (from.start..from.start + from.len).zip(to.start..to.start + to.len);
            pairs.extend(both.map(|(from, to)| (from as usize, to as usize)));
        }
    }
    pairs
}

/// The step that feeds every placeholder and fetches what no node uses, of the nodes that can run.
///
/// # Errors
/// No node can run, since ops are not registered.
fn whole(graph: &Graph, registry: &Registry) -> Result<Named, RuntimeError> {
    let blocked = graph.blocked();
    let runs = |(id, _): &(NodeId, _)| !blocked.contains_key(id);
    let mut used = vec![false; graph.len()];
    for (_, node) in graph.nodes().filter(runs) {
        let control = node.control_inputs.iter().copied();
        let data = node.inputs.iter().map(|input| input.node);
        data.chain(control).for_each(|id| used[id.index()] = true);
    }
    let mut named = Named { feeds: Vec::new(), fetches: Vec::new(), targets: Vec::new() };
    for (id, node) in graph.nodes().filter(runs) {
        let is_value = node.outputs().first().is_some_and(|dtype| !dtype.is_ref());
        if node.op.facts().placeholder {
            named.feeds.push(Output::new(id, 0));
        } else if !used[id.index()] && is_value {
            named.fetches.push(Output::new(id, 0));
        } else if !used[id.index()] {
            named.targets.push(id);
        }
    }
    if named.fetches.is_empty() && named.targets.is_empty() {
        let all: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
        graph.check_ops_of(&all, Some(registry))?;
    }
    Ok(named)
}
