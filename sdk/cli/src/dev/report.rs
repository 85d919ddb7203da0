//! What is told of a round: lines for people, or events for programs, one JSON value a line.

use super::{
    diff::{Difference, Turned},
    judge::{Broken, Judged},
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
            "event": "checked", "round": round, "right": judged.broken.is_empty(),
            "kernels": judged.kernels, "cases": judged.cases, "seconds": judged.time.as_secs_f64(),
            "left": judged.left,
            "broken": judged.broken.iter().map(|broken| json!({
                "kernel": broken.kernel, "clause": broken.clause, "message": broken.message,
            })).collect::<Vec<_>>(),
            "turned": turned.iter().map(|turned| json!({
                "kernel": turned.kernel, "clause": turned.clause.name(),
                "before": turned.marks[0], "now": turned.marks[1],
            })).collect::<Vec<_>>(),
        }),
        Event::Measured { round, measured } => json!({
            "event": "measured", "round": round, "seconds": measured.time.as_secs_f64(),
            "rows": measured.rows, "problems": measured.problems, "left": measured.left,
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

fn checked_text(judged: &Judged, turned: &[Turned]) -> String {
    let verdict = if judged.broken.is_empty() { "right" } else { "broken" };
    let (kernels, cases) = (count(judged.kernels, "kernel"), count(judged.cases, "case"));
    let (time, left) = (seconds(&judged.time), left_text(&judged.left));
    let mut text = format!("check: {verdict}: {kernels}, {cases} in {time}{left}\n");
    for Broken { kernel, clause, message } in &judged.broken {
        text.push_str(&format!("  ✗ {clause}: {kernel}\n      {message}\n"));
    }
    for Turned { kernel, clause, marks: [before, now] } in turned {
        text.push_str(&format!("  ~ {clause}: {kernel}: {before} → {now}\n"));
    }
    text
}

fn measured_text(measured: &Measured) -> String {
    let (time, left) = (seconds(&measured.time), left_text(&measured.left));
    let mut text = format!("bench: {} in {time}{left}\n", count(measured.rows.len(), "call"));
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
