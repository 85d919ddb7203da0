//! The report that a person reads: what was broken, by clause and cause, then what was not looked at.

use super::{Failure, Report, Spent, Tally, table::table};
use crate::check::{Clause, protocol::Unit};
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt::{self, Display, Write},
};

/// How many kernels with the same failure are named.
const NAMED: usize = 8;
/// How much of what a process wrote last is shown.
const SAID_LINES: usize = 6;

/// Failures of one clause that say the same, numbers aside.
struct Cause<'r> {
    clause: Clause,
    found: Vec<(&'r Unit, &'r Tally)>,
}

/// The whole report. `again` is the command that runs a reproducer again.
pub fn summary(report: &Report, again: &str) -> String {
    let mut text = table(report);
    text.push_str(&failures(report, again));
    text.push_str(&not_run(report));
    text.push_str(&skipped(report));
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    if let Some(file) = &report.exceptions {
        let _ = writeln!(text, "note: exceptions are those of {}", file.display());
    }
    if report.sampling.full {
        text.push_str(&times(report));
    }
    text.push_str(&last_line(report));
    text
}

/// What was broken, by clause and cause, with an empty line behind each. `again` is as for [`summary`].
pub fn failures(report: &Report, again: &str) -> String {
    let mut text = String::new();
    for cause in causes(report) {
        text.push_str(&cause_text(&cause, again));
        text.push('\n');
    }
    for problem in &report.problems {
        let _ = writeln!(text, "✗ {problem}\n");
    }
    text
}

/// How many of the things and kernels that took longest are listed.
const LONGEST: usize = 6;

/// Where the time went: in all, then the subjects that took longest.
fn times(report: &Report) -> String {
    let parts = |spent: &Spent, count: usize| {
        let parts = spent.longest(count).into_iter();
        let parts = parts.map(|(on, time)| format!("{on} {:.2}", time.as_secs_f64()));
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut all = Spent::default();
    report.units.iter().for_each(|unit| all.merge(&unit.spent));
    let mut text = format!("seconds of all workers: {}\n", parts(&all, usize::MAX));
    let mut units: Vec<_> = report.units.iter().collect();
    units.sort_by_key(|unit| Reverse(unit.spent.total()));
    for unit in units.iter().take(LONGEST) {
        let total = unit.spent.total().as_secs_f64();
        let _ = writeln!(text, "  {total:.2} {} ({})", unit.unit.name, parts(&unit.spent, 3));
    }
    text
}

/// Failures by clause, then by what they say.
fn causes(report: &Report) -> Vec<Cause<'_>> {
    let mut all: Vec<(Clause, String, Cause<'_>)> = Vec::new();
    for (unit, clause, tally) in report.broken() {
        let first = tally.failures.first().map_or("", |failure| &failure.message);
        let said = cause_of(unit, clause, first);
        match all.iter_mut().find(|(other, text, _)| *other == clause && *text == said) {
            Some((.., cause)) => cause.found.push((unit, tally)),
            None => all.push((clause, said, Cause { clause, found: vec![(unit, tally)] })),
        }
    }
    all.sort_by_key(|(clause, ..)| *clause);
    all.into_iter().map(|(.., cause)| cause).collect()
}

/// The key by which failures are reported as one: their message. Wrong values of two ops have nothing in
/// common, whatever the words.
fn cause_of(unit: &Unit, clause: Clause, message: &str) -> String {
    // The first part says what is wrong, the rest gives examples.
    let message = parts(message)[0];
    let said = match unit.op.as_str() {
        "" => without_figures(message),
        op => without_figures(&message.replace(op, "op")),
    };
    match clause {
        Clause::Values | Clause::Shapes => format!("{}: {said}", unit.op),
        _ => said,
    }
}

/// A message without what differs from case to case: figures, indices, what is quoted.
fn without_figures(message: &str) -> String {
    let mut text = String::new();
    let mut quoted = false;
    for c in message.chars() {
        if c == '\'' || c == '"' {
            quoted = !quoted;
        }
        if !quoted && !c.is_ascii_digit() && !".-+e[],x".contains(c) {
            text.push(c);
        }
    }
    text
}

/// A cause: the first kernel with its message and input, the others by name.
fn cause_text(cause: &Cause<'_>, again: &str) -> String {
    let mut text = String::new();
    // One with a reproducer says most.
    let reproduced = |(_, tally): &&(&Unit, &Tally)| {
        tally.failures.first().is_some_and(|failure| failure.reproducer.is_some())
    };
    let Some((unit, tally)) = cause.found.iter().find(reproduced).or(cause.found.first()) else {
        return text;
    };
    let _ = writeln!(text, "✗ {}: {}", cause.clause, unit.name);
    if let Some(failure) = tally.failures.first() {
        failure_text(&mut text, failure, again);
    }
    if tally.failed > 1 {
        let _ = writeln!(text, "    in {} cases of this kernel", tally.failed);
    }
    if !unit.source.is_empty() {
        let _ = writeln!(text, "    registered at {}", unit.source);
    }
    let others: Vec<&str> = cause
        .found
        .iter()
        .filter(|(other, _)| other.name != unit.name)
        .map(|(other, _)| other.name.as_str())
        .collect();
    if !others.is_empty() {
        let _ = writeln!(text, "    likewise: {}", Names(&others));
    }
    text
}

fn failure_text(text: &mut String, failure: &Failure, again: &str) {
    let parts = parts(&failure.message);
    // The input that is shown below says it better.
    let repeated = |part: &&str| {
        failure.input.is_some()
            && (part.starts_with("inputs: ") || part.starts_with("attributes: "))
    };
    let parts: Vec<&str> = parts.into_iter().filter(|part| !repeated(part)).collect();
    let _ = writeln!(text, "    {}", parts.join("\n      "));
    match (&failure.input, failure.case.is_empty()) {
        (Some(input), _) => {
            let _ = writeln!(text, "    with {input}");
        }
        (None, false) => {
            let _ = writeln!(text, "    in case {}", failure.case);
        }
        _ => {}
    }
    if let Some(file) = &failure.reproducer {
        let _ = writeln!(text, "    again: {again} --case {}", file.display());
    }
    if let Some(folder) = &failure.arrays {
        let _ = writeln!(text, "    arrays: {}", folder.display());
    }
    let lines = said_last(&failure.said);
    if !lines.is_empty() {
        let _ = writeln!(text, "    it wrote last:");
        for line in lines {
            let _ = writeln!(text, "      {line}");
        }
    }
}

/// The parts of a message, each of which is a line: what `; ` separates, where that is not in brackets, as in
/// `kernel of op 'Add' on CPU (T: float; add src/lib.rs:7)`. There is always one.
fn parts(message: &str) -> Vec<&str> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (at, c) in message.char_indices() {
        match c {
            '(' => open.push(at),
            // A bracket without its other half is the end of a range, such as `[0, 4)`.
            ')' => pairs.extend(open.pop().map(|from| from..at)),
            _ => {}
        }
    }
    let (mut parts, mut begin) = (Vec::new(), 0);
    for (at, separator) in message.match_indices("; ") {
        if !pairs.iter().any(|pair| pair.contains(&at)) {
            parts.push(&message[begin..at]);
            begin = at + separator.len();
        }
    }
    parts.push(&message[begin..]);
    parts
}

/// The last lines that a process wrote, without the frames of a stack: the cause is printed before them, and they would
/// push it out.
fn said_last(said: &str) -> Vec<&str> {
    let is_frame = |line: &str| {
        let line = line.trim_start();
        let number = line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        number || line.starts_with("at ") || line == "stack backtrace:"
    };
    let is_note = |line: &str| line.starts_with("note: ") && line.contains("RUST_BACKTRACE");
    let all: Vec<&str> = said.lines().collect();
    let is_told = |line: &&str| !is_frame(line) && !is_note(line);
    let told: Vec<&str> = match said.contains("stack backtrace:") {
        true => all.iter().copied().filter(is_told).collect(),
        false => all.clone(),
    };
    let lines = if told.is_empty() { all } else { told };
    lines[lines.len().saturating_sub(SAID_LINES)..].to_vec()
}

/// Names, the first few of them.
struct Names<'a>(&'a [&'a str]);

impl Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(NAMED)];
        write!(f, "{}", shown.join(", "))?;
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Of what nothing was run, by reason.
fn not_run(report: &Report) -> String {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (unit, reason) in report.not_run() {
        by_reason.entry(reason).or_default().push(&unit.name);
    }
    let line =
        |(reason, names): (String, Vec<&str>)| format!("– not run: {}: {reason}\n", Names(&names));
    by_reason.into_iter().map(line).collect()
}

/// What was not looked at, by reason.
fn skipped(report: &Report) -> String {
    let mut reasons: BTreeMap<(&str, Clause), (Vec<&str>, usize)> = BTreeMap::new();
    for unit in &report.units {
        for (clause, tally) in &unit.clauses {
            for (reason, count) in &tally.skipped {
                let (units, times) = reasons.entry((reason, *clause)).or_default();
                units.push(&unit.unit.name);
                *times += count;
            }
        }
    }
    let mut by_reason: BTreeMap<&str, (Vec<Clause>, Vec<&str>, usize)> = BTreeMap::new();
    for ((reason, clause), (units, times)) in reasons {
        let entry = by_reason.entry(reason).or_default();
        entry.0.push(clause);
        entry.2 += times;
        entry.1.extend(units);
    }
    let mut text = String::new();
    for (reason, (clauses, mut units, times)) in by_reason {
        units.sort_unstable();
        units.dedup();
        let clauses: Vec<&str> = clauses.iter().map(|clause| clause.name()).collect();
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let _ = write!(text, "– {} skipped {times}, {}", clauses.join(", "), units[0]);
        let _ = match units.len() {
            1 => writeln!(text, ": {reason}"),
            count => writeln!(text, " and {} more: {reason}", count - 1),
        };
    }
    text
}

fn last_line(report: &Report) -> String {
    let broken: usize = report.broken().map(|(.., tally)| tally.failed).sum();
    let subjects = match report.units.len() {
        1 => "1 subject".to_owned(),
        count => format!("{count} subjects"),
    };
    let (plugin, sampling) = (&report.plugin, &report.sampling);
    let all = report.units.len();
    let not_run = match (broken + report.problems.len(), report.not_run().len()) {
        (_, 0) => String::new(),
        (0, count) => format!(", but of {count} of {subjects} nothing was run"),
        (_, count) => format!("; of {count} of {all} nothing was run"),
    };
    let verdict = match broken + report.problems.len() {
        0 => "right".to_owned(),
        failures => {
            let units = report.units.iter().filter(|unit| !unit.is_right()).count();
            let word = if failures == 1 { "failure" } else { "failures" };
            format!("{failures} {word} in {units} of them")
        }
    };
    format!(
        "{} {}: {subjects}, {} cases, seed {}{}, {:.1} s: {verdict}{not_run}\n",
        plugin.name,
        plugin.version,
        report.cases(),
        sampling.seed,
        if sampling.full { ", full" } else { "" },
        report.time.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::report::testing::{broken, kept, report, skipped};

    #[test]
    fn failures_with_one_cause_are_told_once() {
        let mut made = report(&[
            ("Add", "", "float", &[(Clause::Bounds, broken(2)), (Clause::Leak, skipped())]),
            ("Sub", "", "float", &[(Clause::Bounds, broken(1)), (Clause::Shapes, kept())]),
        ]);
        made.problems.push("an entry covers nothing".to_owned());
        let text = summary(&made, "tenon check");
        let expected = "\
✗ bounds: Add[T=float] on CPU
    0 of 7 elements are wrong
      at [0] got 1, expected 2 <&>
    with input 0: float [1] = [1.0]
    again: tenon check --case tenon-check/Add.values.json
    arrays: kept/Add.values
    in 2 cases of this kernel
    registered at src/lib.rs:7
    likewise: Sub[T=float] on CPU

✗ an entry covers nothing

– leak skipped 2 times, Add[T=float] on CPU: no device
tenon-test 0.1.0: 2 subjects, 4 cases, seed 1, 1.5 s: 4 failures in 2 of them
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn wrong_values_of_two_ops_are_two_failures() {
        let wrong = [(Clause::Values, broken(1))];
        let types = ["float", "half"].map(|types| ("Add", "", types, &wrong[..]));
        let made = report(&[types[0], types[1], ("Sub", "", "float", &wrong)]);
        let text = summary(&made, "tenon check");
        assert_eq!(text.matches("✗ values: ").count(), 2, "{text}");
        assert!(text.contains("likewise: Add[T=half] on CPU"), "{text}");
    }

    /// A kernel of which no case was run, since the machine lacked what it needs, counted as right.
    #[test]
    fn what_was_not_run_is_named_and_counted() {
        let mut lacks = Tally::default();
        lacks.skipped.insert("this machine has no avx512f".to_owned(), 78);
        let rows = [
            ("Add", "", "float", &[(Clause::Values, kept())][..]),
            ("Add", "avx512", "float", &[(Clause::Verified, kept()), (Clause::Values, lacks)][..]),
        ];
        let mut made = report(&rows);
        let text = summary(&made, "t");
        assert!(
            text.contains("– not run: Add[T=float] on CPU 'avx512': this machine has no avx512f\n"),
            "{text}"
        );
        let end = "1.5 s: right, but of 1 of 2 subjects nothing was run\n";
        assert!(text.ends_with(end), "{text}");
        made.problems.push("an entry covers nothing".to_owned());
        let text = summary(&made, "t");
        assert!(text.ends_with("1 failure in 0 of them; of 1 of 2 nothing was run\n"), "{text}");
    }

    #[test]
    fn nothing_wrong_is_said_in_a_line() {
        let text = summary(&report(&[("Add", "", "float", &[(Clause::Values, kept())])]), "t");
        assert!(text.ends_with("1 subject, 2 cases, seed 1, 1.5 s: right\n"), "{text}");
    }

    #[test]
    fn a_full_check_says_where_its_time_went() {
        let two = [(Clause::Values, kept()), (Clause::Leak, kept())];
        let one = [(Clause::Leak, kept())];
        let mut made = report(&[("Sub", "", "float", &one), ("Add", "", "float", &two)]);
        assert!(!summary(&made, "t").contains("seconds of all workers"));
        made.sampling.full = true;
        let expected = "\
seconds of all workers: leak 0.06, oracle 0.04, values 0.03
  0.08 Add[T=float] on CPU (values 0.03, leak 0.03, oracle 0.02)
  0.05 Sub[T=float] on CPU (leak 0.03, oracle 0.02)
";
        let text = summary(&made, "t");
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_message_is_cut_between_its_parts_alone() {
        let kernel = "kernel of op 'Rg' on CPU (T: float; rg src/lib.rs:27): no op 'Rg'";
        let message = format!("{kernel}; at [0, 4) got 1; {kernel}");
        assert_eq!(parts(&message), [kernel, "at [0, 4) got 1", kernel]);
        assert_eq!(parts("of (0, 4]; found 7"), ["of (0, 4]", "found 7"]);
        assert_eq!(parts(""), [""]);
        let mut made = report(&[("Add", "", "float", &[(Clause::Load, broken(1))])]);
        for tally in made.units[0].clauses.values_mut() {
            tally.failures[0].message.clone_from(&message);
            tally.failures[0].input = None;
        }
        let expected = format!("    {kernel}\n      at [0, 4) got 1\n      {kernel}\n");
        let text = summary(&made, "t");
        assert!(text.contains(&expected), "{text}");
    }

    /// The frames of a stack pushed the message of the panic out of what is shown.
    #[test]
    fn what_ended_a_process_is_told_without_the_frames_of_its_stack() {
        let mut said =
            "thread 'main' panicked at src/lib.rs:3:5:\nno memory\nstack backtrace:\n".to_owned();
        for frame in 0..20 {
            said.push_str(&format!(
                "  {frame:2}: tenon_testkit::run\n             at ./src/lib.rs:7:9\n"
            ));
        }
        said.push_str("note: Some details are omitted, run with `RUST_BACKTRACE=full` for more.\n");
        said.push_str("aborted");
        let expected = ["thread 'main' panicked at src/lib.rs:3:5:", "no memory", "aborted"];
        assert_eq!(said_last(&said), expected);
        assert_eq!(said_last("1: one\nat two"), ["1: one", "at two"], "no frames");
        assert!(said_last("").is_empty());
    }

    #[test]
    fn many_names_are_cut() {
        let names: Vec<String> = (0..10).map(|at| format!("k{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(Names(&names).to_string().ends_with("k7 and 2 more"));
    }
}
