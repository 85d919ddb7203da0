//! Runs passes over a step's graph, and keeps what is sound.

use super::{
    Draft, Pass, PassError, PassReport, Report,
    common_subexpressions::CommonSubexpressions,
    constant_folding::ConstantFolding,
    control_edges::ControlEdges,
    dead_branches::DeadBranches,
    draft::Ground,
    identity::Identities,
    limits::{Budget, Limits},
    remapping::Remapping,
    rewrites::{Arithmetic, ElementwiseFusion, Layout},
};
use crate::{
    ControlFlow, DeviceView, Evaluate, Frames, Graph, GraphError, Placement, Shapes, Subgraph,
    prune,
};
use tenon_framework::registry::Registry;

/// A step's graph as it is placed.
pub struct Step<'a> {
    /// The graph; it stays as it is.
    pub graph: &'a Graph,
    /// What of it runs.
    pub sub: &'a Subgraph,
    /// What is known of its values.
    pub shapes: Shapes,
    /// Where its nodes run.
    pub placement: Placement,
}

/// What optimisation has to be told.
pub struct Options<'a> {
    /// Ops that passes may use.
    pub registry: &'a Registry,
    /// The devices, as for placement.
    pub view: &'a dyn DeviceView,
    /// Runs kernels ahead of the step.
    pub evaluate: &'a dyn Evaluate,
    /// Why a pass does not run; `None` lets it run.
    pub skip: &'a dyn Fn(&dyn Pass) -> Option<String>,
    /// Rounds at most: of all passes but the late ones, then of all.
    pub rounds: usize,
    /// Bytes of the largest constant that folding may make, where it is larger than what it is made of.
    pub folding_limit: usize,
    /// What all of it may take.
    pub limits: Limits<'a>,
}

/// A step's graph after optimisation.
pub struct Optimized {
    /// The graph. Nodes of the one before keep their numbers.
    pub graph: Graph,
    /// What of it runs. Feeds, fetches and targets are those of before; nodes that run for their effects though
    /// nothing needs their values any more are targets too.
    pub sub: Subgraph,
    /// What is known of its values.
    pub shapes: Shapes,
    /// Where its nodes run.
    pub placement: Placement,
    /// What was done.
    pub report: Report,
}

/// Names of the passes of this crate, in the order in which they run.
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
];

/// The passes of this crate, as [`BUILT_IN`] names them.
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
    ]
}

/// Lets the passes work on a step's graph.
///
/// # Errors
/// What is left cannot be cut out of the graph; its caller has given up ([`Limits::stop`]). The passes
/// themselves fail alone: their reports say so.
pub fn optimize(
    step: Step<'_>,
    passes: &[&dyn Pass],
    options: &Options<'_>,
) -> Result<Optimized, GraphError> {
    let ground = Ground {
        registry: options.registry,
        view: options.view,
        evaluate: options.evaluate,
        folding_limit: options.folding_limit,
        budget: Budget::new(options.limits),
    };
    let devices = (0..step.graph.len() as u32).map(|id| step.placement.device(crate::NodeId(id)));
    let draft = Draft::new(ground, step.graph, step.sub, step.shapes, devices.collect());
    let mut driver =
        Driver { draft, runs: passes.iter().map(|pass| Run::new(*pass, options)).collect() };
    let before = driver.draft.len();
    let rounds = driver.rounds(options.rounds);
    let Driver { draft, runs } = driver;
    if draft.budget().is_given_up() {
        return Err(GraphError::GivenUp);
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

/// A pass and what it did so far.
struct Run<'p> {
    pass: &'p dyn Pass,
    report: PassReport,
    /// State of the draft after its last run: as long as it is the same, another run would do nothing.
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
    /// Rounds of all passes but the late ones, then of all; the number of rounds.
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

/// Removes what is not needed any more, and checks what is left. The nodes from number `first` on are new.
fn settle(draft: &mut Draft<'_>, first: usize) -> Result<(), PassError> {
    let gone = draft.sweep();
    draft.answer_from(first);
    for &id in &gone {
        draft.note(id, "is not needed any more");
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
