//! How figures read, in a terminal and on a page.

use crate::record::{
    Comparison, Crossover, Dispatch, ProblemKind, Reached, Record, Timing, Verdict,
};
use std::fmt;

/// A time with three digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = in_unit(ns, 1.0);
    format!("{} {unit}", figure(value))
}

/// A time in the unit that suits it; from `full` of a unit on, it is the one that is taken.
pub fn in_unit(ns: f64, full: f64) -> (f64, &'static str) {
    match ns.abs() / full {
        size if size < 1e3 => (ns, "ns"),
        size if size < 1e6 => (ns / 1e3, "\u{b5}s"),
        size if size < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    }
}

/// A number of things with three digits: `1.25 k`, `3.40 M`.
pub fn quantity(value: f64) -> String {
    match value.abs() {
        size if size < 1e3 => figure(value),
        size if size < 1e6 => format!("{} k", figure(value / 1e3)),
        size if size < 1e9 => format!("{} M", figure(value / 1e6)),
        _ => format!("{} G", figure(value / 1e9)),
    }
}

/// Three digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// What one call of the timed loop is, where it is not the kernel alone.
pub fn timed(timing: Timing) -> &'static str {
    match timing {
        Timing::Kernel => "",
        Timing::Enqueued => " (until the stream is done)",
        Timing::Call => " (whole call)",
    }
}

/// Half of the interval's width, as a share of the median.
pub fn half_width(record: &Record) -> f64 {
    let [low, high] = record.kernel.summary.interval;
    0.5 * (high - low) / record.median_ns
}

/// The same in per cent; `!` where it did not become narrow enough.
pub fn spread(record: &Record) -> String {
    let open = if record.kernel.summary.converged { "" } else { "!" };
    format!("{:.1}%{open}", 100.0 * half_width(record))
}

/// What a whole call costs on top of the kernel.
pub fn dispatch(dispatch: &Dispatch) -> String {
    let [low, high] = dispatch.interval;
    // A difference that is not told from nothing is none.
    if low <= 0.0 && high >= 0.0 {
        format!("<{}", time(high))
    } else {
        // A step may be cheaper than its kernel alone, where that finds its outputs in no cache.
        let sign = if dispatch.median < 0.0 { "-" } else { "+" };
        format!("{sign}{}", time(dispatch.median.abs()))
    }
}

/// What the mark of [`reached`] says.
pub const BEYOND: &str = "(!) beyond the limit: the work or the limit is not what it seems";

/// The share of the limit; `(!)` where it is more than the whole.
pub fn reached(reached: &Reached) -> String {
    let share = 100.0 * reached.fraction;
    let mark = if reached.impossible { " (!)" } else { "" };
    format!("{share:.0}% {}{mark}", reached.bound)
}

/// What a comparison says.
pub fn compared(comparison: &Comparison) -> String {
    let against = &comparison.against;
    let (word, speedup, [low, high]) = match comparison.verdict {
        Verdict::Faster => ("faster", comparison.speedup, comparison.interval),
        Verdict::Slower => {
            let [low, high] = comparison.interval;
            ("slower", 1.0 / comparison.speedup, [1.0 / high, 1.0 / low])
        }
        Verdict::Same => {
            let within = 100.0 * comparison.threshold;
            return format!("no difference to {against} (within {within:.1}%)");
        }
        Verdict::NotComparable | Verdict::Busy => {
            return comparison.note.clone().unwrap_or_default();
        }
    };
    format!("{speedup:.2}x {word} than {against} ({low:.2}x\u{2026}{high:.2}x)")
}

/// From where on a sweep of `symbol` a variant is the faster one.
pub fn crossover(crossover: &Crossover, symbol: &str) -> String {
    let Crossover { op, above, below, after, from } = crossover;
    match (after, from) {
        (Some(after), Some(from)) => format!(
            "{op}: {above} is faster from {symbol} = {from} up, {below} up to {symbol} = {after}"
        ),
        _ => format!(
            "{op}: {above} is faster than {below} wherever there is a difference, from {symbol} = {} on",
            from.unwrap_or_default()
        ),
    }
}

/// The outcome of a variant with a problem.
pub fn problem(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Wrong => "WRONG, not timed",
        ProblemKind::Failed => "FAILED, not timed",
        ProblemKind::Changed => "CHANGED while it was timed",
        ProblemKind::Refused => "not timed",
        ProblemKind::TooSlow => "TOO SLOW, not timed",
        ProblemKind::Unverified => "timed, but unverified",
    }
}

/// A p-value: three decimals, or its power of ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance(pub f64);

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 0.001 { write!(f, "{:.3}", self.0) } else { write!(f, "{:.0e}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let shown: Vec<String> = [1.234, 45.67, 890.1, 2_345.6, 7.8e7, 3.2e9].map(time).into();
        assert_eq!(shown, ["1.23 ns", "45.7 ns", "890 ns", "2.35 \u{b5}s", "78.0 ms", "3.20 s"]);
        assert_eq!((figure(0.1234), Chance(0.0123).to_string()), ("0.123".into(), "0.012".into()));
        assert_eq!(Chance(0.000_042).to_string(), "4e-5");
        assert_eq!(
            [12.0, 1_250.0, 3.4e6, 2e9].map(quantity),
            ["12.0", "1.25 k", "3.40 M", "2.00 G"]
        );
    }

    #[test]
    fn a_dispatch_has_one_sign() {
        let of = |median: f64, interval| {
            let ns = vec![1.0];
            let summary = crate::stats::describe::summary(&ns, &[0], 1, true);
            let whole = crate::record::Samples {
                ns,
                rounds: vec![0],
                processes: vec![0],
                batch: 1,
                summary,
                around: None,
            };
            dispatch(&Dispatch { through: "callable".into(), whole, median, interval })
        };
        assert_eq!(of(-4480.0, [-5000.0, -4000.0]), "-4.48 \u{b5}s");
        assert_eq!(of(120.0, [100.0, 140.0]), "+120 ns");
        assert_eq!(of(1.0, [-10.0, 20.0]), "<20.0 ns");
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

    #[test]
    fn a_crossover_says_who_wins_where() {
        let found = Crossover {
            op: "Add".into(),
            above: "wide".into(),
            below: "plain".into(),
            after: Some(8),
            from: Some(16),
        };
        assert_eq!(crossover(&found, "n"), "Add: wide is faster from n = 16 up, plain up to n = 8");
        let always = Crossover { after: None, from: Some(4), ..found };
        assert_eq!(
            crossover(&always, "n"),
            "Add: wide is faster than plain wherever there is a difference, from n = 4 on"
        );
    }
}
