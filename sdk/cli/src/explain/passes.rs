//! What passes did to the graph of a step, as text and as JSON.

use crate::output::short_device;
use serde_json::{Value, json};
use std::fmt::Write;
use tenon_runtime::{
    graph::DeviceMemory,
    optimize::{PassReport, Report},
};

/// Most changes of a pass that are listed when all nodes are.
const TOLD: usize = 20;

/// One line per pass, and what it did to which node; of one node only, where one is asked for.
pub fn text(report: &Report, only: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(node) = only {
        for (pass, change) in report.of(node) {
            let _ = writeln!(text, "    {pass}: {change}");
        }
        return text;
    }
    if report.passes.is_empty() {
        text.push_str("passes: no pass runs over the graph\n");
        memory_text(&mut text, report);
        return text;
    }
    let _ = writeln!(
        text,
        "passes: {} nodes before, {} after, {} rounds",
        report.before, report.after, report.rounds
    );
    report.passes.iter().for_each(|pass| pass_text(&mut text, pass));
    for limit in &report.limits {
        let _ = writeln!(text, "  {limit}");
    }
    memory_text(&mut text, report);
    text
}

/// What the values take on each device.
fn memory_text(text: &mut String, report: &Report) {
    for memory in &report.memory {
        let _ = writeln!(
            text,
            "memory on {}: {} values take {} bytes each in a buffer of its own, {} at the peak{} where buffers are \
             used again ({} in place, {} passed on; {} bytes of small ones keep theirs); constants take {}",
            short_device(&memory.device),
            memory.values,
            memory.without_reuse,
            memory.peak,
            peak_at(memory),
            memory.in_place,
            memory.passed_on,
            memory.kept,
            memory.constants
        );
        if memory.unknown > 0 {
            let _ = writeln!(
                text,
                "    {} values more are of shapes that only a step knows",
                memory.unknown
            );
        }
    }
}

/// Where the peak is, if at one node: small values are held at all of them.
fn peak_at(memory: &DeviceMemory) -> String {
    if memory.peak_at.is_empty() { String::new() } else { format!(" ('{}')", memory.peak_at) }
}

fn pass_text(text: &mut String, pass: &PassReport) {
    let from = if pass.plugin.is_empty() { String::new() } else { format!(" of {}", pass.plugin) };
    let head = format!("  {}{from}", pass.pass);
    let _ = match (&pass.skipped, &pass.error) {
        (Some(reason), _) => writeln!(text, "{head}: does not run: {reason}"),
        (_, Some(error)) => writeln!(text, "{head}: failed, the graph is as before it: {error}"),
        _ => writeln!(
            text,
            "{head}: {} changes, {} nodes added, {} removed",
            pass.changes.len(),
            pass.added,
            pass.removed
        ),
    };
    for change in pass.changes.iter().take(TOLD) {
        let _ = writeln!(text, "      {change}");
    }
    if pass.changes.len() > TOLD {
        let _ = writeln!(text, "      and {} more (--json has all)", pass.changes.len() - TOLD);
    }
}

/// Everything.
pub fn json(report: &Report) -> Value {
    let pass = |pass: &PassReport| {
        let changes: Vec<Value> = pass
            .changes
            .iter()
            .map(|change| json!({ "node": change.node, "what": change.what }))
            .collect();
        json!({
            "pass": pass.pass,
            "plugin": pass.plugin,
            "runs": pass.runs,
            "added": pass.added,
            "removed": pass.removed,
            "skipped": pass.skipped,
            "error": pass.error,
            "changes": changes,
        })
    };
    json!({
        "before": report.before,
        "after": report.after,
        "rounds": report.rounds,
        "passes": report.passes.iter().map(pass).collect::<Vec<_>>(),
        "limits": report.limits,
        "memory": report.memory.iter().map(memory_json).collect::<Vec<_>>(),
    })
}

fn memory_json(memory: &DeviceMemory) -> Value {
    json!({
        "device": memory.device,
        "values": memory.values,
        "unknown": memory.unknown,
        "constants": memory.constants,
        "without_reuse": memory.without_reuse,
        "kept": memory.kept,
        "peak": memory.peak,
        "peak_at": memory.peak_at,
        "in_place": memory.in_place,
        "passed_on": memory.passed_on,
    })
}
