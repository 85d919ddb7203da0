//! What the demo prints.

use super::{
    assets::Digits,
    classify::{KernelKey, Outcome},
    quantized::Comparison,
    variants::{Pair, Variant},
};
use crate::{
    list::{devices_json, devices_table, shown_path},
    output::time,
    sdk::Sdk,
    table::Table,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write, path::Path};
use tenon_runtime::{Runtime, framework::registry::PluginInfo};

fn loaded(runtime: &Runtime) -> Vec<PluginInfo> {
    let plugins = runtime.plugins().list().into_iter();
    plugins.filter(|info| info.path.is_some() && !info.retired).collect()
}

/// Plugins and devices, and what is about to run.
pub fn beginning(runtime: &Runtime, digits: &Digits) -> String {
    let registry = runtime.registry();
    let mut plugins = Table::new(["plugin", "version", ">kernels", "loaded from"]);
    for info in loaded(runtime) {
        let kernels = registry.kernels().filter(|kernel| kernel.plugin == info.id).count();
        let file = info.path.as_deref().map(shown_path).unwrap_or_default();
        plugins.row([info.name.clone(), info.version.clone(), kernels.to_string(), file]);
    }
    format!(
        "{}\n{}\n{} handwritten digits, 8 x 8 pixels, through a network of {} nodes trained by TensorFlow\n\n",
        plugins.render(0),
        devices_table(runtime).render(0),
        digits.count(),
        digits.graph.node.len(),
    )
}

/// The results.
pub struct Shown<'a> {
    /// What was classified.
    pub digits: &'a Digits,
    /// The runs on the devices.
    pub outcomes: &'a [Outcome],
    /// Two variants of a kernel.
    pub pair: &'a Pair,
    /// The classifier on 8 bits, where a plugin computes on these.
    pub on_bytes: Option<&'a Comparison>,
}

/// The results, and what to type next.
pub fn end(shown: &Shown<'_>) -> String {
    let &Shown { digits, outcomes, pair, on_bytes } = shown;
    let mut text = runs(digits, outcomes).render(0);
    text.push_str("\nkernels that ran, in calls per step\n");
    text.push_str(&kernels(outcomes).render(0));
    let _ = write!(
        text,
        "\nvariants of one kernel: {} (node {}) on an input of {:?}\n{}",
        pair.op,
        pair.node,
        pair.input,
        variants(pair).render(0),
    );
    if let Some(comparison) = on_bytes {
        text.push_str("\nquantised to 8 bits by tenon quantize, graphs optimised, on CPU:0\n");
        text.push_str(&quantized(digits, comparison).render(0));
    }
    text.push_str(&next(pair, Sdk::find(None).ok().as_ref()));
    text
}

fn runs(digits: &Digits, outcomes: &[Outcome]) -> Table {
    let mut table = Table::new([
        "run on",
        ">accuracy",
        ">as tensorflow",
        ">logits differ by",
        ">time per image",
        ">all images",
    ]);
    let n = digits.count();
    for outcome in outcomes {
        let step = outcome.step_ns as f64;
        table.row([
            outcome.name.to_owned(),
            format!("{:.1} %", percent(outcome.right, n)),
            format!("{} of {n}", outcome.same),
            figure(outcome.difference),
            time(step / n as f64),
            time(step),
        ]);
    }
    table
}

/// A difference; none is 0.
fn figure(difference: f32) -> String {
    if difference == 0.0 { "0".to_owned() } else { format!("{difference:.1e}") }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// Rows by kernel, a column of calls by run.
fn kernels(outcomes: &[Outcome]) -> Table {
    let mut rows: BTreeMap<&KernelKey, [String; 3]> = BTreeMap::new();
    for (at, outcome) in outcomes.iter().enumerate().take(3) {
        for (key, calls) in &outcome.kernels {
            rows.entry(key).or_default()[at] = calls.to_string();
        }
    }
    let mut table = Table::new(["op", "device", "plugin", "label", ">cpu", ">accel", ">both"]);
    for ((op, device, plugin, label), [cpu, accel, both]) in rows {
        let (op, device) = (op.clone(), device.clone());
        table.row([op, device, plugin.clone(), label.clone(), cpu, accel, both]);
    }
    table
}

fn label(variant: &Variant) -> &str {
    if variant.label.is_empty() { "(ordinary)" } else { &variant.label }
}

fn variants(pair: &Pair) -> Table {
    let [chosen, other] = &pair.variants;
    let mut table = Table::new(["variant", "plugin", ">time", ">relative", "note"]);
    let relative =
        |variant: &Variant| format!("{:.2}", variant.step_ns as f64 / chosen.step_ns.max(1) as f64);
    let notes = [
        "chosen by priority".to_owned(),
        format!("asked for by label; results differ by {}", figure(pair.difference)),
    ];
    for (variant, note) in [chosen, other].into_iter().zip(notes) {
        let name = label(variant).to_owned();
        let median = time(variant.step_ns as f64);
        table.row([name, variant.plugin.clone(), median, relative(variant), note]);
    }
    table
}

fn quantized(digits: &Digits, comparison: &Comparison) -> Table {
    let mut table =
        Table::new(["numbers", ">accuracy", ">size", ">time per image", ">all images", "note"]);
    let n = digits.count();
    let loss = format!("logits: {:.1} dB signal to noise", comparison.decibels);
    for (at, (name, note)) in [("float", String::new()), ("8 bits", loss)].into_iter().enumerate() {
        let step = comparison.step_ns[at] as f64;
        table.row([
            name.to_owned(),
            format!("{:.1} %", percent(comparison.right[at], n)),
            format!("{:.1} kB", comparison.bytes[at] as f64 / 1e3),
            time(step / n as f64),
            time(step),
            note,
        ]);
    }
    table
}

/// `cargo run` leaves the command in a target folder, which is not on the PATH.
fn command() -> &'static str {
    let built_here = std::env::current_exe().is_ok_and(|executable| {
        let folder = executable.parent();
        folder.is_some_and(|folder| folder.join("deps").is_dir())
    });
    if built_here { "cargo run --release --" } else { "tenon" }
}

/// A file as it is typed in a shell, from the current folder.
fn typed(file: &Path) -> String {
    let shown = shown_path(file);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if shown.chars().all(is_plain) { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

/// What to type next; files are named where they are, and left out where they are not.
fn next(pair: &Pair, sdk: Option<&Sdk>) -> String {
    let (command, node) = (command(), &pair.node);
    let file = |name: &str| sdk.and_then(|sdk| sdk.file(name));
    let explain = file("sdk/cli/assets/demo/digits.pb")
        .map(|graph| (format!("explain {} {node}", typed(&graph)), "why this kernel runs there"));
    let list = ("list".to_owned(), "every op and kernel, and who brings it");
    let json = ("demo --json".to_owned(), "these figures for a program");
    let lines: Vec<_> = [Some(list), explain, Some(json)].into_iter().flatten().collect();
    let width = lines.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let mut text = "\nnext, type\n".to_owned();
    for (line, what) in &lines {
        let _ = writeln!(text, "  {command} {line:<width$}   {what}");
    }
    if let Some(page) = file("README.md") {
        let page = shown_path(&page);
        let _ = writeln!(text, "{page} has a plugin of your own in 30 lines");
    }
    text
}

/// All of it for a program.
pub fn json(runtime: &Runtime, shown: &Shown<'_>) -> Value {
    let &Shown { digits, outcomes, pair, on_bytes } = shown;
    let n = digits.count();
    let plugins: Vec<Value> = loaded(runtime)
        .into_iter()
        .map(|info| {
            let file = info.path.map(|path| path.display().to_string());
            json!({ "name": info.name, "version": info.version, "file": file })
        })
        .collect();
    let runs: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            json!({
                "name": outcome.name, "images": n, "right": outcome.right,
                "accuracy": outcome.right as f64 / n as f64, "as_tensorflow": outcome.same,
                "max_logit_difference": outcome.difference, "median_ns": outcome.step_ns,
                "ns_per_image": outcome.step_ns as f64 / n as f64, "steps": outcome.steps,
                "kernels": kernels_json(outcome), "problem": outcome.problem(digits),
            })
        })
        .collect();
    let variants: Vec<Value> = pair
        .variants
        .iter()
        .map(|variant| {
            json!({
                "label": variant.label, "plugin": variant.plugin, "median_ns": variant.step_ns,
                "steps": variant.steps,
            })
        })
        .collect();
    json!({
        "plugins": plugins, "devices": devices_json(runtime), "runs": runs,
        "variants": {
            "node": pair.node, "op": pair.op, "input_shape": pair.input, "variants": variants,
            "max_difference": pair.difference,
        },
        "quantized": on_bytes.map(|comparison| quantized_json(comparison, n)),
    })
}

fn quantized_json(comparison: &Comparison, images: usize) -> Value {
    let one = |at: usize| {
        json!({
            "right": comparison.right[at], "bytes": comparison.bytes[at], "median_ns": comparison.step_ns[at],
            "accuracy": comparison.right[at] as f64 / images as f64,
        })
    };
    json!({ "float": one(0), "int8": one(1), "logits_signal_to_noise_db": comparison.decibels })
}

fn kernels_json(outcome: &Outcome) -> Value {
    let kernels = outcome.kernels.iter().map(|((op, device, plugin, label), calls)| {
        json!({
            "op": op, "device": device, "plugin": plugin, "label": label, "calls_per_step": calls,
        })
    });
    kernels.collect()
}
