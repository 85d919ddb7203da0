//! `tenon inspect`: one plugin's file.

use crate::{
    args::{Global, InspectArgs},
    error::CliError,
    output::{count, print, print_json},
    start::start_whole,
    table::Table,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tenon_runtime::{
    framework::text::cut_text,
    host::{
        Inspection, Probe, Unopened,
        manifest::{KernelLine, Manifest},
    },
};

/// Names of symbols that are shown.
const SHOWN: usize = 5;

/// Shows what the file says, before anything of it runs, and what loading it says unless that is not asked for.
///
/// # Errors
/// The file is not a plugin, or would not be loaded.
pub fn inspect(global: &Global, args: &InspectArgs) -> Result<(), CliError> {
    let unopened = Unopened::read(&args.file)?;
    if !global.json {
        print(&to_text(unopened.inspection()))?;
    }
    if args.no_load {
        return match global.json {
            true => print_json(&to_json(unopened.inspection(), false)),
            false => print("\nloading    not tried (--no-load)\n"),
        };
    }
    let (runtime, _) = start_whole(global, None)?;
    let inspection = runtime.plugins().try_loading(unopened);
    match global.json {
        true => print_json(&to_json(&inspection, true))?,
        false => print(&loading(&inspection))?,
    }
    match inspection.refused {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// What the file says.
fn to_text(inspection: &Inspection) -> String {
    let manifest = &inspection.manifest;
    let plugin = &manifest.plugin;
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let facts = [
        ("plugin", format!("{} {}", plugin.name, plugin.version)),
        ("file", inspection.path.display().to_string()),
        ("digest", inspection.digest.clone()),
        ("door", inspection.door.to_string()),
        ("ABI", format!("{}.{}", plugin.abi[0], plugin.abi[1])),
        ("processor", inspection.arch.clone()),
        ("needs", or_none(&plugin.features.join(" "))),
        ("built as", or_none(&plugin.profile)),
        ("on panic", or_none(&plugin.panic)),
    ];
    let mut text = String::new();
    let shared = shared_symbols(&inspection.unique_symbols).map(|symbols| ("symbols", symbols));
    for (name, value) in facts.into_iter().chain(shared) {
        text.push_str(&format!("{name:<10} {}\n", cut_text(&value)));
    }
    for table in tables(manifest).iter().filter(|table| !table.is_empty()) {
        text.push('\n');
        text.push_str(&table.render(0));
    }
    text
}

/// What loading it says.
fn loading(inspection: &Inspection) -> String {
    let said = match &inspection.refused {
        Some(error) => format!("refused at step {}", error.step()),
        None => "works".to_owned(),
    };
    let mut text = format!("\n{:<10} {said}\n", "loading");
    for probe in &inspection.probes {
        text.push_str(&format!("{:<10} {}\n", "device", cut_text(&probe_text(probe))));
    }
    text
}

/// The text about symbols of which a process has one; empty without such symbols.
fn shared_symbols(names: &[String]) -> Option<String> {
    let (first, rest) = (names.iter().take(SHOWN), names.len().saturating_sub(SHOWN));
    let first: Vec<&str> = first.map(String::as_str).collect();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    (!names.is_empty()).then(|| {
        format!(
            "{}{more}: a process has one of each, whatever libraries define it (STB_GNU_UNIQUE); the plugin is opened \
             from a copy in which they are its own",
            first.join(" ")
        )
    })
}

fn probe_text(probe: &Probe) -> String {
    match &probe.reason {
        None => format!("{}: {}", probe.device_type, count(probe.count as usize, "device")),
        Some(reason) => format!("{}: not there: {reason}", probe.device_type),
    }
}

fn tables(manifest: &Manifest) -> [Table; 4] {
    let mut ops = Table::new(["op", "inputs", "outputs", "attributes"]);
    for op in &manifest.ops {
        let (inputs, outputs) = (op.inputs.join(", "), op.outputs.join(", "));
        ops.row([op.name.clone(), inputs, outputs, op.attrs.join(", ")]);
    }
    let mut devices = Table::new(["device type", ">priority"]);
    for device in &manifest.devices {
        devices.row([device.name.clone(), device.priority.to_string()]);
    }
    let mut knobs = Table::new(["knob", "default"]);
    for knob in &manifest.knobs {
        knobs.row([knob.name.clone(), knob.default.clone()]);
    }
    [devices, knobs, ops, kernels_table(&manifest.kernels)]
}

/// A row for all kernels that differ in their element types only.
fn kernels_table(kernels: &[KernelLine]) -> Table {
    let mut rows: Vec<(&KernelLine, BTreeMap<&str, Vec<&str>>)> = Vec::new();
    for kernel in kernels {
        let alike = |(first, _): &(&KernelLine, _)| {
            (&first.op, &first.device, &first.label, first.priority, first.on_request)
                == (&kernel.op, &kernel.device, &kernel.label, kernel.priority, kernel.on_request)
                && first.features == kernel.features
        };
        let at = rows.iter().position(alike).unwrap_or_else(|| {
            rows.push((kernel, BTreeMap::new()));
            rows.len() - 1
        });
        for (attr, names) in &kernel.types {
            let known = rows[at].1.entry(attr).or_default();
            known.extend(names.iter().map(String::as_str));
            known.sort_unstable();
            known.dedup();
        }
    }
    let mut table = Table::new(["kernel of", "on", "label", ">priority", "needs", "types"]);
    for (kernel, types) in rows {
        let types = types.iter().map(|(attr, names)| format!("{attr}: {}", names.join(" ")));
        let asked = if kernel.on_request { "*" } else { "" };
        table.row([
            kernel.op.clone(),
            kernel.device.clone(),
            format!("{}{asked}", kernel.label),
            if kernel.priority == 0 { String::new() } else { kernel.priority.to_string() },
            kernel.features.join(" "),
            types.collect::<Vec<_>>().join("; "),
        ]);
    }
    table
}

fn to_json(inspection: &Inspection, tried: bool) -> Value {
    let manifest = &inspection.manifest;
    let plugin = &manifest.plugin;
    let probes: Vec<Value> = inspection
        .probes
        .iter()
        .map(|probe| {
            json!({
                "type": probe.device_type, "count": probe.count, "reason": probe.reason,
            })
        })
        .collect();
    let refused = inspection
        .refused
        .as_ref()
        .map(|error| json!({ "step": error.step().name(), "error": error.to_string() }));
    json!({
        "name": plugin.name, "version": plugin.version, "abi": plugin.abi, "panic": plugin.panic,
        "profile": plugin.profile, "features": plugin.features,
        "file": inspection.path.display().to_string(), "digest": inspection.digest,
        "door": inspection.door.to_string(), "arch": inspection.arch,
        "ops": manifest.ops.iter().map(|op| json!({
            "name": op.name, "inputs": op.inputs, "outputs": op.outputs, "attrs": op.attrs,
            "cases": op.cases,
        })).collect::<Vec<_>>(),
        "kernels": manifest.kernels.iter().map(|kernel| json!({
            "op": kernel.op, "device_type": kernel.device, "label": kernel.label,
            "priority": kernel.priority, "on_request": kernel.on_request, "types": kernel.types,
            "features": kernel.features,
        })).collect::<Vec<_>>(),
        "devices": manifest.devices.iter().map(|device| json!({
            "type": device.name, "priority": device.priority,
        })).collect::<Vec<_>>(),
        "knobs": manifest.knobs.iter().map(|knob| json!({
            "name": knob.name, "default": knob.default,
        })).collect::<Vec<_>>(),
        "unique_symbols": inspection.unique_symbols,
        "tried": tried, "probes": probes, "refused": refused,
    })
}
