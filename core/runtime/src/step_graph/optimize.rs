//! Optimises a step's graph: selects the passes, and reports those that fail.

use super::{Context, evaluate::Evaluator, named::Named, placed::PlacedStep};
use crate::{
    error::RuntimeError,
    options::CallableOptions,
    run_limits::{RunLimits, UNLIMITED},
};
use std::sync::Arc;
use tenon_abi::Range;
use tenon_framework::registry::Registry;
use tenon_graph::{BufferRules, Evaluate, Graph, NodeId, Output, Shapes, Subgraph, plan_memory};
use tenon_host::call::KEEP_BYTES;
use tenon_optimize::{LibraryPass, Options, Pass, Report, Step, built_in, knobs, optimize};

/// Runs the passes on a placed step; returns the result with the report.
pub(super) fn optimized(placed: PlacedStep<'_>) -> Result<(PlacedStep<'_>, Report), RuntimeError> {
    optimized_by(placed, &|_| None)
}

/// Like [`optimized`], without the passes for which `skip` returns a reason.
fn optimized_by<'s>(
    placed: PlacedStep<'s>,
    skip: &dyn Fn(&dyn Pass) -> Option<String>,
) -> Result<(PlacedStep<'s>, Report), RuntimeError> {
    placed.check_local()?;
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
    let PlacedStep { context, graph, sub, shapes, placement, view, scope, run_limits, .. } = placed;
    let step = Step { graph: &graph, sub: &sub, shapes, placement };
    let is_cancelled = || run_limits.ended().is_some();
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
        limits: knobs::limits(&settings, &is_cancelled),
    };
    let done = optimize(step, &passes, &options).map_err(|error| run_limits.reason(error))?;
    for limit in &done.report.limits {
        tracing::warn!("a limit of graph optimisation was reached: {limit}");
    }
    for (pass, error) in done.report.failures() {
        tracing::warn!(pass, error, "a graph pass failed: its changes were undone");
    }
    let own_graph = context.next_graph();
    let graph: Arc<Graph> = Arc::new(done.graph);
    let (sub, shapes, placement) = (done.sub, done.shapes, done.placement);
    let placed =
        PlacedStep { context, graph, own_graph, sub, shapes, placement, view, scope, run_limits };
    Ok((placed, done.report))
}

/// Whether two passes are the same one, by name and plugin.
fn is_same(a: &dyn Pass, b: &dyn Pass) -> bool {
    a.name() == b.name() && a.plugin() == b.plugin()
}

/// The reason for skipping fusions: a request for kernels with a label means the kernels of the
/// existing ops.
fn labelled(context: Context<'_>, pass: &str) -> Option<String> {
    let label = context.options.kernel_label.as_deref().or(context.kernel_label_by_knob())?;
    let fuses = matches!(pass, "layout" | "remapping" | "elementwise_fusion");
    fuses.then(|| format!("kernels with label '{label}' are requested"))
}

/// The step after the passes; `None` means the step of all nodes.
pub(super) fn optimized_step<'s>(
    context: Context<'s>,
    step: Option<&CallableOptions>,
) -> Result<(PlacedStep<'s>, Report), RuntimeError> {
    let named = match step {
        Some(step) => Named::find(&context.version.graph, step)?,
        None => whole(&context.version.graph, &context.version.registry)?,
    };
    let Named { feeds, fetches, targets } = named;
    let run_limits = RunLimits::default();
    optimized(PlacedStep::new(context, &feeds, &fetches, &targets, &run_limits)?)
}

/// The report of the passes on a step's graph.
pub(crate) fn explain(
    context: Context<'_>,
    step: Option<&CallableOptions>,
) -> Result<Report, RuntimeError> {
    let (placed, mut report) = optimized_step(context, step)?;
    let in_place = |id| in_place(&placed, id);
    let PlacedStep { graph, sub, shapes, placement, view, .. } = &placed;
    let rules = BufferRules {
        in_place: &in_place,
        kept_bytes: KEEP_BYTES as u64,
        holds_all: &|device| view.holds_all(device),
    };
    report.memory = plan_memory(graph, sub, shapes, placement, view, rules);
    Ok(report)
}

/// Passes the optimised step that computes these tensors from all placeholders to a function,
/// without late passes. An empty list means all unused outputs.
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
    let placed = PlacedStep::new(context, &feeds, &fetches, &[], &UNLIMITED)?;
    let late = "single nodes are requested";
    let (placed, _) = optimized_by(placed, &|pass| pass.is_late().then(|| late.to_owned()))?;
    let evaluate = Evaluator::new(&placed);
    let PlacedStep { graph, sub, shapes, .. } = &placed;
    let registry = &context.version.registry;
    Ok(show(Simplified { graph, sub, shapes, registry, evaluate: &evaluate }))
}

/// The argument of [`Session::simplified`](crate::Session::simplified): a step's graph after the
/// passes, before any fusion.
#[derive(Clone, Copy)]
pub struct Simplified<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The part of it that runs.
    pub sub: &'a Subgraph,
    /// The inferred shapes and constants.
    pub shapes: &'a Shapes,
    /// The registry.
    pub registry: &'a Registry,
    /// Computes a node before any step.
    pub evaluate: &'a dyn Evaluate,
}

/// The inputs whose buffers a node's kernel can take over, with the outputs concerned.
fn in_place(placed: &PlacedStep<'_>, id: NodeId) -> Vec<(usize, usize)> {
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

/// The step that feeds every placeholder and fetches all unused outputs, restricted to nodes that
/// can run.
///
/// # Errors
/// No node can run because ops are unregistered.
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

#[cfg(test)]
mod tests {
    use crate::{Runtime, RuntimeOptions, Session, SessionOptions};

    /// The evaluator of constants took the first device, of which there was none.
    #[test]
    fn an_empty_graph_is_optimised_where_there_are_no_devices() {
        let none: [&str; 0] = [];
        let (runtime, _) = Runtime::new(RuntimeOptions::with_plugins(none)).expect("it starts");
        let session = Session::new(&runtime, SessionOptions::default()).expect("it opens");
        let nodes = session.simplified(&[], |it| it.sub.order.len()).expect("it is optimised");
        assert_eq!(nodes, 0);
    }
}
