//! A whole run: targets to a report.

mod merge;
mod targets;

use crate::{
    calls::{Call, Wish},
    compare::{Against, crossovers, noise_floor, side_by_side},
    error::BenchError,
    machine,
    measure::{Settings, Status, derive_all, measure},
    record::{FORM, Machine, Plugin, Report, Roofline, Run},
    step,
    variants::{Filter, Host},
    wanted::Target,
};
pub use merge::merge;
use std::{collections::BTreeMap, path::PathBuf};
pub use targets::{Wanted, wanted};

/// What is measured, and how.
#[derive(Clone)]
pub struct Options {
    /// What.
    pub targets: Vec<Target>,
    /// Shapes and the like.
    pub wish: Wish,
    /// Which variants.
    pub filter: Filter,
    /// How.
    pub settings: Settings,
    /// The reference for variants.
    pub against: Against,
    /// Smaller differences do not count; `None` is the default.
    pub threshold: Option<f64>,
    /// Arrays that graphs are fed, and that they are to give.
    pub data: Option<PathBuf>,
    /// Whether what graphs are fed is in memory that a device has pinned.
    pub pinned: bool,
    /// Whether a graph is measured call by call, with all variants; else its whole step is.
    pub calls: bool,
    /// The command line, for the record.
    pub command: Vec<String>,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Calls that are done.
    pub done: usize,
    /// Calls in all.
    pub total: usize,
    /// The call that is measured.
    pub case: String,
    /// What is done with it.
    pub status: Status,
}

/// Measures the steps that are wanted, and the calls with every variant.
///
/// # Errors
/// As [`measure`]; no kernel is left for any call.
pub fn run(
    hosts: &[Host],
    wanted: &Wanted,
    options: &Options,
    limits: Option<&Roofline>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BenchError> {
    let machine = machine::machine(hosts[0].runtime.features());
    let mut report = empty(hosts, options, machine, limits);
    let total = wanted.len();
    for (done, step) in wanted.steps.iter().enumerate() {
        let case = step.to_string();
        let mut say = |status| progress(Progress { done, total, case: case.clone(), status });
        let measured = step::measure(&hosts[0].runtime, step, &options.settings, &mut say)?;
        report.records.extend(measured.record);
        report.problems.extend(measured.problems);
    }
    for (done, (call, filter)) in (wanted.steps.len()..).zip(&wanted.calls) {
        let case = call.recorded()?.to_string();
        let mut say = |status| progress(Progress { done, total, case: case.clone(), status });
        let measured = measure(hosts, call, filter, &options.settings, &mut say)?;
        report.records.extend(measured.records);
        report.problems.extend(measured.problems);
    }
    if report.records.is_empty() && report.problems.is_empty() {
        return Err(BenchError::Nothing(nothing(&wanted.calls, &options.filter)));
    }
    for record in &mut report.records {
        record.cpu.clone_from(&report.run.machine.cpu);
    }
    finish(&mut report, options);
    Ok(report)
}

fn nothing(calls: &[(Call, Filter)], filter: &Filter) -> String {
    let ops: Vec<&str> = calls.iter().map(|(call, _)| call.op.name.as_str()).collect();
    let by = match (filter.labels.is_empty(), filter.devices.is_empty()) {
        (true, true) => "",
        (false, true) => " of these labels",
        (true, false) => " for these devices",
        (false, false) => " of these labels for these devices",
    };
    let ops = ops.first().copied().unwrap_or("the targets");
    format!("no kernel{by} takes a call of {ops}: `tenon list` shows the kernels there are")
}

fn empty(hosts: &[Host], options: &Options, machine: Machine, limits: Option<&Roofline>) -> Report {
    let settings = &options.settings;
    let run = Run {
        form: FORM,
        tenon: env!("CARGO_PKG_VERSION").to_owned(),
        date: machine::today(),
        command: options.command.clone(),
        threads: settings.threads,
        budget_s: settings.budget.as_secs_f64(),
        processes: 1,
        seed: settings.seed,
        machine,
        plugins: plugins(hosts),
        roofline: limits.cloned(),
        sweep: options.wish.sweep.clone(),
        rooflines: Vec::new(),
        commit: None,
        noise_floor: None,
    };
    let (records, problems) = (Vec::new(), Vec::new());
    Report { run, records, comparisons: Vec::new(), crossovers: Vec::new(), problems }
}

/// The plugins in use, each file once.
fn plugins(hosts: &[Host]) -> Vec<Plugin> {
    let mut all: BTreeMap<(String, String), Plugin> = BTreeMap::new();
    for host in hosts {
        let registry = host.runtime.registry();
        for info in registry.plugins().filter(|info| !info.retired) {
            let file = info.path.as_deref().and_then(|path| path.file_name());
            let plugin = Plugin {
                name: info.name.clone(),
                version: info.version.clone(),
                digest: info.digest.clone(),
                file: file.map(|name| name.to_string_lossy().into_owned()),
            };
            all.insert((plugin.name.clone(), plugin.digest.clone()), plugin);
        }
    }
    all.into_values().collect()
}

/// Fills what follows from the records.
pub fn finish(report: &mut Report, options: &Options) {
    complete(report, &options.against, options.threshold);
}

/// Fills what follows from the records, as of a report that was read.
pub fn complete(report: &mut Report, against: &Against, threshold: Option<f64>) {
    derive_all(report);
    report.run.noise_floor = noise_floor(&report.records);
    let records = &report.records;
    report.comparisons = side_by_side(records, against, threshold, report.run.seed);
    report.crossovers = crossovers(records, &report.comparisons);
}
