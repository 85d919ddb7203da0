//! Sessions: a graph, its resources, and the steps over it.
//!
//! All methods block, and all types are `Send + Sync`: steps run concurrently, also while the graph is
//! extended. What a step needs is compiled at its first run and kept by (feeds, fetches, targets), of
//! a session as many as the knob `runtime.plan_cache` says.
//!
//! Locks: the graph and the registry snapshot are replaced as a whole behind a short lock; compiled steps
//! stand in one table ([`plans`]); a running step holds none of them.

mod callable;
mod executable;
mod gate;
mod import;
mod plans;

pub use callable::Callable;

use crate::{
    error::RuntimeError,
    isolate::quarantines,
    kernels::KernelCache,
    options::{CallableOptions, Metadata, RunOptions, SessionOptions},
    patience::Patience,
    runtime::{Runtime, Steps},
    step_graph::{self, Context, GraphVersion, NodeExplanation, Simplified},
    worker::{Asked, StepCall, Worker, register},
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
use tenon_graph::{Graph, GraphError, optimize::Report};
use tenon_host::{fpu::FpGuard, resources::Resources};
use tenon_proto::GraphDef;

pub(crate) struct Inner {
    worker: Worker,
    /// Whether no other session has the worker.
    owns_worker: bool,
    options: SessionOptions,
    current: Mutex<GraphVersion>,
    plans: Plans,
    /// Kernel objects of stateful nodes, and packed forms of constants.
    kernels: Arc<KernelCache>,
    /// How many graphs were made for steps.
    graphs: AtomicU64,
    /// Moves with every `refresh`.
    generation: AtomicU64,
    /// Plugins that were quarantined when the plans were made.
    quarantines: AtomicU64,
    gate: Gate,
}

/// A graph and its resources, and the steps over it.
pub struct Session {
    inner: Arc<Inner>,
}

impl Session {
    /// A session with an empty graph, on a worker of its own: other sessions do not see what its steps leave behind.
    ///
    /// # Errors
    /// Options that name no device or knob; a value that is not of its knob's type.
    pub fn new(runtime: &Runtime, options: SessionOptions) -> Result<Session, RuntimeError> {
        Session::open(Worker::new(runtime), true, options)
    }

    /// A session with an empty graph, on a worker that other sessions have too: variables and other values that outlive
    /// steps are shared by container and name, and stay when the session closes.
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

    /// Appends the nodes of a graph, also while steps run. Ops that are not registered are an error of the steps that
    /// need them. Attributes that an op does not have are ignored, with a warning.
    ///
    /// # Errors
    /// What is wrong with a node, by name; then nothing is appended.
    pub fn extend(&self, def: &GraphDef) -> Result<(), RuntimeError> {
        self.inner.extended(|graph, registry| graph.extend(def, registry))
    }

    /// As [`Session::extend`], giving each of the graph's constants back as soon as the session has it: a model's weights
    /// are never in memory twice.
    ///
    /// # Errors
    /// As [`Session::extend`].
    pub fn extend_owned(&self, def: GraphDef) -> Result<(), RuntimeError> {
        self.inner.extended(|graph, registry| graph.extend_owned(def, registry))
    }

    /// As [`Session::extend`], with a graph that was built in code: what [`GraphBuilder::finish`] gives. Its ops are
    /// looked up anew, in the session's registry.
    ///
    /// [`GraphBuilder::finish`]: tenon_graph::GraphBuilder::finish
    ///
    /// # Errors
    /// As [`Session::extend`]; a node has an attribute that has no message.
    pub fn extend_graph(&self, graph: &Graph) -> Result<(), RuntimeError> {
        self.extend_owned(graph.to_graph_def()?)
    }

    /// The graph as it is now.
    pub fn graph(&self) -> Arc<Graph> {
        Arc::clone(&self.inner.current.lock().graph)
    }

    /// Runs one step.
    ///
    /// # Errors
    /// Names that the graph has not, feeds that do not fit, nodes that cannot be placed, and what the step
    /// fails with. The session stays usable.
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
        };
        let patience = Patience::from_now(Some(options));
        let (executable, compile_ns) = match self.inner.plans.find(&signature) {
            Some(executable) => (executable, 0),
            None => {
                let executable = self.inner.executable(&signature, &patience)?;
                let compile_ns = executable.compile_ns;
                (executable, compile_ns)
            }
        };
        let tensors: Vec<Tensor> = feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
        let mut fetched = Vec::with_capacity(fetches.len());
        let asked = Asked { options, patience: &patience };
        self.inner.step(&executable, &tensors, &mut fetched, Some(asked))?;
        Ok((fetched, Metadata { nodes: Arc::clone(&executable.registered.report), compile_ns }))
    }

    /// Prepares a run.
    ///
    /// # Errors
    /// As [`Session::run`] before the step.
    pub fn callable(&self, options: CallableOptions) -> Result<Callable, RuntimeError> {
        Callable::new(Arc::clone(&self.inner), options)
    }

    /// Takes the newest registry: later steps are planned anew, with the resources kept; steps in flight
    /// finish on the old plans. Callables follow.
    ///
    /// # Errors
    /// The graph, or a knob of the options, does not fit the new registry; then the session stays as it was.
    pub fn refresh(&self) -> Result<(), RuntimeError> {
        self.inner.refresh()
    }

    /// For each node: the candidates, what removed each, who won, where it is placed and why.
    ///
    /// # Errors
    /// As compiling a step over the whole graph.
    pub fn explain(&self, node: Option<&str>) -> Result<Vec<NodeExplanation>, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        step_graph::explain(self.inner.context(&current), node)
    }

    /// What optimisation does to the graph of a step: the passes in their order, and what each did. Without a step,
    /// for one that feeds every placeholder, fetches what no node uses and runs what has no outputs.
    ///
    /// # Errors
    /// As compiling the step.
    pub fn explain_passes(&self, step: Option<&CallableOptions>) -> Result<Report, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        step_graph::explain_passes(self.inner.context(&current), step)
    }

    /// The graph of a step as its devices run it, one message for each: what a [`Worker`] elsewhere
    /// [registers](Worker::register).
    ///
    /// # Errors
    /// As compiling the step; a node has an attribute that has no message.
    pub fn partitions(&self, step: &CallableOptions) -> Result<Vec<GraphDef>, RuntimeError> {
        self.inner.check_open()?;
        let current = self.inner.current.lock().clone();
        let graph = step_graph::build(self.inner.context(&current), step, &Patience::default())?;
        let partitions = graph.partitioned.partitions.iter();
        partitions.map(|partition| Ok(partition.to_graph_def()?)).collect()
    }

    /// As [`Session::explain`], of the nodes that the passes make for a step: fused ones, those of another layout.
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

    /// Shows the graph of a step as the passes leave it, without those that make few large nodes of many (fusions): a
    /// program that writes a graph anew, such as tenon-quantize, starts from it. The step feeds all placeholders and
    /// fetches `fetches`; without any, what no node uses.
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

    /// The values of the knobs that the session's kernels see when they are made.
    pub fn knobs(&self) -> Arc<Knobs> {
        Arc::clone(&self.inner.current.lock().knobs)
    }

    /// What outlives steps: the worker's.
    pub fn resources(&self) -> &Arc<Resources> {
        self.inner.worker.resources()
    }

    /// Cancels the steps in flight, waits for them, and refuses new ones.
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
    /// What making the graph of a step asks.
    fn context<'s>(&'s self, version: &'s GraphVersion) -> Context<'s> {
        Context {
            runtime: self.worker.runtime(),
            options: &self.options,
            version,
            cache: &self.kernels,
            graphs: &self.graphs,
        }
    }

    /// Puts an extended graph in the place of the session's; where extending it fails, the session keeps its own.
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

    /// The compiled step of a signature, from the table or made now.
    fn executable(
        &self,
        signature: &CallableOptions,
        patience: &Patience,
    ) -> Result<Arc<Executable>, RuntimeError> {
        let turn = loop {
            self.check_open()?;
            patience.check()?;
            match self.plans.find_or_turn(signature, patience) {
                Found::Kept(executable) => return Ok(executable),
                Found::Unknown(turn) => break turn,
                Found::Changed => {}
            }
        };
        let generation = self.generation.load(Ordering::Acquire);
        let current = self.current.lock().clone();
        let executable = self.compile(&current, signature, patience)?;
        let most = current.knobs.int("runtime", "plan_cache").unwrap_or(-1);
        let is_current =
            || self.generation.load(Ordering::Acquire) == generation && !self.gate.is_closed();
        Ok(turn.finish(executable, usize::try_from(most).unwrap_or(usize::MAX), is_current))
    }

    /// Compiles the step of a signature: its graph, and what the worker makes of it.
    fn compile(
        &self,
        version: &GraphVersion,
        signature: &CallableOptions,
        patience: &Patience,
    ) -> Result<Executable, RuntimeError> {
        let begin = Instant::now();
        let graph = step_graph::build(self.context(version), signature, patience)?;
        let registered = register(&self.worker, &graph, self.options.count_calls, patience)?;
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
        // In one moment, so that nothing is kept that was compiled for what was before.
        self.plans.clear(|| {
            self.generation.fetch_add(1, Ordering::Release);
        });
        self.kernels.clear();
        Ok(())
    }

    /// Runs one step of an executable. Where it failed and a plugin is quarantined meanwhile, later steps are planned
    /// anew: the plugin's kernels refuse, and the next candidates take their nodes.
    fn step(
        &self,
        executable: &Executable,
        feeds: &[Tensor],
        fetched: &mut Vec<Tensor>,
        asked: Option<Asked<'_>>,
    ) -> Result<(), RuntimeError> {
        let counts = self.worker.runtime().counts();
        let measured = counts.latency.begin(counts.done.load(Ordering::Relaxed));
        let result = self.attempt(executable, feeds, fetched, asked);
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
        asked: Option<Asked<'_>>,
    ) -> Result<(), RuntimeError> {
        executable.feeds.check(feeds)?;
        fetched.clear();
        let _denormals = FpGuard::for_kernels(self.options.keep_denormals);
        let call = StepCall { id: self.worker.runtime().next_step(), rendezvous: None, asked };
        // The session's end waits for a step that has entered.
        executable.registered.run(&self.worker, call, feeds, fetched, || self.gate.enter())
    }
}

impl Steps for Inner {
    fn active(&self) -> u64 {
        self.gate.inside() as u64
    }
}
