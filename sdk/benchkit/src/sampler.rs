//! Takes samples of several subjects turn by turn.
//!
//! ```text
//! warm up each ── settle its batch ── round 1: b a c ── round 2: a c b ── ... ── enough
//! ```
//!
//! A sample is one look at the clock around a batch of calls, as many as fill [`Plan::sample`]; one call where a
//! call takes longer. In each round every subject gives one sample, in an order that is drawn anew: what slows the
//! machine for a while slows all of them, and no subject always follows the same other one. Rounds go on until the
//! median of every subject is known well enough, or time is up.
//!
//! With [`Plan::cold`] a sample is one call, before which the caches are filled with other things; that takes no part in
//! the time.
//!
//! The clock is the system's monotonic one. A look costs some 25 ns (less than 0.1 % of the shortest sample), and
//! nothing is subtracted.

use crate::{
    clocks::Clocks,
    cold::Eviction,
    record::Around,
    stats::{
        describe::{median, sorted},
        random::Random,
    },
};
use std::time::{Duration, Instant};
use tenon_runtime::host::call::TraceSink;

/// Something that can be called any number of times.
pub trait Subject {
    /// Calls it this many times.
    ///
    /// # Errors
    /// Why it cannot be called.
    fn run(&mut self, calls: u64) -> Result<(), String>;
}

impl<F: FnMut(u64) -> Result<(), String>> Subject for F {
    fn run(&mut self, calls: u64) -> Result<(), String> {
        self(calls)
    }
}

/// How long, how often.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Time for one subject, warming up included.
    pub budget: Duration,
    /// Time that a sample takes at least, unless one call takes longer.
    pub sample: Duration,
    /// Rounds at most.
    pub rounds: u32,
    /// It is enough when the interval of every median is narrower than this share of it; 0 for never.
    pub precision: f64,
    /// Of the order.
    pub seed: u64,
    /// Threads whose caches are emptied before each call; `None` for calls with warm caches.
    pub cold: Option<u32>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            budget: Duration::from_secs(1),
            sample: Duration::from_micros(50),
            rounds: 1000,
            precision: 0.01,
            seed: 0,
            cold: None,
        }
    }
}

/// Rounds that are made even when time is up.
pub const LEAST_ROUNDS: u32 = 5;
/// Rounds after which it may be enough.
pub const ENOUGH_ROUNDS: u32 = 32;
/// Rounds between looks whether it is.
const LOOK_EVERY: u32 = 16;
/// Share of the budget that warming up takes at least and at most.
const WARM_UP: (f64, f64) = (0.1, 0.4);
/// Warming up takes no longer than this.
const LONGEST_WARM_UP: Duration = Duration::from_secs(3);
/// Samples whose median is compared with that of as many before.
const WARM_WINDOW: usize = 5;
/// How near the two medians are when it is warm.
const WARM_CHANGE: f64 = 0.01;

/// The samples of one subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Nanoseconds per call, one per round.
    pub ns: Vec<f64>,
    /// Calls in one sample.
    pub batch: u64,
    /// Whether the interval of the median is as narrow as was asked for.
    pub converged: bool,
    /// Other work of the machine in the meantime; `None` if the system does not report it.
    pub around: Option<Around>,
}

/// Why there are no samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Place of the subject that cannot be called.
    pub subject: usize,
    /// What it says.
    pub message: String,
}

/// A trace that gets the samples that count: the thread that takes one [enters](TraceSink::enters) its subject before,
/// and leaves it after, outside of the time that is taken.
pub struct Traced {
    /// The trace.
    pub trace: &'static dyn TraceSink,
    /// The name of each subject.
    pub names: Vec<String>,
}

impl Traced {
    /// Until the value is dropped, a sample of this subject is taken.
    fn sample(&self, subject: usize) -> Sample<'_> {
        let name = self.names.get(subject).map_or("", String::as_str);
        self.trace.enters(name);
        Sample { trace: self.trace, name }
    }
}

struct Sample<'w> {
    trace: &'static dyn TraceSink,
    name: &'w str,
}

impl Drop for Sample<'_> {
    fn drop(&mut self) {
        self.trace.leaves(self.name);
    }
}

/// Samples the subjects turn by turn. `progress` gets the share that is done.
///
/// # Errors
/// A subject cannot be called.
pub fn interleave(
    subjects: &mut [&mut dyn Subject],
    plan: &Plan,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Series>, Failed> {
    interleave_traced(subjects, plan, None, progress)
}

/// As [`interleave`], and gives a trace the samples.
///
/// # Errors
/// As [`interleave`].
pub fn interleave_traced(
    subjects: &mut [&mut dyn Subject],
    plan: &Plan,
    traced: Option<&Traced>,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Series>, Failed> {
    let count = subjects.len();
    let began = Instant::now();
    let mut eviction = plan.cold.map(Eviction::new);
    let mut series = Vec::with_capacity(count);
    for (at, subject) in subjects.iter_mut().enumerate() {
        let failed = |message| Failed { subject: at, message };
        let batch = match plan.cold {
            // It ran before: what is made at the first call is there.
            Some(_) => 1,
            None => warm_up(&mut **subject, plan).map_err(failed)?,
        };
        series.push(Series { ns: Vec::new(), batch, converged: false, around: None });
        progress(WARM_UP.0 * (at + 1) as f64 / count as f64);
    }
    let budget = plan.budget.saturating_mul(count as u32);
    let mut order: Vec<usize> = (0..count).collect();
    let mut random = Random::new(plan.seed);
    let clocks = Clocks::now();
    for round in 1..=plan.rounds.max(LEAST_ROUNDS) {
        random.shuffle(&mut order);
        for &at in &order {
            let batch = series[at].batch;
            if let Some(eviction) = &mut eviction {
                eviction.run();
            }
            let sample = traced.map(|traced| traced.sample(at));
            let taken = time(&mut *subjects[at], batch);
            drop(sample);
            let taken = taken.map_err(|message| Failed { subject: at, message })?;
            series[at].ns.push(taken.as_nanos() as f64 / batch as f64);
        }
        let spent = began.elapsed();
        progress(share(spent, budget).max(f64::from(round) / f64::from(plan.rounds)).min(1.0));
        if round >= LEAST_ROUNDS && (spent >= budget || enough(&mut series, round, plan)) {
            break;
        }
    }
    settle(&mut series, plan);
    let around = clocks.and_then(|before| Some(Clocks::now()?.since(&before)));
    series.iter_mut().for_each(|series| series.around = around);
    Ok(series)
}

fn share(spent: Duration, budget: Duration) -> f64 {
    if budget.is_zero() { 1.0 } else { spent.as_secs_f64() / budget.as_secs_f64() }
}

/// The time of one sample.
fn time(subject: &mut dyn Subject, calls: u64) -> Result<Duration, String> {
    let began = Instant::now();
    subject.run(calls)?;
    Ok(began.elapsed())
}

/// Calls a subject until its time is steady; gives the calls of a sample.
fn warm_up(subject: &mut dyn Subject, plan: &Plan) -> Result<u64, String> {
    let least = plan.budget.mul_f64(WARM_UP.0).min(LONGEST_WARM_UP);
    let most = plan.budget.mul_f64(WARM_UP.1).min(LONGEST_WARM_UP);
    let began = Instant::now();
    let mut batch = first_batch(subject, plan.sample)?;
    let mut recent: Vec<f64> = Vec::new();
    while began.elapsed() < most {
        let taken = time(subject, batch)?;
        recent.push(taken.as_nanos() as f64 / batch as f64);
        if taken < plan.sample {
            batch = grown(batch, taken, plan.sample);
        }
        if began.elapsed() >= least && is_steady(&recent) {
            break;
        }
    }
    if recent.is_empty() {
        return Ok(batch);
    }
    let last = median(&recent[recent.len().saturating_sub(WARM_WINDOW)..]);
    Ok(calls_in(plan.sample, last))
}

/// Calls that fill a sample, at this many nanoseconds each.
fn calls_in(sample: Duration, ns: f64) -> u64 {
    (sample.as_nanos() as f64 / ns.max(0.1)).ceil().max(1.0) as u64
}

/// A batch that is near to a sample: the first calls of a kernel are much dearer than later ones.
fn first_batch(subject: &mut dyn Subject, sample: Duration) -> Result<u64, String> {
    let mut batch = 1;
    loop {
        let taken = time(subject, batch)?;
        if taken * 2 >= sample {
            return Ok(batch);
        }
        batch = grown(batch, taken, sample);
    }
}

/// A larger batch, by a factor of ten at most: a short time is not known well.
fn grown(batch: u64, taken: Duration, sample: Duration) -> u64 {
    let factor = sample.as_nanos() as f64 / taken.as_nanos().max(1) as f64;
    (batch as f64 * factor.clamp(1.0, 10.0)).ceil() as u64 + 1
}

fn is_steady(recent: &[f64]) -> bool {
    let Some(from) = recent.len().checked_sub(2 * WARM_WINDOW) else { return false };
    let (before, last) = recent[from..].split_at(WARM_WINDOW);
    let (before, last) = (median(before), median(last));
    (last - before).abs() <= WARM_CHANGE * before
}

/// Whether the medians of all are known well enough.
fn enough(series: &mut [Series], round: u32, plan: &Plan) -> bool {
    if round < ENOUGH_ROUNDS || !round.is_multiple_of(LOOK_EVERY) {
        return false;
    }
    settle(series, plan);
    series.iter().all(|series| series.converged)
}

fn settle(series: &mut [Series], plan: &Plan) {
    for series in series {
        // Samples that the clock cannot tell apart have an interval of no width.
        series.converged = plan.precision > 0.0 && rank_width(&series.ns) <= plan.precision;
    }
}

/// Width of the 95 % interval of the median, as a share of the median, by the ranks of the sign test (David and
/// Nagaraja, "Order Statistics", 2003, 7.1): cheap enough to look at while measuring.
fn rank_width(ns: &[f64]) -> f64 {
    let sorted = sorted(ns);
    let half = 0.98 * (sorted.len() as f64).sqrt();
    let middle = sorted.len() as f64 / 2.0;
    let (low, high) = ((middle - half).floor(), (middle + half).ceil());
    if low < 0.0 || high >= sorted.len() as f64 {
        return f64::INFINITY;
    }
    (sorted[high as usize] - sorted[low as usize]) / median(&sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits so long per call, busily, and counts its samples.
    struct Busy {
        each: Duration,
        samples: Vec<u64>,
    }

    impl Busy {
        fn new(micros: u64) -> Busy {
            Busy { each: Duration::from_micros(micros), samples: Vec::new() }
        }
    }

    impl Subject for Busy {
        fn run(&mut self, calls: u64) -> Result<(), String> {
            self.samples.push(calls);
            let end = Instant::now() + self.each * calls as u32;
            while Instant::now() < end {
                std::hint::spin_loop();
            }
            Ok(())
        }
    }

    fn plan(millis: u64) -> Plan {
        Plan { budget: Duration::from_millis(millis), ..Plan::default() }
    }

    #[test]
    fn short_calls_are_batched_and_long_ones_are_not() {
        let (mut short, mut long) = (Busy::new(5), Busy::new(300));
        let mut progress = Vec::new();
        let series =
            interleave(&mut [&mut short, &mut long], &plan(60), &mut |share| progress.push(share))
                .unwrap();
        assert!((2..=40).contains(&series[0].batch), "{}", series[0].batch);
        assert_eq!(series[1].batch, 1);
        assert!(series[0].ns.len() >= LEAST_ROUNDS as usize);
        assert_eq!(series[0].ns.len(), series[1].ns.len());
        // A call is never shorter than what it waits for.
        assert!(series[0].ns.iter().all(|&ns| ns >= 5_000.0), "{:?}", series[0].ns);
        assert!(series[1].ns.iter().all(|&ns| ns >= 300_000.0));
        assert!(progress.iter().all(|share| (0.0..=1.0).contains(share)));
    }

    #[test]
    fn the_fewest_rounds_are_made_though_time_is_up() {
        let mut subject = Busy::new(200);
        let series = interleave(&mut [&mut subject], &plan(0), &mut |_| {}).unwrap();
        assert_eq!(series[0].ns.len(), LEAST_ROUNDS as usize);
        assert!(!series[0].converged);
    }

    #[test]
    fn all_rounds_are_made_where_no_precision_is_enough() {
        let plan = Plan { rounds: 70, precision: 0.0, ..plan(5_000) };
        let mut subject = Busy::new(60);
        let series = interleave(&mut [&mut subject], &plan, &mut |_| {}).unwrap();
        assert_eq!(series[0].ns.len(), 70);
        let plan = Plan { precision: f64::INFINITY, ..plan };
        let series = interleave(&mut [&mut subject], &plan, &mut |_| {}).unwrap();
        assert_eq!(series[0].ns.len(), ENOUGH_ROUNDS as usize);
        assert!(series[0].converged);
    }

    #[test]
    fn no_precision_is_enough_where_all_samples_are_equal() {
        let equal = Series { ns: vec![60_000.0; 48], batch: 1, converged: false, around: None };
        let never = Plan { precision: 0.0, ..Plan::default() };
        assert!(!enough(&mut [equal.clone()], 48, &never));
        assert!(enough(&mut [equal], 48, &Plan { precision: 1e-9, ..never }));
    }

    #[test]
    fn a_cold_sample_is_one_call() {
        let cold = Plan { cold: Some(1), rounds: 6, ..plan(0) };
        let mut subject = Busy::new(1);
        let series = interleave(&mut [&mut subject], &cold, &mut |_| {}).unwrap();
        assert_eq!((series[0].batch, series[0].ns.len()), (1, LEAST_ROUNDS as usize));
        assert!(subject.samples.iter().all(|&calls| calls == 1), "{:?}", subject.samples);
    }

    #[test]
    fn a_subject_that_fails_is_named() {
        let mut fine = Busy::new(5);
        let mut left = 3;
        let mut bad = |_: u64| {
            left -= 1;
            if left == 0 { Err("no more".to_owned()) } else { Ok(()) }
        };
        let failed = interleave(&mut [&mut fine, &mut bad], &plan(10), &mut |_| {}).unwrap_err();
        assert_eq!(failed, Failed { subject: 1, message: "no more".into() });
    }

    #[derive(Default)]
    struct Told(std::sync::Mutex<Vec<String>>);

    impl TraceSink for Told {
        fn span(&self, _node: &str, _name: &str, _begin_ns: u64, _end_ns: u64) {}

        fn enters(&self, subject: &str) {
            self.0.lock().unwrap().push(format!("begins {subject}"));
        }

        fn leaves(&self, subject: &str) {
            self.0.lock().unwrap().push(format!("ends {subject}"));
        }
    }

    #[test]
    fn a_trace_is_told_of_each_sample_that_counts_and_of_one_that_fails() {
        let trace: &'static Told = Box::leak(Box::default());
        let traced = Traced { trace, names: vec!["fine".into(), "bad".into()] };
        let (mut fine, mut calls) = (Busy::new(5), 0);
        let plan = Plan { cold: Some(1), seed: 1, ..plan(0) };
        let mut bad = |_: u64| {
            calls += 1;
            if calls == 3 { Err("no more".to_owned()) } else { Ok(()) }
        };
        let subjects: &mut [&mut dyn Subject] = &mut [&mut fine, &mut bad];
        let failed = interleave_traced(subjects, &plan, Some(&traced), &mut |_| {}).unwrap_err();
        assert_eq!(failed.subject, 1);
        let told = trace.0.lock().unwrap();
        for pair in told.chunks(2) {
            let name = pair[0].strip_prefix("begins ").unwrap();
            assert_eq!(pair.get(1), Some(&format!("ends {name}")), "{told:?}");
        }
        let of = |name: &str| told.iter().filter(|line| line.ends_with(name)).count() / 2;
        assert_eq!((of("fine"), of("bad")), (fine.samples.len(), 3));
    }

    #[test]
    fn steady_is_when_two_windows_agree() {
        let falling: Vec<f64> = (0..10).map(|at| 100.0 - 3.0 * f64::from(at)).collect();
        assert!(!is_steady(&falling) && !is_steady(&[1.0; 9]));
        assert!(is_steady(&[&falling[..], &[70.0; 10]].concat()));
    }

    #[test]
    fn the_interval_narrows_with_the_samples() {
        let mut random = Random::new(1);
        let series: Vec<f64> = (0..400).map(|_| 100.0 + random.normal()).collect();
        assert!(rank_width(&series[..3]).is_infinite());
        assert!(rank_width(&series[..100]) < 0.01 && rank_width(&series) < 0.004);
    }
}
