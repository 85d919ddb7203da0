//! A graph that a worker runs as it was cut elsewhere.

use super::{Asked, Registered, StepCall, Worker, register};
use crate::{
    error::RuntimeError,
    kernels::KernelCache,
    options::{RunOptions, SessionOptions},
    patience::Patience,
    rendezvous::Rendezvous,
    step_graph::{Context, FeedSpecs, GraphVersion, take},
};
use std::sync::{Arc, atomic::AtomicU64};
use tenon_framework::Tensor;
use tenon_graph::Graph;
use tenon_host::fpu::FpGuard;
use tenon_proto::GraphDef;

/// A graph that a worker runs as it was cut elsewhere; it is forgotten when this is dropped. Steps may run at the same
/// time.
pub struct WorkerGraph {
    worker: Worker,
    registered: Registered,
    feeds: FeedSpecs,
    keep_denormals: bool,
    /// The kernel objects of its stateful nodes.
    _kernels: Arc<KernelCache>,
}

/// How one step of a [`WorkerGraph`] runs.
#[derive(Clone, Default)]
pub struct StepOptions {
    /// Its number, which is told to kernels and traces; 0 is the runtime's next one.
    pub id: u64,
    /// Where it meets the values that come from elsewhere; `None` where nothing does. Its owner resets it.
    pub rendezvous: Option<Arc<dyn Rendezvous>>,
    /// Deadline, token and trace.
    pub run: RunOptions,
}

impl WorkerGraph {
    pub(super) fn new(
        worker: &Worker,
        def: &GraphDef,
        options: SessionOptions,
    ) -> Result<WorkerGraph, RuntimeError> {
        let runtime = worker.runtime();
        let registry = runtime.registry();
        let graph = Arc::new(Graph::import(def, &registry)?);
        let knobs = runtime.plugins().session_knobs(&registry, &options.knobs);
        let version = GraphVersion::new(graph, registry, knobs.map_err(RuntimeError::Setting)?)?;
        let (kernels, patience) = (Arc::<KernelCache>::default(), Patience::default());
        let context = Context {
            runtime,
            options: &options,
            version: &version,
            cache: &kernels,
            graphs: &AtomicU64::new(0),
        };
        let graph = take(context, &patience)?;
        let registered = register(worker, &graph, options.count_calls, &patience)?;
        Ok(WorkerGraph {
            worker: worker.clone(),
            registered,
            feeds: graph.feeds,
            keep_denormals: options.keep_denormals,
            _kernels: kernels,
        })
    }

    /// Runs a step: `feeds` by the indices of the `_Arg` nodes; `fetched` is cleared, and filled by those of the
    /// `_Retval` nodes.
    ///
    /// # Errors
    /// Feeds that do not fit, and what the step fails with.
    pub fn run(
        &self,
        step: &StepOptions,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
    ) -> Result<(), RuntimeError> {
        self.feeds.check(feeds)?;
        fetched.clear();
        let _denormals = FpGuard::for_kernels(self.keep_denormals);
        let patience = Patience::from_now(Some(&step.run));
        let call = StepCall {
            id: if step.id == 0 { self.worker.runtime().next_step() } else { step.id },
            rendezvous: step.rendezvous.as_ref(),
            asked: Some(Asked { options: &step.run, patience: &patience }),
        };
        self.registered.run(&self.worker, call, feeds, fetched, || Some(()))
    }

    /// Cancels the steps that run.
    pub fn cancel(&self) {
        self.registered.cancel_running();
    }
}
