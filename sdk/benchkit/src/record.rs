//! The form of what is measured.
//!
//! A [`Report`] is one run of `tenon bench`: a [`Run`] that says where and with what, a [`Record`] per case and
//! variant with every sample, and what follows from them: [`Comparison`]s, [`Crossover`]s, [`Problem`]s. All of
//! it is plain data.
//!
//! A file of records holds JSON lines: the run first, then one record per line. A record begins with the fields
//! that the scripts print which measure the peers (bench, peer, version, size, threads, median_ns, min_ns,
//! max_ns, samples, rate, best_rate, unit), so that one table takes both. The line of the run begins with a
//! space: readers of JSON pass over it, and those scripts take only lines that begin with a brace.
//!
//! Times are nanoseconds per call, rates are work per nanosecond: GFLOP/s, GB/s.

mod around;
mod file;
mod limits;
mod profile;
#[cfg(test)]
pub(crate) mod testing;
mod text;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub use around::Around;
pub use file::{RecordError, read_lines, write_lines};
pub use limits::{Level, Peak, Roofline};
pub use profile::{NodeTime, Profile, StepMemory};
pub use text::dims_text;

/// Version of the form; a reader refuses a later one. From 2 on work may be an op's own formula, caches may be cold, and
/// counters may be there.
pub const FORM: u32 = 2;

/// One run of `tenon bench`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Where, when, with what.
    pub run: Run,
    /// One per case and variant that was timed; the variants of a case follow one another.
    pub records: Vec<Record>,
    /// Variants of one case against its base.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// Where on a sweep one variant overtakes another.
    #[serde(default)]
    pub crossovers: Vec<Crossover>,
    /// What was not timed, or not believed.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

/// Where, when, with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`FORM`].
    pub form: u32,
    /// Version of Tenon.
    pub tenon: String,
    /// Day, as `2026-11-21`.
    pub date: String,
    /// The command line, without the executable's folder.
    pub command: Vec<String>,
    /// Threads that compute.
    pub threads: u32,
    /// Seconds that one variant of one case may take.
    pub budget_s: f64,
    /// Processes that measured.
    pub processes: u32,
    /// Of everything random: orders of variants, inputs, resampling.
    pub seed: u64,
    /// Where it ran.
    pub machine: Machine,
    /// The plugins in use.
    pub plugins: Vec<Plugin>,
    /// Limits of the machine; `None` when they were not measured.
    #[serde(default)]
    pub roofline: Option<Roofline>,
    /// The sweep, when the cases are one.
    #[serde(default)]
    pub sweep: Option<SweepAxis>,
    /// Limits of other numbers of threads, where these are a sweep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rooflines: Vec<Roofline>,
    /// The commit of the repository that it was started in, with a `+` where files differ from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// What two measurements of one kernel differ by, as a ratio less one: 0.02 is two per cent. `None` when it
    /// was not measured on this machine.
    #[serde(default)]
    pub noise_floor: Option<f64>,
}

/// Where it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// Its features that kernels ask for, such as `avx2`.
    pub features: Vec<String>,
    /// Logical processors that are online.
    pub cores: u32,
    /// Processors that this process may use, as `0-1`.
    #[serde(default)]
    pub allowed: Option<String>,
    /// Operating system and its version.
    pub system: String,
    /// The frequency governor.
    #[serde(default)]
    pub governor: Option<String>,
    /// Whether this is a virtual machine.
    #[serde(default)]
    pub hypervisor: Option<bool>,
    /// Average load of the minute before the run.
    #[serde(default)]
    pub load: Option<f64>,
}

/// A plugin in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plugin {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// SHA-256 of the file, in hexadecimal; empty when it is linked into the host.
    pub digest: String,
    /// Name of the file, without its folder.
    #[serde(default)]
    pub file: Option<String>,
}

/// The axis of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// The symbol, such as `n`.
    pub symbol: String,
    /// Its values, ascending.
    pub values: Vec<i64>,
}

/// What was called: an op with attributes and inputs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Case {
    /// The op.
    pub op: String,
    /// Attributes as text, those at their defaults included.
    pub attrs: BTreeMap<String, String>,
    /// The inputs in order.
    pub inputs: Vec<Input>,
    /// Value of the sweep's symbol.
    #[serde(default)]
    pub at: Option<i64>,
    /// For a call of a graph: the first node that makes it.
    #[serde(default)]
    pub node: Option<String>,
    /// For a call of a graph: how many nodes make it in one step.
    #[serde(default = "once")]
    pub calls: u64,
}

fn once() -> u64 {
    1
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Input {
    /// Name of its argument; several inputs may be one argument's.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Shape.
    pub dims: Vec<i64>,
    /// Whether its value was known when the kernel was made.
    #[serde(default)]
    pub constant: bool,
}

/// Whose code was called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// Type of the device.
    pub device: String,
    /// Label; empty for the ordinary kernel.
    pub label: String,
    /// Name of the plugin.
    pub plugin: String,
    /// Version of the plugin.
    pub plugin_version: String,
    /// Digest of the plugin's file.
    pub digest: String,
    /// Where the kernel is registered, as `crate file:line`.
    pub source: String,
    /// Whether the policy chooses it for this case.
    pub chosen: bool,
}

/// What one call of the timed loop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// The kernel's entry alone, on outputs that are there.
    Kernel,
    /// The kernel's entry; each sample ends when the stream has run what the sample enqueued.
    Enqueued,
    /// A whole call with its completion: for kernels that complete later, or that make their outputs anew.
    Call,
}

/// Samples of one kind, and what is said of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Nanoseconds per call, in the order of measuring.
    pub ns: Vec<f64>,
    /// The round of each: samples of one case, process and round were taken together, whatever the variant.
    pub rounds: Vec<u32>,
    /// The process of each.
    pub processes: Vec<u32>,
    /// Calls in one sample.
    pub batch: u64,
    /// What is said of them.
    pub summary: Summary,
    /// Other work of the machine in the meantime; `None` if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}

/// What is said of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The ends of its 95 % confidence interval.
    pub interval: [f64; 2],
    /// The median distance from the median.
    pub mad: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The fifth percentile.
    pub p5: f64,
    /// The ninety-fifth.
    pub p95: f64,
    /// Samples more than 1.5 interquartile ranges outside the quartiles, not further than 3.
    pub mild_outliers: u32,
    /// Samples further out.
    pub severe_outliers: u32,
    /// Whether the interval is narrow enough to have stopped for it.
    pub converged: bool,
}

/// Cost of a call around the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// `callable` for a step of a one-op graph, `call` for a call without a graph.
    pub through: String,
    /// Whole calls.
    pub whole: Samples,
    /// Whole call less kernel, per round.
    pub median: f64,
    /// The ends of its 95 % confidence interval.
    pub interval: [f64; 2],
}

/// Where the work of a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The op is known.
    Op,
    /// The op's own formula; the op moves elements more than it computes with them.
    Declared,
    /// The op's own formula; its operations grow faster than its bytes, so that arithmetic is what it is measured by.
    DeclaredProducts,
    /// Bytes of inputs and outputs alone: the op is not known.
    Bytes,
}

/// The work of one call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Operations of the direct algorithm; `None` where they are not known.
    pub flops: Option<f64>,
    /// Bytes of the inputs.
    pub read: f64,
    /// Bytes of the outputs.
    pub written: f64,
    /// Where the operations come from.
    pub source: CostSource,
}

/// How far from the limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// Operations per byte.
    pub intensity: Option<f64>,
    /// What limits it: `compute`, or the name of a level.
    pub bound: String,
    /// The limit in the record's unit.
    pub roof: f64,
    /// Rate at the median over the limit.
    pub fraction: f64,
    /// Whether the fraction is above one: the work or the limit is other than assumed.
    pub impossible: bool,
}

/// A case timed with one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The op.
    pub bench: String,
    /// The variant, as `tenon avx512`.
    pub peer: String,
    /// Version of the plugin.
    pub version: String,
    /// The inputs' shapes, and attributes that are not at their defaults.
    pub size: String,
    /// Threads that compute.
    pub threads: u32,
    /// Whether caches were filled with other things before each call.
    #[serde(default)]
    pub cold: bool,
    /// Median time of the kernel.
    pub median_ns: f64,
    /// The shortest.
    pub min_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// Number of samples.
    pub samples: u32,
    /// Work over the median.
    pub rate: f64,
    /// Work over the shortest.
    pub best_rate: f64,
    /// `GFLOP/s`, `GOP/s`, `GB/s` or `Gcall/s`.
    pub unit: String,
    /// Model of the CPU.
    pub cpu: String,
    /// What was called.
    pub case: Case,
    /// Whose code.
    pub variant: Variant,
    /// What one call of the loop is.
    pub timing: Timing,
    /// Times of the kernel.
    pub kernel: Samples,
    /// Cost of a call around it; `None` when it was not measured.
    #[serde(default)]
    pub dispatch: Option<Dispatch>,
    /// Work of a call.
    pub work: Work,
    /// How far from the limit; `None` without a roofline.
    #[serde(default)]
    pub reached: Option<Reached>,
    /// What the processor counted in a call; `None` where it was not asked or not allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counts>,
    /// What its results were compared with before it was timed; `None` where there is nothing independent.
    #[serde(default)]
    pub checked: Option<String>,
    /// Which part of them was, where it was not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// Where its time goes, where it is a whole step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// What the processor counted, on the mean over calls and in all threads of the process; `None` for what it cannot count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Calls that were counted.
    pub calls: u64,
    /// Cycles.
    pub cycles: Option<f64>,
    /// Instructions.
    pub instructions: Option<f64>,
    /// Reads that missed the last cache.
    pub cache_misses: Option<f64>,
    /// Reads whose address was not among the translated ones.
    pub tlb_misses: Option<f64>,
}

/// A part of results that represents the whole: the rest would take the reference too long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    /// What the parts are, such as `rows`.
    pub what: String,
    /// Parts that were judged, the first and the last among them.
    pub judged: u64,
    /// Parts in all.
    pub of: u64,
}

/// One variant of a case against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The record of the variant: its place in [`Report::records`].
    pub record: u32,
    /// The record of the base; `None` when it is from another file.
    #[serde(default)]
    pub base: Option<u32>,
    /// The base, for a reader.
    pub against: String,
    /// Whether samples were paired by round.
    pub paired: bool,
    /// Time of the base over time of the variant: above one the variant is faster.
    pub speedup: f64,
    /// The ends of its 95 % confidence interval.
    pub interval: [f64; 2],
    /// Two-sided p-value of a Mann-Whitney test, after Holm's correction; `None` where the interval decides.
    #[serde(default)]
    pub p: Option<f64>,
    /// Ratios within this of one do not count as a difference.
    pub threshold: f64,
    /// What follows.
    pub verdict: Verdict,
    /// Why the two cannot be compared, when they cannot.
    #[serde(default)]
    pub note: Option<String>,
}

/// What follows from a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The variant takes less time.
    Faster,
    /// The variant takes more time.
    Slower,
    /// No difference that can be shown.
    Same,
    /// Another machine, other threads, nothing of that name.
    NotComparable,
    /// The machine was busy while one of the two was measured, which explains the difference: not judged.
    Busy,
}

/// Where on a sweep one variant overtakes another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Crossover {
    /// The op.
    pub op: String,
    /// The variant that is faster above.
    pub above: String,
    /// The variant that is faster below.
    pub below: String,
    /// The last value at which `below` is faster for certain; `None` when `above` is faster from the first on.
    #[serde(default)]
    pub after: Option<i64>,
    /// The first value from which `above` is faster for certain; `None` when `below` is faster up to the last.
    #[serde(default)]
    pub from: Option<i64>,
}

/// What was not timed, or not believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// The case, as text.
    pub case: String,
    /// The variant, as text; empty when the case has none.
    pub variant: String,
    /// The problem.
    pub message: String,
}

/// Kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The result is wrong: not timed.
    Wrong,
    /// The call fails: not timed.
    Failed,
    /// The kernel does not take the case: not timed.
    Refused,
    /// A single call takes longer than there is time for: not timed.
    TooSlow,
    /// Timed, though nothing independent says whether the result is right.
    Unverified,
    /// Timed, and the result after timing differs from the one before.
    Changed,
}
