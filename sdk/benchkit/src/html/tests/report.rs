//! Made-up reports.

use crate::{
    compare::crossovers,
    measure::derive_all,
    record::{
        Case, Comparison, CostSource, Input, Level, Peak, Record, Report, Roofline, Samples,
        SweepAxis, Timing, Verdict, Work,
        testing::{run, variant},
    },
    stats::{describe::summary, random::Random},
};

fn samples(ns: Vec<f64>) -> Samples {
    let count = ns.len();
    let processes = vec![0; count];
    let summary = summary(&ns, &processes, 1, true);
    Samples { ns, rounds: (0..count as u32).collect(), processes, batch: 10, summary, around: None }
}

/// Sixty samples about `level`, with a tail.
fn about(level: f64) -> Vec<f64> {
    let mut random = Random::new(level.to_bits());
    (0..60).map(|_| level * (1.0 + 0.01 * random.normal().powi(2))).collect()
}

/// A record of `Square`; `at` is its place on a sweep.
pub fn record(label: &str, at: Option<i64>, ns: Vec<f64>) -> Record {
    let side = at.unwrap_or(8);
    let input =
        Input { name: "x".into(), dtype: "float".into(), dims: vec![side, side], constant: false };
    let kernel = samples(ns);
    let bytes = 4.0 * (side * side) as f64;
    let flops = Some((side * side) as f64);
    let mut record = Record {
        bench: "Square".into(),
        peer: format!("tenon-cpu {label}").trim().to_owned(),
        version: "0.1.0".into(),
        size: format!("x={side}x{side}"),
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
        cpu: "\"A\" CPU".into(),
        case: Case {
            op: "Square".into(),
            attrs: [("T".to_owned(), "float".to_owned())].into(),
            inputs: vec![input],
            at,
            node: None,
            calls: 1,
        },
        variant: variant(label),
        timing: Timing::Kernel,
        kernel,
        dispatch: None,
        work: Work { flops, read: bytes, written: bytes, source: CostSource::Op },
        reached: None,
        checked: Some("the reference".into()),
        sampled: None,
        profile: None,
    };
    record.median_ns = record.kernel.summary.median;
    record
}

fn report(records: Vec<Record>) -> Report {
    let (comparisons, crossovers, problems) = (Vec::new(), Vec::new(), Vec::new());
    let mut report = Report { run: run(), records, comparisons, crossovers, problems };
    derive_all(&mut report);
    report
}

fn comparison(record: usize, base: usize, speedup: f64) -> Comparison {
    Comparison {
        record: record as u32,
        base: Some(base as u32),
        against: "ordinary".into(),
        paired: true,
        speedup,
        interval: [0.9 * speedup, 1.1 * speedup],
        p: None,
        threshold: 0.02,
        verdict: if speedup > 1.0 { Verdict::Faster } else { Verdict::Slower },
        note: None,
    }
}

/// One call; each variant takes half the time of the one before.
pub fn single(labels: &[&str]) -> Report {
    let level = |at: usize| 2000.0 / f64::from(1 << at);
    let exactly = |at: usize| vec![level(at); 20];
    let records = labels.iter().enumerate().map(|(at, label)| record(label, None, exactly(at)));
    let mut report = report(records.collect());
    report.comparisons =
        (1..labels.len()).map(|at| comparison(at, 0, level(0) / level(at))).collect();
    report
}

/// Four sizes; each variant but the first is slower there at first, then faster.
pub fn sweep(labels: &[&str]) -> Report {
    let values = vec![64, 128, 256, 512];
    let speedups = [0.5, 1.5, 2.5, 4.0];
    let (mut records, mut comparisons) = (Vec::new(), Vec::new());
    for (&at, speedup) in values.iter().zip(speedups) {
        let base = records.len();
        for (place, label) in labels.iter().enumerate() {
            let level = (at * at) as f64 / if place == 0 { 1.0 } else { speedup };
            records.push(record(label, Some(at), about(level)));
            if place > 0 {
                comparisons.push(comparison(base + place, base, speedup));
            }
        }
    }
    let crossovers = crossovers(&records, &comparisons);
    let mut report = Report { comparisons, crossovers, ..report(records) };
    report.run.sweep = Some(SweepAxis { symbol: "n".into(), values });
    report
}

/// Three calls of a graph, one of which moves elements only.
pub fn calls() -> Report {
    let mut records: Vec<Record> = [("one", 1e3), ("two", 5e4), ("three", 2e3)]
        .into_iter()
        .flat_map(|(node, level)| {
            ["", "reference"].map(|label| {
                let mut record = record(label, None, about(level));
                record.case.node = Some(node.into());
                record.case.calls = 2;
                record
            })
        })
        .collect();
    for record in &mut records[4..] {
        record.bench = "Transpose".into();
        record.case.op = "Transpose".into();
        record.work.flops = None;
    }
    report(records)
}

/// The same on a machine whose limits are known.
pub fn with_limits(mut report: Report) -> Report {
    let level = |name: &str, bytes, rate| Level {
        name: name.into(),
        bytes,
        read: rate,
        write: 0.5 * rate,
        copy: 0.7 * rate,
        triad: 0.8 * rate,
    };
    let peak = |isa: &str, rate| Peak { dtype: "float".into(), isa: isa.into(), rate };
    report.run.roofline = Some(Roofline {
        threads: 1,
        peaks: vec![peak("avx2", 60.0), peak("avx512f", 110.0)],
        levels: vec![
            level("L1", Some(32 << 10), 300.0),
            level("L2", Some(1 << 20), 90.0),
            level("memory", None, 12.0),
        ],
    });
    derive_all(&mut report);
    report
}
