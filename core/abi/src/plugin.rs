//! The table that a plugin hands to the host.

use crate::{Code, DeviceTypeDef, ExtHeader, Host, KernelDef, KnobDef, OpDef, Plugin, Sink, Str};
use abi_stable::StableAbi;

/// The host's transaction into which a plugin registers. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct Registrar {
    _opaque: [u8; 0],
}

/// Entries of a registrar. Filled by the host; every entry is there. Definitions are copied, except the
/// tables and shape functions that they point to. Errors in definitions are collected, and reported when
/// the transaction is validated.
#[repr(C)]
#[derive(StableAbi)]
pub struct RegistrarTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Adds an op.
    pub op: Option<unsafe extern "C" fn(registrar: *mut Registrar, op: *const OpDef) -> Code>,
    /// Adds a kernel.
    pub kernel:
        Option<unsafe extern "C" fn(registrar: *mut Registrar, kernel: *const KernelDef) -> Code>,
    /// Adds a device type.
    pub device_type: Option<
        unsafe extern "C" fn(registrar: *mut Registrar, device_type: *const DeviceTypeDef) -> Code,
    >,
    /// Adds a knob.
    pub knob: Option<unsafe extern "C" fn(registrar: *mut Registrar, knob: *const KnobDef) -> Code>,
    /// Adds a registration of a kind that this table has no entry for; `UNIMPLEMENTED` when the host does
    /// not know its tag (a plugin goes on without it).
    pub extension:
        Option<unsafe extern "C" fn(registrar: *mut Registrar, link: *const ExtHeader) -> Code>,
}

/// A plugin. Filled by the plugin; lives as long as the library.
#[repr(C)]
#[derive(StableAbi)]
pub struct PluginV1 {
    /// Size of this struct.
    pub struct_size: u32,
    /// Major number of the ABI it was built for.
    pub abi_major: u32,
    /// Minor number of the ABI it was built for.
    pub abi_minor: u32,
    /// Zero.
    pub reserved: u32,
    /// Name of the plugin's package.
    pub name: Str,
    /// Version.
    pub version: Str,
    /// Called once, first. Null: nothing to open.
    pub open: Option<
        unsafe extern "C" fn(host: *const Host, plugin: *const Plugin, sink: *mut Sink) -> Code,
    >,
    /// Registers everything. Required.
    pub register_all: Option<
        unsafe extern "C" fn(
            host: *const Host,
            registrar: *mut Registrar,
            table: *const RegistrarTable,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

// SAFETY: a table is immutable data of function pointers; its chain is immutable too.
unsafe impl Sync for PluginV1 {}
// SAFETY: as above.
unsafe impl Send for PluginV1 {}

/// Door 2: what a C or C++ plugin exports as `tenon_plugin_v1`. Null declines the host's version.
pub type CPluginFn = unsafe extern "C" fn(host_major: u32, host_minor: u32) -> *const PluginV1;
