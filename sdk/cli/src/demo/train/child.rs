//! A training in a process of its own, which is killed in the middle and goes on in a second one.

use super::{data::Images, model::Model, run};
use crate::{args::Global, demo::assets::Digits, error::CliError, start::start_whole};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    env, io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};
use tenon_runtime::{Runtime, SessionOptions, framework::Tensor};
use tenon_training::{LocalTarget, Target, TrainError};

/// What the process is told, by options that help does not show.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildArgs {
    /// Train with checkpoints in this folder, as a child process
    #[arg(long, hide = true, requires = "steps")]
    pub child: Option<PathBuf>,
    /// Kill the process with SIGKILL after this step
    #[arg(long, hide = true, requires = "child")]
    pub die_at: Option<u64>,
}

/// What a killed training gave.
pub struct Resumed {
    /// The step after which the first process was killed.
    pub killed_at: u64,
    /// The step from which the second one went on.
    pub resumed_from: u64,
    /// The weights at the end.
    pub weights: Vec<Tensor>,
}

/// The work of the child.
///
/// # Errors
/// As [`run::train`].
pub fn work(
    global: &Global,
    folder: &Path,
    (steps, every): (u64, u64),
    die_at: Option<u64>,
) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, None)?;
    let die = |step: u64| {
        if die_at == Some(step) {
            // Nothing runs after this: no destructor, no flush, no last checkpoint.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    };
    let plan = run::Plan {
        name: if die_at.is_some() { "to be killed" } else { "resumed" },
        devices: &["/device:CPU:0"],
        steps,
        last: steps,
        checkpoints: Some((folder, every)),
        after_step: &die,
    };
    run::train(&runtime, &Images::load()?, &Digits::load()?, &plan).map(drop)
}

/// Trains in a process that kills itself in the middle between two checkpoints, and in another one that goes on.
///
/// # Errors
/// A process ends otherwise than it should, or its checkpoint cannot be read.
pub fn kill_and_resume(
    global: &Global,
    runtime: &Runtime,
    folder: &Path,
    (steps, every): (u64, u64),
) -> Result<Resumed, CliError> {
    let killed_at = steps / 2 / every * every + every.div_ceil(2);
    let status = spawn(global, folder, (steps, every), Some(killed_at))?;
    if status.signal() != Some(9) {
        return Err(CliError::Demo(format!(
            "the process to be killed after step {killed_at}: expected an end by SIGKILL, found {status}"
        )));
    }
    let model = Model::build(runtime, &["/device:CPU:0"], steps)?;
    let saver = model.scaffold.saver.as_ref().ok_or_else(|| lost(folder))?;
    let resumed_from = saver.latest(folder)?.and_then(|prefix| step_of(&prefix));
    let resumed_from = resumed_from.ok_or_else(|| lost(folder))?;
    let status = spawn(global, folder, (steps, every), None)?;
    if !status.success() {
        return Err(CliError::Demo(format!("the process that goes on failed: {status}")));
    }
    let checkpoint = saver.latest(folder)?.ok_or_else(|| lost(folder))?;
    let target = LocalTarget::new(runtime, SessionOptions::default());
    let session = target.open(&model.scaffold.graph).map_err(TrainError::from)?;
    saver.restore(&*session, &checkpoint)?;
    Ok(Resumed { killed_at, resumed_from, weights: run::weights(&*session, &model)? })
}

fn lost(folder: &Path) -> CliError {
    CliError::Demo(format!("{}: expected a checkpoint, found none", folder.display()))
}

/// The step of `model.ckpt-STEP`.
fn step_of(prefix: &Path) -> Option<u64> {
    prefix.file_name()?.to_str()?.rsplit_once('-')?.1.parse().ok()
}

/// Runs a child to its end. It has the standard error stream of this process, where its bar goes.
fn spawn(
    global: &Global,
    folder: &Path,
    (steps, every): (u64, u64),
    die_at: Option<u64>,
) -> Result<ExitStatus, CliError> {
    let failed = |error: io::Error| {
        CliError::Demo(format!("a process of its own cannot be started: {error}"))
    };
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    for (option, files) in [("--plugin", &global.plugins), ("--isolate", &global.isolate)] {
        for file in files {
            command.arg(option).arg(file);
        }
    }
    for setting in &global.set {
        command.args(["--set", setting]);
    }
    command.args(["demo", "train", "--child"]).arg(folder);
    command.args(["--steps", &steps.to_string(), "--save-every", &every.to_string()]);
    if let Some(step) = die_at {
        command.args(["--die-at", &step.to_string()]);
    }
    command.status().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_s_name_has_its_step() {
        assert_eq!(step_of(Path::new("a-1/model.ckpt-250")), Some(250));
        assert_eq!(step_of(Path::new("a-1/model.ckpt")), None);
    }
}
