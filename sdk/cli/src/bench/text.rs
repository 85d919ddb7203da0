//! The report for a reader.

use super::{profile, sweep};
use crate::{output::count, table::Table};
use std::fmt::Write;
use tenon_benchkit::{
    compare::{Baseline, short_names},
    record::{Comparison, Problem, Record, Report, Variant, Verdict},
    words::{self, compared, dispatch, figure, reached, spread, time, timed},
};

/// The whole report.
pub fn text(report: &Report, baseline: Option<&Baseline>) -> String {
    let mut text = String::new();
    for ops in groups(report) {
        cases(&mut text, report, ops);
    }
    crossovers(&mut text, report);
    steps(&mut text, report);
    if let Some(found) = baseline {
        regressions(&mut text, report, found);
    }
    problems(&mut text, &report.problems);
    text
}

/// Places of records that follow one another and are of one op with the same attributes.
fn groups(report: &Report) -> Vec<std::ops::Range<usize>> {
    let mut first = 0;
    let same = |a: &Record, b: &Record| a.bench == b.bench && a.case.attrs == b.case.attrs;
    let chunks = report.records.chunk_by(same).map(|chunk| {
        let range = first..first + chunk.len();
        first = range.end;
        range
    });
    chunks.collect()
}

/// The columns of a table of cases; numbers are aligned to the right.
const COLUMNS: [&str; 15] = [
    "shapes",
    ">threads",
    ">calls",
    "variant",
    ">kernel",
    ">\u{b1}",
    ">dispatch",
    ">rate",
    "of limit",
    ">scaling",
    ">cycles",
    ">per cycle",
    ">cache misses",
    ">tlb misses",
    "comparison",
];

fn cases(text: &mut String, report: &Report, places: std::ops::Range<usize>) {
    let records = &report.records[places.clone()];
    let attrs: Vec<String> =
        records[0].case.attrs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let cold = if records.iter().any(|record| record.cold) { "  (caches cold)" } else { "" };
    let _ = writeln!(text, "{}  {}{cold}", records[0].bench, attrs.join(" "));
    let variants: Vec<&Variant> = records.iter().map(|record| &record.variant).collect();
    let names = short_names(&variants);
    let mut table = Table::new(COLUMNS);
    for (at, (record, name)) in records.iter().zip(names).enumerate() {
        let first = at == 0 || records[at - 1].case != record.case;
        let of_record = |comparison: &&Comparison| comparison.record as usize == places.start + at;
        let comparison = report.comparisons.iter().find(of_record);
        let chosen = if record.variant.chosen { "*" } else { "" };
        let swept = report.run.sweep.as_ref().is_some_and(|axis| axis.symbol == sweep::THREADS);
        let [cycles, per_cycle, cache, tlb] = counted(record);
        table.row([
            if first { record.case.shapes() } else { String::new() },
            if first && swept { record.threads.to_string() } else { String::new() },
            if first && record.case.node.is_some() {
                record.case.calls.to_string()
            } else {
                String::new()
            },
            format!("{name}{chosen}{}", timed(record.timing)),
            time(record.median_ns),
            spread(record),
            record.dispatch.as_ref().map(dispatch).unwrap_or_default(),
            format!("{} {}", figure(record.rate), record.unit),
            record.reached.as_ref().map(reached).unwrap_or_default(),
            sweep::scaling(report, record).map(|by| format!("{by:.2}x")).unwrap_or_default(),
            cycles,
            per_cycle,
            cache,
            tlb,
            comparison.map(compared).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(text, "{}", table.render(2));
    if records.iter().any(|record| record.reached.as_ref().is_some_and(|found| found.impossible)) {
        let _ = writeln!(text, "{}\n", words::BEYOND);
    }
    samples(text, records);
    records.iter().for_each(|record| profile::profile(text, record));
}

/// Cycles, instructions per cycle, misses of the last cache and of the TLB, of one call.
fn counted(record: &Record) -> [String; 4] {
    let counts = record.counters.unwrap_or_default();
    let shown = |value: Option<f64>| value.map(words::quantity).unwrap_or_default();
    let per_cycle = counts.instructions.zip(counts.cycles.filter(|cycles| *cycles > 0.0));
    [
        shown(counts.cycles),
        per_cycle.map(|(instructions, cycles)| figure(instructions / cycles)).unwrap_or_default(),
        shown(counts.cache_misses),
        shown(counts.tlb_misses),
    ]
}

/// Which results were judged in part.
fn samples(text: &mut String, records: &[Record]) {
    let mut last = None;
    for record in records {
        let Some(sampled) = &record.sampled else { continue };
        if last != Some(&record.case) {
            let _ = writeln!(text, "judged by {sampled}: {}", record.case.shapes());
        }
        last = Some(&record.case);
    }
    if last.is_some() {
        text.push('\n');
    }
}

fn crossovers(text: &mut String, report: &Report) {
    let Some(sweep) = &report.run.sweep else { return };
    for crossover in &report.crossovers {
        let _ = writeln!(text, "{}", words::crossover(crossover, &sweep.symbol));
    }
    if !report.crossovers.is_empty() {
        text.push('\n');
    }
}

/// What one step of a graph spends in the kernels that the policy chooses.
fn steps(text: &mut String, report: &Report) {
    let chosen =
        report.records.iter().filter(|record| record.case.node.is_some() && record.variant.chosen);
    let on_host: Vec<&Record> = chosen.filter(|record| record.variant.device == "CPU").collect();
    if on_host.is_empty() || report.run.sweep.is_some() {
        return;
    }
    let total: f64 = on_host.iter().map(|record| record.case.calls as f64 * record.median_ns).sum();
    let calls: u64 = on_host.iter().map(|record| record.case.calls).sum();
    let _ = writeln!(
        text,
        "one step on the CPU: {} in {}\n",
        time(total),
        count(calls as usize, "kernel call")
    );
}

fn regressions(text: &mut String, report: &Report, found: &Baseline) {
    let mut table = Table::new(["against the baseline", "variant", ">now", "change", ">p"]);
    for comparison in &found.comparisons {
        let record = &report.records[comparison.record as usize];
        let mark = if comparison.verdict == Verdict::Slower { "SLOWER: " } else { "" };
        table.row([
            format!("{} {}", record.bench, record.size),
            record.peer.clone(),
            time(record.median_ns),
            format!("{mark}{}", compared(comparison)),
            comparison.p.map(|p| words::Chance(p).to_string()).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(text, "{}", table.render(0));
    for missing in &found.missing {
        let _ = writeln!(text, "in the baseline only: {missing}");
    }
    found.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    let _ = match (found.regressions(), found.compared()) {
        (_, 0) => write!(text, "nothing could be compared with the baseline"),
        (0, compared) => write!(text, "no regression in {}", count(compared, "comparison")),
        (slower, compared) => {
            write!(text, "{} in {}", count(slower, "regression"), count(compared, "comparison"))
        }
    };
    let _ = match found.count(Verdict::Busy) {
        0 => writeln!(text),
        busy => writeln!(
            text,
            "; {busy} not judged, since the machine was busy: measure again when nothing else runs"
        ),
    };
}

fn problems(text: &mut String, problems: &[Problem]) {
    for Problem { kind, case, variant, message } in problems {
        let _ = writeln!(text, "{}: {variant}, {case}: {message}", words::problem(*kind));
    }
}
