//! `tenon check`: whether a plugin keeps its promises.

use crate::{
    args::{CheckArgs, Global},
    error::CliError,
    output::{count, print, print_json},
    progress::NamedSteps,
};
use std::{
    env,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    process::ExitCode,
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tenon_runtime::host::files::write_bytes;
use tenon_testkit::{
    TestkitError,
    check::{
        Verdict,
        driver::{self, Again, Options, Reproducers, Status, Turns, Worker},
        exceptions::CheckExceptions,
        json::case_from_json,
        protocol::{Sampling, Setup},
        report::{Looked, Report, json::to_json, junit::to_xml, summary},
        reproducer::{Reproducer, What, describe},
    },
};

/// Cases per subject, unless `--full`.
const SAMPLED: usize = 12;
const FULL: usize = 60;
/// The usual folder for what reproduces failures.
pub const REPRODUCERS: &str = "tenon-check";
/// Name of the hidden subcommand that a worker runs.
pub const WORKER: &str = "check-worker";

/// Checks a plugin, or runs one reproducer again.
///
/// # Errors
/// The check cannot be made. What is wrong with the plugin is in the report and in the exit code.
pub fn check(global: &Global, args: &CheckArgs) -> Result<ExitCode, CliError> {
    match &args.case {
        Some(file) => again(global, args, file),
        None => whole(global, args),
    }
}

fn whole(global: &Global, args: &CheckArgs) -> Result<ExitCode, CliError> {
    let plugin = args.file.clone().ok_or(CliError::NothingToCheck)?;
    let options = options(global, args, plugin)?;
    let steps = NamedSteps::new("checking");
    let report = driver::check(&options, &|status: Status<'_>| {
        steps.at(status.done, status.total, status.unit);
    });
    steps.finish();
    let mut report = report?;
    report.problems.extend(not_begun(&report));
    if let Some(file) = &args.junit {
        let xml = to_xml(&report).map_err(|error| CliError::Junit(error.to_string()))?;
        write_bytes(file, xml).map_err(|source| CliError::File {
            file: file.clone(),
            done: "written",
            source,
        })?;
    }
    match global.json {
        true => print_json(&to_json(&report))?,
        false => print(&summary(&report, "tenon check"))?,
    }
    Ok(if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is to be said where time was up before all was looked at.
fn not_begun(report: &Report) -> Option<String> {
    let left = report.units.iter().filter(|unit| unit.looked != Looked::Whole && unit.is_right());
    let names: Vec<&str> = left.map(|unit| unit.unit.name.as_str()).collect();
    let (first, all) = (names.first()?, report.units.len());
    let count = names.len();
    Some(format!(
        "time is up: {count} of {all} kernels and devices were not looked at, {first} the first"
    ))
}

fn options(global: &Global, args: &CheckArgs, plugin: PathBuf) -> Result<Options, CliError> {
    let (exceptions, exceptions_file) =
        exceptions(args.exceptions.as_ref(), usual_exceptions(&plugin))?;
    let cores = || available_parallelism().map_or(1, NonZeroUsize::get);
    let cases = if args.full { FULL } else { SAMPLED };
    Ok(Options {
        worker: worker()?,
        setup: Setup {
            plugin,
            others: global.plugins.clone(),
            search: true,
            set: global.settings()?,
            ops: args.ops.clone(),
            devices: args.devices.clone(),
            sampling: Sampling { seed: args.seed, cases, full: args.full },
            goldens: args.goldens.clone(),
            scratch: PathBuf::new(),
            unsupported: Vec::new(),
        },
        jobs: args.jobs.map_or_else(cores, NonZeroUsize::get),
        limit: Duration::from_secs_f64(args.timeout),
        exceptions,
        exceptions_file,
        until: args.time.map(|time| Instant::now() + Duration::from_secs_f64(time)),
        turns: Turns::default(),
        strict: args.strict,
        arrays: args.keep_failures.clone(),
        reproducers: Some(Reproducers::in_folder(
            args.reproducers.clone().unwrap_or_else(|| REPRODUCERS.into()),
        )),
    })
}

/// This program, as a worker.
///
/// # Errors
/// It is not found.
pub fn worker() -> Result<Worker, CliError> {
    let program = env::current_exe().map_err(|source| CliError::File {
        file: "tenon".into(),
        done: "found",
        source,
    })?;
    Ok(Worker { program, args: vec![WORKER.into()] })
}

/// The usual places of exceptions: beside the plugin, and the current folder.
fn usual_exceptions(plugin: &Path) -> Vec<PathBuf> {
    let mut stem = plugin.file_stem().unwrap_or_default().to_owned();
    stem.push(".exceptions.toml");
    vec![plugin.with_file_name(&stem), PathBuf::from(&stem)]
}

/// The exceptions that are named, else the first file of the usual ones that is there.
///
/// # Errors
/// The file cannot be read, or is malformed.
pub fn exceptions(
    named: Option<&PathBuf>,
    usual: Vec<PathBuf>,
) -> Result<(CheckExceptions, Option<PathBuf>), CliError> {
    let found = || usual.into_iter().find(|file| file.is_file());
    match named.cloned().or_else(found) {
        Some(file) => Ok((CheckExceptions::read(&file)?, Some(file))),
        None => Ok((CheckExceptions::default(), None)),
    }
}

fn again(global: &Global, args: &CheckArgs, file: &Path) -> Result<ExitCode, CliError> {
    let reproducer = Reproducer::read(file)?;
    let plugin = args.file.clone().unwrap_or_else(|| reproducer.plugin.clone());
    let mut options = options(global, args, plugin)?;
    let setup = &mut options.setup;
    setup.others.extend(reproducer.others.iter().cloned());
    setup.set.splice(0..0, reproducer.set.iter().cloned());
    setup.sampling = reproducer.sampling;
    setup.goldens = setup.goldens.take().or_else(|| reproducer.goldens.clone());
    setup.ops = Vec::from_iter(Some(reproducer.unit.op.clone()).filter(|op| !op.is_empty()));
    let again = driver::again(&options, &reproducer)?;
    match global.json {
        true => print_json(&again_json(&reproducer, &again))?,
        false => print(&again_text(&reproducer, &again))?,
    }
    Ok(if again.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn again_json(reproducer: &Reproducer, again: &Again) -> serde_json::Value {
    serde_json::json!({
        "right": again.is_right(),
        "subject": reproducer.unit.name,
        "clause": reproducer.clause,
        "changed": again.changed,
        "findings": again.findings,
        "said": again.said,
        "arrays": again.arrays.as_ref().map(|folder| folder.display().to_string()),
    })
}

fn again_text(reproducer: &Reproducer, again: &Again) -> String {
    let mut text = format!("{}, {}\n", reproducer.unit.name, reproducer.clause);
    if let What::Case(case) = &reproducer.run
        && let Ok(case) = case_from_json(case)
    {
        text.push_str(&format!("    with {}\n", describe(&case)));
    }
    text.push_str(&format!("    failed then: {}\n\n", reproducer.message));
    if again.changed {
        text.push_str("note: the plugin is another build than the one that failed\n");
    }
    for finding in &again.findings {
        let (sign, told) = match &finding.verdict {
            Verdict::Passed => ("✓", ""),
            Verdict::Skipped(reason) => ("–", reason.as_str()),
            Verdict::Failed(message) => ("✗", message.as_str()),
        };
        let line = format!("{sign} {}  {told}", finding.clause);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if !again.said.is_empty() {
        text.push_str(&format!("\nit wrote last:\n{}\n", again.said));
    }
    if let Some(folder) = &again.arrays {
        text.push_str(&format!("\narrays: {}\n", folder.display()));
    }
    let broken = again.findings.iter().filter(|f| matches!(f.verdict, Verdict::Failed(_))).count();
    text.push_str(&match broken {
        0 => "\nright: it fails no more\n".to_owned(),
        broken => format!("\n{} broken\n", count(broken, "clause")),
    });
    text
}

impl From<TestkitError> for CliError {
    fn from(error: TestkitError) -> CliError {
        CliError::Check(Box::new(error))
    }
}
