//! `tenon explain`: why a node runs where and as it does.

use crate::{
    args::{ExplainArgs, Global},
    error::CliError,
    list::kernel_json,
    output::{print, print_json, short_device},
    start::{read_graph, start_whole},
};
use serde_json::{Value, json};
use std::{fmt::Write, sync::Arc};
use tenon_runtime::{
    NodeExplanation, Session, SessionOptions,
    framework::registry::{Candidate, Explanation, KernelDef, Removal},
};

/// Explains one node of a graph, or all.
///
/// # Errors
/// The graph is wrong, has no such node, or cannot be placed.
pub fn explain(global: &Global, args: &ExplainArgs) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, None)?;
    let graph = read_graph(&args.graph)?;
    let options = SessionOptions { device: args.device.clone(), ..SessionOptions::default() };
    let session = Session::new(&runtime, options)?;
    session.extend(&graph)?;
    let nodes = session.explain(args.node.as_deref())?;
    if global.json {
        let nodes: Vec<Value> = nodes.iter().map(node_json).collect();
        return print_json(&json!({ "nodes": nodes }));
    }
    let nodes: Vec<String> = nodes.iter().map(node_text).collect();
    print(&nodes.join("\n"))
}

fn node_text(node: &NodeExplanation) -> String {
    let mut text = format!(
        "{} ({}) on {}: {}\n",
        node.node,
        node.op,
        short_device(&node.device),
        node.placement
    );
    for device in &node.passed_over {
        let _ = writeln!(text, "    passed over: {device}");
    }
    match &node.kernels {
        None => text.push_str("    run by the executor itself\n"),
        Some(kernels) => candidates_text(&mut text, kernels),
    }
    text
}

fn candidates_text(text: &mut String, kernels: &Explanation) {
    if let Some(label) = &kernels.label {
        let _ = writeln!(text, "    asked for: label '{label}'");
    }
    let wins = |c: &&Candidate| c.removed.is_none();
    let (winners, others): (Vec<&Candidate>, Vec<&Candidate>) =
        kernels.candidates.iter().partition(wins);
    for candidate in &winners {
        let kernel = &candidate.kernel;
        let note = if candidate.depends_on_shapes { ", if its shapes fit" } else { "" };
        let _ = writeln!(text, "  > {} of {}{note}", named(kernel), kernel.plugin_name);
        let _ = writeln!(text, "      {}", kernel.source);
    }
    if winners.is_empty() {
        text.push_str("  > no kernel\n");
    }
    // A kernel per element type would fill the screen: those that fall to the same rule for the same reason
    // but for their types are told together.
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for candidate in others {
        let (line, types) = removed_text(candidate);
        match told.iter_mut().find(|(known, _)| *known == line) {
            Some((_, known)) => known.extend(types),
            None => told.push((line, types)),
        }
    }
    for (line, mut types) in told {
        types.dedup();
        let types = if types.is_empty() { String::new() } else { format!(" {}", types.join(" ")) };
        let _ = writeln!(text, "    {line}{types}");
    }
}

/// `kernel 'avx2' on CPU`
fn named(kernel: &KernelDef) -> String {
    match kernel.label.as_str() {
        "" => format!("kernel on {}", kernel.device_type),
        label => format!("kernel '{label}' on {}", kernel.device_type),
    }
}

/// The line of a candidate that does not run, and element types to name behind it.
fn removed_text(candidate: &Candidate) -> (String, Vec<String>) {
    let kernel = &candidate.kernel;
    let head = format!("{} of {}", named(kernel), kernel.plugin_name);
    match &candidate.removed {
        Some(Removal::DType { attr, found, takes }) => {
            let takes = takes.iter().map(ToString::to_string).collect();
            (format!("{head}: {attr} is {found}, it takes"), takes)
        }
        Some(Removal::LowerPriority { own, higher, .. }) => {
            (format!("{head}: lower priority ({own} < {higher})"), Vec::new())
        }
        Some(removal) => (format!("{head}: {removal}"), Vec::new()),
        None => (head, Vec::new()),
    }
}

fn node_json(node: &NodeExplanation) -> Value {
    let candidates: Option<Vec<Value>> = node.kernels.as_ref().map(|kernels| {
        let wins = |kernel: &Arc<KernelDef>| {
            kernels.winner.as_ref().is_some_and(|winner| Arc::ptr_eq(winner, kernel))
        };
        let candidate = |candidate: &Candidate| {
            json!({
                "kernel": kernel_json(&candidate.kernel),
                "removed": candidate.removed.as_ref().map(Removal::to_string),
                "depends_on_shapes": candidate.depends_on_shapes,
                "wins": wins(&candidate.kernel),
            })
        };
        kernels.candidates.iter().map(candidate).collect()
    });
    json!({
        "node": node.node,
        "op": node.op,
        "device": node.device,
        "placement": node.placement,
        "passed_over": node.passed_over,
        "label": node.kernels.as_ref().and_then(|kernels| kernels.label.clone()),
        "candidates": candidates,
    })
}
