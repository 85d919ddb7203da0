//! Plugins, and the device types that they register.

use super::error::RegistryError;
use crate::op::{SourceInfo, raw};
use std::{fmt, path::PathBuf, ptr::NonNull};
use tenon_abi::{DeviceTable, Host, PluginContext, Sink};

/// Number of a plugin in a process. A replacement has a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId(pub u32);

/// A plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// Number.
    pub id: PluginId,
    /// Name of its package.
    pub name: String,
    /// Version.
    pub version: String,
    /// File; `None` when it is linked into the host.
    pub path: Option<PathBuf>,
    /// SHA-256 of the file, in hexadecimal; empty when there is no file.
    pub digest: String,
    /// Place in the order that the user declared; earlier wins among equal kernels.
    pub order: u32,
    /// Whether it is out of use.
    pub retired: bool,
    /// Whether it runs in a process of its own.
    pub isolated: bool,
    /// Whether it came in this process through the door for languages other than Rust.
    pub foreign: bool,
}

impl PluginInfo {
    /// A plugin that is linked into the host.
    pub fn linked(id: PluginId, name: &str, version: &str, order: u32) -> PluginInfo {
        let (name, version) = (name.to_owned(), version.to_owned());
        PluginInfo {
            id,
            name,
            version,
            path: None,
            digest: String::new(),
            order,
            retired: false,
            isolated: false,
            foreign: false,
        }
    }

    /// Scope of its knobs.
    pub fn scope(&self) -> String {
        knob_scope(&self.name)
    }
}

/// Scope of the knobs of the plugin of this name: the name without `tenon-`, in snake_case.
pub fn knob_scope(plugin: &str) -> String {
    let name = plugin.to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("tenon_").unwrap_or(&name).to_owned()
}

impl fmt::Display for PluginInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// How many devices of a type are there.
pub type ProbeFn =
    unsafe extern "C" fn(host: *const Host, context: *const PluginContext, sink: *mut Sink) -> u32;

/// Opens a device.
pub type CreateDeviceFn = unsafe extern "C" fn(
    host: *const Host,
    context: *const PluginContext,
    ordinal: u32,
    device: *mut tenon_abi::Device,
    result: *mut *mut tenon_abi::DeviceState,
    sink: *mut Sink,
) -> tenon_abi::Code;

/// A device type.
#[derive(Clone)]
pub struct DeviceTypeDef {
    /// Name in capitals, such as `CPU`.
    pub name: String,
    /// Placement prefers the type with the higher figure.
    pub priority: i32,
    /// Counts its devices.
    pub probe: ProbeFn,
    /// Opens one.
    pub create: CreateDeviceFn,
    /// Entries of its devices.
    pub table: &'static DeviceTable,
    /// Where it is registered.
    pub source: SourceInfo,
    /// The plugin that registered it.
    pub plugin: PluginId,
}

const WHAT: &str = "device type definition";

impl DeviceTypeDef {
    /// Copies and checks what a plugin handed over.
    ///
    /// # Errors
    /// A struct that is too small, a bad name, a required entry that is missing, entries without those they
    /// need.
    ///
    /// # Safety
    /// `def` is null or points to a struct that begins with its size and whose pointers are readable. Its
    /// table stays in memory for as long as the process lives.
    pub unsafe fn from_abi(
        plugin: PluginId,
        def: *const tenon_abi::DeviceTypeDef,
    ) -> Result<DeviceTypeDef, RegistryError> {
        // SAFETY: the caller gives null or a struct that begins with its size, has readable pointers and a table that
        // lives as long as the process. Nothing else is read.
        unsafe {
            let def = raw::sized(def, WHAT)?;
            let name = raw::text(def.name, WHAT, "name")?;
            let source = SourceInfo::from_abi(&def.source)?;
            let entry = |entry| RegistryError::DeviceEntry {
                device_type: name.clone(),
                entry,
                source_at: source.clone(),
            };
            let probe = def.probe.ok_or_else(|| entry("probe"))?;
            let create = def.create.ok_or_else(|| entry("create"))?;
            let table = NonNull::new(def.table.cast_mut()).ok_or_else(|| entry("table"))?;
            let table: &'static DeviceTable = raw::sized(table.as_ptr(), "device table")?;
            if let Some(missing) = missing_entry(table) {
                return Err(entry(missing));
            }
            let priority = def.priority;
            Ok(DeviceTypeDef { name, priority, probe, create, table, source, plugin })
        }
    }
}

/// The first entry that a device table lacks. A table has all entries for streams and events, or none.
fn missing_entry(table: &DeviceTable) -> Option<&'static str> {
    let memory = table.allocate.is_some() || table.deallocate.is_some();
    let streams = table.create_stream.is_some();
    let events = table.create_event.is_some();
    [
        (true, table.destroy.is_some(), "table.destroy"),
        (true, table.attributes.is_some(), "table.attributes"),
        (memory, table.allocate.is_some(), "table.allocate"),
        (memory, table.deallocate.is_some(), "table.deallocate"),
        (table.can_copy.is_some(), table.copy.is_some(), "table.copy"),
        (streams, table.destroy_stream.is_some(), "table.destroy_stream"),
        (streams, table.synchronize_stream.is_some(), "table.synchronize_stream"),
        (streams, table.notify.is_some(), "table.notify"),
        (events, table.destroy_event.is_some(), "table.destroy_event"),
        (events, table.record_event.is_some(), "table.record_event"),
        (events, table.wait_event.is_some(), "table.wait_event"),
        (events, table.query_event.is_some(), "table.query_event"),
    ]
    .into_iter()
    .find(|(needed, there, _)| *needed && !there)
    .map(|(_, _, name)| name)
}

impl fmt::Debug for DeviceTypeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceTypeDef")
            .field("name", &self.name)
            .field("priority", &self.priority)
            .field("plugin", &self.plugin)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
