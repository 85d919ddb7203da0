//! The process that measures.

use super::{InHand, Line, Row, Task};
use crate::{dev::apart::Teller, error::CliError};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::ExitCode,
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

/// Time for one variant of a call, at least and at most.
const LEAST: Duration = Duration::from_millis(15);
const MOST: Duration = Duration::from_millis(300);
/// A call that takes longer than the time for all, divided by this, is left out: it is made ten times and more, by
/// each build.
const CALLS: f64 = 40.0;
/// Elements of the largest input of a call that is small.
const SMALL: i64 = 1 << 18;

/// Is the process that measures.
pub fn worker() -> ExitCode {
    let Some((teller, task)) = Teller::take::<Task>() else { return ExitCode::FAILURE };
    match work(&teller, &task) {
        Ok(()) => {
            teller.say(&Line::Done);
            ExitCode::SUCCESS
        }
        Err(error) => {
            teller.say(&Line::Failed { error: error.to_string() });
            ExitCode::FAILURE
        }
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

fn work(teller: &Teller, task: &Task) -> Result<(), CliError> {
    let mut hosts = vec![host(task, &task.new)?];
    if let Some(old) = &task.old {
        hosts.push(host(task, old)?);
    }
    // Loading plugins is not measuring.
    teller.say(&Line::Ready);
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
            teller.say(&Line::Op { op: op.clone(), rows: Vec::new(), problems: Vec::new() });
            continue;
        }
        let turn = Turn { until, ops: task.ops.len() - at, whole };
        let line = Timed { teller, hosts: &hosts, op, labels }.line(turn);
        teller.say(&line);
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

/// An op that is timed.
struct Timed<'a> {
    teller: &'a Teller,
    hosts: &'a [Host],
    op: &'a str,
    labels: &'a [String],
}

impl Timed<'_> {
    /// The op's calls, as many as there is time for.
    fn line(&self, turn: Turn) -> Line {
        let mut options = options(self.hosts, self.op, self.labels, turn.whole);
        let (mut rows, mut problems) = (Vec::new(), Vec::new());
        let calls = match run::wanted(&self.hosts[0], &options) {
            Ok(wanted) => small(wanted.calls),
            Err(error) => {
                problems.push(unmade(&error));
                Vec::new()
            }
        };
        let (count, variants) = (calls.len(), self.hosts.len() * self.labels.len().max(1));
        for (at, (call, _)) in calls.into_iter().enumerate() {
            let left = turn.until.saturating_duration_since(Instant::now());
            if at > 0 && left.is_zero() {
                break;
            }
            let share = left / (turn.ops * (count - at) * variants) as u32;
            options.settings.budget = share.clamp(LEAST, MOST);
            let (more, wrong) = self.call(&call, &options);
            rows.extend(more);
            problems.extend(wrong);
        }
        let problems = news(problems, self.hosts.len());
        Line::Op { op: self.op.to_owned(), rows, problems }
    }

    /// A call by each kernel in turn, beside its counterpart in the old build; the kernel is reported before its call.
    fn call(&self, call: &Call, options: &Options) -> (Vec<Row>, Vec<Trouble>) {
        let (mut rows, mut problems, mut nobody) = (Vec::new(), Vec::new(), None);
        for label in self.labels {
            let kernel = InHand { op: self.op.to_owned(), label: label.clone() };
            let text = call.recorded().map_or_else(|_| String::new(), |case| case.to_string());
            self.teller.say(&Line::At { kernel, call: text });
            let filter = Filter { labels: vec![label.clone()], ..options.filter.clone() };
            let wanted = Wanted { calls: vec![(call.clone(), filter)], ..Wanted::default() };
            match run::run(self.hosts, &wanted, options, None, &mut |_| {}) {
                Ok(report) => {
                    rows.extend(self::rows(&report, self.hosts));
                    problems.extend(self::problems(&report));
                }
                Err(error @ BenchError::Nothing(_)) => nobody = Some(unmade(&error)),
                Err(error) => problems.push(unmade(&error)),
            }
        }
        // One of several that does not take the call is no news.
        let nobody = nobody.filter(|_| rows.is_empty() && problems.is_empty());
        problems.extend(nobody);
        (rows, problems)
    }
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
            trace: None,
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

/// Kind of a problem, with the variant and the call; and its report.
type Trouble = (String, String);

fn problems(report: &Report) -> Vec<Trouble> {
    let line = |p: &Problem| {
        let of = format!("{}: {}", p.case, p.variant);
        (format!("{:?} {of}", p.kind), format!("{of}: {}", p.message))
    };
    report.problems.iter().map(line).collect()
}

/// Problems to report: those that both builds have do not come from the edit.
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
        Verdict::NotComparable | Verdict::Busy => None,
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
