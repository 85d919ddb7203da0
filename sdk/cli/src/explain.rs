//! `tenon explain`: why a node runs where and as it does.

mod passes;

use crate::{
    args::{ExplainArgs, Global},
    error::CliError,
    list::kernel_json,
    output::{print, print_json, short_device, time},
    start::{read_graph, start_whole, warn_of_ignored},
};
use serde_json::{Value, json};
use std::{fmt::Write, sync::Arc};
use tenon_benchkit::{feeds::GraphWish, step::Step};
use tenon_runtime::{
    CallableOptions, NodeExplanation, RuntimeError, Session, SessionOptions,
    framework::{
        registry::{Candidate, Explanation, KernelDef, Removal},
        text::cut,
    },
};

/// Explains one node of a graph, or all.
///
/// # Errors
/// The graph is wrong, has no such node, or cannot be placed.
pub fn explain(global: &Global, args: &ExplainArgs) -> Result<(), CliError> {
    let (runtime, _) = start_whole(global, None)?;
    let mut graph = read_graph(&args.graph)?;
    if let Some(shapes) = &args.shapes {
        let wish = GraphWish { shapes: shapes.clone(), ..GraphWish::default() };
        graph = Step::new(&runtime, &args.graph, &graph, &wish, None)?.def().clone();
    }
    let options = SessionOptions { device: args.device.clone(), ..SessionOptions::default() };
    let session = Session::new(&runtime, options)?;
    session.extend(&graph)?;
    warn_of_ignored(&session);
    let step = step(args, &session);
    let mut made = session.explain_made(step.as_ref())?;
    made.retain(|node| args.node.as_ref().is_none_or(|name| *name == node.node));
    let nodes = match session.explain(args.node.as_deref()) {
        Err(RuntimeError::Graph(_)) if args.node.is_some() && !made.is_empty() => Vec::new(),
        nodes => nodes?,
    };
    let report = session.explain_passes(step.as_ref())?;
    if global.json {
        let [nodes, made] =
            [nodes, made].map(|nodes| nodes.iter().map(node_json).collect::<Vec<Value>>());
        let passes = passes::json(&report);
        return print_json(&json!({ "nodes": nodes, "made": made, "passes": passes }));
    }
    let mut parts: Vec<String> = nodes.iter().map(node_text).collect();
    parts.extend(made.iter().map(|node| format!("made by passes: {}", node_text(node))));
    parts.push(passes::text(&report, args.node.as_deref()));
    print(&parts.join("\n"))
}

/// The step that the options name.
fn step(args: &ExplainArgs, session: &Session) -> Option<CallableOptions> {
    let fetches = args.fetches.clone();
    if fetches.is_empty() {
        return None;
    }
    let placeholders = || {
        let graph = session.graph();
        let nodes = graph.nodes().filter(|(_, node)| node.op.name == "Placeholder");
        nodes.map(|(_, node)| node.name.clone()).collect()
    };
    let feeds = if args.feeds.is_empty() { placeholders() } else { args.feeds.clone() };
    Some(CallableOptions { feeds, fetches, targets: Vec::new(), ..CallableOptions::default() })
}

fn node_text(node: &NodeExplanation) -> String {
    if let Some(why) = &node.blocked {
        return format!("{} ({}) cannot run: {why}\n", cut(&node.node), cut(&node.op));
    }
    let mut text = format!(
        "{} ({}) on {}: {}\n",
        cut(&node.node),
        cut(&node.op),
        short_device(&node.device),
        node.placement
    );
    for device in &node.passed_over {
        let _ = writeln!(text, "    passed over: {device}");
    }
    if let Some(frame) = &node.frame {
        let _ = writeln!(text, "    in loop '{}'", cut(frame));
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
    let runs = match (&*kernels.per_shape, &kernels.winner) {
        ([], None) => {
            text.push_str("  > no kernel\n");
            Vec::new()
        }
        ([], Some(winner)) => vec![winner],
        (open, _) => {
            text.push_str("  > for each shape, the first of these that takes it:\n");
            open.iter().collect()
        }
    };
    for kernel in runs {
        let found = kernels.candidates.iter().find(|c| Arc::ptr_eq(&c.kernel, kernel));
        let measured = found.and_then(|candidate| candidate.measured_ns);
        let measured = measured.map(|ns| format!(", measured {}", time(ns))).unwrap_or_default();
        let _ = writeln!(text, "  > {} of {}{measured}", named(kernel), kernel.plugin_name);
        let _ = writeln!(text, "      {}", kernel.source);
    }
    // A kernel per element type would fill the screen: those that fall to the same rule for the same reason
    // but for their types are told together.
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for candidate in kernels.candidates.iter().filter(|candidate| candidate.removed.is_some()) {
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
    let per_shape: Option<Vec<Value>> = node
        .kernels
        .as_ref()
        .map(|kernels| kernels.per_shape.iter().map(|kernel| kernel_json(kernel)).collect());
    let candidates: Option<Vec<Value>> = node.kernels.as_ref().map(|kernels| {
        // Where the choice is open, nobody has won yet.
        let winner = kernels.winner.as_ref().filter(|_| kernels.per_shape.is_empty());
        let wins =
            |kernel: &Arc<KernelDef>| winner.is_some_and(|winner| Arc::ptr_eq(winner, kernel));
        let candidate = |candidate: &Candidate| {
            json!({
                "kernel": kernel_json(&candidate.kernel),
                "removed": candidate.removed.as_ref().map(Removal::to_string),
                "depends_on_shapes": candidate.depends_on_shapes,
                "measured_ns": candidate.measured_ns,
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
        "frame": node.frame,
        "label": node.kernels.as_ref().and_then(|kernels| kernels.label.clone()),
        "candidates": candidates,
        "per_shape": per_shape,
        "blocked": node.blocked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_runtime::{
        Runtime, RuntimeOptions,
        framework::{
            DType,
            attr::AttrMap,
            registry::{KernelQuery, SupportAnswer, candidates},
        },
    };

    /// A node of op `Identity`, whose kernel is the host's own and gives this answer.
    fn explained(answer: &SupportAnswer) -> NodeExplanation {
        let options = RuntimeOptions { search: false, ..RuntimeOptions::default() };
        let (runtime, _) = Runtime::new(options).unwrap();
        let attrs = AttrMap::from([("T".to_owned(), DType::FLOAT.into())]);
        let query = KernelQuery {
            op: "Identity",
            device_type: "CPU",
            attrs: &attrs,
            features: runtime.features(),
            label: None,
        };
        let kernels = candidates(&runtime.registry(), &query, &mut |_| answer.clone());
        NodeExplanation {
            node: "y".to_owned(),
            op: "Identity".to_owned(),
            device: "/job:localhost/replica:0/task:0/device:CPU:0".to_owned(),
            placement: "the only device".to_owned(),
            passed_over: Vec::new(),
            frame: None,
            kernels: Some(kernels),
            blocked: None,
        }
    }

    #[test]
    fn an_open_choice_is_told_as_such() {
        let node = explained(&SupportAnswer::DependsOnShapes);
        let text = node_text(&node);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "  > for each shape, the first of these that takes it:", "{text}");
        assert_eq!(lines[2], "  > kernel on DEFAULT of tenon-host", "{text}");
        let json = node_json(&node);
        assert_eq!(json["per_shape"].as_array().unwrap().len(), 1);
        assert_eq!(json["candidates"][0]["wins"], false);
    }

    #[test]
    fn a_choice_that_is_made_names_the_winner() {
        let node = explained(&SupportAnswer::Yes);
        let text = node_text(&node);
        assert!(!text.contains("for each shape"), "{text}");
        assert_eq!(text.lines().nth(1), Some("  > kernel on DEFAULT of tenon-host"), "{text}");
        let json = node_json(&node);
        assert_eq!(json["per_shape"], json!([]));
        assert_eq!(json["candidates"][0]["wins"], true);
        let text = node_text(&explained(&SupportAnswer::No("not now".to_owned())));
        assert_eq!(text.lines().nth(1), Some("  > no kernel"), "{text}");
        assert!(text.contains("supports says no: not now"), "{text}");
    }
}
