//! What the session would do with a new build, done before in a process apart.
//!
//! The process has the build in use, where there is one, puts the new one in its place as the session would, and runs
//! some steps. Only what comes through that is put into the session.

use super::{
    DevArgs,
    apart::{Apart, Heard, Teller},
    session::Live,
};
use crate::{args::Global, error::CliError};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tenon_runtime::host::{loader, manifest::Manifest};

/// Name of the hidden subcommand.
pub const WORKER: &str = "dev-rehearse";
/// Steps that are run, besides those that the exchange makes.
const STEPS: u64 = 3;
/// How often it is looked what is heard.
const POLL: Duration = Duration::from_millis(20);
/// What a rehearsal gets to begin, to load plugins, and to run a graph, at least; more where steps of a check do.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many times as long as a kernel it may take.
const KERNELS: f64 = 10.0;

/// What is rehearsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// What every subcommand takes.
    pub global: Global,
    /// How the session is made.
    pub args: DevArgs,
    /// The build in use.
    pub old: Option<PathBuf>,
    /// The new one.
    pub new: PathBuf,
    /// Whether it registers what the old one does.
    pub same: bool,
}

/// What the process reports.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The build in use runs.
    Before,
    /// The new one runs too.
    Done,
    /// It cannot be put in the old one's place.
    Refused { error: String },
}

/// Its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rehearsed {
    /// The session takes it.
    Well,
    /// It was asked to stop.
    Stopped,
    /// The session cannot take it.
    Refused(String),
    /// The process died, or did not come back.
    Died(String),
}

/// Has it rehearsed.
///
/// # Errors
/// No process can be started.
pub fn rehearse(task: &Task, stop: &AtomicBool) -> Result<Rehearsed, CliError> {
    let mut apart = Apart::<Line>::start(WORKER, task)?;
    let patience = PATIENCE.max(Duration::from_secs_f64(task.args.timeout * KERNELS));
    let (mut since, mut is_before) = (Instant::now(), task.old.is_some());
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(Rehearsed::Stopped);
        }
        match apart.next(POLL) {
            Heard::Line(Line::Done) => return Ok(Rehearsed::Well),
            Heard::Line(Line::Refused { error }) => return Ok(Rehearsed::Refused(error)),
            Heard::Line(Line::Before) => (since, is_before) = (Instant::now(), false),
            Heard::Nothing if since.elapsed() < patience => {}
            Heard::Nothing => {
                let limit = patience.as_secs_f64();
                return Ok(Rehearsed::Died(format!("it did not come back within {limit:.0} s")));
            }
            Heard::Ended => {
                let how = apart.end();
                let how = how.unwrap_or_else(|| "the process ended itself with code 0".to_owned());
                let build = if is_before { ", with the build in use" } else { "" };
                return Ok(Rehearsed::Died(format!("{how}{build}")));
            }
        }
    }
}

/// Is the process that rehearses.
pub fn worker() -> ExitCode {
    let Some((teller, task)) = Teller::take::<Task>() else { return ExitCode::FAILURE };
    match run(&teller, task) {
        Ok(()) => {
            teller.say(&Line::Done);
            // What is running is no business of whoever listens any more.
            std::process::exit(0)
        }
        Err(error) => {
            teller.say(&Line::Refused { error: error.to_string() });
            ExitCode::FAILURE
        }
    }
}

fn manifest(build: &Path) -> Result<Manifest, CliError> {
    Ok(loader::examine(build)?.1.manifest)
}

fn run(teller: &Teller, task: Task) -> Result<(), CliError> {
    let mut global = task.global;
    // Its figures are those of nobody.
    global.set.push("runtime.monitor=".to_owned());
    let mut live = Live::new(&global, &task.args)?;
    if let Some(old) = &task.old {
        live.take(old, &manifest(old)?, false)?;
    }
    teller.say(&Line::Before);
    live.take(&task.new, &manifest(&task.new)?, task.same)?;
    let made = |live: &Live| {
        let (steps, _) = live.steps();
        steps.done + steps.failed
    };
    let until = made(&live) + STEPS;
    while made(&live) < until {
        thread::sleep(POLL);
    }
    Ok(())
}
