//! The front end of a step: from a session's graph to self-contained partitions.
//!
//! | file | content |
//! |---|---|
//! | `named.rs` | the tensors and nodes that a signature names |
//! | `placed.rs` | pruning, shape inference and placement; choice of kernels and partitioning |
//! | `placement.rs` | placement according to the session's options |
//! | `optimize.rs`, `evaluate.rs` | which passes run, and the kernels that fold constants |
//! | `callees.rs` | the step graphs of the functions that nodes call |
//! | `choice.rs` | the choice of a kernel for a node |
//! | `explain.rs` | explanations |
//! | `tasks.rs` | steps that are cut by task, for several workers |
//! | `part.rs` | the part of such a step at one worker |
//!
//! The front end knows devices and registered kernels, but creates no kernels for the step; a
//! worker does that.

mod callees;
mod choice;
mod evaluate;
mod explain;
mod named;
mod optimize;
mod part;
mod placed;
mod placement;
mod tasks;

pub(crate) use callees::CalledGraphs;
pub use explain::NodeExplanation;
pub(crate) use explain::{explain, explain_made};
pub use optimize::Simplified;
pub(crate) use optimize::{explain as explain_passes, simplified};

use crate::{
    error::RuntimeError,
    feeds::{FeedSpec, FeedSpecs},
    kernels::{KernelCache, Scope, Tuned},
    options::{CallableOptions, SessionOptions},
    run_limits::RunLimits,
    runtime::Runtime,
    tuning::TuningOptions,
};
pub(crate) use named::Named;
pub(crate) use part::take_part;
use placed::PlacedStep;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
pub(crate) use tasks::by_task;
pub use tasks::{TaskFeed, TaskPart, TaskStep};
use tenon_framework::{knob::Knobs, registry::Registry};
use tenon_graph::{Graph, NodeId, Output, PartKind, PartNode, Partitioned};

/// A snapshot of a session's graph, with everything that it is compiled with.
#[derive(Clone)]
pub(crate) struct GraphVersion {
    pub graph: Arc<Graph>,
    pub registry: Arc<Registry>,
    /// The knob values for the session's kernels.
    pub knobs: Arc<Knobs>,
    /// The options for policy `measured`, if the knobs select it.
    pub tuning_options: Option<TuningOptions>,
}

impl GraphVersion {
    pub fn new(
        graph: Arc<Graph>,
        registry: Arc<Registry>,
        knobs: Arc<Knobs>,
    ) -> Result<GraphVersion, RuntimeError> {
        let tuning_options = TuningOptions::from_knobs(&knobs).map_err(RuntimeError::Policy)?;
        Ok(GraphVersion { graph, registry, knobs, tuning_options })
    }
}

/// The context in which a session creates a step's graph.
#[derive(Clone, Copy)]
pub(crate) struct Context<'s> {
    pub runtime: &'s Runtime,
    pub options: &'s SessionOptions,
    pub version: &'s GraphVersion,
    /// The kernel cache: kernels created for measurement share packed constants with those that
    /// run.
    pub cache: &'s Arc<KernelCache>,
    /// The number of graphs created for steps.
    pub graphs: &'s AtomicU64,
    /// Whether feeds have any shape ([`CallableOptions::feeds_of_any_shape`]).
    pub any_shape: bool,
}

impl<'s> Context<'s> {
    /// The properties that the nodes of a step's graph share.
    fn scope(&self) -> Arc<Scope> {
        let GraphVersion { registry, knobs, tuning_options, .. } = self.version;
        Arc::new(Scope {
            knobs: Arc::clone(knobs),
            cache: Arc::clone(self.cache),
            tuned: tuning_options
                .map(|tuning_options| Tuned::new(self.runtime, registry, tuning_options)),
        })
    }

    /// A number that is new among the session's graphs.
    fn next_graph(&self) -> u64 {
        self.graphs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The kernel label that the knob requests.
    fn kernel_label_by_knob(&self) -> Option<&'s str> {
        let label = self.version.knobs.text("runtime", "kernel_label");
        label.filter(|label| !label.is_empty())
    }
}

/// A step's graph, ready for a worker.
pub(crate) struct StepGraph {
    pub partitioned: Partitioned,
    pub feeds: FeedSpecs,
    /// The number of fetches.
    pub fetches: usize,
    /// The properties that its nodes share.
    pub scope: Arc<Scope>,
    /// The functions that its nodes call.
    pub callees: CalledGraphs,
}

/// Creates the graph of the step for a signature.
pub(crate) fn build(
    context: Context<'_>,
    signature: &CallableOptions,
    run_limits: &RunLimits,
) -> Result<StepGraph, RuntimeError> {
    let context = Context { any_shape: signature.feeds_of_any_shape, ..context };
    let Named { feeds, fetches, targets } = Named::find(&context.version.graph, signature)?;
    let placed = PlacedStep::new(context, &feeds, &fetches, &targets, run_limits)?;
    let (placed, _) = optimize::optimized(placed)?;
    run_limits.check()?;
    let callees = CalledGraphs::of(&placed, run_limits)?;
    let partitioned = placed.partition()?;
    let feeds = FeedSpecs(feed_specs(&placed, signature, &feeds));
    Ok(StepGraph { partitioned, feeds, fetches: fetches.len(), scope: placed.scope, callees })
}

/// Creates a step from a graph that was cut elsewhere; kernels are chosen here.
pub(crate) fn take(
    context: Context<'_>,
    run_limits: &RunLimits,
) -> Result<StepGraph, RuntimeError> {
    let graph = &context.version.graph;
    let all: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let placed = PlacedStep::new(context, &[], &[], &all, run_limits)?;
    let callees = CalledGraphs::of(&placed, run_limits)?;
    let partitioned = placed.assemble()?;
    let nodes = || partitioned.partitions.iter().flat_map(|partition| &partition.nodes);
    let mut feeds: Vec<(usize, FeedSpec)> = nodes().filter_map(fed).collect();
    feeds.sort_unstable_by_key(|(index, _)| *index);
    let feeds = FeedSpecs(feeds.into_iter().map(|(_, spec)| spec).collect());
    let fetches = nodes().filter(|node| matches!(node.kind, PartKind::Fetch { .. })).count();
    Ok(StepGraph { partitioned, feeds, fetches, scope: placed.scope, callees })
}

fn fed(node: &PartNode) -> Option<(usize, FeedSpec)> {
    let PartKind::Feed { index } = node.kind else { return None };
    let (dtype, shape) = (node.signature.outputs[0].base(), node.output_shapes[0].clone());
    Some((index, FeedSpec { name: node.name.clone(), dtype, shape }))
}

fn feed_specs(
    placed: &PlacedStep<'_>,
    signature: &CallableOptions,
    feeds: &[Output],
) -> Vec<FeedSpec> {
    let named = signature.feeds.iter().zip(feeds);
    named
        .map(|(name, &feed)| FeedSpec {
            name: name.clone(),
            dtype: placed.graph.dtype(feed).base(),
            shape: placed.shapes.seen(&placed.sub, feed),
        })
        .collect()
}
