//! `tenon demo`: a digit classifier on real images, on each device and on both.
//!
//! The graph was trained by TensorFlow; the images are those it has not seen. Each run is checked against
//! what TensorFlow computes from the same graph, and the demo fails where one image is classified otherwise.

mod assets;
mod classify;
mod report;
mod variants;

use crate::{
    args::Global,
    error::CliError,
    output::{print, print_json},
    start::start_whole,
};
use assets::Digits;
use classify::{Outcome, PLACEMENTS};
use tenon_runtime::{Runtime, framework::device::base::DeviceBase};

/// The device types that the demo runs on.
const DEVICE_TYPES: [&str; 2] = ["CPU", "ACCEL"];

/// Runs the demo.
///
/// # Errors
/// Plugins are missing; the result is not TensorFlow's.
pub fn demo(global: &Global) -> Result<(), CliError> {
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
    if global.json {
        print_json(&report::json(&runtime, &digits, &outcomes, &pair))?;
    } else {
        print(&report::end(&digits, &outcomes, &pair))?;
    }
    match outcomes.iter().find_map(|outcome| outcome.problem(&digits)) {
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
