//! `tenon bench`: how fast kernels are.

mod args;
mod children;
mod json;
mod plan;
mod profile;
mod text;

use crate::{
    args::Global,
    error::CliError,
    output::{complain, plain, print, print_json, progress},
};
pub use args::{ABOUT, BenchArgs, EXAMPLE};
use indicatif::ProgressBar;
use plan::{Plan, Vs};
use std::{fs::File, path::Path, process::ExitCode};
use tenon_benchkit::{
    BenchError,
    compare::{Baseline, against_baseline, against_record},
    html,
    machine::{Disturbance, advice, machine},
    measure::Status,
    record::{Problem, ProblemKind, Report, Roofline, read_lines, write_lines},
    roofline::load_or_measure,
    run::{self, Progress, finish, wanted},
};
use tenon_runtime::host::files::{write_bytes, write_whole};

/// Measures what the command line names.
///
/// # Errors
/// What cannot be measured. Variants that are wrong, and what became slower, are in the report and in the exit
/// code.
pub fn bench(global: &Global, args: &BenchArgs) -> Result<ExitCode, CliError> {
    let plan = Plan::new(global, args)?;
    if let Some(file) = &args.child_report {
        return children::be_one(&plan, file);
    }
    let earlier = args.baseline.as_deref().map(read_records).transpose()?;
    let before = Disturbance::so_far();
    let limits = limits(&plan, args);
    let mut report = match args.processes.get() {
        1 => in_this_process(&plan, limits.as_ref())?,
        count => children::gather(&plan, count, limits.as_ref())?,
    };
    finish(&mut report, &plan.options);
    if let Vs::Records(records) = &plan.vs {
        let found = against_record(&report, records, args.threshold);
        if found.is_empty() {
            complain("warning: --vs: no record of the file is of a call that was measured");
        }
        report.comparisons = found;
    }
    let baseline = earlier.map(|earlier| against_baseline(&report, &earlier, args.threshold));
    if let Some(file) = &args.record {
        write_records(file, &report)?;
    }
    if let Some(file) = &args.html {
        let written = write_bytes(file, html::page(&report, baseline.as_ref()));
        written.map_err(|source| BenchError::Write { file: file.clone(), source })?;
    }
    if global.json {
        print_json(&json::value(&report, baseline.as_ref()))?;
    } else {
        print(&text::text(&report, baseline.as_ref()))?;
        let disturbed = Disturbance::so_far().since(before);
        let threads = plan.options.settings.threads;
        advice(&report.run.machine, threads, disturbed).iter().for_each(|line| complain(line));
    }
    Ok(verdict(&report, baseline.as_ref()))
}

/// The machine's limits, unless they are not wanted.
fn limits(plan: &Plan, args: &BenchArgs) -> Option<Roofline> {
    if args.no_roofline {
        return None;
    }
    let features = plan.hosts[0].runtime.features();
    let cpu = machine(features).cpu;
    let bar = progress(100, "limits");
    let threads = plan.options.settings.threads;
    let (limits, warning) = load_or_measure(&cpu, features, threads, args.no_cache, &mut |share| {
        bar.set_position((100.0 * share) as u64);
    });
    bar.finish_and_clear();
    if let Some(warning) = warning {
        complain(&format!("warning: {warning}"));
    }
    Some(limits)
}

fn in_this_process(plan: &Plan, limits: Option<&Roofline>) -> Result<Report, CliError> {
    let wanted = wanted(&plan.hosts[0], &plan.options)?;
    wanted.notes.iter().for_each(|note| complain(&format!("left out: {note}")));
    let bar = progress(100 * wanted.len() as u64, "bench");
    let report = run::run(&plan.hosts, &wanted, &plan.options, limits, &mut |at| show(&bar, &at));
    bar.finish_and_clear();
    Ok(report?)
}

fn show(bar: &ProgressBar, at: &Progress) {
    let (what, share) = match at.status {
        Status::Checking => ("checking", 0.0),
        Status::Timing(share) => ("timing", share),
    };
    bar.set_message(format!("{what} {}", plain(&at.case)));
    bar.set_position(100 * at.done as u64 + (100.0 * share) as u64);
}

/// Reads a file of records.
fn read_records(file: &Path) -> Result<Report, CliError> {
    let error = |source| BenchError::Record { file: file.to_owned(), source };
    let open = File::open(file).map_err(|source| error(source.into()))?;
    Ok(read_lines(std::io::BufReader::new(open)).map_err(error)?)
}

fn write_records(file: &Path, report: &Report) -> Result<(), CliError> {
    let written = write_whole(file, |out| write_lines(report, out));
    written.map_err(|source| BenchError::Write { file: file.to_owned(), source }.into())
}

/// Whether all is well: nothing wrong, nothing slower than before, and something compared where that was asked for.
fn verdict(report: &Report, baseline: Option<&Baseline>) -> ExitCode {
    let is_bad = |problem: &Problem| {
        matches!(problem.kind, ProblemKind::Wrong | ProblemKind::Failed | ProblemKind::Changed)
    };
    let worse = baseline.is_some_and(|found| found.regressions() > 0 || found.compared() == 0);
    if report.problems.iter().any(is_bad) || worse || report.records.is_empty() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
