//! Records of one run against those of another.

use super::{
    LEAST_BETWEEN_RUNS,
    busy::{Side, explained},
    by_process, threshold,
};
use crate::{
    record::{Comparison, Record, Report, Samples, Verdict},
    stats::{
        describe::median,
        holm::holm,
        lehmann::{Ratio, blocks, unpaired},
        rank::mann_whitney,
    },
    words,
};

/// The chance of a false alarm over all records together.
const ALPHA: f64 = 0.01;
/// Blocks of neighbouring samples that represent a series of one process.
const FEW_BLOCKS: usize = 20;

/// The result of a comparison with an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// One per record of this run.
    pub comparisons: Vec<Comparison>,
    /// Records of the earlier run that this one has no match for.
    pub missing: Vec<String>,
    /// What the reader should know of the comparison as a whole.
    pub notes: Vec<String>,
}

impl Baseline {
    /// How many became slower.
    pub fn regressions(&self) -> usize {
        self.count(Verdict::Slower)
    }

    /// How many were compared.
    pub fn compared(&self) -> usize {
        let open = self.count(Verdict::NotComparable) + self.count(Verdict::Busy);
        self.comparisons.len() - open
    }

    /// How many have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.comparisons.iter().filter(|comparison| comparison.verdict == verdict).count()
    }
}

/// Compares each record of a run with the same call of the same kernel in an earlier one.
///
/// What counts as a sample is a process, or, of fewer than five processes, a block of neighbouring samples. A
/// difference is one that the rank test shows at 1 % over all records together, and that is larger than the threshold. One
/// that is not larger than what the machine did besides can explain is not judged.
pub fn against_baseline(run: &Report, earlier: &Report, wanted: Option<f64>) -> Baseline {
    let mut comparisons: Vec<Comparison> = Vec::new();
    let mut bases: Vec<Option<&Record>> = Vec::new();
    for (at, record) in run.records.iter().enumerate() {
        let same = |base: &&Record| {
            base.case.same_call(&record.case) && base.variant.same_kernel(&record.variant)
        };
        // Of several, as of a sweep of threads, the one that was measured likewise.
        let alike = |base: &&Record| (base.threads == record.threads, base.cold == record.cold);
        let base = earlier.records.iter().rev().filter(same).max_by_key(alike);
        let found = match base {
            Some(base) => against(record, base, wanted, run.run.seed),
            None => {
                let least = wanted.unwrap_or(LEAST_BETWEEN_RUNS);
                not_comparable(least, "is not in the earlier run".to_owned())
            }
        };
        comparisons.push(Comparison { record: at as u32, ..found });
        bases.push(base);
    }
    judge(&mut comparisons);
    leave_open(&mut comparisons, &bases, (run, earlier));
    let is_matched = |base: &&Record| {
        run.records.iter().any(|record| {
            base.case.same_call(&record.case) && base.variant.same_kernel(&record.variant)
        })
    };
    let missing = earlier.records.iter().filter(|base| !is_matched(base));
    let missing = missing.map(|base| format!("{}: {}", base.case, base.variant)).collect();
    Baseline { comparisons, missing, notes: notes(run, earlier) }
}

/// Compares each record of a run with the records of an earlier one for the same call, whatever their kernels: with
/// the same kernel where it is there, else with the one that the policy chose.
pub fn against_record(run: &Report, earlier: &Report, wanted: Option<f64>) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let mut compared = Vec::new();
    for (at, record) in run.records.iter().enumerate() {
        let bases = earlier.records.iter().filter(|base| base.case.same_call(&record.case));
        let best =
            |base: &&Record| (base.variant.same_kernel(&record.variant), base.variant.chosen);
        if let Some(base) = bases.max_by_key(best) {
            let found = against(record, base, wanted, run.run.seed);
            comparisons.push(Comparison { record: at as u32, ..found });
            compared.push(Some(base));
        }
    }
    judge(&mut comparisons);
    leave_open(&mut comparisons, &compared, (run, earlier));
    comparisons
}

fn notes(run: &Report, earlier: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let fewest = run.run.processes.min(earlier.run.processes);
    if fewest < 5 {
        let measured = if fewest == 1 { "process" } else { "processes" };
        notes.push(format!(
            "{fewest} {measured} measured: differences between processes look like changes; \
             --processes 9 in both runs tells them apart"
        ));
    }
    if run.run.tenon != earlier.run.tenon {
        notes.push(format!(
            "the earlier run is of tenon {}, this is {}",
            earlier.run.tenon, run.run.tenon
        ));
    }
    notes
}

/// What counts as one sample.
fn reduced(samples: &Samples) -> Vec<f64> {
    match by_process(samples) {
        Some(groups) => groups.iter().map(|group| median(group)).collect(),
        None => blocks(&samples.ns, FEW_BLOCKS),
    }
}

/// The comparison, its verdict still open.
fn against(record: &Record, base: &Record, wanted: Option<f64>, seed: u64) -> Comparison {
    let threshold = threshold(wanted, LEAST_BETWEEN_RUNS, &record.kernel, &base.kernel);
    if let Some(why) = difference(record, base) {
        return not_comparable(threshold, why);
    }
    let (own, other) = (reduced(&record.kernel), reduced(&base.kernel));
    let found = unpaired(&other, &own, seed).zip(mann_whitney(&own, &other));
    let Some((Ratio { ratio, interval }, test)) = found else {
        return not_comparable(threshold, "has no samples".to_owned());
    };
    Comparison {
        record: 0,
        base: None,
        against: format!("{} {}", base.peer, base.version),
        paired: false,
        speedup: ratio,
        interval,
        p: Some(test.p),
        threshold,
        verdict: Verdict::Same,
        note: None,
    }
}

/// Why the times of two records say nothing about each other.
fn difference(record: &Record, base: &Record) -> Option<String> {
    let differ = |what: &str, now: &str, then: &str| {
        (now != then).then(|| format!("{what} was {then}, is {now}"))
    };
    differ("the CPU", &record.cpu, &base.cpu)
        .or_else(|| {
            differ("the number of threads", &record.threads.to_string(), &base.threads.to_string())
        })
        .or_else(|| {
            let caches = |cold: bool| if cold { "cold" } else { "warm" };
            differ("the state of caches", caches(record.cold), caches(base.cold))
        })
        .or_else(|| {
            differ("what is timed", &format!("{:?}", record.timing), &format!("{:?}", base.timing))
        })
}

fn not_comparable(threshold: f64, why: String) -> Comparison {
    Comparison {
        record: 0,
        base: None,
        against: String::new(),
        paired: false,
        speedup: 1.0,
        interval: [1.0, 1.0],
        p: None,
        threshold,
        verdict: Verdict::NotComparable,
        note: Some(why),
    }
}

/// Corrects the p-values for their number, and gives the verdicts.
fn judge(comparisons: &mut [Comparison]) {
    let tested: Vec<usize> =
        (0..comparisons.len()).filter(|&at| comparisons[at].p.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|&at| comparisons[at].p).collect();
    for (&at, corrected) in tested.iter().zip(holm(&p)) {
        let comparison = &mut comparisons[at];
        comparison.p = Some(corrected);
        let large = comparison.speedup.ln().abs() > comparison.threshold.ln_1p();
        comparison.verdict = match corrected < ALPHA && large {
            true if comparison.speedup < 1.0 => Verdict::Slower,
            true => Verdict::Faster,
            false => Verdict::Same,
        };
    }
}

/// Takes back verdicts on differences that a busy machine explains.
fn leave_open(
    comparisons: &mut [Comparison],
    bases: &[Option<&Record>],
    (run, earlier): (&Report, &Report),
) {
    for (comparison, base) in comparisons.iter_mut().zip(bases) {
        let Some(base) = base else { continue };
        let record = &run.records[comparison.record as usize];
        let now = Side { record, cores: run.run.machine.cores };
        let base = Side { record: base, cores: earlier.run.machine.cores };
        let (slow, fast, run) = match comparison.verdict {
            Verdict::Slower => (now, base, "this run"),
            Verdict::Faster => (base, now, "the earlier run"),
            _ => continue,
        };
        if let Some(why) = explained(comparison, &slow, &fast) {
            let said = words::compared(comparison);
            comparison.verdict = Verdict::Busy;
            comparison.note =
                Some(format!("not judged, the machine was busy in {run}: {said}, but {why}"));
        }
    }
}
