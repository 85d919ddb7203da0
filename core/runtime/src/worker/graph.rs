//! A registered graph that was cut elsewhere.

use super::{CallerOptions, Registered, StepCall, Worker, register};
use crate::{
    error::RuntimeError,
    feeds::FeedSpecs,
    kernels::KernelCache,
    options::{NodeReport, RunOptions, SessionOptions},
    rendezvous::Rendezvous,
    run_limits::RunLimits,
    step_graph::{Context, GraphVersion, StepGraph, take},
};
use std::sync::{Arc, atomic::AtomicU64};
use tenon_framework::Tensor;
use tenon_graph::Graph;
use tenon_host::fpu::FpGuard;
use tenon_proto::GraphDef;

/// A registered graph that was cut elsewhere; dropping it unregisters the graph. Several steps may
/// run at the same time.
pub struct WorkerGraph {
    worker: Worker,
    registered: Registered,
    feeds: FeedSpecs,
    keep_denormals: bool,
    /// The kernel objects of its stateful nodes.
    _kernels: Arc<KernelCache>,
}

/// Options of one step of a [`WorkerGraph`].
#[derive(Clone, Default)]
pub struct StepOptions {
    /// The step number, which kernels and traces see; 0 means the runtime's next one.
    pub id: u64,
    /// The rendezvous for transfers with other workers; `None` if there are none. Its owner resets
    /// it.
    pub rendezvous: Option<Arc<dyn Rendezvous>>,
    /// The deadline, token and trace.
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
        let (kernels, run_limits) = (Arc::<KernelCache>::default(), RunLimits::default());
        let context = Context {
            runtime,
            options: &options,
            version: &version,
            cache: &kernels,
            graphs: &AtomicU64::new(0),
            any_shape: false,
        };
        let graph = take(context, &run_limits)?;
        WorkerGraph::of(worker, graph, &options, kernels)
    }

    /// Compiles a step graph.
    pub(super) fn of(
        worker: &Worker,
        graph: StepGraph,
        options: &SessionOptions,
        kernels: Arc<KernelCache>,
    ) -> Result<WorkerGraph, RuntimeError> {
        let run_limits = RunLimits::default();
        let registered = register(worker, &graph, options.count_calls, &run_limits)?;
        Ok(WorkerGraph {
            worker: worker.clone(),
            registered,
            feeds: graph.feeds,
            keep_denormals: options.keep_denormals,
            _kernels: kernels,
        })
    }

    /// The nodes, with the device and the kernel of each.
    pub fn nodes(&self) -> &Arc<Vec<NodeReport>> {
        &self.registered.report
    }

    /// Runs a step. `feeds` are in the order of the `_Arg` indices; `fetched` is cleared and filled
    /// in the order of the `_Retval` indices.
    ///
    /// # Errors
    /// A feed does not fit, or the step fails.
    pub fn run(
        &self,
        step: &StepOptions,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
    ) -> Result<(), RuntimeError> {
        self.feeds.check(feeds)?;
        fetched.clear();
        let _denormals = FpGuard::for_kernels(self.keep_denormals);
        let run_limits = RunLimits::from_now(Some(&step.run));
        let call = StepCall {
            id: if step.id == 0 { self.worker.runtime().next_step() } else { step.id },
            rendezvous: step.rendezvous.as_ref(),
            caller: Some(CallerOptions { options: &step.run, run_limits: &run_limits }),
        };
        self.registered.run(&self.worker, call, feeds, fetched, || Some(()))
    }

    /// Cancels all running steps.
    pub fn cancel(&self) {
        self.registered.cancel_running();
    }
}
