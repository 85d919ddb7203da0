//! `tenon demo train`: the digit classifier, trained from random weights.
//!
//! It trains on the CPU; again on two devices of the simulated accelerator, each with half of every batch, which has to give
//! the same losses; and once more in a process that is killed in the middle and goes on from its last checkpoint, which has
//! to end with the same weights, bit for bit.

mod child;
mod data;
mod model;
mod report;
mod run;

use super::{assets::Digits, check_devices};
use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
    start::start_whole,
};
use child::{ChildArgs, Resumed};
use data::Images;
use run::{Plan, Trained};
use std::path::PathBuf;
use tenon_runtime::Runtime;

/// What the command does.
pub const ABOUT: &str = "Train the classifier from random weights, on the CPU and on two devices, and go on after a SIGKILL

The graph is built, differentiated and trained here; the digits are those that `tenon demo` classifies. Three trainings \
have to agree: one on the CPU, one on two devices of the simulated accelerator, which share every batch, and one in a \
process that kills itself between two checkpoints and goes on from the last one in another process.";
/// How it is used.
pub const EXAMPLE: &str = "Example:\n  tenon demo train --page training.html";

/// Arguments of `demo train`.
#[derive(Debug, clap::Args)]
pub struct TrainArgs {
    /// Updates of the weights, of which each sees 64 images
    #[arg(long, value_name = "N", default_value_t = STEPS, value_parser = clap::value_parser!(u64).range(20..=1_000_000))]
    steps: u64,
    /// Steps between two checkpoints of the process that is killed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    save_every: Option<u64>,
    /// Write losses and accuracy as a page of curves
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    #[command(flatten)]
    child: ChildArgs,
}

const STEPS: u64 = 1500;
/// Steps on the accelerators, and by how much a loss may differ from the CPU's there.
const COMPARED: u64 = 50;
const TOLERANCE: f32 = 1e-5;
/// The part of the images that the classifier has to get right after the default number of steps.
const ACCURACY: f64 = 0.97;

/// The three trainings.
pub struct Outcome {
    /// Updates of a whole training.
    pub steps: u64,
    /// On the CPU.
    pub cpu: Trained,
    /// On two accelerators, the first steps.
    pub accelerators: Trained,
    /// Killed and resumed.
    pub resumed: Resumed,
    /// Images that the training has not seen.
    pub images: usize,
    /// Images of the training.
    pub trained_on: usize,
}

impl Outcome {
    /// The part of the images that the classifier gets right at the end.
    pub fn accuracy(&self) -> f64 {
        let right = self.cpu.right.last().map_or(0, |(_, right)| *right);
        right as f64 / self.images.max(1) as f64
    }

    /// The largest difference between losses on the CPU and on the accelerators; infinite where one is not a number.
    pub fn loss_difference(&self) -> f32 {
        let pairs = self.cpu.losses.iter().zip(&self.accelerators.losses);
        let differences = pairs.map(|(cpu, accel)| (cpu - accel).abs());
        differences.fold(0.0, |most, x| if x.is_nan() { f32::INFINITY } else { most.max(x) })
    }

    /// Weights whose bits differ after the interruption.
    pub fn different_weights(&self) -> usize {
        let pairs = self.cpu.weights.iter().zip(&self.resumed.weights);
        pairs.filter(|(one, other)| !matches!((one.as_bytes(), other.as_bytes()), (Ok(a), Ok(b)) if a == b)).count()
    }

    /// What was found, and whether it is as it should be.
    pub fn findings(&self) -> Vec<(bool, String)> {
        let (accuracy, difference, weights) =
            (self.accuracy(), self.loss_difference(), self.different_weights());
        let is_whole = self.steps >= STEPS;
        let right = format!(
            "{:.1} % of {} images that it has not seen are classified right",
            100.0 * accuracy,
            self.images
        );
        let losses = format!(
            "over {} steps, losses on two ACCEL devices with averaged gradients differ from the CPU's by {difference:.1e} at \
             most",
            self.accelerators.losses.len()
        );
        let Resumed { killed_at, resumed_from, .. } = self.resumed;
        let resumed = format!(
            "killed by SIGKILL after step {killed_at}, resumed from the checkpoint of step {resumed_from}"
        );
        let same = match weights {
            0 => format!("{resumed}: the same weights, bit for bit, as without the interruption"),
            count => format!(
                "{resumed}: {count} of {} tensors of weights differ",
                self.cpu.weights.len()
            ),
        };
        vec![
            (accuracy >= ACCURACY || !is_whole, right),
            (difference <= TOLERANCE, losses),
            (weights == 0 && resumed_from < killed_at, same),
        ]
    }
}

/// Trains the classifier.
///
/// # Errors
/// Plugins are missing, or the trainings do not agree.
pub fn train(global: &Global, args: &TrainArgs) -> Result<(), CliError> {
    let save_every = args.save_every.unwrap_or((args.steps / 10).max(1));
    if let Some(folder) = &args.child.child {
        return child::work(global, folder, (args.steps, save_every), args.child.die_at);
    }
    let (runtime, _) = start_whole(global, None)?;
    check_devices(&runtime)?;
    let outcome = all(global, &runtime, (args.steps, save_every))?;
    if let Some(file) = &args.page {
        let failed = |source| CliError::File { file: file.clone(), done: "written", source };
        std::fs::write(file, report::page(&outcome)).map_err(failed)?;
    }
    if global.json {
        print_json(&report::json(&outcome))?;
    } else {
        print(&report::text(&outcome, args.page.as_deref()))?;
    }
    match outcome.findings().into_iter().find(|(is_good, _)| !is_good) {
        Some((_, problem)) => Err(CliError::Demo(problem)),
        None => Ok(()),
    }
}

/// Runs the three trainings.
fn all(
    global: &Global,
    runtime: &Runtime,
    (steps, every): (u64, u64),
) -> Result<Outcome, CliError> {
    let (images, digits) = (Images::load()?, Digits::load()?);
    let plan = |name, devices, last| Plan {
        name,
        devices,
        steps,
        last,
        checkpoints: None,
        after_step: &|_| {},
    };
    let cpu = run::train(runtime, &images, &digits, &plan("CPU", &["/device:CPU:0"], steps))?;
    let devices = ["/device:ACCEL:0", "/device:ACCEL:1"];
    let last = steps.min(COMPARED);
    let accelerators = run::train(runtime, &images, &digits, &plan("two ACCEL", &devices, last))?;
    let folder = tempfile::tempdir().map_err(|source| CliError::File {
        file: std::env::temp_dir(),
        done: "written",
        source,
    })?;
    let resumed = child::kill_and_resume(global, runtime, folder.path(), (steps, every))?;
    let (images, trained_on) = (digits.count(), images.count());
    Ok(Outcome { steps, cpu, accelerators, resumed, images, trained_on })
}
