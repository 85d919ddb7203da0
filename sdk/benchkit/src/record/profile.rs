//! Where the time and the memory of a step go.

use super::{Reached, Work};
use serde::{Deserialize, Serialize};

/// Where the time and the memory of a step go. Times are those of steps that were traced, which costs a node some
/// tens of nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Steps that were traced.
    pub steps: u32,
    /// The nodes that ran, in the order of the plan.
    pub nodes: Vec<NodeTime>,
    /// What the step held, by device.
    pub memory: Vec<StepMemory>,
}

/// What one node of a step takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeTime {
    /// Its name.
    pub node: String,
    /// Its op.
    pub op: String,
    /// Full name of its device.
    pub device: String,
    /// Plugin of its kernel.
    pub plugin: String,
    /// Label of its kernel; empty for the ordinary one.
    pub label: String,
    /// Element type that its work is counted in.
    pub dtype: String,
    /// Calls in a step: more than one in a loop.
    pub calls: u64,
    /// Nanoseconds of all its calls in a step: the median of the steps.
    pub ns: f64,
    /// Work of all its calls; `None` where shapes are known only while a step runs.
    pub work: Option<Work>,
    /// Work over time.
    pub rate: f64,
    /// `GFLOP/s`, `GOP/s`, `GB/s` or `Gcall/s`; empty where the work is not known.
    pub unit: String,
    /// How far from the limit; `None` without a roofline.
    #[serde(default)]
    pub reached: Option<Reached>,
}

/// What the values of a step take on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepMemory {
    /// Full name of the device.
    pub device: String,
    /// Bytes of constants.
    pub constants: u64,
    /// Most bytes of other values at once, as planned.
    pub planned: u64,
    /// Bytes of all other values, each in its own memory.
    pub without_reuse: u64,
    /// Most bytes that a step held of the host's memory besides what was there before it: values, kernels' scratch
    /// memory. `None` for devices with their own memory.
    #[serde(default)]
    pub held: Option<u64>,
}
