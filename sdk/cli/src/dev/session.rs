//! The session in which a plugin runs while it is worked on.
//!
//! A thread runs step after step. A new build takes the old one's place in between: a step has the one or the
//! other, never both. Where the plugin registers the same as before, or the graph is the user's own, the session is
//! refreshed and keeps its resources; else the steps after go to a new session over a new graph.
//!
//! # Invariants
//! - There is a build in use from the first one that was right on; where a replacement fails, it is the old one.

use super::args::DevArgs;
use crate::{
    args::Global,
    error::CliError,
    run::read_feeds,
    start::{read_graph, start, start_whole},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tenon_benchkit::{
    BenchError,
    calls::{Call, Wish, made_up},
};
use tenon_runtime::{
    Callable, CallableOptions, Runtime, RuntimeError, Session, SessionOptions,
    framework::{
        DType, Tensor,
        device::base::DeviceBase,
        op::Signature,
        registry::{KernelDef, PluginInfo, Registry},
    },
    graph::GraphBuilder,
    host::manifest::Manifest,
};

/// Between steps: enough of the machine is left to compile.
const PACE: Duration = Duration::from_millis(2);
/// Nodes of a graph that is made.
const NODES: usize = 256;
/// Time in which calls for them are made up.
const MAKING: Duration = Duration::from_secs(1);

/// What a step runs.
struct Work {
    callable: Callable,
    session: Session,
    options: SessionOptions,
    step: CallableOptions,
    feeds: Vec<Tensor>,
    nodes: usize,
}

/// Steps so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// Steps that gave their results.
    pub done: u64,
    /// Steps that failed.
    pub failed: u64,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Option<Arc<Work>>>,
    done: AtomicU64,
    failed: AtomicU64,
    error: Mutex<Option<String>>,
    over: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A runtime with the plugin, and the thread that runs steps.
pub struct Live {
    global: Global,
    args: DevArgs,
    runtime: Runtime,
    /// The build in use.
    current: Option<PathBuf>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Runs steps until it is over.
fn steps(shared: &Shared) {
    let mut fetched = Vec::new();
    while !shared.over.load(Ordering::Acquire) {
        let work = locked(&shared.work).clone();
        if let Some(work) = work {
            match work.callable.run(&work.feeds, &mut fetched) {
                Ok(()) => shared.done.fetch_add(1, Ordering::Relaxed),
                Err(error) => {
                    locked(&shared.error).get_or_insert(error.to_string());
                    shared.failed.fetch_add(1, Ordering::Relaxed)
                }
            };
        }
        thread::sleep(PACE);
    }
}

impl Live {
    /// A runtime without the plugin, and no steps yet.
    ///
    /// # Errors
    /// Settings that are wrong, other plugins that are refused.
    pub fn new(global: &Global, args: &DevArgs) -> Result<Live, CliError> {
        let global = global.clone();
        let (runtime, _) = start_whole(&global, None)?;
        let shared = Arc::new(Shared::default());
        let (args, current) = (args.clone(), None);
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("dev-steps".to_owned()).spawn(move || steps(&own));
        let failed = |source| CliError::File { file: "thread".into(), done: "started", source };
        let thread = Some(thread.map_err(failed)?);
        Ok(Live { global, args, runtime, current, shared, thread })
    }

    /// The build in use.
    pub fn current(&self) -> Option<&PathBuf> {
        self.current.as_ref()
    }

    /// Steps so far, and what the first that failed since the last call said.
    pub fn steps(&self) -> (Steps, Option<String>) {
        let [done, failed] =
            [&self.shared.done, &self.shared.failed].map(|count| count.load(Ordering::Relaxed));
        (Steps { done, failed }, locked(&self.shared.error).take())
    }

    /// Nodes of a step.
    pub fn nodes(&self) -> usize {
        locked(&self.shared.work).as_ref().map_or(0, |work| work.nodes)
    }

    /// The files of other plugins that bring the devices of this one's kernels, and those that the command line
    /// names: what a process apart has to load.
    pub fn others(&self, manifest: &Manifest) -> Vec<PathBuf> {
        let registry = self.runtime.registry();
        let used: BTreeSet<&str> = manifest.kernels.iter().map(|kernel| &*kernel.device).collect();
        let brings = |name: &&str| {
            let def = registry.device_type(name)?;
            let info = registry.plugin(def.plugin)?;
            info.path.clone().filter(|_| info.name != manifest.plugin.name)
        };
        let mut files: Vec<PathBuf> = self.global.plugins.clone();
        files.extend(used.iter().chain(&["CPU"]).filter_map(brings));
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())));
        files
    }

    /// Puts a build in the place of the one before. `same` says that it registers what that one did.
    ///
    /// # Errors
    /// It is refused, or the graph does not fit it; then the old one is in use.
    pub fn take(&mut self, build: &Path, manifest: &Manifest, same: bool) -> Result<(), CliError> {
        let taken = self.try_take(build, manifest, same);
        match (&taken, self.current.clone()) {
            (Ok(()), _) => self.current = Some(build.to_owned()),
            // The session has not left the old snapshot: what is put back is for sessions to come.
            (Err(_), Some(old)) => drop(self.runtime.replace(&old)),
            (Err(_), None) => drop(self.runtime.plugins().retire(&manifest.plugin.name)),
        }
        taken
    }

    fn try_take(&mut self, build: &Path, manifest: &Manifest, same: bool) -> Result<(), CliError> {
        if !manifest.devices.is_empty() {
            return self.begin_anew(build, manifest);
        }
        let name = &manifest.plugin.name;
        let known = |info: &PluginInfo| !info.retired && info.name == *name;
        if self.runtime.registry().plugins().any(known) {
            self.runtime.replace(build)?;
        } else {
            self.runtime.load([build.to_owned()]).into_result()?;
        }
        let work = locked(&self.shared.work).clone();
        if let Some(work) = work.filter(|_| same || self.args.graph.is_some()) {
            // Whatever the graph needs of the new build shows in a step of another session.
            let def = work.session.graph().to_graph_def().map_err(RuntimeError::from)?;
            let trial = Session::new(&self.runtime, work.options.clone())?;
            trial.extend_owned(def)?;
            trial.callable(work.step.clone())?.run(&work.feeds, &mut Vec::new())?;
            return Ok(work.session.refresh()?);
        }
        self.exchange(&self.runtime, name)
    }

    /// Devices are opened when a runtime starts: a plugin that brings some has a new one.
    fn begin_anew(&mut self, build: &Path, manifest: &Manifest) -> Result<(), CliError> {
        let plugins = [build.to_owned()].into_iter().chain(self.global.plugins.iter().cloned());
        let global = Global { plugins: plugins.collect(), json: false, ..self.global.clone() };
        let (runtime, report) = start(&global, None)?;
        crate::start::check_named(&report)?;
        self.exchange(&runtime, &manifest.plugin.name)?;
        self.runtime = runtime;
        Ok(())
    }

    /// Later steps are those of a new session.
    fn exchange(&self, runtime: &Runtime, plugin: &str) -> Result<(), CliError> {
        let work = self.work(runtime, plugin)?;
        // Once, before it takes the old one's place.
        work.callable.run(&work.feeds, &mut Vec::new())?;
        let old = locked(&self.shared.work).replace(Arc::new(work));
        drop(old);
        Ok(())
    }

    fn work(&self, runtime: &Runtime, plugin: &str) -> Result<Work, CliError> {
        match &self.args.graph {
            Some(file) => self.own_graph(runtime, file),
            None => made_graph(runtime, plugin),
        }
    }

    fn own_graph(&self, runtime: &Runtime, file: &Path) -> Result<Work, CliError> {
        let args = &self.args;
        if args.fetches.is_empty() && args.targets.is_empty() {
            return Err(CliError::NothingToRun);
        }
        let options = SessionOptions::default();
        let session = Session::new(runtime, options.clone())?;
        session.extend_owned(read_graph(file)?)?;
        let feeds = read_feeds(&session, &args.feeds)?;
        let nodes = session.graph().nodes().count();
        let step = CallableOptions {
            feeds: feeds.iter().map(|(name, _)| name.clone()).collect(),
            fetches: args.fetches.clone(),
            targets: args.targets.clone(),
            ..CallableOptions::default()
        };
        let callable = session.callable(step.clone())?;
        let feeds = feeds.into_iter().map(|(_, tensor)| tensor).collect();
        Ok(Work { callable, session, options, step, feeds, nodes })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there is no news any more.
            let _ = thread.join();
        }
    }
}

/// A session over a graph with a node for each op, kernel and element type of a plugin, on constants. Ops with state,
/// which may write files, what no call is known of, and what refuses the one that is, are left out.
fn made_graph(runtime: &Runtime, plugin: &str) -> Result<Work, CliError> {
    let registry = runtime.registry();
    let stateful = |kernel: &KernelDef| registry.op(&kernel.op).is_some_and(|op| op.stateful);
    let kernels = registry.kernels().filter(|kernel| *kernel.plugin_name == *plugin);
    let kernels = kernels.filter(|kernel| !stateful(kernel));
    let began = Instant::now();
    let calls: Vec<Known> = kernels
        .take_while(|_| began.elapsed() < MAKING)
        .flat_map(|kernel| calls(&registry, kernel))
        .take(NODES)
        .collect();
    match graph_of(runtime, &calls) {
        Ok(work) if work.runs() => Ok(work),
        _ => graph_of(runtime, &working(runtime, &calls)),
    }
}

/// The calls that run, found by halves: few do not.
fn working(runtime: &Runtime, calls: &[Known]) -> Vec<Known> {
    if graph_of(runtime, calls).is_ok_and(|work| work.runs()) {
        return calls.to_vec();
    }
    if calls.len() < 2 {
        return Vec::new();
    }
    let (left, right) = calls.split_at(calls.len() / 2);
    [working(runtime, left), working(runtime, right)].concat()
}

/// A kernel, and how it is called.
type Known = (Arc<KernelDef>, Call);

fn graph_of(runtime: &Runtime, calls: &[Known]) -> Result<Work, CliError> {
    let registry = runtime.registry();
    let mut step = CallableOptions::default();
    let mut builder = GraphBuilder::new(&registry);
    for (at, (kernel, call)) in calls.iter().enumerate() {
        let name = format!("n{at}");
        match node(runtime, &mut builder, &name, kernel, call)? {
            0 => step.targets.push(name),
            outputs => step.fetches.extend((0..outputs).map(|at| format!("{name}:{at}"))),
        }
    }
    if calls.is_empty() {
        builder.op("NoOp").name("nothing").build().map_err(RuntimeError::from)?;
        step.targets.push("nothing".to_owned());
    }
    let def = builder.finish().to_graph_def().map_err(RuntimeError::from)?;
    let options = SessionOptions { soft_placement: Some(false), ..SessionOptions::as_written() };
    let session = Session::new(runtime, options.clone())?;
    session.extend_owned(def)?;
    let callable = session.callable(step.clone())?;
    Ok(Work { callable, session, options, step, feeds: Vec::new(), nodes: calls.len() })
}

impl Work {
    fn runs(&self) -> bool {
        self.callable.run(&self.feeds, &mut Vec::new()).is_ok()
    }
}

/// The smallest call of a kernel for each of its types.
fn calls(registry: &Registry, kernel: &Arc<KernelDef>) -> Vec<Known> {
    let Some(op) = registry.op(&kernel.op) else { return Vec::new() };
    let types = kernel.constraints.first().map(|constraint| constraint.types.clone());
    let wishes: Vec<Option<DType>> = match types {
        Some(types) if !types.is_empty() => types.into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let smallest = |dtype: Option<DType>| {
        let wish = Wish { dtype, seed: 1, ..Wish::default() };
        let calls = made_up(op, std::slice::from_ref(kernel), &wish).ok()?;
        let elements = |call: &Call| -> i64 {
            call.case.inputs.iter().map(|input| input.dims.iter().product::<i64>()).sum()
        };
        calls.into_iter().min_by_key(elements)
    };
    wishes.into_iter().filter_map(smallest).map(|call| (Arc::clone(kernel), call)).collect()
}

/// Adds the node of a call; how many outputs it has.
fn node(
    runtime: &Runtime,
    builder: &mut GraphBuilder<'_>,
    name: &str,
    kernel: &KernelDef,
    call: &Call,
) -> Result<usize, CliError> {
    let mut inputs = Vec::new();
    for (at, tensor) in call.case.tensors().map_err(BenchError::from)?.into_iter().enumerate() {
        let input = builder.constant(&format!("{name}/x{at}"), tensor);
        inputs.push(input.map_err(RuntimeError::from)?);
    }
    let mut node = builder.op(&call.op.name).name(name).inputs(inputs);
    let devices = runtime.devices().devices();
    if let Some(device) = devices.iter().find(|device| kernel.serves(device.device_type())) {
        node = node.device(device.full_name());
    }
    for (attr, value) in &call.case.attrs {
        node = node.attr(attr, value.clone());
    }
    if !kernel.label.is_empty() {
        node = node.attr("_kernel", kernel.label.as_str());
    }
    node.build().map_err(RuntimeError::from)?;
    let signature = Signature::resolve(&call.op, &call.case.attrs).map_err(BenchError::from)?;
    Ok(signature.outputs.len())
}
