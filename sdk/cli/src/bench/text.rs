//! The report for a reader.

use crate::{output::count, table::Table};
use std::fmt::Write;
use tenon_benchkit::{
    compare::{Baseline, short_names},
    record::{
        Comparison, Crossover, Dispatch, Problem, ProblemKind, Reached, Record, Report, Timing,
        Variant, Verdict,
    },
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

fn cases(text: &mut String, report: &Report, places: std::ops::Range<usize>) {
    let records = &report.records[places.clone()];
    let attrs: Vec<String> =
        records[0].case.attrs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let _ = writeln!(text, "{}  {}", records[0].bench, attrs.join(" "));
    let variants: Vec<&Variant> = records.iter().map(|record| &record.variant).collect();
    let names = short_names(&variants);
    let mut table = Table::new([
        "shapes",
        ">calls",
        "variant",
        ">kernel",
        ">\u{b1}",
        ">dispatch",
        ">rate",
        "of limit",
        "comparison",
    ]);
    for (at, (record, name)) in records.iter().zip(names).enumerate() {
        let first = at == 0 || records[at - 1].case != record.case;
        let of_record = |comparison: &&Comparison| comparison.record as usize == places.start + at;
        let comparison = report.comparisons.iter().find(of_record);
        let chosen = if record.variant.chosen { "*" } else { "" };
        table.row([
            if first { record.case.shapes() } else { String::new() },
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
            comparison.map(compared).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(text, "{}", table.render(2));
}

fn timed(timing: Timing) -> &'static str {
    match timing {
        Timing::Kernel => "",
        Timing::Enqueued => " (until the stream is done)",
        Timing::Call => " (whole call)",
    }
}

/// A time with three digits.
fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 1e3 => (ns, "ns"),
        size if size < 1e6 => (ns / 1e3, "\u{b5}s"),
        size if size < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", figure(value))
}

/// Three digits.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Half of the interval's width, as a share of the median; `!` where it did not become narrow enough.
fn spread(record: &Record) -> String {
    let [low, high] = record.kernel.summary.interval;
    let share = 50.0 * (high - low) / record.median_ns;
    let open = if record.kernel.summary.converged { "" } else { "!" };
    format!("{share:.1}%{open}")
}

fn dispatch(dispatch: &Dispatch) -> String {
    let [low, high] = dispatch.interval;
    // A difference that is not told from nothing is none.
    if low <= 0.0 && high >= 0.0 {
        format!("<{}", time(high))
    } else {
        format!("+{}", time(dispatch.median))
    }
}

fn reached(reached: &Reached) -> String {
    let share = 100.0 * reached.fraction;
    let mark = if reached.impossible { " (beyond it: is the work what it seems?)" } else { "" };
    format!("{share:.0}% {}{mark}", reached.bound)
}

fn compared(comparison: &Comparison) -> String {
    let times = |ratio: f64| format!("{ratio:.2}x");
    let [low, high] = comparison.interval;
    let against = &comparison.against;
    match comparison.verdict {
        Verdict::Faster => {
            format!(
                "{} faster than {against} ({}\u{2026}{})",
                times(comparison.speedup),
                times(low),
                times(high)
            )
        }
        Verdict::Slower => {
            let (slower, low, high) = (1.0 / comparison.speedup, 1.0 / high, 1.0 / low);
            format!(
                "{} slower than {against} ({}\u{2026}{})",
                times(slower),
                times(low),
                times(high)
            )
        }
        Verdict::Same => {
            format!("no difference to {against} (within {:.1}%)", 100.0 * comparison.threshold)
        }
        Verdict::NotComparable => comparison.note.clone().unwrap_or_default(),
    }
}

fn crossovers(text: &mut String, report: &Report) {
    let Some(sweep) = &report.run.sweep else { return };
    for Crossover { op, above, below, after, from } in &report.crossovers {
        let symbol = &sweep.symbol;
        let _ = match (after, from) {
            (Some(after), Some(from)) => writeln!(
                text,
                "{op}: {above} is faster from {symbol} = {from} up, {below} up to {symbol} = {after}"
            ),
            _ => writeln!(
                text,
                "{op}: {above} is faster than {below} wherever there is a difference, from {symbol} = {} on",
                from.unwrap_or_default()
            ),
        };
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
            comparison.p.map(|p| Short(p).to_string()).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(text, "{}", table.render(0));
    for missing in &found.missing {
        let _ = writeln!(text, "in the baseline only: {missing}");
    }
    found.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    let _ = match (found.regressions(), found.compared()) {
        (_, 0) => writeln!(text, "nothing could be compared with the baseline"),
        (0, compared) => writeln!(text, "no regression in {}", count(compared, "comparison")),
        (slower, compared) => {
            writeln!(text, "{} in {}", count(slower, "regression"), count(compared, "comparison"))
        }
    };
}

/// A p-value: three decimals, or its power of ten.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 >= 0.001 { write!(f, "{:.3}", self.0) } else { write!(f, "{:.0e}", self.0) }
    }
}

fn problems(text: &mut String, problems: &[Problem]) {
    let word = |kind| match kind {
        ProblemKind::Wrong => "WRONG, not timed",
        ProblemKind::Failed => "FAILED, not timed",
        ProblemKind::Changed => "CHANGED while it was timed",
        ProblemKind::Refused => "not timed",
        ProblemKind::Unverified => "timed, but unverified",
    };
    for Problem { kind, case, variant, message } in problems {
        let _ = writeln!(text, "{}: {variant}, {case}: {message}", word(*kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let shown: Vec<String> = [1.234, 45.67, 890.1, 2_345.6, 7.8e7, 3.2e9].map(time).into();
        assert_eq!(shown, ["1.23 ns", "45.7 ns", "890 ns", "2.35 \u{b5}s", "78.0 ms", "3.20 s"]);
        assert_eq!((figure(0.1234), Short(0.0123).to_string()), ("0.123".into(), "0.012".into()));
        assert_eq!(Short(0.000_042).to_string(), "4e-5");
    }

    #[test]
    fn a_slower_variant_is_never_a_fraction_faster() {
        let comparison = |speedup: f64, verdict| Comparison {
            record: 0,
            base: Some(1),
            against: "ordinary".into(),
            paired: true,
            speedup,
            interval: [speedup * 0.9, speedup * 1.1],
            p: None,
            threshold: 0.02,
            verdict,
            note: None,
        };
        assert_eq!(
            compared(&comparison(0.5, Verdict::Slower)),
            "2.00x slower than ordinary (1.82x\u{2026}2.22x)"
        );
        assert_eq!(
            compared(&comparison(2.0, Verdict::Faster)),
            "2.00x faster than ordinary (1.80x\u{2026}2.20x)"
        );
        assert_eq!(
            compared(&comparison(1.0, Verdict::Same)),
            "no difference to ordinary (within 2.0%)"
        );
    }
}
