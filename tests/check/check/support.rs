//! Running checks.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};
use tenon_testkit::check::{
    Clause,
    driver::{self, Options, Reproducers, Turns, Worker},
    exceptions::CheckExceptions,
    protocol::{Sampling, Setup},
    report::{Report, Tally, summary},
};
use tenon_tests::zoo::plugin;

/// How long a step may take: more than any of these kernels needs, on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(60);

/// A check of this plugin, with the host device.
pub fn options(file: PathBuf) -> Options {
    let program = env!("CARGO_BIN_EXE_check-worker").into();
    Options {
        worker: Worker { program, args: Vec::new() },
        setup: Setup {
            plugin: file,
            others: vec![plugin("tenon_cpu")],
            search: false,
            set: Vec::new(),
            ops: Vec::new(),
            devices: Vec::new(),
            sampling: Sampling { seed: 1, cases: 12, full: false },
            goldens: None,
            scratch: PathBuf::new(),
            unsupported: Vec::new(),
        },
        jobs: 2,
        limit: LIMIT,
        exceptions: CheckExceptions::default(),
        exceptions_file: None,
        until: None,
        turns: Turns::default(),
        strict: false,
        reproducers: None,
        arrays: None,
    }
}

/// A check of some ops.
pub fn of_ops(file: PathBuf, ops: &[&str]) -> Options {
    let mut options = options(file);
    options.setup.ops = ops.iter().map(|op| (*op).to_owned()).collect();
    options
}

/// As [`of_ops`], with failures shrunk and written to a folder.
pub fn reproducing(file: PathBuf, ops: &[&str], folder: &Path) -> Options {
    Options { reproducers: Some(Reproducers::in_folder(folder.to_owned())), ..of_ops(file, ops) }
}

/// The check's report.
pub fn check(options: &Options) -> Report {
    driver::check(options, &|_| {}).unwrap_or_else(|error| panic!("{error}"))
}

/// The report as a person reads it.
pub fn text(report: &Report) -> String {
    summary(report, "tenon check")
}

/// What failed: subjects with their clauses.
pub fn broken(report: &Report) -> BTreeSet<(String, Clause)> {
    report.broken().map(|(unit, clause, _)| (unit.name.clone(), clause)).collect()
}

/// What became of a clause of a subject.
#[track_caller]
pub fn tally<'r>(report: &'r Report, subject: &str, clause: Clause) -> &'r Tally {
    let unit = report.units.iter().find(|unit| unit.unit.name == subject);
    let tally = unit.and_then(|unit| unit.clauses.get(&clause));
    tally.unwrap_or_else(|| panic!("{subject}, {clause}: not looked at\n{}", text(report)))
}
