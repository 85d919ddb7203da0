//! `tenon run`: a graph or a signature of a model, from files to files.

mod args;
mod model;

pub use args::{ABOUT, EXAMPLE, RunArgs};

use crate::{
    args::Global,
    error::CliError,
    output::{count, print, print_json, short_device, time},
    profiler,
    progress::progress,
    start::{read_graph, start_whole, warn_of_ignored},
    table::Table,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};
use tenon_runtime::{
    CallableOptions, Metadata, RunOptions, Runtime, Session, SessionOptions,
    costs::MeasuredCosts,
    framework::{DType, Tensor, device::base::DeviceBase, tensor::TensorError},
    host::{call::TraceSink, files::write_whole},
    trace::ChromeTrace,
};
use tenon_testkit::npy;

/// What the steps gave.
struct Outcome {
    fetched: Vec<Tensor>,
    metadata: Metadata,
    /// Nanoseconds of each step, sorted.
    times: Vec<u64>,
}

/// What the steps run: a session that is ready, and the tensors of a step.
struct Work {
    session: Arc<Session>,
    feeds: Vec<(String, Tensor)>,
    fetches: Vec<String>,
    targets: Vec<String>,
    /// What the user calls each fetch.
    shown: Vec<String>,
}

/// Runs a graph, or a signature of a model.
///
/// # Errors
/// Files that cannot be read or written, a graph, a model or feeds that are wrong, a step that fails.
pub fn run(global: &Global, args: &RunArgs) -> Result<(), CliError> {
    let is_model = args.graph.is_dir();
    if is_model {
        model::check(args)?;
    } else {
        check(args)?;
    }
    let (runtime, _) = start_whole(global, args.threads.map(Into::into))?;
    let work = if is_model { model::open(&runtime, args)? } else { open(&runtime, args)? };
    let files = output_files(&work.shown, args.out.as_deref())?;
    for target in &args.init {
        work.session.run(&[], &[], &[target], &RunOptions::default())?;
    }
    let outcome = steps(&work, args)?;
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).map_err(not_written(folder))?;
    }
    for (tensor, file) in outcome.fetched.iter().zip(&files) {
        if let Some(file) = file {
            npy::write(file, tensor)?;
        }
    }
    if global.json {
        print_json(&to_json(&work.shown, &files, &outcome))
    } else {
        print(&to_text(args, &work.shown, &files, &outcome))
    }
}

/// Fails where options make no sense for a graph.
fn check(args: &RunArgs) -> Result<(), CliError> {
    let for_models = [("--signature", args.signature.is_some()), ("--tags", !args.tags.is_empty())];
    if let Some((option, _)) = for_models.into_iter().find(|(_, given)| *given) {
        let (file, expected) = (args.graph.clone(), "the folder of a SavedModel");
        return Err(CliError::OptionOf { option, file, expected });
    }
    if args.fetches.is_empty() && args.targets.is_empty() {
        return Err(CliError::NothingToRun);
    }
    output_files(&args.fetches, args.out.as_deref()).map(drop)
}

/// Opens a graph.
fn open(runtime: &Runtime, args: &RunArgs) -> Result<Work, CliError> {
    let options = SessionOptions { device: args.device.clone(), ..SessionOptions::default() };
    let session = Session::new(runtime, options)?;
    session.extend_owned(read_graph(&args.graph)?)?;
    warn_of_ignored(&session);
    let feeds = read_feeds(&session, &args.feeds)?;
    let session =
        if args.place_by_cost { by_cost(runtime, session, args, &feeds)? } else { session };
    Ok(Work {
        session: Arc::new(session),
        feeds,
        fetches: args.fetches.clone(),
        targets: args.targets.clone(),
        shown: args.fetches.clone(),
    })
}

/// A session of the same graph, which places nodes by what the step costs on each type of device.
fn by_cost(
    runtime: &Runtime,
    session: Session,
    args: &RunArgs,
    feeds: &[(String, Tensor)],
) -> Result<Session, CliError> {
    let graph = session.graph();
    let mut types = BTreeSet::new();
    let devices = runtime.devices().devices();
    let devices: Vec<&str> = devices
        .iter()
        .filter(|device| types.insert(device.device_type().to_owned()))
        .map(|device| device.full_name())
        .collect();
    let init: Vec<&str> = args.init.iter().map(String::as_str).collect();
    let tensors: Vec<Tensor> = feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
    let step = step(feeds, &args.fetches, &args.targets);
    let costs = MeasuredCosts::measure(runtime, &graph, &init, &step, &tensors, &devices)?;
    let options = SessionOptions { costs: Some(costs), ..SessionOptions::default() };
    let session = Session::new(runtime, options)?;
    session.extend_graph(&graph)?;
    Ok(session)
}

/// The signature of the steps.
fn step(feeds: &[(String, Tensor)], fetches: &[String], targets: &[String]) -> CallableOptions {
    CallableOptions {
        feeds: feeds.iter().map(|(name, _)| name.clone()).collect(),
        fetches: fetches.to_vec(),
        targets: targets.to_vec(),
        ..CallableOptions::default()
    }
}

fn not_written(file: &Path) -> impl FnOnce(io::Error) -> CliError {
    let file = file.to_owned();
    move |source| CliError::File { file, done: "written", source }
}

/// Where each fetch is written to.
fn output_files(
    fetches: &[String],
    folder: Option<&Path>,
) -> Result<Vec<Option<PathBuf>>, CliError> {
    let Some(folder) = folder else { return Ok(vec![None; fetches.len()]) };
    let mut names: BTreeMap<String, &String> = BTreeMap::new();
    let mut files = Vec::with_capacity(fetches.len());
    for fetch in fetches {
        let name = format!("{}.npy", fetch.replace(['/', ':'], "_"));
        if let Some(first) = names.insert(name.clone(), fetch).filter(|first| *first != fetch) {
            let (first, second) = (first.clone(), fetch.clone());
            return Err(CliError::SameFile { first, second, file: name });
        }
        files.push(Some(folder.join(name)));
    }
    Ok(files)
}

/// The arrays to feed, each as the type that the graph has there.
///
/// # Errors
/// A file that cannot be read, or is not an array.
pub fn read_feeds(
    session: &Session,
    feeds: &[(String, PathBuf)],
) -> Result<Vec<(String, Tensor)>, CliError> {
    let graph = session.graph();
    let read = |(name, file): &(String, PathBuf)| {
        // A name that the graph has not is the session's to report.
        let dtype = graph.tensor(name).ok().map(|output| graph.dtype(output).base());
        Ok((name.clone(), npy::read(file, dtype)?))
    };
    feeds.iter().map(read).collect()
}

/// Runs the steps. The first one compiles, which its time leaves out.
fn steps(work: &Work, args: &RunArgs) -> Result<Outcome, CliError> {
    let Work { session, feeds, .. } = work;
    let total = args.repeat.get();
    let trace = args.trace.as_ref().map(|_| Arc::new(ChromeTrace::new()));
    let ranges = profiler::attached();
    let options_of = |step: usize| {
        let own = trace.clone().filter(|_| step == total).map(|trace| trace as Arc<dyn TraceSink>);
        RunOptions { trace: profiler::trace(ranges, own), ..RunOptions::default() }
    };
    let named: Vec<(&str, Tensor)> =
        feeds.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let fetches: Vec<&str> = work.fetches.iter().map(String::as_str).collect();
    let targets: Vec<&str> = work.targets.iter().map(String::as_str).collect();
    let began = Instant::now();
    let run = || session.run(&named, &fetches, &targets, &options_of(1));
    let (mut fetched, metadata) = profiler::in_step(ranges, 1, run)?;
    let first = elapsed_ns(began).saturating_sub(metadata.compile_ns);
    let callable = session.callable(step(feeds, &work.fetches, &work.targets))?;
    let tensors: Vec<Tensor> = feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
    let mut times = vec![first];
    let bar = (total > 1).then(|| progress(total as u64, "steps"));
    for number in 2..=total {
        let options = options_of(number);
        let taken = profiler::in_step(ranges, number, || {
            let began = Instant::now();
            callable.run_with(&tensors, &mut fetched, &options).map(|_| elapsed_ns(began))
        });
        times.push(taken?);
        bar.iter().for_each(|bar| bar.inc(1));
    }
    bar.iter().for_each(|bar| bar.finish_and_clear());
    times.sort_unstable();
    if let (Some(file), Some(trace)) = (&args.trace, &trace) {
        trace.describe(&callable.nodes()?);
        write_whole(file, |out| trace.write(out)).map_err(not_written(file))?;
    }
    Ok(Outcome { fetched, metadata, times })
}

fn elapsed_ns(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The middle of sorted figures, or the mean of the two there.
pub fn median(sorted: &[u64]) -> u64 {
    let middle = sorted.len() / 2;
    match sorted {
        [] => 0,
        _ if sorted.len() % 2 == 1 => sorted[middle],
        _ => sorted[middle - 1].midpoint(sorted[middle]),
    }
}

fn nodes_per_device(metadata: &Metadata) -> BTreeMap<&str, usize> {
    let mut nodes = BTreeMap::new();
    for node in metadata.nodes.iter() {
        *nodes.entry(node.device.as_str()).or_default() += 1;
    }
    nodes
}

fn to_json(shown: &[String], files: &[Option<PathBuf>], outcome: &Outcome) -> Value {
    let fetch = |((name, tensor), file): ((&String, &Tensor), &Option<PathBuf>)| {
        json!({
            "name": name,
            "dtype": tensor.dtype().to_string(),
            "shape": tensor.shape().dims(),
            "file": file.as_ref().map(|file| file.display().to_string()),
        })
    };
    let fetches: Vec<Value> = shown.iter().zip(&outcome.fetched).zip(files).map(fetch).collect();
    json!({
        "fetches": fetches,
        "steps": outcome.times.len(),
        "compile_ns": outcome.metadata.compile_ns,
        "median_ns": median(&outcome.times),
        "min_ns": outcome.times.first(),
        "max_ns": outcome.times.last(),
        "nodes": nodes_per_device(&outcome.metadata),
    })
}

fn to_text(
    args: &RunArgs,
    shown: &[String],
    files: &[Option<PathBuf>],
    outcome: &Outcome,
) -> String {
    let mut table = Table::new(["fetch", "type", "shape", "file", "first values"]);
    for ((name, tensor), file) in shown.iter().zip(&outcome.fetched).zip(files) {
        table.row([
            name.clone(),
            tensor.dtype().to_string(),
            tensor.shape().to_string(),
            file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
            if file.is_none() { preview(tensor) } else { String::new() },
        ]);
    }
    let figure = |ns: u64| time(ns as f64);
    let times = &outcome.times;
    let mut text = if table.is_empty() { String::new() } else { format!("{}\n", table.render(0)) };
    text.push_str(&format!("compiled in {}; ", figure(outcome.metadata.compile_ns)));
    match times.as_slice() {
        [only] => text.push_str(&format!("1 step in {}\n", figure(*only))),
        _ => text.push_str(&format!(
            "{} steps: median {}, shortest {}, longest {}\n",
            times.len(),
            figure(median(times)),
            figure(times.first().copied().unwrap_or(0)),
            figure(times.last().copied().unwrap_or(0)),
        )),
    }
    let nodes: Vec<String> = nodes_per_device(&outcome.metadata)
        .into_iter()
        .map(|(device, nodes)| format!("{} on {}", count(nodes, "node"), short_device(device)))
        .collect();
    text.push_str(&format!("{}\n", nodes.join(", ")));
    if let Some(file) = &args.trace {
        text.push_str(&format!("trace of the last step: {}\n", file.display()));
    }
    text
}

/// Values that a preview shows.
const SHOWN: usize = 5;

/// The first values of a tensor as text.
pub fn preview(tensor: &Tensor) -> String {
    let values = values(tensor).unwrap_or_default();
    let more = if tensor.elements() > values.len() { " ..." } else { "" };
    format!("{}{more}", values.join(" "))
}

fn values(tensor: &Tensor) -> Result<Vec<String>, TensorError> {
    macro_rules! shown {
        ($ty:ty) => {
            tensor.as_slice::<$ty>()?.iter().take(SHOWN).map(|value| value.to_string()).collect()
        };
    }
    Ok(match tensor.dtype() {
        DType::BOOL => shown!(bool),
        DType::INT8 => shown!(i8),
        DType::INT16 => shown!(i16),
        DType::INT32 => shown!(i32),
        DType::INT64 => shown!(i64),
        DType::UINT8 => shown!(u8),
        DType::UINT16 => shown!(u16),
        DType::UINT32 => shown!(u32),
        DType::UINT64 => shown!(u64),
        DType::FLOAT => shown!(f32),
        DType::DOUBLE => shown!(f64),
        DType::STRING => {
            let strings = tensor.as_strings()?;
            let text = |value: &&[u8]| format!("{:?}", String::from_utf8_lossy(value));
            strings.iter().take(SHOWN).map(text).collect()
        }
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_fetches_as_given() {
        let fetches = ["a/b:1".to_owned(), "c".to_owned(), "c".to_owned()];
        let files = output_files(&fetches, Some(Path::new("out"))).unwrap();
        let expected = ["out/a_b_1.npy", "out/c.npy", "out/c.npy"].map(|f| Some(PathBuf::from(f)));
        assert_eq!(files, expected);
        let error = output_files(&["a/b".into(), "a_b".into()], Some(Path::new("out")));
        assert!(matches!(error, Err(CliError::SameFile { .. })));
        assert_eq!(output_files(&fetches, None).unwrap(), [None, None, None]);
    }

    #[test]
    fn a_median_of_two_is_their_mean() {
        assert_eq!((median(&[]), median(&[7]), median(&[1, 2, 9])), (0, 7, 2));
        assert_eq!((median(&[2, 4]), median(&[u64::MAX, u64::MAX])), (3, u64::MAX));
    }

    #[test]
    fn a_preview_shows_the_first_values_of_what_has_some() {
        let tensor = Tensor::from_slice(&[7], &[1i32, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!(preview(&tensor), "1 2 3 4 5 ...");
        let tensor = Tensor::from_strings(&[1], &["a\n"]).unwrap();
        assert_eq!(preview(&tensor), "\"a\\n\"");
    }
}
