//! Numbers of threads as a sweep.

use super::BenchArgs;
use crate::error::CliError;
use tenon_benchkit::{
    BenchError,
    record::{Record, Report, Roofline, SweepAxis},
};

/// The symbol of the axis.
pub const THREADS: &str = "threads";

/// Refuses two sweeps at once.
///
/// # Errors
/// Several numbers of threads beside `--sweep`.
pub fn check(args: &BenchArgs) -> Result<(), CliError> {
    if args.threads.0.len() > 1 && args.sweep.is_some() {
        let why = "--threads with several numbers is a sweep itself: leave --sweep out, or give one number";
        return Err(BenchError::Nothing(why.to_owned()).into());
    }
    Ok(())
}

/// The reports of runs with different numbers of threads as one; a single one as it is.
pub fn joined(first: Report, others: Vec<Report>) -> Report {
    if others.is_empty() {
        return first;
    }
    let mut all = first;
    let mut values = vec![i64::from(all.run.threads)];
    mark(&mut all);
    for mut report in others {
        mark(&mut report);
        values.push(i64::from(report.run.threads));
        all.run.threads = report.run.threads;
        all.records.extend(report.records);
        let new = report.problems.into_iter().filter(|problem| !all.problems.contains(problem));
        let new: Vec<_> = new.collect();
        all.problems.extend(new);
    }
    // Call by call, as along any sweep.
    let mut calls: Vec<Record> = Vec::new();
    all.records.sort_by_cached_key(|record| {
        let known = calls.iter().position(|known| known.case.same_call(&record.case));
        known.unwrap_or_else(|| {
            calls.push(record.clone());
            calls.len() - 1
        })
    });
    all.run.sweep = Some(SweepAxis { symbol: THREADS.to_owned(), values });
    all
}

/// Notes the number of threads as the place on the axis.
fn mark(report: &mut Report) {
    let threads = i64::from(report.run.threads);
    report.records.iter_mut().for_each(|record| record.case.at = Some(threads));
}

/// Gives the report its limits: those of the most threads, and the others.
pub fn take_limits(report: &mut Report, mut limits: Vec<Roofline>) {
    report.run.roofline = limits.pop();
    report.run.rooflines = limits;
}

/// How many times as fast a record is as the same kernel in the same call on the fewest threads; `None` without a sweep
/// of threads.
pub fn scaling(report: &Report, record: &Record) -> Option<f64> {
    report.run.sweep.as_ref().filter(|sweep| sweep.symbol == THREADS)?;
    let mut alike = report.records.iter().filter(|other| {
        other.case.same_call(&record.case) && other.variant.same_kernel(&record.variant)
    });
    let first = alike.next()?;
    (first.threads != record.threads).then(|| first.median_ns / record.median_ns)
}
