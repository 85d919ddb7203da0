//! `tenon list`: what there is.

mod wanted;

use crate::{
    args::{Global, ListArgs},
    error::CliError,
    output::{print, print_json, short_device},
    start::{check_named, start},
    table::Table,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use tenon_runtime::{
    Runtime,
    framework::{
        DType,
        device::base::{DeviceBase, DeviceInfo},
        knob::kind_name,
        registry::{KernelDef, PluginInfo, Registry},
    },
    host::{LoadReport, devices::AbsentType, search::looked_at},
};
use wanted::Wanted;

/// Lists plugins, devices, ops and kernels, or the knobs.
///
/// # Errors
/// The runtime cannot start; nothing has a name that is asked for; a named plugin is refused (what there is without it is
/// listed all the same).
pub fn list(global: &Global, args: &ListArgs) -> Result<(), CliError> {
    let (runtime, report) = start(global, None)?;
    let wanted = Wanted::of(args);
    match args.knobs {
        true => wanted.check_knobs(&runtime.plugins().knobs())?,
        false => wanted.check(&runtime.registry())?,
    }
    match (args.knobs, global.json) {
        (true, true) => print_json(&knobs_json(&runtime, &wanted))?,
        (true, false) => print(&knobs_text(&runtime, &wanted))?,
        (false, true) => print_json(&everything_json(&runtime, &report, &wanted))?,
        (false, false) => print(&everything_text(&runtime, &report, &wanted))?,
    }
    check_named(&report)
}

fn everything_text(runtime: &Runtime, report: &LoadReport, wanted: &Wanted) -> String {
    let registry = runtime.registry();
    let mut parts = vec![plugins_table(&registry, wanted).render(0)];
    if loaded(&registry).next().is_none() {
        parts.push(nothing_loaded(report));
    }
    let devices = devices_where(runtime, wanted);
    if !devices.is_empty() {
        parts.push(devices.render(0));
    }
    let kernels = kernels_table(&registry, wanted);
    if !kernels.is_empty() {
        parts.push(kernels.render(0));
    }
    if registry.kernels().any(|kernel| kernel.on_request && wanted.kernel(kernel)) {
        parts.push("* runs only when a node or a session asks for it by its label\n".to_owned());
    }
    let without: Vec<&str> = registry
        .ops()
        .filter(|op| registry.kernels_of(&op.name).is_empty() && wanted.op(&op.name, &registry))
        .map(|op| op.name.as_str())
        .collect();
    if !without.is_empty() {
        parts.push(format!("ops without kernels: {}\n", without.join(", ")));
    }
    for other in report.superseded.iter().filter(|_| wanted.is_all()) {
        let (path, plugin) = (other.candidate.path.display(), &other.plugin);
        parts.push(format!("not used: {path}, another build of {plugin}\n"));
    }
    parts.join("\n")
}

fn nothing_loaded(report: &LoadReport) -> String {
    match report.rejected.len() {
        0 => format!(
            "no plugin was found, so only what is built in is listed: build one, and name it with --plugin FILE or \
             put its folder in TENON_PLUGIN_PATH; {}\n",
            looked_at(&report.searched)
        ),
        refused => format!(
            "only what is built in is listed, since {} refused: standard error says why\n",
            if refused == 1 {
                "the plugin was".to_owned()
            } else {
                format!("all {refused} plugins were")
            }
        ),
    }
}

/// Plugins that are files.
fn loaded(registry: &Registry) -> impl Iterator<Item = &PluginInfo> {
    registry.plugins().filter(|info| info.path.is_some() && !info.retired)
}

fn plugins_table(registry: &Registry, wanted: &Wanted) -> Table {
    let mut table = Table::new(["plugin", "version", ">kernels", "devices", "file"]);
    let shown = |info: &&PluginInfo| !info.retired && wanted.plugin(info, registry);
    for info in registry.plugins().filter(shown) {
        let kernels = registry.kernels().filter(|kernel| kernel.plugin == info.id).count();
        let devices: Vec<&str> = registry
            .device_types()
            .filter(|device| device.plugin == info.id)
            .map(|device| device.name.as_str())
            .collect();
        let mut file = info.path.as_deref().map_or("(built in)".to_owned(), shown_path);
        if info.isolated {
            file.push_str(" (isolated)");
        }
        table.row([
            info.name.clone(),
            info.version.clone(),
            kernels.to_string(),
            devices.join(", "),
            file,
        ]);
    }
    table
}

/// A path from the current folder, where the file is below it.
pub fn shown_path(path: &Path) -> String {
    let here = std::env::current_dir().and_then(|folder| folder.canonicalize());
    let below = here.ok().and_then(|folder| path.strip_prefix(folder).ok().map(Path::to_owned));
    below.unwrap_or_else(|| path.to_owned()).display().to_string()
}

/// The devices, then the types without a device.
pub fn devices_table(runtime: &Runtime) -> Table {
    devices_where(runtime, &Wanted::default())
}

fn devices_where(runtime: &Runtime, wanted: &Wanted) -> Table {
    let is_shown = |name: &str| wanted.has_devices() && wanted.device(name);
    let devices = runtime.devices().devices().into_iter();
    let mut table = Table::new(["device", "memory", "streams", "description"]);
    for device in devices.filter(|device| is_shown(device.device_type())) {
        let info = device.info();
        let streams = if info.streams { info.stream_count.to_string() } else { String::new() };
        table.row([
            short_device(&device.name().to_string()).to_owned(),
            memory(info),
            streams,
            info.description.clone(),
        ]);
    }
    let absent = runtime.devices().absent().into_iter();
    for AbsentType { device_type, reason } in absent.filter(|absent| is_shown(&absent.device_type))
    {
        table.row([device_type, String::new(), String::new(), format!("not there: {reason}")]);
    }
    table
}

fn memory(info: &DeviceInfo) -> String {
    let place = if info.host_memory { "host" } else { "own" };
    match info.memories.first().map_or(0, |memory| memory.limit) {
        0 => place.to_owned(),
        limit => format!("{place}, {} MiB", limit >> 20),
    }
}

/// What distinguishes rows of the table of kernels: op, device type, plugin, element types.
type Key<'k> = (&'k str, &'k str, &'k str, String);

fn kernels_table(registry: &Registry, wanted: &Wanted) -> Table {
    let mut variants: BTreeMap<(&str, &str, &str, &str), Vec<&KernelDef>> = BTreeMap::new();
    for kernel in registry.kernels().filter(|kernel| wanted.kernel(kernel)) {
        let (op, device_type) = (kernel.op.as_str(), kernel.device_type.as_str());
        let key = (op, device_type, kernel.plugin_name.as_ref(), kernel.label.as_str());
        variants.entry(key).or_default().push(kernel);
    }
    let mut rows: BTreeMap<Key<'_>, Vec<String>> = BTreeMap::new();
    for ((op, device_type, plugin, label), kernels) in variants {
        let label = if label.is_empty() { "ordinary" } else { label };
        let asked = if kernels.iter().all(|kernel| kernel.on_request) { "*" } else { "" };
        let row = rows.entry((op, device_type, plugin, types(&kernels))).or_default();
        row.push(format!("{label}{asked}"));
    }
    let mut table = Table::new(["op", "on", "plugin", "variants", "types"]);
    let mut before = "";
    for ((op, device_type, plugin, types), labels) in rows {
        let (device_type, plugin) = (device_type.to_owned(), plugin.to_owned());
        let shown = if op == before { String::new() } else { op.to_owned() };
        table.row([shown, device_type, plugin, labels.join(", "), types]);
        before = op;
    }
    table
}

/// The element types that some kernels take, by attribute.
fn types(kernels: &[&KernelDef]) -> String {
    let mut by_attr: BTreeMap<&str, BTreeSet<DType>> = BTreeMap::new();
    for constraint in kernels.iter().flat_map(|kernel| &kernel.constraints) {
        by_attr.entry(&constraint.attr).or_default().extend(&constraint.types);
    }
    let shown: Vec<String> =
        by_attr.into_iter().map(|(attr, types)| format!("{attr}: {}", families(types))).collect();
    shown.join("; ")
}

const FLOATS: &[DType] = &[DType::HALF, DType::BFLOAT16, DType::FLOAT, DType::DOUBLE];
const INTEGERS: &[DType] = &[
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
];
const QUANTISED: &[DType] =
    &[DType::QINT8, DType::QUINT8, DType::QINT16, DType::QUINT16, DType::QINT32];

/// The types of a set, whole families under one name.
fn families(mut types: BTreeSet<DType>) -> String {
    let mut names = Vec::new();
    for (name, family) in [("floats", FLOATS), ("integers", INTEGERS), ("q-types", QUANTISED)] {
        if family.iter().all(|dtype| types.contains(dtype)) {
            types.retain(|dtype| !family.contains(dtype));
            names.push(name.to_owned());
        }
    }
    names.extend(types.iter().map(DType::to_string));
    names.join(" ")
}

fn everything_json(runtime: &Runtime, report: &LoadReport, wanted: &Wanted) -> Value {
    let registry = runtime.registry();
    let shown = |info: &&PluginInfo| !info.retired && wanted.plugin(info, &registry);
    let plugins: Vec<Value> = registry.plugins().filter(shown).map(plugin_json).collect();
    let ops: Vec<Value> = registry
        .ops()
        .filter(|op| wanted.op(&op.name, &registry))
        .map(|op| {
            let names =
                |names: &mut dyn Iterator<Item = &String>| names.cloned().collect::<Vec<_>>();
            json!({
                "name": op.name,
                "inputs": names(&mut op.inputs.iter().map(|arg| &arg.name)),
                "outputs": names(&mut op.outputs.iter().map(|arg| &arg.name)),
                "attrs": names(&mut op.attrs.iter().map(|attr| &attr.name)),
                "stateful": op.stateful,
                "summary": op.summary,
            })
        })
        .collect();
    let kernels = registry.kernels().filter(|kernel| wanted.kernel(kernel));
    let kernels: Vec<Value> = kernels.map(|kernel| kernel_json(kernel)).collect();
    let is_shown = |name: &str| wanted.has_devices() && wanted.device(name);
    let absent: Vec<Value> = runtime
        .devices()
        .absent()
        .into_iter()
        .filter(|absent| is_shown(&absent.device_type))
        .map(|absent| json!({ "type": absent.device_type, "reason": absent.reason }))
        .collect();
    json!({
        "plugins": plugins, "devices": devices_json_where(runtime, &is_shown), "absent": absent, "ops": ops,
        "kernels": kernels, "rejected": rejected_json(report),
    })
}

fn plugin_json(info: &PluginInfo) -> Value {
    json!({
        "name": info.name,
        "version": info.version,
        "file": info.path.as_ref().map(|path| path.display().to_string()),
        "digest": (!info.digest.is_empty()).then_some(&info.digest),
        "isolated": info.isolated,
    })
}

/// The devices that there are.
pub fn devices_json(runtime: &Runtime) -> Value {
    devices_json_where(runtime, &|_| true)
}

fn devices_json_where(runtime: &Runtime, is_shown: &dyn Fn(&str) -> bool) -> Value {
    let devices = runtime.devices().devices().into_iter();
    let devices = devices.filter(|device| is_shown(device.device_type())).map(|device| {
        let info = device.info();
        json!({
            "name": device.name().to_string(),
            "type": device.device_type(),
            "description": info.description,
            "host_memory": info.host_memory,
            "memory_limit": info.memories.first().map_or(0, |memory| memory.limit),
            "streams": if info.streams { info.stream_count } else { 0 },
        })
    });
    devices.collect()
}

fn rejected_json(report: &LoadReport) -> Value {
    let rejected = report.rejected.iter().map(|rejected| {
        json!({
            "file": rejected.candidate.path.display().to_string(),
            "origin": rejected.candidate.origin.to_string(),
            "step": rejected.error.step().name(),
            "error": rejected.error.to_string(),
        })
    });
    rejected.collect()
}

/// A kernel.
pub fn kernel_json(kernel: &KernelDef) -> Value {
    let types: BTreeMap<&str, Vec<String>> = kernel
        .constraints
        .iter()
        .map(|c| (c.attr.as_str(), c.types.iter().map(ToString::to_string).collect()))
        .collect();
    json!({
        "op": kernel.op,
        "device_type": kernel.device_type,
        "label": kernel.label,
        "priority": kernel.priority,
        "on_request": kernel.on_request,
        "types": types,
        "features": kernel.features,
        "plugin": kernel.plugin_name.as_ref(),
        "source": kernel.source.to_string(),
    })
}

fn knobs_text(runtime: &Runtime, wanted: &Wanted) -> String {
    let mut table = Table::new(["knob", "type", "value", "set by", "what it does"]);
    for knob in runtime.plugins().knobs().iter().filter(|knob| wanted.knob(&knob.def)) {
        table.row([
            knob.def.full_name(),
            kind_name(knob.def.kind).split(' ').next().unwrap_or_default().to_owned(),
            knob.value.to_string(),
            knob.origin.to_string(),
            knob.def.help.clone(),
        ]);
    }
    format!(
        "{}\nset one by --set NAME=VALUE, or by its variable, as TENON_<SCOPE>_<NAME>\n",
        table.render(0)
    )
}

fn knobs_json(runtime: &Runtime, wanted: &Wanted) -> Value {
    let knobs = runtime.plugins().knobs();
    let knobs: Vec<Value> = knobs
        .iter()
        .filter(|knob| wanted.knob(&knob.def))
        .map(|knob| {
            json!({
                "name": knob.def.full_name(),
                "variable": knob.def.variable(),
                "type": kind_name(knob.def.kind).split(' ').next(),
                "default": knob.def.default.to_string(),
                "value": knob.value.to_string(),
                "origin": knob.origin.to_string(),
                "help": knob.def.help,
            })
        })
        .collect();
    json!({ "knobs": knobs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_families_of_types_go_under_one_name() {
        let some = [DType::DOUBLE, DType::FLOAT, DType::STRING];
        assert_eq!(families(some.into_iter().collect()), "float double string");
        let all = FLOATS.iter().chain(INTEGERS).chain([&DType::BOOL]).copied().collect();
        assert_eq!(families(all), "floats integers bool");
    }
}
