//! A step's profile for a reader.

use crate::{output::count, table::Table};
use std::{collections::BTreeMap, fmt::Write};
use tenon_benchkit::{
    record::{NodeTime, Profile, Record},
    words::{figure, reached, time},
};

/// Nodes that are shown one by one, the dearest first.
const SHOWN: usize = 12;

/// Where the time and the memory of a step go; nothing for what is not a step.
pub fn profile(text: &mut String, record: &Record) {
    let Some(profile) = &record.profile else { return };
    let total: f64 = profile.nodes.iter().map(|node| node.ns).sum();
    let nodes = count(profile.nodes.len(), "node");
    let steps = count(profile.steps as usize, "traced step");
    let _ = writeln!(text, "{nodes}, {} in all of them, by {steps}\n", time(total));
    by_kernel(text, profile, total);
    by_node(text, profile, total);
    memory(text, profile);
}

/// Nodes of one op that one kernel runs.
#[derive(Default)]
struct Group {
    nodes: usize,
    ns: f64,
    work: f64,
    /// Time that the nodes with a limit would take at it, and what they take.
    at_limit: f64,
    limited: f64,
    unit: String,
}

fn kernel(node: &NodeTime) -> String {
    let label = if node.label.is_empty() { "ordinary" } else { &node.label };
    format!("{label} of {}", node.plugin)
}

fn by_kernel(text: &mut String, profile: &Profile, total: f64) {
    let mut groups: BTreeMap<(&str, String), Group> = BTreeMap::new();
    for node in &profile.nodes {
        let group = groups.entry((&node.op, kernel(node))).or_default();
        group.nodes += 1;
        group.ns += node.ns;
        group.work += node.rate * node.ns;
        group.unit.clone_from(&node.unit);
        if let Some(reached) = &node.reached {
            group.at_limit += reached.fraction * node.ns;
            group.limited += node.ns;
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(_, a), (_, b)| b.ns.total_cmp(&a.ns));
    let mut table = Table::new(["op", "kernel", ">nodes", ">time", ">share", ">rate", ">of limit"]);
    for ((op, kernel), group) in &groups {
        let share = (group.limited > 0.0).then(|| percent(group.at_limit / group.limited));
        table.row([
            (*op).to_owned(),
            kernel.clone(),
            group.nodes.to_string(),
            time(group.ns),
            percent(group.ns / total),
            rate(group.work / group.ns, &group.unit),
            share.unwrap_or_default(),
        ]);
    }
    let _ = writeln!(text, "{}", table.render(2));
}

fn by_node(text: &mut String, profile: &Profile, total: f64) {
    let mut nodes: Vec<&NodeTime> = profile.nodes.iter().collect();
    nodes.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    let mut table = Table::new(["node", "op", ">time", ">share", ">rate", "of limit"]);
    for node in nodes.iter().take(SHOWN) {
        table.row([
            node.node.clone(),
            node.op.clone(),
            time(node.ns),
            percent(node.ns / total),
            rate(node.rate, &node.unit),
            node.reached.as_ref().map(reached).unwrap_or_default(),
        ]);
    }
    let _ = writeln!(text, "{}", table.render(2));
    if let Some(rest) = nodes.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let share = rest.iter().map(|node| node.ns).sum::<f64>() / total;
        let rest = count(rest.len(), "more node");
        let _ = writeln!(text, "  {rest}: {} (--json shows all)\n", percent(share));
    }
}

fn memory(text: &mut String, profile: &Profile) {
    for memory in &profile.memory {
        let device = crate::output::short_device(&memory.device);
        let held = memory.held.map(|held| format!("{} held, ", bytes(held)));
        let _ = writeln!(
            text,
            "memory on {device}: {}{} planned at most, {} without reuse; {} of constants\n",
            held.unwrap_or_default(),
            bytes(memory.planned),
            bytes(memory.without_reuse),
            bytes(memory.constants),
        );
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn rate(rate: f64, unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!("{} {unit}", figure(rate)) }
}

/// Bytes with three digits, in units of 1,024.
fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        few if few < 1024.0 => format!("{few} B"),
        some if some < 1_048_576.0 => format!("{} KiB", figure(some / 1024.0)),
        many => format!("{} MiB", figure(many / 1_048_576.0)),
    }
}
