//! From the command line to what is measured, and where.

use super::{BenchArgs, read_records};
use crate::{args::Global, error::CliError, profiler, start::start_whole};
use std::{
    env,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};
use tenon_benchkit::{
    BenchError,
    calls::Wish,
    compare::Against,
    measure::{Settings, longest},
    record::Report,
    run::Options,
    variants::{Filter, Host, brought},
    wanted::Target,
};
use tenon_runtime::Runtime;

/// What `--vs` names.
pub enum Vs {
    /// Nothing: the variant that the policy chooses is the base.
    Chosen,
    /// A label.
    Label,
    /// Another plugin's file.
    Plugin,
    /// Records of an earlier run.
    Records(Box<Report>),
}

/// What is measured, and where.
pub struct Plan {
    /// Runtimes, the one of the command line first.
    pub hosts: Vec<Host>,
    /// What is measured.
    pub options: Options,
    /// What it is compared with.
    pub vs: Vs,
}

impl Plan {
    /// Starts the runtimes.
    ///
    /// # Errors
    /// Targets that are not there, plugins that are refused, records that cannot be read.
    pub fn new(global: &Global, args: &BenchArgs, threads: NonZeroUsize) -> Result<Plan, CliError> {
        let targets = args.targets.iter().map(|text| Target::parse(text));
        let targets: Vec<Target> = targets.collect::<Result<_, _>>().map_err(BenchError::from)?;
        let named = targets.iter().filter_map(|target| match target {
            Target::Plugin(file) => Some(file.clone()),
            _ => None,
        });
        let runtime = runtime(global, named, threads)?;
        let named = brought(&runtime, &global.plugins);
        let mut hosts = vec![host(runtime, None)?];
        let filter = Filter { labels: args.labels.clone(), devices: args.devices.clone(), named };
        let (vs, against) = vs(global, args, threads, &mut hosts)?;
        let options = Options {
            targets,
            wish: wish(args),
            filter,
            settings: settings(args, threads),
            against,
            threshold: args.threshold,
            data: args.data.clone(),
            pinned: args.pinned,
            calls: args.calls,
            command: command(),
        };
        Ok(Plan { hosts, options, vs })
    }
}

fn host(runtime: Runtime, only: Option<PathBuf>) -> Result<Host, CliError> {
    Ok(Host::new(runtime, only).map_err(BenchError::from)?)
}

/// A runtime with these plugins besides those that every command loads.
fn runtime(
    global: &Global,
    plugins: impl Iterator<Item = PathBuf>,
    threads: NonZeroUsize,
) -> Result<Runtime, CliError> {
    let plugins = plugins.chain(global.plugins.iter().cloned()).collect();
    let global = Global { plugins, ..global.clone() };
    Ok(start_whole(&global, Some(threads.get()))?.0)
}

fn vs(
    global: &Global,
    args: &BenchArgs,
    threads: NonZeroUsize,
    hosts: &mut Vec<Host>,
) -> Result<(Vs, Against), CliError> {
    let Some(text) = &args.vs else { return Ok((Vs::Chosen, Against::Chosen)) };
    let file = Path::new(text);
    if is_library(file) {
        if !file.is_file() {
            let error = tenon_benchkit::wanted::TargetError::NoFile(file.to_owned());
            return Err(BenchError::from(error).into());
        }
        // Alone among the named: another build of the plugin that is measured has the same name.
        let alone = Global { plugins: Vec::new(), isolate: Vec::new(), ..global.clone() };
        let runtime = runtime(&alone, [file.to_owned()].into_iter(), threads)?;
        let host = host(runtime, Some(file.to_owned()))?;
        let digest = host.digest().unwrap_or_default();
        hosts.push(host);
        return Ok((Vs::Plugin, Against::Plugin(digest)));
    }
    if file.is_file() {
        return Ok((Vs::Records(Box::new(read_records(file)?)), Against::Chosen));
    }
    if text.contains('/') {
        let error = tenon_benchkit::wanted::TargetError::NoFile(file.to_owned());
        return Err(BenchError::from(error).into());
    }
    Ok((Vs::Label, Against::Label(text.clone())))
}

fn is_library(file: &Path) -> bool {
    file.extension()
        .is_some_and(|ending| ["so", "dylib", "dll"].iter().any(|known| ending == *known))
}

fn wish(args: &BenchArgs) -> Wish {
    Wish {
        shapes: args.shapes.clone(),
        sweep: args.sweep.clone(),
        attrs: args.attrs.clone(),
        dtype: args.dtype,
        values: args.values.clone(),
        constants: args.constants.clone(),
        seed: args.seed,
    }
}

fn settings(args: &BenchArgs, threads: NonZeroUsize) -> Settings {
    let budget = Duration::from_secs_f64(args.time);
    Settings {
        budget,
        longest: longest(budget),
        judged: true,
        tolerance: args.tolerance,
        dispatch: !args.no_dispatch,
        cold: args.cold,
        counters: args.counters,
        threads: threads.get() as u32,
        process: args.child.unwrap_or(0),
        seed: args.seed,
        // Of several processes those that measure.
        trace: (args.processes.get() == 1 || args.child.is_some())
            .then(profiler::samples)
            .flatten(),
    }
}

/// The command line as it was given, without the folder of the executable.
fn command() -> Vec<String> {
    let words = env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut words: Vec<String> = words.collect();
    if let Some(first) = words.first_mut() {
        let name = Path::new(&*first).file_name().map(|name| name.to_string_lossy().into_owned());
        *first = name.unwrap_or_default();
    }
    words
}
