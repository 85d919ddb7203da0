//! A plugin is replaced by another build of itself, and retired, while its kernels exist and sessions use
//! them.

use super::{
    Examiner,
    choice::Chosen,
    judge::{Likeness, alike, is_opaque},
    plain::said,
    site::Site,
    verdicts::Verdicts,
};
use crate::{
    check::{case::CheckCase, clause::Clause, progress::Progress, subject::Subject},
    harness::Form,
    node::{Refusal, Stage},
};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tenon_framework::{
    PartialShape, Tensor,
    knob::KnobOrigin,
    registry::{KernelDef, PluginId, PluginInfo, Registry, RegistryEvent},
};
use tenon_runtime::{
    RunOptions, Runtime, RuntimeOptions, Session, SessionOptions,
    graph::{GraphBuilder, GraphError},
    host::{
        Settings,
        instance::{KernelInstance, call_once},
        memory::HostMemory,
    },
};

/// Kernels that are called before, between and after.
const KERNELS: usize = 4;
/// Calls by which a kernel is chosen whose results do not vary.
const STEADY: usize = 8;
/// Calls that say whether results that differ vary with nothing changed, and how long they take at most.
const MANY: usize = 1000;
const TIME: Duration = Duration::from_millis(500);

/// Judges the life of the plugin of this name, which `runtime` has from a file: it is loaded, replaced and
/// retired in a separate runtime. The cases are accepted ones of its kernels, of which a few are taken.
/// The copy of the file that replaces it is written to `folder`.
pub fn examine_plugin(
    runtime: &Runtime,
    plugin: &str,
    cases: &[(Subject, CheckCase)],
    folder: &Path,
    progress: &mut dyn Progress,
) {
    let clause = Clause::Lifecycle;
    let mut verdicts = Verdicts::new(progress, plugin);
    verdicts.begin(clause);
    let registry = runtime.registry();
    let info = registry.plugins().find(|info| !info.retired && info.name == plugin);
    let Some(file) = info.and_then(|info| info.path.clone()) else {
        return verdicts.skip(clause, "the plugin is linked into the host: there is no file");
    };
    let before = HostMemory::shared().stats();
    let result = another_build(&file, folder)
        .map_err(Wrong::Else)
        .and_then(|build| life(runtime, plugin, cases, &build, &mut verdicts));
    let after = HostMemory::shared().stats();
    let result = match result {
        Err(Wrong::Varies(problem)) => {
            verdicts.fail(Clause::Repeatable, problem);
            let reason = "a kernel's results differ without that (see repeatable)";
            return verdicts.skip(clause, reason);
        }
        Err(Wrong::Else(problem)) => Err(problem),
        Ok(()) => Ok(()),
    };
    let result = result.and_then(|()| match after.live_count <= before.live_count {
        true => Ok(()),
        false => Err(format!(
            "host memory after everything is destroyed: expected {} bytes in {} buffers, found {} in {}",
            before.live_bytes, before.live_count, after.live_bytes, after.live_count
        )),
    });
    verdicts.conclude(clause, result);
}

/// A copy of the file that is the same library under another digest: the loader reads what the headers name,
/// and nothing names the cause of the end.
fn another_build(file: &Path, folder: &Path) -> Result<PathBuf, String> {
    let name = file.file_name().ok_or("the plugin's file has no name")?;
    let copy = folder.join(name);
    let told = |error: std::io::Error| format!("{}: {error}", copy.display());
    let mut bytes = fs::read(file).map_err(told)?;
    bytes.extend(b"another build");
    fs::write(&copy, bytes).map_err(told)?;
    Ok(copy)
}

/// The same plugins in a separate runtime, with the same knobs.
fn own_runtime(runtime: &Runtime) -> Result<Runtime, String> {
    let registry = runtime.registry();
    let files: Vec<PathBuf> = registry
        .plugins()
        .filter(|info| !info.retired)
        .filter_map(|info| info.path.clone())
        .collect();
    let knobs = runtime.plugins().knobs();
    // A default that is set is not always the same: a list of digests that is set and empty lets nothing in.
    let set = knobs.iter().filter(|setting| setting.origin != KnobOrigin::Default);
    let set = set.map(|setting| (setting.def.full_name(), setting.value.to_string()));
    let options = RuntimeOptions {
        threads: Some(runtime.pool().threads()),
        settings: Settings { set: set.collect(), ..Settings::default() },
        ..RuntimeOptions::with_plugins(files)
    };
    let (own, report) = Runtime::new(options).map_err(|error| error.to_string())?;
    report.into_result().map_err(|error| format!("loaded again: {error}"))?;
    Ok(own)
}

fn life(
    runtime: &Runtime,
    plugin: &str,
    cases: &[(Subject, CheckCase)],
    build: &Path,
    verdicts: &mut Verdicts<'_>,
) -> Result<(), Wrong> {
    let own = own_runtime(runtime)?;
    let told = Arc::new(Told::default());
    let counted = Arc::clone(&told);
    let _subscription = own.plugins().subscribe(move |event| counted.count(event));
    let old = active(&own, plugin)?;
    let kernels = kernels_of(&own.registry(), old.id);
    let used = used(&own, old.id, cases);
    verdicts.begin(Clause::Lifecycle);
    let sessions: Vec<Option<Session>> = used.iter().map(|used| session(&own, used).ok()).collect();
    still_good(&used, &sessions, "before anything changed, a kernel")?;

    own.replace(build).map_err(|error| format!("replacing it by a copy of itself: {error}"))?;
    // Devices of the old build go, those of the new one come.
    own.load(None::<&Path>);
    told.expect(&told.replaced, "PluginReplaced", "it was replaced")?;
    let new = active(&own, plugin)?;
    same_registrations(&own.registry(), old.id, new.id, kernels)?;
    still_good(&used, &sessions, "after the plugin was replaced, a kernel of the old build")?;
    let fresh = renewed(&own, new.id, &used)?;
    refreshed(&sessions, &used)?;
    // The old states go while the new ones are in use.
    let firsts: Vec<Vec<Tensor>> = used.iter().map(|used| used.first.clone()).collect();
    drop(used);
    call_all(
        &fresh,
        &firsts,
        "after the old build's kernels were destroyed, one of the new build",
    )?;

    own.plugins().retire(plugin).map_err(|error| format!("retiring it: {error}"))?;
    own.load(None::<&Path>);
    told.expect(&told.retired, "PluginRetired", "it was retired")?;
    if own.registry().kernels().any(|kernel| kernel.plugin == new.id) {
        return Err("retired, it still has kernels in the registry".to_owned().into());
    }
    call_all(&fresh, &firsts, "after the plugin was retired, a kernel that exists")
}

/// What is wrong in the life of a plugin.
enum Wrong {
    /// Results vary from call to call with nothing changed: that is the kernel's, and no matter of its plugin's life.
    Varies(String),
    /// Whatever else.
    Else(String),
}

impl Wrong {
    /// The same, and where it is.
    fn at(self, place: impl Fn(String) -> String) -> Wrong {
        match self {
            Wrong::Varies(problem) => Wrong::Varies(problem),
            Wrong::Else(problem) => Wrong::Else(place(problem)),
        }
    }
}

impl From<String> for Wrong {
    fn from(problem: String) -> Wrong {
        Wrong::Else(problem)
    }
}

/// Events that a subscriber gets.
#[derive(Default)]
struct Told {
    replaced: AtomicU32,
    retired: AtomicU32,
}

impl Told {
    fn count(&self, event: &RegistryEvent) {
        let counter = match event {
            RegistryEvent::PluginReplaced { .. } => &self.replaced,
            RegistryEvent::PluginRetired { .. } => &self.retired,
            _ => return,
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }

    fn expect(&self, counter: &AtomicU32, event: &str, when: &str) -> Result<(), String> {
        match counter.load(Ordering::SeqCst) {
            1 => Ok(()),
            count => Err(format!("{when}: subscribers were told {event} {count} times")),
        }
    }
}

fn active(runtime: &Runtime, plugin: &str) -> Result<PluginInfo, String> {
    let registry = runtime.registry();
    let info = registry.plugins().find(|info| !info.retired && info.name == plugin);
    info.cloned().ok_or_else(|| format!("there is no active plugin {plugin}"))
}

/// A kernel in use: its state, and what it gives.
struct Used {
    subject: Subject,
    chosen: Chosen,
    examiner: Examiner,
    instance: KernelInstance,
    first: Vec<Tensor>,
}

impl Used {
    fn call(&self) -> Result<Vec<Tensor>, String> {
        call(&Site::new(&self.examiner, &self.subject), &self.instance, &self.chosen)
    }

    /// How results differ among this many calls with nothing changed, fewer where they take longer than this.
    fn varies(&self, calls: usize, time: Duration) -> Option<String> {
        let begin = Instant::now();
        let first = self.call().ok()?;
        for call in 1..calls {
            if begin.elapsed() > time {
                break;
            }
            let problem = same(&self.subject, &first, &self.call().ok()?).err();
            if let Some(problem) = problem {
                let subject = &self.subject;
                return Some(format!(
                    "{subject}: the same call again and again: call {call}: {problem}"
                ));
            }
        }
        None
    }

    /// Whether results are those of before; where they are not, whether that is so with nothing changed too.
    fn like(&self, first: &[Tensor], now: &[Tensor]) -> Result<(), Wrong> {
        let Err(problem) = same(&self.subject, first, now) else { return Ok(()) };
        match self.varies(MANY, TIME) {
            Some(varies) => Err(Wrong::Varies(varies)),
            None => Err(Wrong::Else(problem)),
        }
    }

    /// Whether a call gives what it gave before.
    fn goes_on(&self, first: &[Tensor], when: &str) -> Result<(), Wrong> {
        let told = |problem| format!("{when}: {}: {problem}", self.subject);
        let now = self.call().map_err(told)?;
        self.like(first, &now).map_err(|wrong| wrong.at(told))
    }
}

fn call(
    site: &Site<'_>,
    instance: &KernelInstance,
    chosen: &Chosen,
) -> Result<Vec<Tensor>, String> {
    call_once(instance, &chosen.inputs, &site.env())
        .map_err(|error| said(&Refusal::at(Stage::Compute)(error)))
}

/// The same kernel in another registry, of this plugin.
fn kernel_like(
    registry: &Registry,
    plugin: PluginId,
    kernel: &KernelDef,
) -> Option<Arc<KernelDef>> {
    let alike = |other: &&Arc<KernelDef>| {
        other.plugin == plugin
            && other.device_type == kernel.device_type
            && other.label == kernel.label
            && other.source == kernel.source
            && other.constraints == kernel.constraints
    };
    registry.kernels_of(&kernel.op).iter().find(alike).cloned()
}

/// A state of the kernel of a subject, as this runtime has it.
fn made(
    runtime: &Runtime,
    plugin: PluginId,
    subject: &Subject,
    chosen: &Chosen,
) -> Option<(Subject, Examiner, KernelInstance)> {
    let registry = runtime.registry();
    let kernel = kernel_like(&registry, plugin, &subject.kernel)?;
    let op = Arc::clone(registry.op(&kernel.op)?);
    let examiner = Examiner::new(runtime, &kernel.device_type).ok()?;
    let subject = Subject { op, kernel, types: subject.types.clone() };
    let instance = {
        let site = Site::new(&examiner, &subject);
        site.is_suited().ok()?;
        let node = site.node(&chosen.case, &chosen.inputs, Form::Shapes).ok()?;
        site.instance(&node, Form::Shapes).ok()?
    };
    Some((subject, examiner, instance))
}

/// Kernels of different ops that take their cases, without state.
fn used(runtime: &Runtime, plugin: PluginId, cases: &[(Subject, CheckCase)]) -> Vec<Used> {
    let mut used: Vec<Used> = Vec::new();
    for (subject, case) in cases {
        let is_new = used.iter().all(|other| other.subject.op.name != subject.op.name);
        if used.len() == KERNELS || !is_new || subject.op.stateful {
            continue;
        }
        let Some(chosen) = Chosen::new(case) else { continue };
        let made = made(runtime, plugin, subject, &chosen);
        let Some((subject, examiner, instance)) = made else { continue };
        let first = call(&Site::new(&examiner, &subject), &instance, &chosen);
        let Ok(first) = first else { continue };
        let one = Used { subject, chosen, examiner, instance, first };
        // What varies from call to call is told of the kernel itself, and tells nothing here.
        if one.varies(STEADY, Duration::MAX).is_none() {
            used.push(one);
        }
    }
    used
}

/// The same kernels of the new build, each with a state.
fn renewed(runtime: &Runtime, plugin: PluginId, used: &[Used]) -> Result<Vec<Used>, Wrong> {
    used.iter()
        .map(|old| {
            let chosen = Chosen::new(&old.chosen.case)
                .ok_or_else(|| "the inputs cannot be made again".to_owned())?;
            let made = made(runtime, plugin, &old.subject, &chosen);
            let (subject, examiner, instance) = made.ok_or_else(|| {
                format!("after the plugin was replaced, {} cannot be made", old.subject)
            })?;
            let site = Site::new(&examiner, &subject);
            let first = call(&site, &instance, &chosen)
                .map_err(|problem| format!("{subject} of the new build: {problem}"))?;
            let new = Used { subject, chosen, examiner, instance, first };
            let told = |problem| format!("{} of the new build: {problem}", new.subject);
            new.like(&old.first, &new.first).map_err(|wrong| wrong.at(told))?;
            Ok(new)
        })
        .collect()
}

fn same(subject: &Subject, first: &[Tensor], now: &[Tensor]) -> Result<(), String> {
    let likeness = Likeness::of(&subject.kernel, false);
    alike(&subject.kernel, likeness, first, now)
        .map_err(|problem| format!("other results than before: {problem}"))
}

fn call_all(used: &[Used], firsts: &[Vec<Tensor>], when: &str) -> Result<(), Wrong> {
    used.iter().zip(firsts).try_for_each(|(used, first)| used.goes_on(first, when))
}

/// A session with one node of the kernel's op, fed with the case's inputs.
fn session(runtime: &Runtime, used: &Used) -> Result<Session, String> {
    let registry = runtime.registry();
    let mut builder = GraphBuilder::new(&registry);
    build(&mut builder, used).map_err(|error| error.to_string())?;
    let def = builder.finish().to_graph_def().map_err(|error| error.to_string())?;
    let session = Session::new(runtime, SessionOptions::as_written());
    let session = session.map_err(|error| error.to_string())?;
    session.extend(&def).map_err(|error| error.to_string())?;
    step(&session, used)?;
    Ok(session)
}

fn build(builder: &mut GraphBuilder<'_>, used: &Used) -> Result<(), GraphError> {
    let (case, kernel) = (&used.chosen.case, &used.subject.kernel);
    let mut inputs = Vec::new();
    for (at, tensor) in used.chosen.inputs.iter().enumerate() {
        let is_constant = case.inputs.get(at).is_some_and(|input| input.constant);
        inputs.push(match is_constant {
            true => builder.constant(&format!("in{at}"), tensor.clone())?,
            false => {
                let shape = PartialShape::from(*tensor.shape());
                builder.placeholder(&format!("in{at}"), tensor.dtype(), shape)?
            }
        });
    }
    let device = format!("/device:{}:0", kernel.device_type);
    let mut node = builder.op(&used.subject.op.name).name("node").inputs(inputs).device(&device);
    for (name, value) in &case.attrs {
        node = node.attr(name, value.clone());
    }
    if !kernel.label.is_empty() {
        node = node.attr("_kernel", kernel.label.as_str());
    }
    node.build().map(|_| ())
}

fn step(session: &Session, used: &Used) -> Result<Vec<Tensor>, String> {
    let names: Vec<String> = (0..used.chosen.inputs.len()).map(|at| format!("in{at}")).collect();
    let is_fed = |at: usize| !used.chosen.case.inputs.get(at).is_some_and(|input| input.constant);
    let feeds: Vec<(&str, Tensor)> = names
        .iter()
        .zip(&used.chosen.inputs)
        .enumerate()
        .filter(|(at, _)| is_fed(*at))
        .map(|(_, (name, tensor))| (name.as_str(), tensor.clone()))
        .collect();
    let outputs: Vec<String> = (0..used.first.len()).map(|at| format!("node:{at}")).collect();
    if used.first.iter().any(|output| is_opaque(output.dtype())) {
        return Err("outputs that cannot be fetched".to_owned());
    }
    let fetches: Vec<&str> = outputs.iter().map(String::as_str).collect();
    let run = session.run(&feeds, &fetches, &[], &RunOptions::default());
    run.map(|(fetched, _)| fetched).map_err(|error| error.to_string())
}

/// States and sessions that exist go on as before.
fn still_good(used: &[Used], sessions: &[Option<Session>], when: &str) -> Result<(), Wrong> {
    for (used, session) in used.iter().zip(sessions) {
        used.goes_on(&used.first, when)?;
        let Some(session) = session else { continue };
        step(session, used)
            .map_err(|problem| format!("{when}, in a session: {}: {problem}", used.subject))?;
    }
    Ok(())
}

/// Sessions take the new build and go on.
fn refreshed(sessions: &[Option<Session>], used: &[Used]) -> Result<(), String> {
    for (session, used) in sessions.iter().zip(used) {
        let Some(session) = session else { continue };
        let told = |what: &str, problem: String| {
            format!("after the plugin was replaced, {what}: {}: {problem}", used.subject)
        };
        session.refresh().map_err(|error| told("a session's refresh", error.to_string()))?;
        step(session, used).map_err(|problem| told("a refreshed session", problem))?;
    }
    Ok(())
}

/// The copy registers what the original registered, and nothing of that is left.
fn same_registrations(
    registry: &Registry,
    old: PluginId,
    new: PluginId,
    before: usize,
) -> Result<(), String> {
    match (kernels_of(registry, old), kernels_of(registry, new)) {
        (0, after) if after == before => Ok(()),
        (0, after) => {
            Err(format!("it had {before} kernels, replaced by a copy of itself it has {after}"))
        }
        (left, _) => {
            Err(format!("replaced, the old build still has {left} kernels in the registry"))
        }
    }
}

fn kernels_of(registry: &Registry, plugin: PluginId) -> usize {
    registry.kernels().filter(|kernel| kernel.plugin == plugin).count()
}
