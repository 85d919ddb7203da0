//! The times of a new build beside those of the old one: sample by sample in turn, in a process apart.
//!
//! The process is told by its standard input what to measure, writes one line for each op, and ends by itself when
//! time is up. One that crashes or hangs loses what it had not written yet.

use super::build::end_group;
use crate::error::CliError;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    env,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};
use tenon_benchkit::{
    BenchError,
    calls::{Call, Wish},
    compare::{Against, LEAST_BETWEEN_RUNS},
    measure::Settings as Sampling,
    record::{Problem, Record, Report, Verdict},
    run::{self, Options, Wanted},
    variants::{Filter, Host, brought},
    wanted::Target,
};
use tenon_runtime::{Runtime, RuntimeOptions, host::Settings};

/// Name of the hidden subcommand.
pub const WORKER: &str = "dev-measure";
/// Time for one variant of a call, at least and at most.
const LEAST: Duration = Duration::from_millis(15);
const MOST: Duration = Duration::from_millis(300);
/// A call that takes longer than the time for all, divided by this, is left out: it is made ten times and more, by
/// each build.
const CALLS: f64 = 40.0;
/// Elements of the largest input of a call that is small.
const SMALL: i64 = 1 << 18;
/// What it gets to load plugins, and beyond its time to end the op it is at.
const GRACE: Duration = Duration::from_secs(5);

/// What is measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// The new build.
    pub new: PathBuf,
    /// The old one.
    pub old: Option<PathBuf>,
    /// Plugins that are loaded along.
    pub others: Vec<PathBuf>,
    /// Settings of knobs.
    pub set: Vec<(String, String)>,
    /// Ops, each with the labels of the kernels that policy may choose.
    pub ops: Vec<(String, Vec<String>)>,
    /// Seconds for all of them.
    pub seconds: f64,
}

/// One kernel in one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The op.
    pub op: String,
    /// Label of the kernel.
    pub label: String,
    /// Type of the device.
    pub device: String,
    /// Shapes and attributes.
    pub call: String,
    /// Median time, in nanoseconds.
    pub ns: f64,
    /// That of the old build.
    pub before_ns: Option<f64>,
    /// Time of the old build over time of the new one.
    pub speedup: Option<f64>,
    /// The ends of its 95 % confidence interval.
    pub interval: Option<[f64; 2]>,
    /// Ratios within this of one are noise.
    pub threshold: Option<f64>,
    /// `faster`, `slower` or `same`; none where there is nothing to compare with.
    pub verdict: Option<String>,
}

/// What the process writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// Plugins are loaded: time begins.
    Ready,
    /// The times of an op.
    Op { op: String, rows: Vec<Row>, problems: Vec<String> },
    /// Nothing can be measured.
    Failed { error: String },
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The kernels, call by call.
    pub rows: Vec<Row>,
    /// What was not timed, and why.
    pub problems: Vec<String>,
    /// Ops that were not reached.
    pub left: Vec<String>,
    /// How long it took.
    pub time: Duration,
}

/// Has it measured.
///
/// # Errors
/// No process can be started.
pub fn measure(task: &Task, stop: &AtomicBool) -> Result<Measured, CliError> {
    let began = Instant::now();
    let lost = |source: io::Error| CliError::File { file: "tenon".into(), done: "run", source };
    let mut child = Command::new(env::current_exe().map_err(lost)?)
        .arg(WORKER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(lost)?;
    let said = child.stdin.take().map(|mut input| serde_json::to_writer(&mut input, task));
    let (sender, lines) = channel();
    let output = child.stdout.take();
    let listener = thread::spawn(move || {
        for line in output.into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line.ok().and_then(|line| serde_json::from_str::<Line>(&line).ok());
            if line.is_none_or(|line| sender.send(line).is_err()) {
                return;
            }
        }
    });
    let mut measured = Measured::default();
    let mut done: Vec<String> = Vec::new();
    let longest = Duration::from_secs_f64(task.seconds) + GRACE;
    let mut until = began + GRACE;
    while matches!(said, Some(Ok(()))) && !stop.load(Ordering::Relaxed) && Instant::now() < until {
        match lines.recv_timeout(Duration::from_millis(20)) {
            Ok(Line::Op { op, rows, problems }) => {
                done.push(op);
                measured.rows.extend(rows);
                measured.problems.extend(problems);
            }
            Ok(Line::Ready) => until = Instant::now() + longest,
            Ok(Line::Failed { error }) => measured.problems.push(error),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    end_group(&mut child);
    // The process is gone, and with it the other end.
    let _ = listener.join();
    let names = task.ops.iter().map(|(op, _)| op);
    measured.left = names.filter(|op| !done.contains(op)).cloned().collect();
    measured.time = began.elapsed();
    Ok(measured)
}

/// Is the process that measures.
pub fn worker() -> ExitCode {
    let Ok(task) = serde_json::from_reader::<_, Task>(io::stdin().lock()) else {
        return ExitCode::FAILURE;
    };
    let longest = Duration::from_secs_f64(task.seconds) + 4 * GRACE;
    // Whoever started it may be gone, and a kernel may never return.
    thread::spawn(move || {
        thread::sleep(longest);
        std::process::exit(1);
    });
    match work(&task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&Line::Failed { error: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

fn say(line: &Line) {
    if let Ok(mut text) = serde_json::to_string(line) {
        text.push('\n');
        let mut out = io::stdout().lock();
        // Whoever listens may be gone.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

fn host(task: &Task, build: &PathBuf) -> Result<Host, CliError> {
    let plugins = [build].into_iter().chain(&task.others).cloned().collect();
    let settings = Settings { set: task.set.clone(), ..Settings::of_process() };
    let options = RuntimeOptions {
        threads: Some(1),
        plugins,
        search: false,
        settings,
        ..RuntimeOptions::default()
    };
    let (runtime, report) = Runtime::new(options)?;
    report.into_result()?;
    Ok(Host::new(runtime, Some(build.clone())).map_err(BenchError::from)?)
}

fn work(task: &Task) -> Result<(), CliError> {
    let mut hosts = vec![host(task, &task.new)?];
    if let Some(old) = &task.old {
        hosts.push(host(task, old)?);
    }
    // Loading plugins is not measuring.
    say(&Line::Ready);
    let whole = Duration::from_secs_f64(task.seconds);
    let until = Instant::now() + whole;
    let registry = hosts[0].runtime.registry();
    let timed = |op: &str| registry.op(op).is_some_and(|op| !op.stateful);
    for (at, (op, labels)) in task.ops.iter().enumerate() {
        if Instant::now() >= until {
            break;
        }
        if !timed(op) {
            // It may write files: who wants that has a graph.
            say(&Line::Op { op: op.clone(), rows: Vec::new(), problems: Vec::new() });
            continue;
        }
        let turn = Turn { until, ops: task.ops.len() - at, whole };
        say(&of_op(&hosts, op, labels, turn));
    }
    Ok(())
}

/// What an op has of the time.
#[derive(Clone, Copy)]
struct Turn {
    /// When time is up.
    until: Instant,
    /// How many ops share what is left, this one included.
    ops: usize,
    /// Time for all ops.
    whole: Duration,
}

/// An op's calls, as many as there is time for.
fn of_op(hosts: &[Host], op: &str, labels: &[String], turn: Turn) -> Line {
    let mut options = options(hosts, op, labels, turn.whole);
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    let calls = match run::wanted(&hosts[0], &options) {
        Ok(wanted) => small(wanted.calls),
        Err(error) => {
            problems.push(unmade(&error));
            Vec::new()
        }
    };
    let (count, variants) = (calls.len(), hosts.len() * labels.len().max(1));
    for (at, call) in calls.into_iter().enumerate() {
        let left = turn.until.saturating_duration_since(Instant::now());
        if at > 0 && left.is_zero() {
            break;
        }
        let share = left / (turn.ops * (count - at) * variants) as u32;
        options.settings.budget = share.clamp(LEAST, MOST);
        let wanted = Wanted { calls: vec![call], ..Wanted::default() };
        match run::run(hosts, &wanted, &options, None, &mut |_| {}) {
            Ok(report) => {
                rows.extend(self::rows(&report, hosts));
                problems.extend(self::problems(&report));
            }
            Err(error) => problems.push(unmade(&error)),
        }
    }
    let problems = news(problems, hosts.len());
    Line::Op { op: op.to_owned(), rows, problems }
}

/// The calls that a build without optimisation makes in milliseconds too, where there are some.
fn small(mut calls: Vec<(Call, Filter)>) -> Vec<(Call, Filter)> {
    let is_small = |(call, _): &(Call, Filter)| call.elements() <= SMALL;
    if calls.iter().any(is_small) {
        calls.retain(is_small);
    }
    calls
}

/// A call that cannot be made up.
fn unmade(error: &BenchError) -> Trouble {
    (error.to_string(), error.to_string())
}

fn options(hosts: &[Host], op: &str, labels: &[String], whole: Duration) -> Options {
    let against = hosts.get(1).and_then(Host::digest).map_or(Against::Chosen, Against::Plugin);
    Options {
        targets: vec![Target::Op { op: op.to_owned(), label: None }],
        wish: Wish { seed: 1, ..Wish::default() },
        filter: Filter {
            labels: labels.to_vec(),
            named: brought(&hosts[0].runtime, hosts[0].only.as_slice()),
            ..Filter::default()
        },
        settings: Sampling {
            budget: MOST,
            longest: whole.div_f64(CALLS),
            // What is measured was checked.
            judged: false,
            tolerance: None,
            dispatch: false,
            cold: false,
            counters: false,
            threads: 1,
            process: 0,
            seed: 1,
        },
        against,
        // Where the linker puts a kernel counts in its time, as it does between runs.
        threshold: Some(LEAST_BETWEEN_RUNS),
        data: None,
        pinned: false,
        calls: false,
        command: Vec::new(),
    }
}

/// Kind of a problem, with the variant and the call; and what is told of it.
type Trouble = (String, String);

fn problems(report: &Report) -> Vec<Trouble> {
    let line = |p: &Problem| {
        let of = format!("{}: {}", p.case, p.variant);
        (format!("{:?} {of}", p.kind), format!("{of}: {}", p.message))
    };
    report.problems.iter().map(line).collect()
}

/// What is told of problems: those that both of two builds have are none of the edit's.
fn news(problems: Vec<Trouble>, builds: usize) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (kind, _) in &problems {
        *counts.entry(kind.clone()).or_default() += 1;
    }
    let new = |(kind, _): &Trouble| counts[kind] < builds.max(2);
    problems.into_iter().filter(new).map(|(_, text)| text).collect()
}

/// The records of the new build, each with what it is compared with.
fn rows(report: &Report, hosts: &[Host]) -> Vec<Row> {
    let digest = hosts[0].digest().unwrap_or_default();
    let own = report.records.iter().enumerate();
    let own = own.filter(|(_, record)| record.variant.digest == digest);
    own.map(|(at, record)| row(report, at, record)).collect()
}

fn row(report: &Report, at: usize, record: &Record) -> Row {
    let found = report.comparisons.iter().find(|found| found.record == at as u32);
    let base = found.and_then(|found| report.records.get(found.base? as usize));
    let found =
        found.filter(|_| base.is_some_and(|base| base.variant.digest != record.variant.digest));
    let base = base.filter(|_| found.is_some());
    let word = |verdict| match verdict {
        Verdict::Faster => Some("faster"),
        Verdict::Slower => Some("slower"),
        Verdict::Same => Some("same"),
        Verdict::NotComparable => None,
    };
    Row {
        op: record.bench.clone(),
        label: record.variant.label.clone(),
        device: record.variant.device.clone(),
        call: record.case.to_string(),
        ns: record.median_ns,
        before_ns: base.map(|base| base.median_ns),
        speedup: found.map(|found| found.speedup),
        interval: found.map(|found| found.interval),
        threshold: found.map(|found| found.threshold),
        verdict: found.and_then(|found| word(found.verdict)).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_in_both_builds_is_no_news() {
        let trouble = |kind: &str, text: &str| (kind.to_owned(), text.to_owned());
        let both = || vec![trouble("Failed Relu", "at 1"), trouble("Failed Relu", "at 2")];
        assert!(news(both(), 2).is_empty());
        let one = vec![trouble("Failed Relu", "at 1"), trouble("TooSlow Relu", "3 s")];
        assert_eq!(news(one, 2), ["at 1", "3 s"]);
        assert_eq!(news(vec![trouble("Failed Relu", "at 1")], 1), ["at 1"]);
    }
}
