//! What passes did to the graph of a step, as text and as JSON.

use serde_json::{Value, json};
use std::fmt::Write;
use tenon_runtime::graph::optimize::{PassReport, Report};

/// Most changes of a pass that are told where all nodes are.
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
        return "passes: no pass runs over the graph\n".to_owned();
    }
    let _ = writeln!(
        text,
        "passes: {} nodes before, {} after, {} rounds",
        report.before, report.after, report.rounds
    );
    report.passes.iter().for_each(|pass| pass_text(&mut text, pass));
    text
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
    })
}
