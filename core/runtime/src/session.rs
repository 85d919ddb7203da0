//! Sessions: a graph, its resources, and the steps that run over it.
//!
//! All methods block, and all types are `Send + Sync`: steps run concurrently, even while the graph
//! is extended. A step is compiled at its first run and kept by (feeds, fetches, targets); the knob
//! `runtime.plan_cache` limits the number of compiled steps per session.
//!
//! Locks: the graph and the registry snapshot are replaced as a whole under a short lock; compiled
//! steps are in one table ([`plans`]); a running step holds no lock.

mod any_shape;
mod callable;
mod executable;
mod gate;
mod import;
mod partial;
mod plans;
mod progress;
mod tasks;

pub use any_shape::AnyShapeCallable;
pub use callable::Callable;
pub use partial::PartialRun;
pub use progress::{PartialProgress, Taken};

use crate::{
    error::RuntimeError,
    isolate::quarantines,
    kernels::KernelCache,
    options::{CallableOptions, Metadata, RunOptions, SessionOptions},
    run_limits::RunLimits,
    runtime::{Runtime, Steps},
    step_graph::{self, Context, GraphVersion, NodeExplanation, Simplified},
    worker::{CallerOptions, StepCall, Worker, register},
};
use executable::Executable;
use gate::Gate;
use plans::{Found, Plans};
use std::{
    ops::Range,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tenon_framework::{
    Tensor,
    device::DeviceName,
    knob::Knobs,
    registry::Registry,
    sync::{Mutex, rank},
};
use tenon_graph::{Graph, GraphError, Partition, required_ops::NO_OP};
use tenon_host::{fpu::FpGuard, resources::Resources};
use tenon_optimize::Report;
use tenon_proto::GraphDef;

pub(crate) struct Inner {
    worker: Worker,
    /// Whether the worker belongs to this session alone.
    owns_worker: bool,
    options: SessionOptions,
    current: Mutex<GraphVersion>,
    plans: Plans,
    /// The kernel objects of stateful nodes, and the packed forms of constants.
    kernels: Arc<KernelCache>,
    /// The number of graphs created for steps.
    graphs: AtomicU64,
    /// A counter that every `refresh` increments.
    generation: AtomicU64,
    /// The number of quarantined plugins when the plans were made.
    quarantines: AtomicU64,
    gate: Gate,
}

/// A graph, its resources, and the steps that run over it.
pub struct Session {
    inner: Arc<Inner>,
}

impl Session {
    /// Creates a session with an empty graph on a worker of its own: other sessions do not see
    /// values that its steps keep.
    ///
    /// # Errors
    /// An option names an unknown device or knob, or a value does not have its knob's type.
    pub fn new(runtime: &Runtime, options: SessionOptions) -> Result<Session, RuntimeError> {
        Session::open(Worker::new(runtime), true, options)
    }

    /// Creates a session with an empty graph on a worker that other sessions may share. Variables
    /// and other values that outlive steps are shared by container and name, and stay when the
    /// session closes.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn on(worker: &Worker, options: SessionOptions) -> Result<Session, RuntimeError> {
        let isolated = options.isolate_state;
        let worker = if isolated { worker.isolated() } else { worker.clone() };
        Session::open(worker, isolated, options)
    }

    fn open(
        worker: Worker,
        owns_worker: bool,
        options: SessionOptions,
    ) -> Result<Session, RuntimeError> {
        let runtime = worker.runtime().clone();
        if let Some(name) = &options.device {
            DeviceName::parse(name).map_err(|error| RuntimeError::Device(error.to_string()))?;
        }
        let registry = runtime.registry();
        let knobs = knobs(&runtime, &registry, &options)?;
        let current = GraphVersion::new(Arc::new(Graph::new()), registry, knobs)?;
        let inner = Inner {
            worker,
            owns_worker,
            options,
            current: Mutex::ranked(rank::SESSION, current),
            plans: Plans::default(),
            kernels: Arc::default(),
            graphs: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            quarantines: AtomicU64::new(quarantines()),
            gate: Gate::default(),
        };
        let inner = Arc::new(inner);
        runtime.opened(Arc::downgrade(&inner) as Weak<dyn Steps>);
        Ok(Session { inner })
    }

    /// Appends the nodes of a graph, even while steps run. An unregistered op is an error of the
    /// steps that need it. Attributes that an op does not declare are ignored, with a warning.
    ///
    /// # Errors
    /// The first invalid node; nothing is then appended.
    pub fn extend(&self, def: &GraphDef) -> Result<(), RuntimeError> {
        self.inner.extended(|graph, registry| graph.extend(def, registry))
    }

    /// Like [`Session::extend`], but frees each constant of the message once the session has it, so
    /// that a model's weights are never in memory twice.
    ///
    /// # Errors
    /// As [`Session::extend`].
    pub fn extend_owned(&self, def: GraphDef) -> Result<(), RuntimeError> {
        self.inner.extended(|graph, registry| graph.extend_owned(def, registry))
    }

    /// Like [`Session::extend`], with a graph built in code by [`GraphBuilder::finish`]. Its ops
    /// are looked up again in the session's registry.
    ///
    /// [`GraphBuilder::finish`]: tenon_graph::GraphBuilder::finish
    ///
    /// # Errors
    /// As [`Session::extend`]; a node has an attribute that cannot be written to a message.
    pub fn extend_graph(&self, graph: &Graph) -> Result<(), RuntimeError> {
        self.extend_owned(graph.to_graph_def()?)
    }

    /// The current graph.
    pub fn graph(&self) -> Arc<Graph> {
        Arc::clone(&self.inner.current.lock().graph)
    }

    /// Runs one step.
    ///
    /// # Errors
    /// A name is not in the graph, a feed does not fit, a node cannot be placed, or the step fails.
    /// The session stays usable.
    pub fn run(
        &self,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
        options: &RunOptions,
    ) -> Result<(Vec<Tensor>, Metadata), RuntimeError> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let signature = CallableOptions {
            feeds: feeds.iter().map(|(name, _)| (*name).to_owned()).collect(),
            fetches: own(fetches),
            targets: own(targets),
            ..CallableOptions::default()
        };
        let run_limits = RunLimits::from_now(Some(options));
        let (executable, compile_ns) = self.inner.found_or_made(&signature, &run_limits)?;
        let tensors: Vec<Tensor> = feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
        let mut fetched = Vec::with_capacity(fetches.len());
        let caller = CallerOptions { options, run_limits: &run_limits };
        self.inner.step(&executable, &tensors, &mut fetched, Some(caller))?;
        Ok((fetched, Metadata { nodes: Arc::clone(&executable.registered.report), compile_ns }))
    }

    /// Prepares a run.
    ///
    /// # Errors
    /// As [`Session::run`], for errors before the step.
    pub fn callable(&self, options: CallableOptions) -> Result<Callable, RuntimeError> {
        Callable::new(Arc::clone(&self.inner), options)
    }

    /// Switches to the newest registry: later steps, including those of callables, are planned
    /// again and keep the resources. Steps in flight finish on the old plans.
    ///
    /// # Errors
    /// The graph, or a knob in the options, does not fit the new registry. The session is then
    /// unchanged.
    pub fn refresh(&self) -> Result<(), RuntimeError> {
        self.inner.refresh()
    }

    /// Explains each node: the candidate kernels, the reason against each, the chosen kernel, and
    /// the placement with its reason.
    ///
    /// # Errors
    /// As compiling a step over the whole graph.
    pub fn explain(&self, node: Option<&str>) -> Result<Vec<NodeExplanation>, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        step_graph::explain(self.inner.context(&current), node)
    }

    /// The report of the optimisation of a step's graph: the passes in order, with their changes.
    /// `None` means a step that feeds every placeholder, fetches all unused outputs and runs all
    /// nodes without outputs.
    ///
    /// # Errors
    /// As compiling the step.
    pub fn explain_passes(&self, step: Option<&CallableOptions>) -> Result<Report, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        step_graph::explain_passes(self.inner.context(&current), step)
    }

    /// The partitions of a step, one message per device, for a [`Worker`] elsewhere to
    /// [register](Worker::register).
    ///
    /// # Errors
    /// As compiling the step; a node has an attribute that cannot be written.
    pub fn partitions(&self, step: &CallableOptions) -> Result<Vec<GraphDef>, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        let graph = step_graph::build(self.inner.context(&current), step, &RunLimits::default())?;
        let has_calls = !graph.callees.graphs.is_empty();
        let library = current.graph.library().filter(|_| has_calls);
        let partitions = graph.partitioned.partitions.iter();
        let write = |partition: &Partition| {
            Ok(GraphDef { library: library.cloned(), ..partition.to_graph_def()? })
        };
        partitions.map(write).collect()
    }

    /// Like [`Session::explain`], for the nodes that passes create for a step, such as fused nodes
    /// or nodes of another layout.
    ///
    /// # Errors
    /// As compiling the step.
    pub fn explain_made(
        &self,
        step: Option<&CallableOptions>,
    ) -> Result<Vec<NodeExplanation>, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        step_graph::explain_made(self.inner.context(&current), step)
    }

    /// Passes the optimised graph of a step to a function, without the fusions of late passes. A
    /// program that rewrites a graph, such as tenon-quantize, starts from this form. The step feeds
    /// all placeholders and fetches `fetches`, or all unused outputs if that is empty.
    ///
    /// # Errors
    /// As compiling the step.
    pub fn simplified<R>(
        &self,
        fetches: &[String],
        show: impl FnOnce(Simplified<'_>) -> R,
    ) -> Result<R, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        step_graph::simplified(self.inner.context(&current), fetches, show)
    }

    /// Whether the step of a signature is compiled and has no nodes but `NoOp`.
    pub fn is_idle(&self, signature: &CallableOptions) -> bool {
        let found = self.inner.plans.find(signature);
        found.is_some_and(|step| step.registered.report.iter().all(|node| node.op == NO_OP))
    }

    /// The values of the knobs for the session's new kernels.
    pub fn knobs(&self) -> Arc<Knobs> {
        Arc::clone(&self.inner.current.lock().knobs)
    }

    /// The worker's resources, which outlive steps.
    pub fn resources(&self) -> &Arc<Resources> {
        self.inner.worker.resources()
    }

    /// Cancels the steps in flight, waits for them to end, and refuses new ones.
    pub fn close(&self) {
        self.inner.close();
    }
}

fn knobs(
    runtime: &Runtime,
    registry: &Registry,
    options: &SessionOptions,
) -> Result<Arc<Knobs>, RuntimeError> {
    runtime.plugins().session_knobs(registry, &options.knobs).map_err(RuntimeError::Setting)
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    /// The context for creating the graph of a step.
    fn context<'s>(&'s self, version: &'s GraphVersion) -> Context<'s> {
        Context {
            runtime: self.worker.runtime(),
            options: &self.options,
            version,
            cache: &self.kernels,
            graphs: &self.graphs,
            any_shape: false,
        }
    }

    /// Replaces the session's graph by an extended one; if extending fails, the session keeps its
    /// graph.
    fn extended(
        &self,
        extend: impl FnOnce(&mut Graph, &Registry) -> Result<Range<u32>, GraphError>,
    ) -> Result<(), RuntimeError> {
        self.check_open()?;
        let mut current = self.current.lock();
        let mut graph = Graph::clone(&current.graph);
        let new = extend(&mut graph, &current.registry)?;
        import::warn_of_ignored(&graph, new);
        current.graph = Arc::new(graph);
        Ok(())
    }

    fn check_open(&self) -> Result<(), RuntimeError> {
        if self.gate.is_closed() { Err(RuntimeError::Closed) } else { Ok(()) }
    }

    fn close(&self) {
        self.gate.close(|| self.plans.cancel_running());
        self.plans.clear(|| ());
        self.kernels.clear();
        if self.owns_worker {
            self.worker.reset(&[""]);
        }
    }

    /// The compiled step of a signature, and the time for which it was compiled now.
    fn found_or_made(
        &self,
        signature: &CallableOptions,
        run_limits: &RunLimits,
    ) -> Result<(Arc<Executable>, u64), RuntimeError> {
        if let Some(executable) = self.plans.find(signature) {
            return Ok((executable, 0));
        }
        let executable = self.executable(signature, run_limits)?;
        let compile_ns = executable.compile_ns;
        Ok((executable, compile_ns))
    }

    /// The compiled step of a signature, from the table or newly compiled.
    fn executable(
        &self,
        signature: &CallableOptions,
        run_limits: &RunLimits,
    ) -> Result<Arc<Executable>, RuntimeError> {
        let turn = loop {
            self.check_open()?;
            run_limits.check()?;
            match self.plans.find_or_turn(signature, run_limits) {
                Found::Kept(executable) => return Ok(executable),
                Found::Unknown(turn) => break turn,
                Found::Changed => {}
            }
        };
        let generation = self.generation.load(Ordering::Acquire);
        let current = self.current.lock().clone();
        let executable = self.compile(&current, signature, run_limits)?;
        let most = current.knobs.int("runtime", "plan_cache").unwrap_or(-1);
        let is_current =
            || self.generation.load(Ordering::Acquire) == generation && !self.gate.is_closed();
        Ok(turn.finish(executable, usize::try_from(most).unwrap_or(usize::MAX), is_current))
    }

    /// Compiles the step of a signature: its graph, and the worker's part.
    fn compile(
        &self,
        version: &GraphVersion,
        signature: &CallableOptions,
        run_limits: &RunLimits,
    ) -> Result<Executable, RuntimeError> {
        let begin = Instant::now();
        let graph = step_graph::build(self.context(version), signature, run_limits)?;
        let registered = register(&self.worker, &graph, self.options.count_calls, run_limits)?;
        let compile_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(Executable { registered, feeds: graph.feeds, compile_ns })
    }

    /// See [`Session::refresh`].
    fn refresh(&self) -> Result<(), RuntimeError> {
        self.check_open()?;
        let registry = self.worker.runtime().registry();
        let mut current = self.current.lock();
        let def = current.graph.to_graph_def()?;
        let graph = Arc::new(Graph::import(&def, &registry)?);
        import::check_still_there(&current.graph, &graph)?;
        let knobs = knobs(self.worker.runtime(), &registry, &self.options)?;
        *current = GraphVersion::new(graph, registry, knobs)?;
        drop(current);
        // This is one atomic change, so that nothing compiled for the old state is kept.
        self.plans.clear(|| {
            self.generation.fetch_add(1, Ordering::Release);
        });
        self.kernels.clear();
        Ok(())
    }

    /// Runs one step of an executable. If it failed and a plugin was quarantined meanwhile, later
    /// steps are planned again: the plugin's kernels then refuse, and the next candidates are
    /// chosen.
    fn step(
        &self,
        executable: &Executable,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        caller: Option<CallerOptions<'_>>,
    ) -> Result<(), RuntimeError> {
        let counts = self.worker.runtime().counts();
        let measured = counts.latency.begin(counts.done.load(Ordering::Relaxed));
        let result = self.attempt(executable, feeds, fetched, caller);
        if let (Some(measured), Ok(())) = (&measured, &result) {
            counts.latency.end(measured);
        }
        let count = if result.is_ok() { &counts.done } else { &counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        if result.is_err() {
            let now = quarantines();
            if self.quarantines.swap(now, Ordering::AcqRel) != now
                && let Err(error) = self.refresh()
            {
                tracing::warn!("the session keeps its plans, with a plugin in quarantine: {error}");
            }
        }
        result
    }

    #[inline(always)]
    fn attempt(
        &self,
        executable: &Executable,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        caller: Option<CallerOptions<'_>>,
    ) -> Result<(), RuntimeError> {
        executable.feeds.check(feeds)?;
        fetched.clear();
        let _denormals = FpGuard::for_kernels(self.options.keep_denormals);
        let call = StepCall { id: self.worker.runtime().next_step(), rendezvous: None, caller };
        // A closing session waits for a step that has entered the gate.
        executable.registered.run(&self.worker, call, feeds, fetched, || self.gate.enter())
    }
}

impl Steps for Inner {
    fn active(&self) -> u64 {
        self.gate.inside() as u64
    }
}
