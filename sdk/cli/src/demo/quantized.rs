//! The classifier on 8 bits, as `tenon quantize` makes it, beside the one of floats.

use super::{
    assets::Digits,
    classify::{bad_result, right, time_steps},
};
use crate::{error::CliError, progress::progress, run::median};
use tenon_quantize::{QuantizeOptions, Quantized, quantize};
use tenon_runtime::{
    CallableOptions, Runtime, Session, SessionOptions,
    framework::registry::Registry,
    proto::{GraphDef, encode},
};

/// By how many of a hundred images it may be worse.
const TOLERANCE: f64 = 0.5;
/// An op that this needs.
const OP: &str = "_QuantizedFusedConv2D";

/// The classifier of floats and the one of 8 bits, both optimised, on the CPU.
#[derive(Debug)]
pub struct Comparison {
    /// Images classified right, by each.
    pub right: [usize; 2],
    /// Bytes of their graphs.
    pub bytes: [usize; 2],
    /// Median times of a step over all images.
    pub step_ns: [u64; 2],
    /// Signal to noise of the logits on the calibration images, in decibels.
    pub decibels: f64,
}

impl Comparison {
    /// Why the quantised one is not as it should be.
    pub fn problem(&self, digits: &Digits) -> Option<String> {
        let [float, quantized] =
            self.right.map(|right| 100.0 * right as f64 / digits.count() as f64);
        (quantized < float - TOLERANCE).then(|| {
            format!("quantised, {quantized:.1} % of the images are classified right, {float:.1} % before")
        })
    }
}

/// Whether a plugin with quantised kernels is loaded.
pub fn is_there(registry: &Registry) -> bool {
    registry.kernels().any(|kernel| kernel.op == OP)
}

/// Quantises the classifier and runs both.
///
/// # Errors
/// The graph cannot be quantised, or a step fails.
pub fn compare(runtime: &Runtime, digits: &Digits) -> Result<Comparison, CliError> {
    let samples = [vec![("images".to_owned(), digits.calibration.clone())]];
    let fetches = ["logits", "classes"].map(str::to_owned).to_vec();
    let options = QuantizeOptions { fetches, ..QuantizeOptions::default() };
    let made = quantize(runtime, &digits.graph, &samples, &options)?;
    let float = measure(runtime, digits, &digits.graph)?;
    let quantized = measure(runtime, digits, &made.graph)?;
    Ok(Comparison {
        right: [float.0, quantized.0],
        bytes: [size(&digits.graph)?, size(&made.graph)?],
        step_ns: [float.1, quantized.1],
        decibels: decibels(&made),
    })
}

fn decibels(made: &Quantized) -> f64 {
    let noise = made.outputs.first().and_then(|output| output.noise);
    noise.map_or(f64::NAN, |noise| noise.decibels())
}

fn size(graph: &GraphDef) -> Result<usize, CliError> {
    let unwritten = |error| CliError::Demo(format!("the graph cannot be written: {error}"));
    encode(graph).map(|bytes| bytes.len()).map_err(unwritten)
}

/// Images that are classified right, and the median time of a step.
fn measure(runtime: &Runtime, digits: &Digits, graph: &GraphDef) -> Result<(usize, u64), CliError> {
    let device = Some("/device:CPU:0".to_owned());
    let session = Session::new(runtime, SessionOptions { device, ..SessionOptions::default() })?;
    session.extend(graph)?;
    let callable = session.callable(CallableOptions::new(&["images"], &["classes"]))?;
    let (feeds, mut fetched) = ([digits.images.clone()], Vec::new());
    let bar = progress(super::classify::STEPS as u64, "quantised");
    let times = time_steps(&bar, || Ok(callable.run(&feeds, &mut fetched)?))?;
    bar.finish_and_clear();
    let classes = fetched[0].as_slice::<i64>().map_err(bad_result)?;
    Ok((right(digits, classes), median(&times)))
}
