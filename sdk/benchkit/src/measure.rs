//! Measures one call with every variant.
//!
//! ```text
//! choices ── made, run once ── judged by the oracle ── sampled turn by turn ── run again ── records
//!    │             │                   │                                          │
//!  refused   failed, too slow        wrong                                     changed
//! ```
//!
//! A variant that is wrong is reported, and not timed. All variants get the same inputs, in the same memory where
//! they compute in it; each has its own outputs, which stay where they are.

mod judge;
mod part;
mod ready;
mod whole;

use crate::{
    calls::Call,
    cost, counters,
    error::BenchError,
    record::{
        Case, Counts, Dispatch, Problem, ProblemKind, Record, Report, Roofline, Samples, Summary,
        Timing, Variant, Work,
    },
    roofline,
    sampler::{Failed, Plan, Series, Subject, Traced, interleave_traced},
    stats::{
        bootstrap,
        describe::{median, summary},
    },
    step,
    variants::{Choice, Filter, Host, choices},
};
use judge::Judge;
use ready::Ready;
use std::time::Duration;
use tenon_framework::{DType, Tensor, device::base::DeviceBase};
use tenon_runtime::host::call::TraceSink;
use tenon_testkit::node::Node;
use whole::Whole;

/// How calls are measured.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Time for one variant of a case.
    pub budget: Duration,
    /// A variant whose first call takes longer than this is not timed; [`longest`] is the usual one.
    pub longest: Duration,
    /// Whether results are compared with the oracle's; once is enough.
    pub judged: bool,
    /// How far results may be from the reference's, as a share of the sum of what cancels in them, instead of what
    /// kernels promise: for a user who has given precision away by a knob.
    pub tolerance: Option<f64>,
    /// Whether whole calls are timed too.
    pub dispatch: bool,
    /// Whether caches are filled with other things before each call.
    pub cold: bool,
    /// Whether the processor's counters are read beside.
    pub counters: bool,
    /// Threads that compute.
    pub threads: u32,
    /// Number of this process.
    pub process: u32,
    /// Of orders and intervals.
    pub seed: u64,
    /// A trace that gets the samples.
    pub trace: Option<&'static dyn TraceSink>,
}

/// The result of a call.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// A record per variant that was timed.
    pub records: Vec<Record>,
    /// What was not timed, or not believed.
    pub problems: Vec<Problem>,
}

/// Reports while a call is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Status {
    /// Results are compared with the oracle's.
    Checking,
    /// Samples are taken; this share is done.
    Timing(f64),
}

/// How long a first call may take, by the time for one variant: ten times that time, and at least 3 seconds.
pub fn longest(budget: Duration) -> Duration {
    Duration::from_secs(3).max(budget * FIRST_CALL)
}

/// A sample where calls are enqueued: what it takes to begin, and to learn of the end, is to be small beside it.
const STREAM_SAMPLE: Duration = Duration::from_millis(2);

/// A first call may take this many times the time for one variant.
const FIRST_CALL: u32 = 10;

/// Measures one call.
///
/// # Errors
/// Inputs that cannot be made, attributes that the op does not allow. What is wrong with a variant is a problem.
pub fn measure(
    hosts: &[Host],
    call: &Call,
    filter: &Filter,
    settings: &Settings,
    progress: &mut dyn FnMut(Status),
) -> Result<Measured, BenchError> {
    progress(Status::Checking);
    let inputs = call.case.tensors()?;
    let case = call.recorded()?;
    let text = case.to_string();
    let mut measured = Measured::default();
    let mut ready = Vec::new();
    for (place, host) in hosts.iter().enumerate() {
        let node = node(host, call, &inputs)?;
        node.infer().map_err(|refusal| {
            BenchError::wish(&call.op.name, format!("{}: {}", case.shapes(), refusal.message))
        })?;
        let (found, refused) = choices(host, place, &node, filter, &text);
        measured.problems.extend(refused);
        let tolerance = settings.tolerance;
        let mut judge = settings.judged.then(|| Judge::new(host, call, &inputs, tolerance));
        for choice in found {
            if settings.cold && choice.device.info().streams {
                let message = "its device has caches of its own, which --cold does not reach";
                let kind = ProblemKind::Refused;
                measured.problems.push(problem(kind, &text, &choice, message.to_owned()));
                continue;
            }
            match ready::make(host, &node, choice, &inputs, judge.as_mut(), settings.longest) {
                Ok(variant) => ready.push(variant),
                Err((choice, kind, message)) => {
                    measured.problems.push(problem(kind, &text, &choice, message));
                }
            }
        }
    }
    for variant in &ready {
        if let Some(reason) = &variant.unverified {
            let reason = reason.clone();
            measured.problems.push(problem(
                ProblemKind::Unverified,
                &text,
                &variant.choice,
                reason,
            ));
        }
    }
    let bench = Bench { hosts, call, inputs: &inputs, settings, text: &text };
    let (timed, problems) = bench.time(&ready, progress)?;
    measured.problems.extend(problems);
    for (variant, timed) in ready.iter().zip(timed) {
        let Some(timed) = timed else { continue };
        measured.records.push(record(call, &case, variant, timed, settings)?);
    }
    Ok(measured)
}

fn node(host: &Host, call: &Call, inputs: &[Tensor]) -> Result<Node, BenchError> {
    let registry = host.runtime.registry();
    let op = registry.op(&call.op.name).unwrap_or(&call.op);
    let constant = |at: usize| call.case.inputs[at].constant;
    Ok(Node::new(op, "bench", call.case.attrs.clone(), inputs, constant)?)
}

fn problem(kind: ProblemKind, case: &str, choice: &Choice, message: String) -> Problem {
    Problem { kind, case: case.to_owned(), variant: choice.variant.to_string(), message }
}

/// What was sampled of a variant.
struct Timed {
    timing: Timing,
    shares: bool,
    counters: Option<Counts>,
    kernel: Series,
    whole: Option<(&'static str, Series)>,
}

/// A call that is about to be timed.
struct Bench<'a> {
    hosts: &'a [Host],
    call: &'a Call,
    inputs: &'a [Tensor],
    settings: &'a Settings,
    text: &'a str,
}

impl Bench<'_> {
    /// Samples the variants; those that fail on the way are left out, and the rest is begun anew.
    fn time(
        &self,
        ready: &[Ready],
        progress: &mut dyn FnMut(Status),
    ) -> Result<(Vec<Option<Timed>>, Vec<Problem>), BenchError> {
        let mut left: Vec<usize> = (0..ready.len()).collect();
        let mut problems = Vec::new();
        while !left.is_empty() {
            let chosen: Vec<&Ready> = left.iter().map(|&at| &ready[at]).collect();
            match self.attempt(&chosen, progress)? {
                Ok((timed, changed)) => {
                    problems.extend(changed);
                    let mut all: Vec<Option<Timed>> = ready.iter().map(|_| None).collect();
                    left.into_iter().zip(timed).for_each(|(at, timed)| all[at] = Some(timed));
                    return Ok((all, problems));
                }
                Err(failed) => {
                    let choice = &chosen[failed.subject].choice;
                    problems.push(problem(ProblemKind::Failed, self.text, choice, failed.message));
                    left.remove(failed.subject);
                }
            }
        }
        Ok((ready.iter().map(|_| None).collect(), problems))
    }

    /// One attempt; a failure names the variant.
    #[allow(clippy::type_complexity, reason = "a pair of lists, or which variant failed")]
    fn attempt(
        &self,
        ready: &[&Ready],
        progress: &mut dyn FnMut(Status),
    ) -> Result<Result<(Vec<Timed>, Vec<Problem>), Failed>, BenchError> {
        let mut calls = Vec::new();
        for (subject, variant) in ready.iter().enumerate() {
            let host = &self.hosts[variant.choice.host];
            match variant.call(host, self.inputs) {
                Ok(call) => calls.push(call),
                Err(error) => return Ok(Err(Failed { subject, message: error.message })),
            }
        }
        let mut wholes: Vec<Option<Whole<'_>>> = Vec::new();
        for variant in ready {
            let host = &self.hosts[variant.choice.host];
            let whole =
                self.settings.dispatch.then(|| Whole::new(host, variant, self.call, self.inputs));
            wholes.push(whole.transpose()?);
        }
        let series = {
            let kernels = calls.iter_mut().map(|call| call as &mut dyn Subject);
            let wholes = wholes.iter_mut().flatten().map(|whole| whole as &mut dyn Subject);
            let mut subjects: Vec<&mut dyn Subject> = kernels.chain(wholes).collect();
            let (plan, traced) = (self.plan(ready), self.traced(ready));
            let mut told = |share| progress(Status::Timing(share));
            interleave_traced(&mut subjects, &plan, traced.as_ref(), &mut told)
        };
        let mut series = match series {
            Ok(series) => series.into_iter(),
            Err(failed) => return Ok(Err(self.variant_of(failed, &wholes))),
        };
        let kernels: Vec<Series> = series.by_ref().take(ready.len()).collect();
        let mut timed = Vec::new();
        let mut changed = Vec::new();
        for (((variant, call), whole), kernel) in
            ready.iter().zip(&mut calls).zip(&wholes).zip(kernels)
        {
            if let Some(message) = variant.changed(call) {
                changed.push(problem(ProblemKind::Changed, self.text, &variant.choice, message));
            }
            let whole = whole.as_ref().and_then(|whole| Some((whole.through(), series.next()?)));
            let (timing, shares) = (call.timing(), call.shares());
            let counters = self.count(variant, call);
            timed.push(Timed { timing, shares, counters, kernel, whole });
        }
        Ok(Ok((timed, changed)))
    }

    /// What the processor counts in some more calls; none where that is not wanted, not allowed, or another processor
    /// computes.
    fn count(&self, variant: &Ready, call: &mut dyn Subject) -> Option<Counts> {
        let here = !variant.choice.device.info().streams;
        let wanted = self.settings.counters && here;
        wanted.then(|| counters::count(call, self.settings.cold).ok()).flatten()
    }

    fn plan(&self, ready: &[&Ready]) -> Plan {
        // A variant whose whole calls are timed is two subjects.
        let parts = if self.settings.dispatch { 2 } else { 1 };
        let streams = ready.iter().any(|variant| variant.choice.device.info().streams);
        Plan {
            sample: if streams { STREAM_SAMPLE } else { Plan::default().sample },
            budget: self.settings.budget / parts,
            seed: self.settings.seed.wrapping_add(u64::from(self.settings.process)),
            cold: self.settings.cold.then_some(self.settings.threads),
            ..Plan::default()
        }
    }

    /// Names of the subjects, in their order, if a trace gets the samples.
    fn traced(&self, ready: &[&Ready]) -> Option<Traced> {
        let trace = self.settings.trace?;
        let name = |variant: &&Ready| format!("{}: {}", self.text, variant.choice.variant);
        let kernels = ready.iter().map(name);
        let wholes = ready.iter().map(|variant| format!("{}, whole call", name(variant)));
        let dispatch = self.settings.dispatch;
        Some(Traced { trace, names: kernels.chain(wholes.filter(|_| dispatch)).collect() })
    }

    /// The variant that a subject belongs to: kernels come first, then the whole calls of those that have one.
    fn variant_of(&self, failed: Failed, wholes: &[Option<Whole<'_>>]) -> Failed {
        let Some(nth) = failed.subject.checked_sub(wholes.len()) else { return failed };
        let owners = wholes.iter().enumerate().filter(|(_, whole)| whole.is_some());
        let subject = owners.map(|(at, _)| at).nth(nth).unwrap_or(0);
        Failed { subject, ..failed }
    }
}

pub(crate) fn samples(series: Series, settings: &Settings) -> Samples {
    let count = series.ns.len();
    let processes = vec![settings.process; count];
    let summary = summary(&series.ns, &processes, settings.seed, series.converged);
    let rounds = (0..count as u32).collect();
    Samples {
        ns: series.ns,
        rounds,
        processes,
        batch: series.batch,
        summary,
        around: series.around,
    }
}

fn record(
    call: &Call,
    case: &Case,
    ready: &Ready,
    timed: Timed,
    settings: &Settings,
) -> Result<Record, BenchError> {
    let work = cost::work(&cost::Call {
        op: &call.op.name,
        def: Some(&call.op),
        attrs: &call.case.attrs,
        inputs: &ready.shapes.inputs,
        outputs: &ready.shapes.outputs,
        shares: timed.shares,
    });
    let kernel = samples(timed.kernel, settings);
    let dispatch = timed.whole.map(|(through, series)| {
        let whole = samples(series, settings);
        dispatch(through, whole, &kernel, settings.seed)
    });
    let variant = ready.choice.variant.clone();
    Ok(Record {
        size: call.size()?,
        threads: settings.threads,
        cold: settings.cold,
        counters: timed.counters,
        timing: timed.timing,
        dispatch,
        checked: ready.checked.clone(),
        sampled: ready.sampled(),
        ..blank(case.clone(), variant, peer(ready), work, kernel)
    })
}

/// A record of these samples; [`derive_all`] fills what follows from them.
pub(crate) fn blank(
    case: Case,
    variant: Variant,
    peer: String,
    work: Work,
    kernel: Samples,
) -> Record {
    Record {
        bench: case.op.clone(),
        peer,
        version: variant.plugin_version.clone(),
        size: String::new(),
        threads: 1,
        cold: false,
        counters: None,
        median_ns: 0.0,
        min_ns: 0.0,
        max_ns: 0.0,
        samples: 0,
        rate: 0.0,
        best_rate: 0.0,
        unit: String::new(),
        cpu: String::new(),
        case,
        variant,
        timing: Timing::Kernel,
        kernel,
        dispatch: None,
        work,
        reached: None,
        checked: None,
        sampled: None,
        profile: None,
    }
}

/// `tenon-cpu avx512`; on another device than the CPU that too.
fn peer(ready: &Ready) -> String {
    let variant = &ready.choice.variant;
    let device = if variant.device == "CPU" { "" } else { &variant.device };
    let parts = [variant.plugin.as_str(), device, &variant.label];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whole call less kernel, round by round.
pub(crate) fn dispatch(through: &str, whole: Samples, kernel: &Samples, seed: u64) -> Dispatch {
    let differences: Vec<f64> =
        whole.ns.iter().zip(&kernel.ns).map(|(whole, kernel)| whole - kernel).collect();
    let groups = bootstrap::by_process(&differences, &kernel.processes);
    let interval = bootstrap::median_interval(&groups, seed);
    Dispatch { through: through.to_owned(), whole, median: median(&differences), interval }
}

/// Fills what follows from the samples of all records.
pub fn derive_all(report: &mut Report) {
    let run = report.run.clone();
    let all = || run.roofline.iter().chain(&run.rooflines);
    for record in &mut report.records {
        // Of a sweep of threads each record has its own limits.
        let limits = all().find(|limits| limits.threads == record.threads);
        let cold = limits.filter(|_| record.cold).map(roofline::of_memory);
        let limits = cold.as_ref().or(limits);
        let first = record.case.inputs.first().and_then(|input| DType::from_name(&input.dtype));
        derive(record, first.unwrap_or(DType::INVALID), limits);
    }
}

/// Fills what follows from samples and work: also where samples of several processes were put together.
fn derive(record: &mut Record, dtype: DType, limits: Option<&Roofline>) {
    let Summary { median, min, max, .. } = record.kernel.summary;
    let work: &Work = &record.work;
    let (amount, unit) = cost::rate(&record.bench, dtype, work);
    (record.median_ns, record.min_ns, record.max_ns) = (median, min, max);
    record.samples = record.kernel.ns.len() as u32;
    (record.rate, record.best_rate) = (amount / median, amount / min);
    record.unit = unit.to_owned();
    let by_flops = unit.ends_with("OP/s");
    let on_host = record.variant.device == "CPU";
    record.reached = limits
        .filter(|_| on_host)
        .and_then(|limits| roofline::reached(limits, work, dtype, by_flops, median));
    if let Some(profile) = &mut record.profile {
        record.reached = step::derive(profile, limits, median);
    }
}
