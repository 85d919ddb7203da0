//! `tenon bench`: how fast kernels are.

mod args;
mod children;
mod json;
mod plan;
mod profile;
mod sweep;
mod text;
mod two;

use crate::{
    args::Global,
    error::CliError,
    output::{complain, count, plain, print, print_json},
    progress::progress,
};
pub use args::{ABOUT, BenchArgs, EXAMPLE};
use indicatif::ProgressBar;
use plan::{Plan, Vs};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
};
use tenon_benchkit::{
    BenchError,
    compare::{Baseline, against_baseline, against_record},
    counters, export, html,
    machine::{Disturbance, advice, commit, machine},
    measure::Status,
    record::{Problem, ProblemKind, Report, Roofline, read_lines, write_lines},
    roofline::load_or_measure,
    run::{self, Progress, finish, wanted},
};
use tenon_runtime::host::files::{write_bytes, write_whole};

/// Measures what the command line names, or compares two records.
///
/// # Errors
/// What cannot be measured. Variants that are wrong, and what became slower, are in the report and in the exit
/// code.
pub fn bench(global: &Global, args: &BenchArgs) -> Result<ExitCode, CliError> {
    if let [before, after] = &args.compare[..] {
        return two::compare(global, args, before, after);
    }
    let plan = Plan::new(global, args, args.threads.first())?;
    if let Some(file) = &args.child_report {
        return children::be_one(global, args, &plan, file);
    }
    sweep::check(args)?;
    let earlier = args.baseline.as_deref().map(read_records).transpose()?;
    if args.counters {
        say_of_counters(&plan);
    }
    let before = Disturbance::so_far();
    let limits = limits(&plan, args);
    let mut report = match args.processes.get() {
        1 => measured(global, args, &plan)?,
        count => children::gather(&plan, count)?,
    };
    report.run.commit = commit();
    sweep::take_limits(&mut report, limits);
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
    write_pages(args, &report, baseline.as_ref())?;
    tell(global, &report, baseline.as_ref())?;
    if !global.json {
        let disturbed = Disturbance::so_far().since(before);
        let threads = plan.options.settings.threads;
        advice(&report.run.machine, threads, disturbed).iter().for_each(|line| complain(line));
    }
    Ok(verdict(&report, baseline.as_ref()))
}

/// Prints the report.
fn tell(global: &Global, report: &Report, baseline: Option<&Baseline>) -> Result<(), CliError> {
    if global.json {
        return print_json(&json::value(report, baseline));
    }
    print(&text::text(report, baseline))
}

/// Writes the pages and tables that are asked for.
fn write_pages(
    args: &BenchArgs,
    report: &Report,
    baseline: Option<&Baseline>,
) -> Result<(), CliError> {
    type Make = fn(&Report, Option<&Baseline>) -> String;
    let wanted: [(&Option<PathBuf>, Make); 3] =
        [(&args.html, html::page), (&args.csv, export::csv), (&args.markdown, export::markdown)];
    for (file, make) in wanted {
        if let Some(file) = file {
            let written = write_bytes(file, make(report, baseline));
            written.map_err(|source| BenchError::Write { file: file.clone(), source })?;
        }
    }
    Ok(())
}

/// Why nothing will be counted, where that is so, with what to type instead.
fn say_of_counters(plan: &Plan) {
    let Err(error) = counters::available() else { return };
    complain(&format!("nothing is counted: {error}"));
    let [stat, record] = counters::perf_lines(&plan.options.command);
    complain(&format!("elsewhere, sums over the whole run: {stat}"));
    complain(&format!("and where in the code: {record}"));
}

/// The machine's limits for each number of threads, unless they are not wanted.
fn limits(plan: &Plan, args: &BenchArgs) -> Vec<Roofline> {
    if args.no_roofline {
        return Vec::new();
    }
    let features = plan.hosts[0].runtime.features();
    let cpu = machine(features).cpu;
    let bar = progress(100, "limits");
    let mut all = Vec::new();
    for threads in args.threads.0.iter().map(|count| count.get() as u32) {
        let mut told = false;
        let mut tell = |share: f64| {
            if !std::mem::replace(&mut told, true) {
                let threads = count(threads as usize, "thread");
                complain(&format!(
                    "measuring the machine's limits with {threads}, once; they are kept"
                ));
            }
            bar.set_position((100.0 * share) as u64);
        };
        let (limits, warning) = load_or_measure(&cpu, features, threads, args.no_cache, &mut tell);
        if let Some(warning) = warning {
            complain(&format!("warning: {warning}"));
        }
        all.push(limits);
    }
    bar.finish_and_clear();
    all
}

/// Measures in this process: with each number of threads, which are a sweep where there are several.
fn measured(global: &Global, args: &BenchArgs, plan: &Plan) -> Result<Report, CliError> {
    let first = in_this_process(plan)?;
    let others = args.threads.0.iter().skip(1).map(|&threads| {
        let plan = Plan::new(global, args, threads)?;
        in_this_process(&plan)
    });
    Ok(sweep::joined(first, others.collect::<Result<_, CliError>>()?))
}

fn in_this_process(plan: &Plan) -> Result<Report, CliError> {
    let wanted = wanted(&plan.hosts[0], &plan.options)?;
    wanted.notes.iter().for_each(|note| complain(&format!("left out: {note}")));
    let bar = progress(100 * wanted.len() as u64, "bench");
    let report = run::run(&plan.hosts, &wanted, &plan.options, None, &mut |at| show(&bar, &at));
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
