//! Runs passes over a step's graph, and keeps the valid results.

use crate::{
    Draft, Pass, PassError, PassReport, Report,
    common_subexpressions::CommonSubexpressions,
    constant_folding::ConstantFolding,
    control_edges::ControlEdges,
    dead_branches::DeadBranches,
    draft::DraftContext,
    identity::Identities,
    limits::{Budget, Limits},
    remapping::Remapping,
    rewrites::{Arithmetic, ElementwiseFusion, Layout, Recompute},
};
use tenon_framework::registry::Registry;
use tenon_graph::{
    ControlFlow, DeviceView, Evaluate, Frames, Graph, GraphError, NodeId, Placement, Shapes,
    Subgraph, prune,
};

/// A placed step's graph.
pub struct Step<'a> {
    /// The graph, which stays unchanged.
    pub graph: &'a Graph,
    /// The part of it that runs.
    pub sub: &'a Subgraph,
    /// The inferred values.
    pub shapes: Shapes,
    /// The placement of its nodes.
    pub placement: Placement,
}

/// The inputs of optimisation.
pub struct Options<'a> {
    /// The registry with the ops that passes may use.
    pub registry: &'a Registry,
    /// The devices, as for placement.
    pub view: &'a dyn DeviceView,
    /// Runs kernels before the step.
    pub evaluate: &'a dyn Evaluate,
    /// The reason for skipping a pass; `None` if it runs.
    pub skip: &'a dyn Fn(&dyn Pass) -> Option<String>,
    /// The maximum number of rounds: first of all passes except the late ones, then of all.
    pub rounds: usize,
    /// The size in bytes of the largest constant that folding may create, unless its inputs are
    /// larger.
    pub folding_limit: usize,
    /// The limits of the whole optimisation.
    pub limits: Limits<'a>,
}

/// A step's graph after optimisation.
pub struct Optimized {
    /// The graph. Nodes of the original graph keep their numbers.
    pub graph: Graph,
    /// The part that runs, with the original feeds and fetches. The targets are the original ones
    /// and the nodes that now run only for their effects or errors.
    pub sub: Subgraph,
    /// The inferred values.
    pub shapes: Shapes,
    /// The placement of its nodes.
    pub placement: Placement,
    /// The report of the changes.
    pub report: Report,
}

/// The names of this crate's passes, in the order in which they run.
pub const BUILT_IN: &[&str] = &[
    "dead_branches",
    "constant_folding",
    "identity",
    "arithmetic",
    "common_subexpressions",
    "control_edges",
    "layout",
    "remapping",
    "elementwise_fusion",
    "recompute",
];

/// The passes of this crate, in the order of [`BUILT_IN`].
pub fn built_in() -> Vec<Box<dyn Pass>> {
    vec![
        Box::new(DeadBranches),
        Box::new(ConstantFolding),
        Box::new(Identities),
        Box::new(Arithmetic),
        Box::new(CommonSubexpressions),
        Box::new(ControlEdges),
        Box::new(Layout),
        Box::new(Remapping),
        Box::new(ElementwiseFusion),
        Box::new(Recompute),
    ]
}

/// Runs the passes on a step's graph.
///
/// # Errors
/// The optimised graph cannot be pruned, or the step was cancelled ([`Limits::stop`]). A failed
/// pass is not an error: its report has the reason.
pub fn optimize(
    step: Step<'_>,
    passes: &[&dyn Pass],
    options: &Options<'_>,
) -> Result<Optimized, GraphError> {
    let context = DraftContext {
        registry: options.registry,
        view: options.view,
        evaluate: options.evaluate,
        folding_limit: options.folding_limit,
        budget: Budget::new(options.limits),
    };
    let devices = (0..step.graph.len() as u32).map(|id| step.placement.device(NodeId(id)));
    let draft = Draft::new(context, step.graph, step.sub, step.shapes, devices.collect());
    let mut driver =
        Driver { draft, runs: passes.iter().map(|pass| Run::new(*pass, options)).collect() };
    let before = driver.draft.len();
    let rounds = driver.rounds(options.rounds);
    let Driver { draft, runs } = driver;
    if draft.budget().is_cancelled() {
        return Err(GraphError::Cancelled);
    }
    let (graph, effects) = draft.graph();
    let targets: Vec<_> = step.sub.targets.iter().copied().chain(effects).collect();
    let sub = prune(&graph, &step.sub.feeds, &step.sub.fetches, &targets)?;
    let report = Report {
        before,
        after: sub.order.len(),
        rounds,
        passes: runs.into_iter().map(|run| run.report).collect(),
        limits: draft.budget().met(),
        work: draft.budget().work(),
        memory: Vec::new(),
    };
    let placement = step.placement.extended(&draft.devices);
    Ok(Optimized { graph, sub, shapes: draft.shapes, placement, report })
}

/// A pass and its changes so far.
struct Run<'p> {
    pass: &'p dyn Pass,
    report: PassReport,
    /// The draft's version after its last run. While it is the same, another run would change
    /// nothing.
    seen: Option<u64>,
}

impl<'p> Run<'p> {
    fn new(pass: &'p dyn Pass, options: &Options<'_>) -> Run<'p> {
        let report = PassReport {
            pass: pass.name().to_owned(),
            plugin: pass.plugin().to_owned(),
            skipped: (options.skip)(pass),
            ..PassReport::default()
        };
        Run { pass, report, seen: None }
    }

    fn is_due(&self, version: u64) -> bool {
        let off = self.report.skipped.is_some() || self.report.error.is_some();
        !off && self.seen != Some(version)
    }
}

struct Driver<'a, 'p> {
    draft: Draft<'a>,
    runs: Vec<Run<'p>>,
}

impl Driver<'_, '_> {
    /// Runs rounds of all passes except the late ones, then of all; returns the number of rounds.
    fn rounds(&mut self, most: usize) -> usize {
        let early = self.repeat(most, false);
        let any_late = self.runs.iter().any(|run| run.pass.is_late());
        early + if any_late { self.repeat(most, true) } else { 0 }
    }

    fn repeat(&mut self, most: usize, late: bool) -> usize {
        for round in 0..most {
            let before = self.draft.version;
            for run in self.runs.iter_mut().filter(|run| late || !run.pass.is_late()) {
                if self.draft.is_stopped() {
                    return round + 1;
                }
                if run.is_due(self.draft.version) {
                    run_pass(&mut self.draft, run);
                }
            }
            if self.draft.version == before {
                return round + 1;
            }
        }
        most
    }
}

fn run_pass(draft: &mut Draft<'_>, run: &mut Run<'_>) {
    let before = draft.version;
    let (nodes, live) = (draft.nodes.len(), draft.len());
    run.report.runs += 1;
    draft.undo.clear();
    let done = run.pass.run(draft);
    let done =
        done.and_then(|()| if draft.version == before { Ok(()) } else { settle(draft, nodes) });
    match done {
        Ok(()) => {
            draft.freshen();
            let added = draft.nodes.len() - nodes;
            run.report.added += added;
            run.report.removed += (live + added).saturating_sub(draft.len());
            run.report.changes.append(&mut draft.changes);
        }
        Err(error) => {
            draft.roll_back();
            draft.version = before;
            run.report.error = Some(error.to_string());
        }
    }
    run.seen = Some(draft.version);
}

/// Removes unneeded nodes and checks the remaining graph. The nodes from number `first` on are new.
fn settle(draft: &mut Draft<'_>, first: usize) -> Result<(), PassError> {
    let gone = draft.sweep();
    draft.keep_errors_from(first);
    for &id in &gone {
        draft.note(id, "is no longer needed");
    }
    let order = draft.order()?;
    if order.iter().any(|&id| draft.node(id).control_flow() == ControlFlow::Enter) {
        let (graph, effects) = draft.graph();
        let targets: Vec<_> = draft.sub.targets.iter().copied().chain(effects).collect();
        let sub = prune(&graph, &draft.sub.feeds, &draft.sub.fetches, &targets)?;
        Frames::find(&graph, &sub)?;
    }
    Ok(())
}
