//! The front end of a step: from a session's graph to partitions that are complete in themselves.
//!
//! | file | what |
//! |---|---|
//! | `named.rs`, `feeds.rs` | the tensors and nodes that a signature names; what feeds have to be |
//! | `placed.rs` | prunes, infers shapes, places; chooses kernels and cuts |
//! | `placement.rs` | placing as the session's options say |
//! | `optimize.rs`, `evaluate.rs` | which passes run, and the kernels that fold constants |
//! | `choice.rs` | which kernels a node gets |
//! | `explain.rs` | why |
//!
//! It knows devices and registered kernels, and makes no kernel for the step: a worker does.

mod choice;
mod evaluate;
mod explain;
mod feeds;
mod named;
mod optimize;
mod placed;
mod placement;

pub use explain::NodeExplanation;
pub(crate) use explain::{explain, explain_made};
pub(crate) use feeds::{FeedSpec, FeedSpecs};
pub use optimize::Simplified;
pub(crate) use optimize::{explain as explain_passes, simplified};

use crate::{
    error::RuntimeError,
    kernels::{KernelCache, Scope, Tuned},
    options::{CallableOptions, SessionOptions},
    patience::Patience,
    runtime::Runtime,
    tuning::Wish,
};
use named::Named;
use placed::Placed;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tenon_framework::{knob::Knobs, registry::Registry};
use tenon_graph::{Graph, NodeId, Output, PartKind, PartNode, Partitioned};

/// What steps are made from: a session's graph as it is at a time, with what it is compiled by.
#[derive(Clone)]
pub(crate) struct GraphVersion {
    pub graph: Arc<Graph>,
    pub registry: Arc<Registry>,
    /// The values that kernels see which are made for the session.
    pub knobs: Arc<Knobs>,
    /// What they say of policy `measured`.
    pub wish: Option<Wish>,
}

impl GraphVersion {
    pub fn new(
        graph: Arc<Graph>,
        registry: Arc<Registry>,
        knobs: Arc<Knobs>,
    ) -> Result<GraphVersion, RuntimeError> {
        let wish = Wish::from_knobs(&knobs).map_err(RuntimeError::Policy)?;
        Ok(GraphVersion { graph, registry, knobs, wish })
    }
}

/// What making a step's graph asks of its session.
#[derive(Clone, Copy)]
pub(crate) struct Context<'s> {
    pub runtime: &'s Runtime,
    pub options: &'s SessionOptions,
    pub version: &'s GraphVersion,
    /// Objects of kernels that are made to be measured share packed forms with those that run.
    pub cache: &'s Arc<KernelCache>,
    /// How many graphs were made for steps.
    pub graphs: &'s AtomicU64,
}

impl<'s> Context<'s> {
    /// What the nodes of a step's graph have in common.
    fn scope(&self) -> Arc<Scope> {
        let GraphVersion { registry, knobs, wish, .. } = self.version;
        Arc::new(Scope {
            knobs: Arc::clone(knobs),
            cache: Arc::clone(self.cache),
            tuned: wish.map(|wish| Tuned::new(self.runtime, registry, wish)),
        })
    }

    /// A number that no graph of the session has.
    fn next_graph(&self) -> u64 {
        self.graphs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The label that the knob asks for.
    fn kernel_label_by_knob(&self) -> Option<&'s str> {
        let label = self.version.knobs.text("runtime", "kernel_label");
        label.filter(|label| !label.is_empty())
    }
}

/// A step's graph, ready for a worker.
pub(crate) struct StepGraph {
    pub partitioned: Partitioned,
    pub feeds: FeedSpecs,
    /// Number of fetches.
    pub fetches: usize,
    /// What its nodes have in common.
    pub scope: Arc<Scope>,
}

/// Makes the graph of the step of a signature.
pub(crate) fn build(
    context: Context<'_>,
    signature: &CallableOptions,
    patience: &Patience,
) -> Result<StepGraph, RuntimeError> {
    let Named { feeds, fetches, targets } = Named::find(&context.version.graph, signature)?;
    let placed = Placed::new(context, &feeds, &fetches, &targets, patience)?;
    let (placed, _) = optimize::optimized(placed)?;
    patience.check()?;
    let partitioned = placed.partition()?;
    let feeds = FeedSpecs(feed_specs(&placed, signature, &feeds));
    Ok(StepGraph { partitioned, feeds, fetches: fetches.len(), scope: placed.scope })
}

/// The graph of a step that was cut elsewhere, with kernels chosen here.
pub(crate) fn take(context: Context<'_>, patience: &Patience) -> Result<StepGraph, RuntimeError> {
    let graph = &context.version.graph;
    let all: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let placed = Placed::new(context, &[], &[], &all, patience)?;
    let partitioned = placed.assemble()?;
    let nodes = || partitioned.partitions.iter().flat_map(|partition| &partition.nodes);
    let mut feeds: Vec<(usize, FeedSpec)> = nodes().filter_map(fed).collect();
    feeds.sort_unstable_by_key(|(index, _)| *index);
    let feeds = FeedSpecs(feeds.into_iter().map(|(_, spec)| spec).collect());
    let fetches = nodes().filter(|node| matches!(node.kind, PartKind::Fetch { .. })).count();
    Ok(StepGraph { partitioned, feeds, fetches, scope: placed.scope })
}

fn fed(node: &PartNode) -> Option<(usize, FeedSpec)> {
    let PartKind::Feed { index } = node.kind else { return None };
    let (dtype, shape) = (node.signature.outputs[0].base(), node.output_shapes[0].clone());
    Some((index, FeedSpec { name: node.name.clone(), dtype, shape }))
}

fn feed_specs(placed: &Placed<'_>, signature: &CallableOptions, feeds: &[Output]) -> Vec<FeedSpec> {
    let named = signature.feeds.iter().zip(feeds);
    named
        .map(|(name, &feed)| FeedSpec {
            name: name.clone(),
            dtype: placed.graph.dtype(feed).base(),
            shape: placed.shapes.seen(&placed.sub, feed),
        })
        .collect()
}
