//! The report of a round: lines for people, or events for programs, one JSON value a line.

use super::{
    diff::{Difference, Turned},
    judge::Judged,
    measure::{Measured, Row},
    session::Steps,
};
use crate::{
    error::CliError,
    output::{count, print, time},
    table::Table,
};
use serde_json::{Value, json};
use std::{path::PathBuf, time::Duration};

/// Why the old build goes on running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The build failed.
    Build,
    /// The check failed, or could not be made.
    Check,
    /// The process died in which it was timed.
    Bench,
    /// The process died in which the session's steps were tried.
    Session,
    /// It was not loaded, or the graph does not fit it.
    Load,
    /// It is the same file.
    Same,
}

impl Why {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Why::Build => "build",
            Why::Check => "check",
            Why::Bench => "bench",
            Why::Session => "session",
            Why::Load => "load",
            Why::Same => "same",
        }
    }
}

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A build begins.
    Building { round: usize, command: &'a str, changed: &'a [PathBuf] },
    /// A build failed.
    BuildFailed { round: usize, after: Duration, output: &'a str },
    /// A build was checked.
    Checked { round: usize, judged: &'a Judged, turned: &'a [Turned] },
    /// A build was timed.
    Measured { round: usize, measured: &'a Measured },
    /// A build runs from now on; times are from the end of the build to here.
    Replaced {
        round: usize,
        plugin: String,
        digest: &'a str,
        first: bool,
        difference: &'a Difference,
        nodes: usize,
        after: Duration,
        steps: Steps,
    },
    /// The old build goes on running, where there is one.
    Kept { round: usize, why: Why, reason: &'a str, running: bool, after: Duration, steps: Steps },
    /// Steps fail.
    StepFailed { error: &'a str },
    /// A change is waited for.
    Waiting,
    /// The end.
    Stopped { steps: Steps },
}

/// Tells of an event.
///
/// # Errors
/// Standard output cannot be written.
pub fn tell(as_json: bool, event: &Event<'_>) -> Result<(), CliError> {
    match as_json {
        true => print(&format!("{}\n", to_json(event))),
        false => print(&to_text(event)),
    }
}

fn steps_json(steps: Steps) -> Value {
    json!({ "done": steps.done, "failed": steps.failed })
}

fn to_json(event: &Event<'_>) -> Value {
    match event {
        Event::Building { round, command, changed } => {
            let changed: Vec<String> =
                changed.iter().map(|file| file.display().to_string()).collect();
            json!({ "event": "building", "round": round, "command": command, "changed": changed })
        }
        Event::BuildFailed { round, after, output } => json!({
            "event": "build_failed", "round": round, "seconds": after.as_secs_f64(), "output": output,
        }),
        Event::Checked { round, judged, turned } => json!({
            "event": "checked", "round": round, "right": judged.is_right(),
            "kernels": judged.seen.len(), "in_full": judged.in_full(), "cases": judged.cases,
            "seconds": judged.time.as_secs_f64(), "left": judged.left,
            "not_run": judged.not_run.iter().map(|(kernel, reason)| json!({
                "kernel": kernel, "reason": reason,
            })).collect::<Vec<_>>(),
            "broken": judged.broken.iter().map(|broken| json!({
                "kernel": broken.kernel, "clause": broken.clause, "message": broken.message,
                "input": broken.input,
                "reproducer": broken.reproducer.as_ref().map(|file| file.display().to_string()),
            })).collect::<Vec<_>>(),
            "turned": turned.iter().map(|turned| json!({
                "kernel": turned.kernel, "clause": turned.clause.name(),
                "before": turned.marks[0], "now": turned.marks[1],
            })).collect::<Vec<_>>(),
        }),
        Event::Measured { round, measured } => json!({
            "event": "measured", "round": round, "seconds": measured.time.as_secs_f64(),
            "rows": measured.rows, "problems": measured.problems, "left": measured.left,
            "died": measured.died.as_ref().map(|died| json!({
                "op": died.kernel.as_ref().map(|kernel| &kernel.op),
                "label": died.kernel.as_ref().map(|kernel| &kernel.label),
                "message": died.message,
            })),
        }),
        Event::Replaced { round, plugin, digest, first, difference, nodes, after, steps } => {
            json!({
                "event": "replaced", "round": round, "plugin": plugin, "digest": digest, "first": first,
                "registrations": difference.json(), "nodes": nodes, "after_build_s": after.as_secs_f64(),
                "steps": steps_json(*steps),
            })
        }
        Event::Kept { round, why, reason, running, after, steps } => json!({
            "event": "kept", "round": round, "why": why.name(), "reason": reason, "running": running,
            "after_build_s": after.as_secs_f64(), "steps": steps_json(*steps),
        }),
        Event::StepFailed { error } => json!({ "event": "step_failed", "error": error }),
        Event::Waiting => json!({ "event": "waiting" }),
        Event::Stopped { steps } => json!({ "event": "stopped", "steps": steps_json(*steps) }),
    }
}

fn seconds(time: &Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn steps_text(steps: Steps) -> String {
    match steps.failed {
        0 => count(steps.done as usize, "step"),
        failed => format!("{}, {failed} failed", count(steps.done as usize, "step")),
    }
}

fn to_text(event: &Event<'_>) -> String {
    match event {
        Event::Building { round, command, changed } => {
            let name = |file: &PathBuf| file.file_name().map(|n| n.to_string_lossy().into_owned());
            let names: Vec<String> = changed.iter().take(5).filter_map(name).collect();
            let more = changed.len().saturating_sub(names.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let names = if names.is_empty() {
                String::new()
            } else {
                format!(" ({}{more})", names.join(", "))
            };
            format!("\n[{round}] {command}{names}\n")
        }
        Event::BuildFailed { after, .. } => format!("the build failed after {}\n", seconds(after)),
        Event::Checked { judged, turned, .. } => checked_text(judged, turned),
        Event::Measured { measured, .. } => measured_text(measured),
        Event::Replaced { plugin, first, difference, nodes, after, steps, .. } => {
            let what = if *first { "runs" } else { "runs in place of the build before" };
            let nodes = count(*nodes, "node");
            let difference = if *first { String::new() } else { difference.text() };
            let (after, steps) = (seconds(after), steps_text(*steps));
            format!(
                "{difference}{plugin} {what}: {after} after the build, {nodes}, {steps} so far\n"
            )
        }
        Event::Kept { why: Why::Same, .. } => "the build is the one that runs\n".to_owned(),
        Event::Kept { why, reason, running, .. } => {
            let old =
                if *running { "the build before goes on running" } else { "nothing runs yet" };
            match why {
                Why::Load => format!("{reason}\n{old}\n"),
                Why::Session => format!("  ✗ session: {reason}\n{old}\n"),
                _ => format!("{old}\n"),
            }
        }
        Event::StepFailed { error } => format!("a step failed: {error}\n"),
        Event::Waiting => "waiting for a change; Ctrl-C ends\n".to_owned(),
        Event::Stopped { steps } => format!("\nended after {}\n", steps_text(*steps)),
    }
}

fn left_text(left: &[String]) -> String {
    match left.len() {
        0 => String::new(),
        ops => format!("; {} left for the next round", count(ops, "op")),
    }
}

/// A part is not called right: which kernels were checked in full, and which were only called.
fn checked_text(judged: &Judged, turned: &[Turned]) -> String {
    let (all, in_full) = (judged.seen.len(), judged.in_full());
    let but = if judged.not_run.is_empty() { "" } else { ", but not all of it was run" };
    let verdict = match (judged.broken.is_empty(), judged.left.is_empty()) {
        (true, true) => format!("right{but}: {}", count(all, "kernel")),
        (true, false) => format!(
            "nothing broken so far{but}: {in_full} of {} in full, each called",
            count(all, "kernel")
        ),
        (false, _) => format!("broken: {in_full} of {} in full", count(all, "kernel")),
    };
    let (cases, time, left) =
        (count(judged.cases, "case"), seconds(&judged.time), left_text(&judged.left));
    let mut text = format!("check: {verdict}, {cases} in {time}{left}\n");
    for (kernel, reason) in &judged.not_run {
        text.push_str(&format!("  – not run: {kernel}: {reason}\n"));
    }
    for line in judged.told.lines().filter(|line| !line.is_empty()) {
        text.push_str(&format!("  {line}\n"));
    }
    for Turned { kernel, clause, marks: [before, now] } in turned {
        text.push_str(&format!("  ~ {clause}: {kernel}: {before} → {now}\n"));
    }
    text
}

fn measured_text(measured: &Measured) -> String {
    let (time, left) = (seconds(&measured.time), left_text(&measured.left));
    let mut text = format!("bench: {} in {time}{left}\n", count(measured.rows.len(), "call"));
    if let Some(died) = &measured.died {
        text.push_str(&format!("  ✗ bench: {}\n", died.message));
    }
    let mut table = Table::new(["op", "label", "on", "call", ">before", ">now", ">ratio", ""]);
    for row in &measured.rows {
        table.row(cells(row));
    }
    if !table.is_empty() {
        text.push_str(&table.render(2));
    }
    measured.problems.iter().for_each(|problem| text.push_str(&format!("  ! {problem}\n")));
    text
}

fn cells(row: &Row) -> [String; 8] {
    let ratio = row.speedup.map(|speedup| format!("{speedup:.2}x")).unwrap_or_default();
    let told = match row.verdict.as_deref() {
        Some("same") => "within noise".to_owned(),
        other => other.unwrap_or_default().to_owned(),
    };
    [
        row.op.clone(),
        row.label.clone(),
        row.device.clone(),
        row.call.strip_prefix(&row.op).unwrap_or(&row.call).trim().to_owned(),
        row.before_ns.map(time).unwrap_or_default(),
        time(row.ns),
        ratio,
        told,
    ]
}

#[cfg(test)]
mod tests {
    use super::{
        super::judge::{Broken, Seen},
        *,
    };

    fn seen(kernel: &str, in_full: bool) -> Seen {
        let (op, label) = ("Op".to_owned(), String::new());
        Seen { kernel: kernel.to_owned(), op, label, in_full }
    }

    /// `check: right: 2 kernels` was said of two of seven.
    #[test]
    fn right_is_said_of_the_whole_only() {
        let whole =
            Judged { seen: vec![seen("a", true), seen("b", true)], cases: 12, ..Judged::default() };
        assert_eq!(checked_text(&whole, &[]), "check: right: 2 kernels, 12 cases in 0.0 s\n");
        let mut part = Judged { seen: vec![seen("a", true), seen("b", false)], ..whole.clone() };
        part.left.push("Op".to_owned());
        let text = checked_text(&part, &[]);
        let expected = "check: nothing broken so far: 1 of 2 kernels in full, each called, 12 cases in 0.0 s; 1 op left \
                        for the next round\n";
        assert_eq!(text, expected);
        part.broken.push(Broken { kernel: "a".into(), ..Broken::default() });
        let text = checked_text(&part, &[]);
        assert!(text.starts_with("check: broken: 1 of 2 kernels in full"), "{text}");
    }

    /// Wrong values were told on one line, with the whole input.
    #[test]
    fn what_is_broken_is_told_as_check_tells_it() {
        let told = "✗ values: a\n    1 of 2 elements is wrong\n      at [0] got 1\n\n".to_owned();
        let broken = vec![Broken { kernel: "a".into(), ..Broken::default() }];
        let judged =
            Judged { seen: vec![seen("a", true)], broken, told, cases: 1, ..Judged::default() };
        let expected = "\
check: broken: 1 of 1 kernel in full, 1 case in 0.0 s
  ✗ values: a
      1 of 2 elements is wrong
        at [0] got 1
";
        assert_eq!(checked_text(&judged, &[]), expected);
    }

    #[test]
    fn what_was_not_run_is_told() {
        let not_run = vec![("a".to_owned(), "this machine has no avx512f".to_owned())];
        let judged = Judged { seen: vec![seen("a", true)], not_run, ..Judged::default() };
        let text = checked_text(&judged, &[]);
        assert!(text.starts_with("check: right, but not all of it was run: 1 kernel"), "{text}");
        assert!(text.contains("  – not run: a: this machine has no avx512f\n"), "{text}");
    }

    #[test]
    fn a_process_that_died_is_told_with_its_words() {
        let died = super::super::measure::Died { kernel: None, message: "SIGSEGV".to_owned() };
        let measured = Measured { died: Some(died), ..Measured::default() };
        assert!(measured_text(&measured).contains("  ✗ bench: SIGSEGV\n"));
        assert!(matches!((Why::Bench.name(), Why::Session.name()), ("bench", "session")));
    }
}
