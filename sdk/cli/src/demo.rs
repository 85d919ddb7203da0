//! `tenon demo`: a digit classifier on real images, on each device, on both, and on 8 bits.
//!
//! The graph was trained by TensorFlow; the images are those it has not seen. Each run is checked against
//! what TensorFlow computes from the same graph, and the demo fails where one image is classified otherwise; quantised,
//! the classifier may be half a point worse. `tenon demo train` trains the classifier itself.

mod assets;
mod classify;
mod quantized;
mod report;
mod train;
mod variants;

use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
    start::start_whole,
};
use assets::Digits;
use classify::{Outcome, PLACEMENTS};
use report::Shown;
use tenon_runtime::{Runtime, framework::device::base::DeviceBase};

/// The device types that the demo runs on.
const DEVICE_TYPES: [&str; 2] = ["CPU", "ACCEL"];

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    #[command(subcommand)]
    part: Option<Part>,
}

/// The parts of the demo besides the first.
#[derive(Debug, clap::Subcommand)]
enum Part {
    /// Train the classifier from random weights, on the CPU and on two devices, and go on after a SIGKILL
    #[command(long_about = train::ABOUT, after_long_help = train::EXAMPLE)]
    Train(train::TrainArgs),
}

/// Runs the demo, or the part of it that is asked for.
///
/// # Errors
/// Plugins are missing; the result is not what it should be.
pub fn demo(global: &Global, args: &DemoArgs) -> Result<(), CliError> {
    match &args.part {
        None => run(global),
        Some(Part::Train(args)) => train::train(global, args),
    }
}

/// Runs the classifier.
fn run(global: &Global) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, None)?;
    check_devices(&runtime)?;
    let digits = Digits::load()?;
    if !global.json {
        print(&report::beginning(&runtime, &digits))?;
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for placement in &PLACEMENTS {
        let outcome = classify::classify(&runtime, &digits, placement)?;
        outcomes.push(outcome);
    }
    let pair = variants::compare(&runtime, &digits)?;
    let is_there = quantized::is_there(&runtime.registry());
    let on_bytes = is_there.then(|| quantized::compare(&runtime, &digits)).transpose()?;
    let shown =
        Shown { digits: &digits, outcomes: &outcomes, pair: &pair, on_bytes: on_bytes.as_ref() };
    if global.json {
        print_json(&report::json(&runtime, &shown))?;
    } else {
        print(&report::end(&shown))?;
    }
    let problem = on_bytes.as_ref().and_then(|on_bytes| on_bytes.problem(&digits));
    match outcomes.iter().find_map(|outcome| outcome.problem(&digits)).or(problem) {
        Some(problem) => Err(CliError::Demo(problem)),
        None => Ok(()),
    }
}

fn check_devices(runtime: &Runtime) -> Result<(), CliError> {
    let devices = runtime.devices().devices();
    let there =
        |device_type: &str| devices.iter().any(|device| device.device_type() == device_type);
    let missing: Vec<&str> = DEVICE_TYPES.into_iter().filter(|name| !there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(CliError::DemoPlugins { missing: missing.join(" and ") })
}
