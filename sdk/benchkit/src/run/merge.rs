//! The samples of several processes in one report.

use crate::{
    measure::dispatch,
    record::{Problem, Record, Report, Samples},
    stats::describe::summary,
};
use std::collections::BTreeSet;

/// Puts the reports of processes that did the same together; `None` without any. What follows from the records is to
/// be computed anew.
pub fn merge(reports: Vec<Report>) -> Option<Report> {
    let count = reports.len() as u32;
    let mut reports = reports.into_iter();
    let mut all = reports.next()?;
    all.run.processes = count;
    let seed = all.run.seed;
    let mut problems: Vec<Problem> = std::mem::take(&mut all.problems);
    for other in reports {
        for problem in other.problems {
            // Figures in messages differ between processes.
            let same = |known: &Problem| {
                (known.kind, &known.case, &known.variant)
                    == (problem.kind, &problem.case, &problem.variant)
            };
            if !problems.iter().any(same) {
                problems.push(problem);
            }
        }
        for (at, record) in other.records.into_iter().enumerate() {
            match place(&all.records, at, &record) {
                Some(place) => append(&mut all.records[place], record, seed),
                None => all.records.push(record),
            }
        }
    }
    all.problems = problems;
    Some(all)
}

/// The place of the same variant of the same case: at the same place, if no process lacks one.
fn place(records: &[Record], at: usize, wanted: &Record) -> Option<usize> {
    let same = |record: &Record| record.case == wanted.case && record.variant == wanted.variant;
    let here = records.get(at).is_some_and(same).then_some(at);
    here.or_else(|| records.iter().position(same))
}

fn append(record: &mut Record, other: Record, seed: u64) {
    extend(&mut record.kernel, other.kernel, seed);
    record.dispatch = match (record.dispatch.take(), other.dispatch) {
        (Some(own), Some(other)) => {
            let mut whole = own.whole;
            extend(&mut whole, other.whole, seed);
            Some(dispatch(&own.through, whole, &record.kernel, seed))
        }
        _ => None,
    };
}

fn extend(samples: &mut Samples, other: Samples, seed: u64) {
    let processes: BTreeSet<u32> = samples.processes.iter().copied().collect();
    let around = samples.around.zip(other.around);
    samples.around = around.map(|(all, other)| all.with(processes.len(), other));
    samples.ns.extend(other.ns);
    samples.rounds.extend(other.rounds);
    samples.processes.extend(other.processes);
    let converged = samples.summary.converged && other.summary.converged;
    samples.summary = summary(&samples.ns, &samples.processes, seed, converged);
}
