//! A plugin's manifest: its description of itself, read without running its code.
//!
//! The section contains JSON lines, one record each, written by const evaluation from the same
//! registrations that the plugin makes when it runs (in C, by a macro). The order of the lines is
//! irrelevant. Lines of unknown kinds are skipped, so that later plugins may add more.

use crate::error::ManifestError;
use serde::Deserialize;
use std::{collections::BTreeMap, fmt};

/// Name of the section on this system.
pub const SECTION: &str = if cfg!(windows) {
    ".tenon"
} else if cfg!(target_vendor = "apple") {
    "__tenon"
} else {
    "tenon_manifest"
};

/// Largest section that is read.
pub const MAX_BYTES: u64 = 64 << 20;

/// Description of the library as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PluginLine {
    /// Name of its package.
    pub name: String,
    /// Version of its package.
    pub version: String,
    /// ABI that it is built for: major and minor number.
    pub abi: [u32; 2],
    /// `unwind`, `abort`, or empty in a language without panics.
    #[serde(default)]
    pub panic: String,
    /// `debug` or `release`; may be empty.
    #[serde(default)]
    pub profile: String,
    /// Architecture; may be empty, since the file itself also says it.
    #[serde(default)]
    pub arch: String,
    /// CPU features that it is compiled for and does not check.
    #[serde(default)]
    pub features: Vec<String>,
}

/// Place of a registration in its author's source; parts may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// Crate.
    #[serde(default, rename = "crate")]
    pub krate: String,
    /// File.
    #[serde(default)]
    pub file: String,
    /// Line, from 1.
    #[serde(default)]
    pub line: u32,
}

/// An op.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OpLine {
    /// Name.
    pub name: String,
    /// Input arguments, as `REGISTER_OP` writes them.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Output arguments.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// Attributes.
    #[serde(default)]
    pub attrs: Vec<String>,
    /// Valid cases.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Place in the source.
    #[serde(flatten)]
    pub place: Place,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KernelLine {
    /// Name of the op.
    pub op: String,
    /// Device type.
    pub device: String,
    /// Label of the variant; empty for the ordinary kernel.
    #[serde(default)]
    pub label: String,
    /// Priority; higher is preferred.
    #[serde(default)]
    pub priority: i32,
    /// Whether it is never chosen by policy.
    #[serde(default)]
    pub on_request: bool,
    /// Names of element types by type attribute.
    #[serde(default)]
    pub types: BTreeMap<String, Vec<String>>,
    /// Features it needs.
    #[serde(default)]
    pub features: Vec<String>,
    /// Place in the source.
    #[serde(flatten)]
    pub place: Place,
}

/// A device type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DeviceLine {
    /// Name.
    pub name: String,
    /// Priority in placement; higher is preferred.
    #[serde(default)]
    pub priority: i32,
    /// Place in the source.
    #[serde(flatten)]
    pub place: Place,
}

/// A knob.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KnobLine {
    /// Name within the plugin's scope.
    pub name: String,
    /// Default, as text.
    #[serde(default)]
    pub default: String,
    /// Place in the source.
    #[serde(flatten)]
    pub place: Place,
}

/// A registration of another kind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExtensionLine {
    /// Tag of the link.
    pub tag: u32,
    /// Place in the source.
    #[serde(flatten)]
    pub place: Place,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Plugin(PluginLine),
    Op(OpLine),
    Kernel(KernelLine),
    Device(DeviceLine),
    Knob(KnobLine),
    Extension(ExtensionLine),
    #[serde(other)]
    Unknown,
}

/// A plugin's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The library as a whole.
    pub plugin: PluginLine,
    /// Ops, sorted by name.
    pub ops: Vec<OpLine>,
    /// Kernels, sorted by op, device type and label.
    pub kernels: Vec<KernelLine>,
    /// Device types, sorted by name.
    pub devices: Vec<DeviceLine>,
    /// Knobs, sorted by name.
    pub knobs: Vec<KnobLine>,
    /// Registrations of other kinds, sorted by tag.
    pub extensions: Vec<ExtensionLine>,
}

/// Lines of a manifest in file order, before it is known that they describe one plugin.
#[derive(Default)]
struct Lines {
    plugin: Option<PluginLine>,
    ops: Vec<OpLine>,
    kernels: Vec<KernelLine>,
    devices: Vec<DeviceLine>,
    knobs: Vec<KnobLine>,
    extensions: Vec<ExtensionLine>,
}

impl Lines {
    fn add(&mut self, line: Line) -> Result<(), ManifestError> {
        match line {
            Line::Plugin(plugin) => {
                if let Some(first) = self.plugin.replace(plugin.clone()) {
                    let (first, second) = (first.name, plugin.name);
                    return Err(ManifestError::TwoPlugins { first, second });
                }
            }
            Line::Op(op) => self.ops.push(op),
            Line::Kernel(kernel) => self.kernels.push(kernel),
            Line::Device(device) => self.devices.push(device),
            Line::Knob(knob) => self.knobs.push(knob),
            Line::Extension(extension) => self.extensions.push(extension),
            Line::Unknown => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Manifest, ManifestError> {
        let plugin = self.plugin.ok_or(ManifestError::NoPlugin)?;
        self.ops.sort_by(|a, b| a.name.cmp(&b.name));
        self.kernels.sort_by_cached_key(kernel_entry);
        self.devices.sort_by(|a, b| a.name.cmp(&b.name));
        self.knobs.sort_by(|a, b| a.name.cmp(&b.name));
        self.extensions.sort_by_key(|extension| extension.tag);
        let Lines { ops, kernels, devices, knobs, extensions, .. } = self;
        Ok(Manifest { plugin, ops, kernels, devices, knobs, extensions })
    }
}

impl Manifest {
    /// Parses the bytes of a section. NULs between records are skipped, since C ends its texts with
    /// one.
    ///
    /// # Errors
    /// Bytes that are not UTF-8, a line that is not a record, no plugin record, or two.
    pub fn parse(section: &[u8]) -> Result<Manifest, ManifestError> {
        let mut lines = Lines::default();
        for (at, bytes) in section.split(|&byte| byte == b'\n').enumerate() {
            let line = at + 1;
            let text = std::str::from_utf8(bytes).map_err(|_| ManifestError::Utf8 { line })?;
            let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
            if text.is_empty() {
                continue;
            }
            let record = serde_json::from_str(text).map_err(|error| ManifestError::Line {
                line,
                detail: error.to_string(),
                text: text.chars().take(120).collect(),
            })?;
            lines.add(record)?;
        }
        lines.finish()
    }

    /// Every registration as one text, sorted, for comparison with what the plugin registered.
    pub fn entries(&self) -> Vec<String> {
        let mut entries: Vec<String> = self
            .ops
            .iter()
            .map(op_entry)
            .chain(self.kernels.iter().map(kernel_entry))
            .chain(self.devices.iter().map(device_entry))
            .chain(self.knobs.iter().map(knob_entry))
            .chain(self.extensions.iter().map(|line| extension_entry(line.tag)))
            .collect();
        entries.sort();
        entries
    }
}

/// The texts of a list, as in an entry.
fn joined(items: &[String]) -> String {
    items.iter().map(|item| plain(item)).collect::<Vec<_>>().join("; ")
}

/// Replaces control characters with spaces, as the writer of the manifest does.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c < ' ' { ' ' } else { c }).collect()
}

/// An op as one text.
pub(crate) fn op_entry(op: &OpLine) -> String {
    let (inputs, outputs) = (joined(&op.inputs), joined(&op.outputs));
    let attrs = joined(&op.attrs);
    let mut entry = format!("op '{}' ({inputs}) -> ({outputs}) with ({attrs})", plain(&op.name));
    for case in &op.cases {
        entry = format!("{entry} case \"{}\"", plain(case));
    }
    entry
}

/// A kernel as one text.
pub(crate) fn kernel_entry(kernel: &KernelLine) -> String {
    let types: Vec<String> = kernel
        .types
        .iter()
        .map(|(attr, types)| format!("{}: {}", plain(attr), types.join(", ")))
        .collect();
    format!(
        "kernel of op '{}' on {} label '{}' priority {}{} types ({}) features ({})",
        plain(&kernel.op),
        plain(&kernel.device),
        plain(&kernel.label),
        kernel.priority,
        if kernel.on_request { " on request" } else { "" },
        types.join("; "),
        joined(&kernel.features),
    )
}

/// A device type as one text.
pub(crate) fn device_entry(device: &DeviceLine) -> String {
    format!("device type '{}' priority {}", plain(&device.name), device.priority)
}

/// A knob as one text.
pub(crate) fn knob_entry(knob: &KnobLine) -> String {
    format!("knob '{}' = '{}'", plain(&knob.name), plain(&knob.default))
}

/// A registration of another kind as one text.
pub fn extension_entry(tag: u32) -> String {
    format!("extension {tag}")
}

impl fmt::Display for PluginLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLUGIN: &str = r#"{"kind":"plugin","name":"p","version":"1.0.0","abi":[0,1],"panic":"unwind","profile":"debug","arch":"x86_64","features":["avx2"]}"#;
    const KERNEL: &str = r#"{"kind":"kernel","op":"Add","device":"CPU","label":"","priority":5,"on_request":false,"types":{"T":["float","double"]},"features":[],"crate":"p","file":"src/lib.rs","line":7}"#;

    fn parse(text: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(text.as_bytes())
    }

    #[test]
    fn records_of_every_kind_are_read_in_any_order() {
        let text = format!(
            "{KERNEL}\n\0\n{}\n{}\n{PLUGIN}\n{}\n\0\0{}\n",
            r#"{"kind":"op","name":"Add","inputs":["x: T"],"outputs":["y: T"],"attrs":["T: type"]}"#,
            r#"{"kind":"device","name":"CPU","priority":3}"#,
            r#"{"kind":"knob","name":"k","default":"1"}"#,
            r#"{"kind":"extension","tag":9}"#,
        );
        let manifest = parse(&text).unwrap();
        assert_eq!(manifest.plugin.name, "p");
        assert_eq!(manifest.plugin.abi, [0, 1]);
        assert_eq!(manifest.plugin.features, ["avx2"]);
        assert_eq!(manifest.kernels[0].types["T"], ["float", "double"]);
        assert_eq!(manifest.kernels[0].place.line, 7);
        assert_eq!(
            manifest.entries(),
            [
                "device type 'CPU' priority 3",
                "extension 9",
                "kernel of op 'Add' on CPU label '' priority 5 types (T: float, double) features ()",
                "knob 'k' = '1'",
                "op 'Add' (x: T) -> (y: T) with (T: type)",
            ]
        );
    }

    #[test]
    fn an_unknown_kind_and_unknown_fields_are_passed_over() {
        let text = format!("{PLUGIN}\n{}\n", r#"{"kind":"gradient","op":"Add","more":[1,{}]}"#);
        assert!(parse(&text).unwrap().entries().is_empty());
        let more = PLUGIN.replace("\"panic\"", "\"built\":\"today\",\"panic\"");
        assert_eq!(parse(&more).unwrap().plugin.panic, "unwind");
    }

    #[test]
    fn a_c_plugin_may_leave_out_what_c_has_not() {
        let manifest = parse(r#"{"kind":"plugin","name":"c","version":"2","abi":[0,1]}"#).unwrap();
        assert_eq!(manifest.plugin.panic, "");
        assert!(manifest.plugin.features.is_empty());
    }

    #[test]
    fn malformed_sections_say_which_line() {
        let cut = &PLUGIN[..PLUGIN.len() - 10];
        match parse(&format!("\n{cut}")) {
            Err(ManifestError::Line { line: 2, text, .. }) => {
                assert!(text.starts_with(r#"{"kind":"plugin""#));
            }
            other => panic!("expected an error of line 2, found {other:?}"),
        }
        let error = Manifest::parse(&[PLUGIN.as_bytes(), b"\n\xff\n"].concat()).unwrap_err();
        assert_eq!(error, ManifestError::Utf8 { line: 2 });
        let missing = r#"{"kind":"kernel","op":"Add"}"#;
        let error = parse(missing).unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("missing field `device`"), "{error}");
        assert!(matches!(parse("[1]"), Err(ManifestError::Line { line: 1, .. })));
        assert!(matches!(parse(r#"{"op":"Add"}"#), Err(ManifestError::Line { line: 1, .. })));
    }

    #[test]
    fn one_plugin_is_expected() {
        assert_eq!(parse(""), Err(ManifestError::NoPlugin));
        assert_eq!(parse(KERNEL), Err(ManifestError::NoPlugin));
        let other = PLUGIN.replace("\"p\"", "\"q\"");
        assert_eq!(
            parse(&format!("{PLUGIN}\n{other}")),
            Err(ManifestError::TwoPlugins { first: "p".into(), second: "q".into() })
        );
    }

    #[test]
    fn a_section_of_deep_nesting_is_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(parse(&deep), Err(ManifestError::Line { .. })));
    }
}
