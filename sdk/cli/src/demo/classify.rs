//! One run of the classifier: where, how well, how fast, by which kernels.

use super::assets::Digits;
use crate::{error::CliError, output::short_device, progress::progress, run::median};
use indicatif::ProgressBar;
use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};
use tenon_runtime::{
    Callable, CallableOptions, NodeReport, RunOptions, Runtime, Session, SessionOptions,
    framework::{Tensor, tensor::TensorError},
    proto::GraphDef,
};

/// Where the nodes of a run go.
#[derive(Debug)]
pub struct Placement {
    /// Name of the run.
    pub name: &'static str,
    /// Device of nodes in general.
    pub device: &'static str,
    /// Device of the convolutions.
    pub convolutions: &'static str,
}

/// Each device alone, then both.
pub const PLACEMENTS: [Placement; 3] = [
    Placement { name: "CPU", device: "/device:CPU:0", convolutions: "/device:CPU:0" },
    Placement { name: "ACCEL", device: "/device:ACCEL:0", convolutions: "/device:ACCEL:0" },
    Placement { name: "both", device: "/device:CPU:0", convolutions: "/device:ACCEL:0" },
];

/// Largest difference from TensorFlow's logits.
pub const TOLERANCE: f32 = 1e-4;
/// Steps that are timed, at most, and for how long.
pub const STEPS: usize = 50;
const TIME: Duration = Duration::from_millis(800);

/// A kernel that ran: op, device, plugin, label.
pub type KernelKey = (String, String, String, String);

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// Name of the placement.
    pub name: &'static str,
    /// Images classified right.
    pub right: usize,
    /// Images classified as TensorFlow did.
    pub same: usize,
    /// Largest difference from TensorFlow's logits; infinite when one is not a number.
    pub difference: f32,
    /// Median time of a step over all images.
    pub step_ns: u64,
    /// Steps that were run.
    pub steps: u64,
    /// Calls of each kernel in a step.
    pub kernels: BTreeMap<KernelKey, u64>,
    /// Convolutions that ran on another device than they should.
    pub strayed: Vec<String>,
}

impl Outcome {
    /// Why the run is not as it should be.
    pub fn problem(&self, digits: &Digits) -> Option<String> {
        let (name, n) = (self.name, digits.count());
        if self.same != n {
            let same = self.same;
            Some(format!("on {name}, {same} of {n} images are classified as TensorFlow did"))
        } else if self.difference > TOLERANCE {
            let found = self.difference;
            Some(format!("on {name}, logits differ by {found:.1e}, expected at most {TOLERANCE:e}"))
        } else {
            self.strayed.first().map(|node| format!("on {name}, {node}"))
        }
    }
}

/// The graph with its convolutions sent to a device.
fn placed(graph: &GraphDef, convolutions: &str) -> GraphDef {
    let mut graph = graph.clone();
    for node in graph.node.iter_mut().filter(|node| node.op == "Conv2D") {
        node.device = convolutions.to_owned();
    }
    graph
}

/// Runs the classifier over all images, for a while.
///
/// # Errors
/// The graph cannot be placed, or a step fails.
pub fn classify(
    runtime: &Runtime,
    digits: &Digits,
    placement: &Placement,
) -> Result<Outcome, CliError> {
    let device = Some(placement.device.to_owned());
    let options = SessionOptions { device, count_calls: true, ..SessionOptions::as_written() };
    let session = Session::new(runtime, options)?;
    session.extend(&placed(&digits.graph, placement.convolutions))?;
    let fetches = ["logits", "classes"];
    let feed = [("images", digits.images.clone())];
    let (mut fetched, metadata) = session.run(&feed, &fetches, &[], &RunOptions::default())?;
    let callable = session.callable(CallableOptions::new(&["images"], &fetches))?;
    let before = calls(&callable)?;
    let feeds = [digits.images.clone()];
    let bar = progress(STEPS as u64, placement.name);
    let times = time_steps(&bar, || Ok(callable.run(&feeds, &mut fetched)?))?;
    bar.finish_and_clear();
    let steps = times.len() as u64;
    let after = calls(&callable)?;
    let (right, same, difference) = judge(digits, &fetched).map_err(bad_result)?;
    Ok(Outcome {
        name: placement.name,
        right,
        same,
        difference,
        step_ns: median(&times),
        steps,
        kernels: kernels(&metadata.nodes, &before, &after, steps),
        strayed: strayed(&metadata.nodes, placement),
    })
}

/// Runs steps until there are enough; the sorted times.
///
/// # Errors
/// What a step fails with.
pub fn time_steps(
    bar: &ProgressBar,
    mut step: impl FnMut() -> Result<(), CliError>,
) -> Result<Vec<u64>, CliError> {
    let (began, mut times) = (Instant::now(), Vec::with_capacity(STEPS));
    while times.len() < STEPS && (times.is_empty() || began.elapsed() < TIME) {
        let began = Instant::now();
        step()?;
        times.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        bar.inc(1);
    }
    times.sort_unstable();
    Ok(times)
}

/// A result of another type than the graph gives.
pub fn bad_result(error: TensorError) -> CliError {
    CliError::Demo(format!("a fetched tensor cannot be read: {error}"))
}

fn calls(callable: &Callable) -> Result<HashMap<String, u64>, CliError> {
    Ok(callable.calls()?.into_iter().collect())
}

/// Images classified right, images classified as TensorFlow did, largest difference of logits.
fn judge(digits: &Digits, fetched: &[Tensor]) -> Result<(usize, usize, f32), TensorError> {
    let (logits, classes) = (fetched[0].as_slice::<f32>()?, fetched[1].as_slice::<i64>()?);
    let right = right(digits, classes);
    let same = digits.classes.iter().zip(classes).filter(|(a, b)| a == b).count();
    Ok((right, same, difference(logits, &digits.logits)))
}

/// Images whose class is what they show.
pub fn right(digits: &Digits, classes: &[i64]) -> usize {
    let pairs = digits.labels.iter().zip(classes);
    pairs.filter(|(label, class)| i64::from(**label) == **class).count()
}

/// The largest difference; infinite where one is not a number, or where there are not as many.
pub fn difference(found: &[f32], expected: &[f32]) -> f32 {
    if found.len() != expected.len() {
        return f32::INFINITY;
    }
    let each = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    each.fold(0.0, |worst, d| if d.is_nan() { f32::INFINITY } else { worst.max(d) })
}

fn kernels(
    nodes: &[NodeReport],
    before: &HashMap<String, u64>,
    after: &HashMap<String, u64>,
    steps: u64,
) -> BTreeMap<KernelKey, u64> {
    let mut kernels = BTreeMap::new();
    for node in nodes {
        let at = |calls: &HashMap<String, u64>| calls.get(&node.name).copied().unwrap_or(0);
        let calls = (at(after) - at(before)) / steps.max(1);
        if calls > 0 {
            let device = short_device(&node.device).to_owned();
            let key = (node.op.clone(), device, node.plugin.clone(), node.label.clone());
            *kernels.entry(key).or_default() += calls;
        }
    }
    kernels
}

fn strayed(nodes: &[NodeReport], placement: &Placement) -> Vec<String> {
    let convolutions = nodes.iter().filter(|node| node.op == "Conv2D");
    convolutions
        .filter(|node| !node.device.ends_with(placement.convolutions))
        .map(|node| {
            let (name, device) = (&node.name, &node.device);
            format!("node '{name}' runs on {device}, expected {}", placement.convolutions)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_differs_without_bound() {
        assert_eq!(difference(&[1.0, 2.0], &[1.0, 2.5]), 0.5);
        assert_eq!(difference(&[f32::NAN, 2.0], &[1.0, 2.0]), f32::INFINITY);
        assert_eq!(difference(&[1.0], &[1.0, 2.0]), f32::INFINITY);
    }

    #[test]
    fn a_run_that_is_not_tensorflows_is_a_problem() {
        let digits = Digits::load().unwrap();
        let fine = || Outcome {
            name: "CPU",
            right: 488,
            same: 500,
            difference: 1e-5,
            step_ns: 1,
            steps: 1,
            kernels: BTreeMap::new(),
            strayed: Vec::new(),
        };
        assert_eq!(fine().problem(&digits), None);
        let other = Outcome { same: 499, ..fine() }.problem(&digits).unwrap();
        assert_eq!(other, "on CPU, 499 of 500 images are classified as TensorFlow did");
        let far = Outcome { difference: f32::INFINITY, ..fine() }.problem(&digits).unwrap();
        assert!(far.contains("expected at most 1e-4"), "{far}");
        let strayed = Outcome { strayed: vec!["node 'x'".into()], ..fine() };
        assert_eq!(strayed.problem(&digits).as_deref(), Some("on CPU, node 'x'"));
    }
}
