//! A report as CSV, for spreadsheets and scripts, and as Markdown, for issues and pull requests.

use crate::{
    compare::{Baseline, short_names},
    record::{Comparison, Counts, Record, Report, Variant, Verdict},
    words::{self, compared, dispatch, figure, reached, spread, time, timed},
};
use std::fmt::Write;

const COLUMNS: [&str; 47] = [
    "op",
    "attributes",
    "shapes",
    "node",
    "calls",
    "at",
    "threads",
    "cache",
    "device",
    "plugin",
    "version",
    "label",
    "chosen",
    "timing",
    "median_ns",
    "low_ns",
    "high_ns",
    "min_ns",
    "p5_ns",
    "p95_ns",
    "max_ns",
    "samples",
    "converged",
    "rate",
    "unit",
    "flops",
    "bytes_read",
    "bytes_written",
    "limit",
    "limit_rate",
    "share_of_limit",
    "dispatch_ns",
    "cycles",
    "instructions",
    "cache_misses",
    "tlb_misses",
    "against",
    "speedup",
    "speedup_low",
    "speedup_high",
    "threshold",
    "verdict",
    "baseline_speedup",
    "baseline_verdict",
    "checked",
    "cpu",
    "digest",
];

/// The report as comma-separated values (RFC 4180): a line of titles, then a line for each record.
pub fn csv(report: &Report, baseline: Option<&Baseline>) -> String {
    let mut text = COLUMNS.join(",");
    text.push_str("\r\n");
    for (at, record) in report.records.iter().enumerate() {
        let of = |all: &[Comparison]| all.iter().find(|found| found.record as usize == at).cloned();
        let earlier = baseline.and_then(|found| of(&found.comparisons));
        let cells = [what(record), times(record), work(record)].concat();
        let cells = cells.into_iter().chain(verdicts(of(&report.comparisons), earlier));
        let judged = record.checked.clone().unwrap_or_default();
        let last = [judged, record.cpu.clone(), record.variant.digest.clone()];
        let line: Vec<String> = cells.chain(last).map(|cell| csv_cell(&cell)).collect();
        text.push_str(&line.join(","));
        text.push_str("\r\n");
    }
    text
}

/// A cell; one that a spreadsheet would take for a formula is a text there.
fn csv_cell(text: &str) -> String {
    let formula = text.starts_with(['=', '@', '+']) || text.starts_with("-=");
    if text.contains([',', '"', '\n', '\r']) || formula {
        let mark = if formula { "'" } else { "" };
        return format!("\"{mark}{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn what(record: &Record) -> Vec<String> {
    let Record { case, variant, .. } = record;
    let attrs: Vec<String> =
        case.attrs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    vec![
        case.op.clone(),
        attrs.join(" "),
        case.shapes(),
        case.node.clone().unwrap_or_default(),
        case.calls.to_string(),
        case.at.map(|at| at.to_string()).unwrap_or_default(),
        record.threads.to_string(),
        if record.cold { "cold" } else { "warm" }.to_owned(),
        variant.device.clone(),
        variant.plugin.clone(),
        variant.plugin_version.clone(),
        variant.label.clone(),
        variant.chosen.to_string(),
        format!("{:?}", record.timing).to_lowercase(),
    ]
}

fn times(record: &Record) -> Vec<String> {
    let summary = &record.kernel.summary;
    let [low, high] = summary.interval;
    let figures = [record.median_ns, low, high, summary.min, summary.p5, summary.p95, summary.max];
    let mut cells: Vec<String> = figures.map(|ns| ns.to_string()).into();
    cells.push(record.samples.to_string());
    cells.push(summary.converged.to_string());
    cells.push(record.rate.to_string());
    cells.push(record.unit.clone());
    cells
}

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn work(record: &Record) -> Vec<String> {
    let reached = record.reached.as_ref();
    let Counts { cycles, instructions, cache_misses, tlb_misses, .. } =
        record.counters.unwrap_or_default();
    vec![
        optional(record.work.flops),
        record.work.read.to_string(),
        record.work.written.to_string(),
        reached.map(|reached| reached.bound.clone()).unwrap_or_default(),
        optional(reached.map(|reached| reached.roof)),
        optional(reached.map(|reached| reached.fraction)),
        optional(record.dispatch.as_ref().map(|dispatch| dispatch.median)),
        optional(cycles),
        optional(instructions),
        optional(cache_misses),
        optional(tlb_misses),
    ]
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::Same => "same",
        Verdict::NotComparable => "not comparable",
        Verdict::Busy => "busy",
    }
}

fn verdicts(beside: Option<Comparison>, earlier: Option<Comparison>) -> Vec<String> {
    let mut cells = match beside {
        None => vec![String::new(); 6],
        Some(found) => {
            let [low, high] = found.interval;
            let figures = [found.speedup, low, high, found.threshold].map(|f| f.to_string());
            let mut cells = vec![found.against];
            cells.extend(figures);
            cells.push(verdict(found.verdict).to_owned());
            cells
        }
    };
    let comparable = earlier.as_ref().filter(|found| found.verdict != Verdict::NotComparable);
    cells.push(optional(comparable.map(|found| found.speedup)));
    cells.push(earlier.map(|found| verdict(found.verdict).to_owned()).unwrap_or_default());
    cells
}

/// The report as Markdown: a table for each op with its attributes, then what else is to be known.
pub fn markdown(report: &Report, baseline: Option<&Baseline>) -> String {
    let mut text = String::new();
    let same = |a: &Record, b: &Record| a.bench == b.bench && a.case.attrs == b.case.attrs;
    let mut first = 0;
    for records in report.records.chunk_by(same) {
        table(&mut text, report, first, records);
        first += records.len();
    }
    if let Some(found) = baseline {
        changes(&mut text, report, found);
    }
    for problem in &report.problems {
        let line = format!(
            "{}: {}, {}: {}",
            words::problem(problem.kind),
            problem.variant,
            problem.case,
            problem.message
        );
        let _ = writeln!(text, "- {}", markdown_cell(&line));
    }
    let run = &report.run;
    let commit = run.commit.as_ref().map(|commit| format!(", commit {commit}"));
    let _ = writeln!(
        text,
        "\n{} on {}, tenon {}{}: `{}`",
        run.date,
        markdown_cell(&run.machine.cpu),
        run.tenon,
        commit.unwrap_or_default(),
        run.command.join(" ").replace('`', "'"),
    );
    text
}

fn table(text: &mut String, report: &Report, first: usize, records: &[Record]) {
    let attrs: Vec<String> =
        records[0].case.attrs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let _ = writeln!(
        text,
        "**{}** {}\n",
        markdown_cell(&records[0].bench),
        markdown_cell(&attrs.join(" "))
    );
    text.push_str(
        "| shapes | threads | variant | time | ± | dispatch | rate | of limit | comparison |\n",
    );
    text.push_str("|---|--:|---|--:|--:|--:|--:|---|---|\n");
    let variants: Vec<&Variant> = records.iter().map(|record| &record.variant).collect();
    for (at, (record, name)) in records.iter().zip(short_names(&variants)).enumerate() {
        let found = report.comparisons.iter().find(|found| found.record as usize == first + at);
        let cold = if record.cold { ", cold" } else { "" };
        let cells = [
            record.case.shapes(),
            record.threads.to_string(),
            format!(
                "{name}{}{}",
                if record.variant.chosen { " (chosen)" } else { "" },
                timed(record.timing)
            ),
            format!("{}{cold}", time(record.median_ns)),
            spread(record),
            record.dispatch.as_ref().map(dispatch).unwrap_or_default(),
            format!("{} {}", figure(record.rate), record.unit),
            record.reached.as_ref().map(reached).unwrap_or_default(),
            found.map(compared).unwrap_or_default(),
        ];
        row(text, &cells);
    }
    text.push('\n');
}

fn row(text: &mut String, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| markdown_cell(cell)).collect();
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn changes(text: &mut String, report: &Report, found: &Baseline) {
    text.push_str(
        "| against the baseline | variant | before | now | change |\n|---|---|--:|--:|---|\n",
    );
    for comparison in &found.comparisons {
        let record = &report.records[comparison.record as usize];
        let before = match comparison.verdict {
            Verdict::NotComparable => String::new(),
            _ => time(record.median_ns * comparison.speedup),
        };
        let cells = [
            format!("{} {}", record.bench, record.size),
            record.peer.clone(),
            before,
            time(record.median_ns),
            compared(comparison),
        ];
        row(text, &cells);
    }
    text.push('\n');
    found.notes.iter().for_each(|note| text.push_str(&format!("- {}\n", markdown_cell(note))));
}

/// A cell: on one line, and no mark of Markdown or HTML in it.
fn markdown_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '\\' | '[' | ']' => cell.extend(['\\', c]),
            '<' => cell.push_str("&lt;"),
            '\n' | '\r' | '\t' => cell.push(' '),
            _ => cell.push(c),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        html::tests::report::single,
        record::{read_lines, write_lines},
    };

    /// Two records of an op whose names hold what tables are made of.
    fn report() -> Report {
        let mut report = single(&["", "fast"]);
        // What follows from records is not in their file.
        report.comparisons.clear();
        report.records[0].case.attrs.insert("mode".into(), "a|b, \"c\"".into());
        report.records[1].case.attrs = report.records[0].case.attrs.clone();
        report.records[1].cold = true;
        report
    }

    #[test]
    fn each_line_of_csv_has_a_cell_for_each_title() {
        let text = csv(&report(), None);
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), 3);
        let cells = |line: &str| {
            let (mut quoted, mut cells) = (false, vec![String::new()]);
            for c in line.chars() {
                match c {
                    '"' => quoted = !quoted,
                    ',' if !quoted => cells.push(String::new()),
                    _ => cells.last_mut().unwrap().push(c),
                }
            }
            cells
        };
        assert!(lines.iter().all(|line| cells(line).len() == COLUMNS.len()), "{text}");
        let second = cells(lines[2]);
        let of = |title: &str| &second[COLUMNS.iter().position(|known| *known == title).unwrap()];
        assert_eq!((of("op").as_str(), of("cache").as_str()), ("Square", "cold"));
        assert_eq!(
            of("attributes"),
            "T=float mode=a|b, c",
            "quotes are doubled, which this reader drops"
        );
        assert_eq!(csv_cell("=1+1"), "\"'=1+1\"");
    }

    #[test]
    fn cells_of_markdown_stay_in_their_table() {
        let text = markdown(&report(), None);
        assert!(text.contains("mode=a\\|b, \"c\""), "{text}");
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let counts: Vec<usize> = rows.map(bars).collect();
        assert!(counts.len() == 4 && counts.iter().all(|&count| count == 10), "{text}");
        assert_eq!(markdown_cell("a\n<b>"), "a &lt;b>");
    }

    #[test]
    fn a_report_that_was_read_back_gives_the_same_tables() {
        let mut file = Vec::new();
        let report = report();
        write_lines(&report, &mut file).unwrap();
        let read = read_lines(&*file).unwrap();
        assert_eq!(csv(&read, None), csv(&report, None));
    }
}
