//! The check of a new build, op by op, in processes apart, until time is up.

use super::diff::Verdicts;
use crate::error::CliError;
use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};
use tenon_testkit::{
    TestkitError,
    check::{
        driver::{self, Options, Worker},
        exceptions::CheckExceptions,
        protocol::{Sampling, Setup},
        report::{Report, UnitReport},
    },
};

/// Cases of each kernel and type: fewer than `check` has, so that more kernels have their turn.
const CASES: usize = 6;

/// How builds are checked.
pub struct Judge {
    /// How workers are started.
    pub worker: Worker,
    /// Settings of knobs.
    pub set: Vec<(String, String)>,
    /// Plugins that are loaded along.
    pub others: Vec<PathBuf>,
    /// What is known to be unsupported or broken.
    pub exceptions: (CheckExceptions, Option<PathBuf>),
    /// Folder with golden data.
    pub goldens: Option<PathBuf>,
    /// How long a step of a worker may take.
    pub limit: Duration,
    /// Time for all ops.
    pub time: Duration,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The kernel with its types, or what else is wrong.
    pub kernel: String,
    /// The clause; empty where something else is wrong.
    pub clause: String,
    /// What was expected, what was found.
    pub message: String,
}

/// What came of a check.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// What became of each clause.
    pub verdicts: Verdicts,
    /// What is broken.
    pub broken: Vec<Broken>,
    /// Kernels, with their types, that were looked at.
    pub kernels: usize,
    /// Cases that were run.
    pub cases: usize,
    /// Ops that were not reached, then those that were not with all their kernels.
    pub left: Vec<String>,
    /// How long it took.
    pub time: Duration,
}

impl Judge {
    /// Checks a build: these ops, in this order, at least one of them; all of the plugin at once, where no op is
    /// named. It ends early where something is broken, and when it is to stop. `looked` are the kernels, with their
    /// types, that had their turn while others of their op had not: those come first.
    ///
    /// # Errors
    /// The check cannot be made.
    pub fn check(
        &self,
        plugin: &Path,
        ops: &[String],
        looked: &mut BTreeSet<String>,
        stop: &AtomicBool,
    ) -> Result<Judged, CliError> {
        let began = Instant::now();
        let until = began + self.time;
        let mut judged = Judged::default();
        if ops.is_empty() {
            judged.add_checked(checked(self.options(plugin, None, until, looked), stop), looked)?;
        }
        let mut unreached: &[String] = &[];
        let mut last = Duration::ZERO;
        for (at, op) in ops.iter().enumerate() {
            let begin = Instant::now();
            // One that would be less than half done by then, if it took as long as the last, is left too.
            let late = begin + last / 2 >= until || stop.load(Ordering::Relaxed);
            if at > 0 && (late || !judged.broken.is_empty()) {
                unreached = &ops[at..];
                break;
            }
            let options = self.options(plugin, Some(op), until, looked);
            judged.add_checked(checked(options, stop), looked)?;
            last = begin.elapsed();
        }
        judged.left.splice(0..0, unreached.iter().cloned());
        judged.time = began.elapsed();
        Ok(judged)
    }

    fn options(
        &self,
        plugin: &Path,
        op: Option<&String>,
        until: Instant,
        looked: &BTreeSet<String>,
    ) -> Options {
        let (exceptions, exceptions_file) = self.exceptions.clone();
        Options {
            worker: self.worker.clone(),
            setup: Setup {
                plugin: plugin.to_owned(),
                others: self.others.clone(),
                search: false,
                set: self.set.clone(),
                ops: op.into_iter().cloned().collect(),
                devices: Vec::new(),
                sampling: Sampling { seed: 1, cases: CASES, full: false },
                goldens: self.goldens.clone(),
                scratch: PathBuf::new(),
                unsupported: Vec::new(),
            },
            jobs: available_parallelism().map_or(1, NonZeroUsize::get),
            limit: self.limit,
            exceptions,
            exceptions_file,
            reproducers: None,
            arrays: None,
            until: Some(until),
            later: looked.clone(),
        }
    }
}

/// A check on a thread of its own, so that this program can be told to stop meanwhile; `None` then. Workers live no
/// longer than it does.
fn checked(options: Options, stop: &AtomicBool) -> Option<Result<Report, TestkitError>> {
    let (sender, done) = channel();
    let body = move || {
        // Nobody waits for it after a stop.
        let _ = sender.send(driver::check(&options, &|_| {}));
    };
    thread::spawn(body);
    loop {
        match done.recv_timeout(Duration::from_millis(20)) {
            Ok(report) => return Some(report),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                return done.recv_timeout(Duration::from_secs(1)).ok();
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Notes which units had their turn; none of them, once all had.
fn note_looked(report: &Report, looked: &mut BTreeSet<String>) {
    let done = report.units.iter().filter(|unit| !unit.clauses.is_empty());
    looked.extend(done.map(|unit| unit.unit.name.clone()));
    let names: BTreeSet<&String> = report.units.iter().map(|unit| &unit.unit.name).collect();
    if names.iter().all(|name| looked.contains(*name)) {
        looked.retain(|name| !names.contains(name));
    }
}

impl Judged {
    /// Adds what came of a check. An op that nothing can be checked of is none that is broken.
    fn add_checked(
        &mut self,
        report: Option<Result<Report, TestkitError>>,
        looked: &mut BTreeSet<String>,
    ) -> Result<(), CliError> {
        match report {
            None | Some(Err(TestkitError::Nothing { .. })) => Ok(()),
            Some(Err(error)) => Err(error.into()),
            Some(Ok(report)) => {
                self.add(&report);
                note_looked(&report, looked);
                Ok(())
            }
        }
    }

    fn add(&mut self, report: &Report) {
        let (left, looked): (Vec<&UnitReport>, Vec<&UnitReport>) =
            report.units.iter().partition(|unit| unit.clauses.is_empty());
        self.kernels += looked.len();
        for unit in left.into_iter().map(|unit| &unit.unit) {
            // Of a device type there is no op.
            let name = if unit.op.is_empty() { &unit.name } else { &unit.op };
            if !self.left.contains(name) {
                self.left.push(name.clone());
            }
        }
        self.cases += report.cases();
        for unit in &report.units {
            let marks = unit
                .clauses
                .iter()
                .map(|(clause, tally)| ((unit.unit.name.clone(), *clause), tally.mark()));
            self.verdicts.extend(marks);
        }
        for (unit, clause, tally) in report.broken() {
            let message = tally.failures.first().map(|failure| failure.message.clone());
            let (kernel, clause) = (unit.name.clone(), clause.name().to_owned());
            self.broken.push(Broken { kernel, clause, message: message.unwrap_or_default() });
        }
        let other = |message: &String| Broken {
            kernel: report.plugin.name.clone(),
            clause: String::new(),
            message: message.clone(),
        };
        self.broken.extend(report.problems.iter().map(other));
    }
}
