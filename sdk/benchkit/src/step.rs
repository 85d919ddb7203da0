//! Measures whole steps of a graph.
//!
//! ```text
//! graph + feeds ── as written, once ──┐
//!      └── optimised, once ── compared ── sampled ── traced ── record with a profile
//! ```
//!
//! The graph's placeholders get the shapes that they are fed, so that shapes are known throughout. What no node uses is
//! fetched. Before anything is timed, what is fetched is compared with the same graph run as it is written, by the
//! ordinary kernels, and with the expected values that the user gives.

mod judge;
mod profile;

use crate::{
    cost,
    error::BenchError,
    feeds::{GraphWish, expected, feeds, is_fed},
    measure::{Settings, Status, blank, samples},
    record::{
        Case, CostSource, Input, NodeTime, Problem, ProblemKind, Profile, Reached, Record,
        Roofline, Variant, Work, dims_text,
    },
    roofline,
    sampler::{Plan, Series, Traced, interleave_traced},
};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use tenon_framework::{DType, PartialShape, Tensor, device::base::LocalDevice};
use tenon_runtime::{
    Callable, CallableOptions, Runtime, Session, SessionOptions,
    graph::{Graph, NodeId, Output},
    host::devices::PluginDevice,
    proto::{AttrValue, AttrValueKind, GraphDef, convert::shape_to_proto},
};

/// The op of a step's record.
pub const STEP: &str = cost::STEP;

/// A step of a graph.
#[derive(Debug, Clone)]
pub struct Step {
    /// The file of the graph.
    file: PathBuf,
    /// The graph, its placeholders with the shapes that they are fed.
    def: GraphDef,
    options: CallableOptions,
    feeds: Vec<Tensor>,
    /// What the user says is right: place among the fetches, value.
    expected: Vec<(usize, Tensor)>,
    /// A node whose results differ from step to step.
    random: Option<String>,
    /// Value of the sweep's symbol.
    at: Option<i64>,
}

impl Step {
    /// The step of a graph that was read from `file`.
    ///
    /// # Errors
    /// The graph does not fit the registry; feeds or expected values that do not fit the graph; nothing to fetch.
    pub fn new(
        runtime: &Runtime,
        file: &Path,
        def: &GraphDef,
        wish: &GraphWish<'_>,
        at: Option<i64>,
    ) -> Result<Step, BenchError> {
        let session = Session::new(runtime, SessionOptions::as_written())?;
        session.extend(def)?;
        let graph = session.graph();
        let mut fed = feeds(&graph, file, wish)?;
        if wish.pinned {
            for (_, tensor) in &mut fed {
                *tensor = runtime.pinned(tensor)?;
            }
        }
        let wanted = expected(&graph, file, wish)?;
        let mut options = ends(&graph);
        if options.fetches.is_empty() && options.targets.is_empty() {
            let all: Vec<_> = graph.nodes().map(|(id, _)| id).collect();
            graph.check_ops_of(&all, Some(&runtime.registry()))?;
            let problem = "has no node to fetch: every value of it is fed".to_owned();
            return Err(BenchError::Graph { file: file.to_owned(), problem });
        }
        let mut expected = Vec::new();
        for (name, tensor) in wanted {
            let name = graph.output_name(graph.tensor(&name)?);
            let place = options.fetches.iter().position(|known| *known == name);
            let place = place.unwrap_or_else(|| {
                options.fetches.push(name);
                options.fetches.len() - 1
            });
            expected.push((place, tensor));
        }
        options.feeds = fed.iter().map(|(output, _)| graph.output_name(*output)).collect();
        let mut known = graph.nodes().filter(|(_, node)| !node.op.is_missing());
        let random = known.find(|(_, node)| node.op.stateful);
        Ok(Step {
            file: file.to_owned(),
            def: with_shapes(def, &graph, &fed),
            options,
            feeds: fed.into_iter().map(|(_, tensor)| tensor).collect(),
            expected,
            random: random.map(|(_, node)| node.name.clone()),
            at,
        })
    }

    /// The graph, its placeholders with the shapes that they are fed.
    pub fn def(&self) -> &GraphDef {
        &self.def
    }

    /// What it feeds, fetches and runs.
    pub fn options(&self) -> &CallableOptions {
        &self.options
    }

    /// The tensors that it is fed, in the order of its options.
    pub fn feeds(&self) -> &[Tensor] {
        &self.feeds
    }

    /// The feeds, for a reader: `image=1x224x224x3`.
    pub fn size(&self) -> String {
        let input = |input: &Input| format!("{}={}", input.name, dims_text(&input.dims));
        self.case().inputs.iter().map(input).collect::<Vec<_>>().join(" ")
    }

    /// What is measured, as a record has it.
    fn case(&self) -> Case {
        let named = self.options.feeds.iter().zip(&self.feeds);
        let input = |(name, tensor): (&String, &Tensor)| Input {
            name: name.trim_end_matches(":0").to_owned(),
            dtype: tensor.dtype().to_string(),
            dims: tensor.shape().dims().to_vec(),
            constant: false,
        };
        let graph = self.file.file_name().unwrap_or(self.file.as_os_str());
        Case {
            op: STEP.to_owned(),
            attrs: BTreeMap::from([("graph".to_owned(), graph.to_string_lossy().into_owned())]),
            inputs: named.map(input).collect(),
            at: self.at,
            node: None,
            calls: 1,
        }
    }

    fn session(&self, runtime: &Runtime, options: SessionOptions) -> Result<Session, BenchError> {
        let session = Session::new(runtime, options)?;
        session.extend(&self.def)?;
        Ok(session)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.case().fmt(f)
    }
}

/// The fetches and targets of a step: of the nodes that can run, those without readers.
fn ends(graph: &Graph) -> CallableOptions {
    let blocked = graph.blocked();
    let runs = |(id, _): &(NodeId, _)| !blocked.contains_key(id);
    let mut used = vec![false; graph.len()];
    for (_, node) in graph.nodes().filter(runs) {
        let control = node.control_inputs.iter().copied();
        let data = node.inputs.iter().map(|input| input.node);
        data.chain(control).for_each(|id| used[id.index()] = true);
    }
    let mut options = CallableOptions::default();
    let ends = graph.nodes().filter(runs);
    let ends = ends.filter(|(id, node)| !used[id.index()] && !is_fed(node));
    for (id, node) in ends {
        match node.outputs().first() {
            Some(dtype) if !dtype.is_ref() => {
                options.fetches.push(graph.output_name(Output::new(id, 0)));
            }
            _ => options.targets.push(node.name.clone()),
        }
    }
    options
}

/// The graph with the fed placeholders' shapes written down.
fn with_shapes(def: &GraphDef, graph: &Graph, fed: &[(Output, Tensor)]) -> GraphDef {
    let mut def = def.clone();
    for (output, tensor) in fed {
        let name = &graph.node(output.node).name;
        let shape = shape_to_proto(&PartialShape::from(*tensor.shape()));
        let value = AttrValue { value: Some(AttrValueKind::Shape(shape)) };
        if let Some(node) = def.node.iter_mut().find(|node| node.name == *name) {
            node.attr.insert("shape".to_owned(), value);
        }
    }
    def
}

/// The result of a step.
#[derive(Debug, Default)]
pub struct Measured {
    /// The record, with its profile; `None` where nothing was timed.
    pub record: Option<Record>,
    /// What is not believed.
    pub problems: Vec<Problem>,
}

/// Measures a step: its time for the budget, its profile for as long again.
///
/// # Errors
/// A graph that cannot be compiled. A step that fails or is wrong is a problem.
pub fn measure(
    runtime: &Runtime,
    step: &Step,
    settings: &Settings,
    progress: &mut dyn FnMut(Status),
) -> Result<Measured, BenchError> {
    progress(Status::Checking);
    let mut measured = Measured::default();
    let case = step.case();
    let text = case.to_string();
    let mut problem = |kind, message: String| {
        let variant = "session".to_owned();
        measured.problems.push(Problem { kind, case: text.clone(), variant, message });
    };
    let checked = match judge::judge(runtime, step)? {
        judge::Verdict::Right(checked) => Some(checked),
        judge::Verdict::Open(why) => {
            problem(ProblemKind::Unverified, why);
            None
        }
        judge::Verdict::Wrong(kind, why) => {
            problem(kind, why);
            return Ok(measured);
        }
    };
    let session = step.session(runtime, SessionOptions::default())?;
    let callable = session.callable(step.options.clone())?;
    let settling = settling(runtime, &session);
    let series = match time(&callable, step, settings, settling, progress) {
        Ok(series) => series,
        Err(message) => {
            problem(ProblemKind::Failed, message);
            return Ok(measured);
        }
    };
    let profile = profile::profile((runtime, &session), &callable, step, settings.budget)?;
    let work = work(step, &profile);
    measured.record = Some(Record {
        size: step.size(),
        threads: settings.threads,
        checked,
        profile: Some(profile),
        ..blank(case, variant(), "tenon".to_owned(), work, samples(series, settings))
    });
    Ok(measured)
}

/// The session's own code: a step itself has no kernel.
fn variant() -> Variant {
    Variant {
        device: "CPU".to_owned(),
        label: String::new(),
        plugin: "session".to_owned(),
        plugin_version: env!("CARGO_PKG_VERSION").to_owned(),
        digest: String::new(),
        source: String::new(),
        chosen: true,
    }
}

/// Steps beyond those before a recording: the recording itself, and the first that repeat it.
const SETTLING: u64 = 4;
/// Nothing is timed later than this: a step that takes seconds is as it will be.
const LONGEST_SETTLING: Duration = Duration::from_secs(10);

/// Steps that are run before any is timed: where a device records, those until a recording is repeated, which are as
/// dear as a step that is not.
fn settling(runtime: &Runtime, session: &Session) -> u64 {
    let records = |device: &Arc<PluginDevice>| device.replay().is_some();
    let after = session.knobs().int("runtime", "record_after").unwrap_or(-1);
    match u64::try_from(after) {
        Ok(after) if runtime.devices().devices().iter().any(records) => {
            after.saturating_add(SETTLING)
        }
        _ => 0,
    }
}

fn settle(run: &mut dyn FnMut(u64) -> Result<(), String>, steps: u64) -> Result<(), String> {
    let began = Instant::now();
    for _ in 0..steps {
        run(1)?;
        if began.elapsed() > LONGEST_SETTLING {
            break;
        }
    }
    Ok(())
}

fn time(
    callable: &Callable,
    step: &Step,
    settings: &Settings,
    settling: u64,
    progress: &mut dyn FnMut(Status),
) -> Result<Series, String> {
    let mut fetched = Vec::new();
    let mut run = |calls: u64| {
        (0..calls).try_for_each(|_| {
            callable.run(&step.feeds, &mut fetched).map_err(|error| error.to_string())
        })
    };
    settle(&mut run, settling)?;
    let plan = Plan { budget: settings.budget, seed: settings.seed, ..Plan::default() };
    let traced = settings.trace.map(|trace| Traced { trace, names: vec![step.to_string()] });
    let mut told = |share| progress(Status::Timing(share));
    let taken = interleave_traced(&mut [&mut run], &plan, traced.as_ref(), &mut told);
    let mut series = taken.map_err(|failed| failed.message)?;
    series.pop().ok_or_else(|| "gave no samples".to_owned())
}

/// Operations of all nodes; bytes are those of feeds and constants.
fn work(step: &Step, profile: &Profile) -> Work {
    let is_product = |node: &NodeTime, work: &Work| {
        cost::is_compute(&node.op) || work.source == CostSource::DeclaredProducts
    };
    let of_products = |node: &NodeTime| node.work.filter(|work| is_product(node, work))?.flops;
    let flops: f64 = profile.nodes.iter().filter_map(of_products).sum();
    let fed: usize = step.feeds.iter().map(Tensor::byte_len).sum();
    let constants: u64 = profile.memory.iter().map(|memory| memory.constants).sum();
    Work {
        flops: (flops > 0.0).then_some(flops),
        read: fed as f64 + constants as f64,
        written: 0.0,
        source: CostSource::Op,
    }
}

/// Fills what follows from the nodes' times; how far the whole step is from the time that it would take if every node
/// ran at its limit.
pub(crate) fn derive(
    profile: &mut Profile,
    limits: Option<&Roofline>,
    median: f64,
) -> Option<Reached> {
    for node in &mut profile.nodes {
        let Some(work) = &node.work else { continue };
        let dtype = DType::from_name(&node.dtype).unwrap_or(DType::INVALID);
        let (amount, unit) = cost::rate(&node.op, dtype, work);
        (node.rate, node.unit) = (amount / node.ns, unit.to_owned());
        let by_flops = unit.ends_with("OP/s");
        let on_host = node.device.contains("CPU");
        node.reached = limits
            .filter(|_| on_host)
            .and_then(|limits| roofline::reached(limits, work, dtype, by_flops, node.ns));
    }
    let at_limit =
        |node: &NodeTime| node.reached.as_ref().map_or(0.0, |reached| node.ns * reached.fraction);
    let least: f64 = profile.nodes.iter().map(at_limit).sum();
    let fraction = least / median;
    (least > 0.0).then(|| Reached {
        intensity: None,
        bound: "all nodes".to_owned(),
        roof: 0.0,
        fraction,
        impossible: fraction > 1.0,
    })
}
