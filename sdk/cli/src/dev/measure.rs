//! The times of a new build beside those of the old one: sample by sample in turn, in a process apart.
//!
//! The process reads from its standard input what to measure, says what it is about to time, writes one line for each
//! op, and ends by itself when time is up. One that dies, or does not come back from a kernel, is a failure of the new
//! build: the kernel that it was calling is reported.

mod work;

use super::apart::{Apart, Heard};
use crate::error::CliError;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
pub use work::worker;

/// Name of the hidden subcommand.
pub const WORKER: &str = "dev-measure";
/// What it gets to load plugins, and beyond its time to end what it is at.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether to stop.
const POLL: Duration = Duration::from_millis(20);

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
    /// Seconds within which a kernel has to come back, beyond those.
    pub limit: f64,
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
    /// This is timed next.
    At { kernel: InHand, call: String },
    /// The times of an op.
    Op { op: String, rows: Vec<Row>, problems: Vec<String> },
    /// Nothing can be measured.
    Failed { error: String },
    /// That was all.
    Done,
}

/// A kernel that is being timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InHand {
    /// The op.
    pub op: String,
    /// Label of the kernel.
    pub label: String,
}

/// A process that did not come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Died {
    /// The kernel in hand, where there was one.
    pub kernel: Option<InHand>,
    /// What happened, and where.
    pub message: String,
}

/// Its result.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The kernels, call by call.
    pub rows: Vec<Row>,
    /// What was not timed, and why.
    pub problems: Vec<String>,
    /// Ops that were not reached.
    pub left: Vec<String>,
    /// How the process died, if it did.
    pub died: Option<Died>,
    /// How long it took.
    pub time: Duration,
}

/// Has it measured.
///
/// # Errors
/// No process can be started.
pub fn measure(task: &Task, stop: &AtomicBool) -> Result<Measured, CliError> {
    let began = Instant::now();
    let mut apart = Apart::<Line>::start(WORKER, task)?;
    let mut listening = Listening::default();
    let patience = GRACE + Duration::from_secs_f64(task.seconds + task.limit);
    let mut since = Instant::now();
    // Plugins are loaded, and opened elsewhere, before the first line: that is not a kernel's time.
    let mut most = patience.max(LOADING);
    while !stop.load(Ordering::Relaxed) {
        match apart.next(POLL) {
            Heard::Line(Line::Done) => break,
            Heard::Line(line) => {
                listening.hear(line);
                (since, most) = (Instant::now(), patience);
            }
            Heard::Nothing if since.elapsed() < most => {}
            Heard::Nothing => {
                listening.die(&format!("it did not come back within {:.0} s", most.as_secs_f64()));
                break;
            }
            Heard::Ended => {
                let how = apart.end();
                let how = how.unwrap_or_else(|| "the process ended itself with code 0".to_owned());
                listening.die(&how);
                break;
            }
        }
    }
    let Listening { mut measured, done, .. } = listening;
    let names = task.ops.iter().map(|(op, _)| op);
    measured.left = names.filter(|op| !done.contains(op)).cloned().collect();
    measured.time = began.elapsed();
    Ok(measured)
}

/// What a process gets to load plugins.
const LOADING: Duration = Duration::from_secs(120);

/// What was heard of the process.
#[derive(Debug, Default)]
struct Listening {
    measured: Measured,
    /// Ops that are done.
    done: Vec<String>,
    /// What is in hand.
    at: Option<(InHand, String)>,
    /// Kernels that were in hand before.
    before: Vec<String>,
    /// Whether the process said itself why it ends.
    failed: bool,
}

impl Listening {
    fn hear(&mut self, line: Line) {
        match line {
            Line::Op { op, rows, problems } => {
                self.done.push(op);
                self.measured.rows.extend(rows);
                self.measured.problems.extend(problems);
            }
            Line::At { kernel, call } => {
                if let Some((before, _)) = self.at.replace((kernel, call)) {
                    let before = before.to_string();
                    self.before.retain(|other| *other != before);
                    self.before.push(before);
                }
            }
            Line::Failed { error } => {
                self.failed = true;
                self.measured.problems.push(error);
            }
            Line::Ready | Line::Done => {}
        }
    }

    /// Notes that the process is gone; of one that said why, nothing more is to be said.
    fn die(&mut self, how: &str) {
        if self.failed {
            return;
        }
        let message = match &self.at {
            None => format!("{how}, before any kernel was timed"),
            Some((kernel, call)) => {
                let name = kernel.to_string();
                self.before.retain(|other| *other != name);
                let before = match self.before.as_slice() {
                    [] => String::new(),
                    before => format!("; timed before it in that process: {}", before.join(", ")),
                };
                format!("{how}, while {name} was timed: {call}{before}")
            }
        };
        let kernel = self.at.take().map(|(kernel, _)| kernel);
        self.measured.died = Some(Died { kernel, message });
    }
}

impl fmt::Display for InHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.label.as_str() {
            "" => f.write_str(&self.op),
            label => write!(f, "{} '{label}'", self.op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(op: &str, label: &str, call: &str) -> Line {
        let kernel = InHand { op: op.to_owned(), label: label.to_owned() };
        Line::At { kernel, call: call.to_owned() }
    }

    #[test]
    fn a_process_that_dies_is_told_with_the_kernel_in_hand_and_those_before() {
        let mut listening = Listening::default();
        for line in [Line::Ready, at("A", "", "x=1"), at("A", "", "x=2"), at("B", "fast", "x=1")] {
            listening.hear(line);
        }
        listening.die("the process was ended by SIGSEGV");
        let died = listening.measured.died.unwrap();
        let expected = "the process was ended by SIGSEGV, while B 'fast' was timed: x=1; timed before it in that process: A";
        assert_eq!(died.message, expected);
        assert_eq!(died.kernel, Some(InHand { op: "B".into(), label: "fast".into() }));
        let mut early = Listening::default();
        early.die("killed");
        assert_eq!(early.measured.died.unwrap().message, "killed, before any kernel was timed");
    }

    #[test]
    fn a_process_that_says_why_it_cannot_measure_has_not_died() {
        let mut listening = Listening::default();
        listening.hear(Line::Failed { error: "a plugin is refused".into() });
        listening.die("the process ended itself with code 1");
        assert_eq!(listening.measured.died, None);
        assert_eq!(listening.measured.problems, ["a plugin is refused"]);
    }
}
