//! The check of a new build, in processes apart: what failed before in full, then a call of every kernel, whatever the
//! time; then the rest in full, until time is up.

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
        driver::{self, Options, Reproducers, Turns, Worker},
        exceptions::CheckExceptions,
        protocol::{Sampling, Setup, Unit, UnitKind},
        report::{Failure, Looked, Report, failures},
    },
};

/// Cases of each kernel and type: fewer than `check` has, so that more kernels have their turn.
const CASES: usize = 6;

/// How long failures of a build are made smaller: somebody waits.
const SMALLER: Duration = Duration::from_secs(3);

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
    /// Folder for what reproduces failures.
    pub reproducers: PathBuf,
    /// The build in the place where it was made; what is checked is a temporary copy.
    pub artifact: Option<PathBuf>,
    /// How long a step of a worker may take.
    pub limit: Duration,
    /// Time for looking at kernels in full, once each was called.
    pub time: Duration,
}

/// What a build is looked at for, and in which order.
#[derive(Debug, Default)]
pub struct Wish {
    /// The ops, in this order; all of the plugin, devices too, where none is named.
    pub ops: Vec<String>,
    /// Kernels, with their types, that are known to fail.
    pub failed: BTreeSet<String>,
    /// Files that were changed.
    pub changed: Vec<PathBuf>,
}

/// A broken promise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Broken {
    /// The kernel with its types, or what else is wrong.
    pub kernel: String,
    /// The clause; empty where something else is wrong.
    pub clause: String,
    /// What was expected, what was found.
    pub message: String,
    /// The smallest input that was found to fail, in words.
    pub input: Option<String>,
    /// What runs it again.
    pub reproducer: Option<PathBuf>,
}

/// A kernel with its types that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub kernel: String,
    /// The op.
    pub op: String,
    /// Label of the kernel.
    pub label: String,
    /// Whether it was looked at in full.
    pub in_full: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The outcome of each clause.
    pub verdicts: Verdicts,
    /// What is broken.
    pub broken: Vec<Broken>,
    /// The same in the words of `tenon check`, by clause and cause.
    pub told: String,
    /// Kernels, with their types.
    pub seen: Vec<Seen>,
    /// Those of which nothing was run, and why.
    pub not_run: Vec<(String, String)>,
    /// Cases that were run.
    pub cases: usize,
    /// Ops that were not looked at in full, with all their kernels.
    pub left: Vec<String>,
    /// How long it took.
    pub time: Duration,
}

impl Judge {
    /// Checks a build. It ends early where something is broken, and when it is to stop. `looked` are the kernels, with
    /// their types, that had their turn while others had not: those come first.
    ///
    /// # Errors
    /// The check cannot be made.
    pub fn check(
        &self,
        plugin: &Path,
        wish: &Wish,
        looked: &mut BTreeSet<String>,
        stop: &AtomicBool,
    ) -> Result<Judged, CliError> {
        let began = Instant::now();
        let mut judged = Judged::default();
        match checked(self.options(plugin, wish, looked), stop) {
            // Of a plugin that registers nothing that can be checked nothing is broken.
            None | Some(Err(TestkitError::Nothing { .. })) => {}
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(report)) => {
                judged.add(&report);
                note_looked(&report, looked);
            }
        }
        judged.time = began.elapsed();
        Ok(judged)
    }

    fn options(&self, plugin: &Path, wish: &Wish, looked: &BTreeSet<String>) -> Options {
        let (exceptions, exceptions_file) = self.exceptions.clone();
        Options {
            worker: self.worker.clone(),
            setup: Setup {
                plugin: plugin.to_owned(),
                others: self.others.clone(),
                search: false,
                set: self.set.clone(),
                ops: wish.ops.clone(),
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
            reproducers: Some(Reproducers {
                folder: self.reproducers.clone(),
                plugin: self.artifact.clone(),
                time: SMALLER,
            }),
            until: None,
            turns: Turns {
                failed: wish.failed.clone(),
                call_all: true,
                changed: wish.changed.clone(),
                ops: wish.ops.clone(),
                later: looked.clone(),
                time: Some(self.time),
                until_failure: true,
            },
            strict: false,
            arrays: None,
        }
    }
}

/// A check on its own thread, so that this program can be told to stop meanwhile; `None` then. Workers live no
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
    let done = report.units.iter().filter(|unit| unit.looked == Looked::Whole);
    looked.extend(done.map(|unit| unit.unit.name.clone()));
    let names: BTreeSet<&String> = report.units.iter().map(|unit| &unit.unit.name).collect();
    if names.iter().all(|name| looked.contains(*name)) {
        looked.retain(|name| !names.contains(name));
    }
}

/// Whether the time of a round is for it: of an op without a kernel there is nothing to look at.
fn is_looked_at(unit: &Unit) -> bool {
    unit.kind != UnitKind::Op
}

impl Judged {
    /// Whether everything was looked at in full, and nothing is broken.
    pub fn is_right(&self) -> bool {
        self.broken.is_empty() && self.left.is_empty()
    }

    /// How many kernels were looked at in full.
    pub fn in_full(&self) -> usize {
        self.seen.iter().filter(|seen| seen.in_full).count()
    }

    /// The names of an op's kernels of a label.
    pub fn kernels<'a>(&'a self, op: &'a str, label: &'a str) -> impl Iterator<Item = &'a String> {
        let own = self.seen.iter().filter(move |seen| seen.op == op && seen.label == label);
        own.map(|seen| &seen.kernel)
    }

    /// What is known to fail from now on: what failed before and was not found right, and what is broken.
    pub fn still_failing(&self, before: &BTreeSet<String>) -> BTreeSet<String> {
        let broken = self.broken.iter().map(|broken| &broken.kernel);
        let names: BTreeSet<&String> = self.seen.iter().map(|seen| &seen.kernel).collect();
        let open = self.seen.iter().filter(|seen| !seen.in_full).map(|seen| &seen.kernel);
        let open = open.filter(|name| before.contains(*name));
        broken.chain(open).filter(|name| names.contains(name)).cloned().collect()
    }

    fn add(&mut self, report: &Report) {
        for unit in report.units.iter().filter(|unit| is_looked_at(&unit.unit)) {
            let in_full = unit.looked == Looked::Whole;
            let facts = &unit.unit;
            self.seen.push(Seen {
                kernel: facts.name.clone(),
                op: facts.op.clone(),
                label: facts.label.clone(),
                in_full,
            });
            // Of a device type there is no op.
            let name = if facts.op.is_empty() { &facts.name } else { &facts.op };
            if !in_full && !self.left.contains(name) {
                self.left.push(name.clone());
            }
        }
        let not_run = report.not_run().into_iter().filter(|(unit, _)| is_looked_at(unit));
        self.not_run.extend(not_run.map(|(unit, reason)| (unit.name.clone(), reason)));
        self.cases += report.cases();
        for unit in &report.units {
            let marks = unit
                .clauses
                .iter()
                .map(|(clause, tally)| ((unit.unit.name.clone(), *clause), tally.mark()));
            self.verdicts.extend(marks);
        }
        for (unit, clause, tally) in report.broken() {
            let Failure { message, input, reproducer, .. } =
                tally.failures.first().cloned().unwrap_or_default();
            let (kernel, clause) = (unit.name.clone(), clause.name().to_owned());
            self.broken.push(Broken { kernel, clause, message, input, reproducer });
        }
        let other = |message: &String| Broken {
            kernel: report.plugin.name.clone(),
            message: message.clone(),
            ..Broken::default()
        };
        self.broken.extend(report.problems.iter().map(other));
        self.told = failures(report, "tenon check");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kernel: &str, in_full: bool) -> Seen {
        let (op, label) = (kernel.to_owned(), String::new());
        Seen { kernel: kernel.to_owned(), op, label, in_full }
    }

    #[test]
    fn a_failure_is_known_until_the_kernel_was_looked_at_in_full() {
        let known =
            |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let broken = |kernel: &str| Broken {
            kernel: kernel.to_owned(),
            clause: "values".to_owned(),
            ..Broken::default()
        };
        let judged = Judged {
            seen: vec![seen("mended", true), seen("only called", false), seen("new", false)],
            broken: vec![broken("new"), broken("the plugin itself")],
            ..Judged::default()
        };
        let before = known(&["mended", "only called", "gone"]);
        assert_eq!(judged.still_failing(&before), known(&["new", "only called"]));
    }

    #[test]
    fn a_part_is_never_right() {
        let part =
            Judged { seen: vec![seen("a", false)], left: vec!["a".into()], ..Judged::default() };
        assert!(!part.is_right() && part.in_full() == 0);
        let whole = Judged { seen: vec![seen("a", true)], ..Judged::default() };
        assert!(whole.is_right() && whole.in_full() == 1);
    }
}
