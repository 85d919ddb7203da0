//! What the host lends to a plugin as long as it is loaded.

use crate::{AttrView, Attrs, Code, ExtHeader, ShapeTable, Slot, StateTable, Str, StringTable};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// Takes the message of an error. Opaque to plugins; valid while the call that lent it runs.
#[repr(C)]
#[derive(StableAbi)]
pub struct Sink {
    _opaque: [u8; 0],
}

/// A tensor that a plugin keeps beyond a call, such as an element of its queue. Opaque to plugins.
#[repr(C)]
#[derive(StableAbi)]
pub struct KeptTensor {
    _opaque: [u8; 0],
}

/// The host's record of a loaded plugin. Opaque to plugins; lives as long as the process.
#[repr(C)]
#[derive(StableAbi)]
pub struct Plugin {
    _opaque: [u8; 0],
}

/// A plugin as one runtime, or one session, uses it: the values of its knobs. Opaque to plugins; counted. Several
/// runtimes of one process may use one library, each with values of its own.
#[repr(C)]
#[derive(StableAbi)]
pub struct PluginContext {
    _opaque: [u8; 0],
}

/// Severity of a log line.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogLevel(pub u32);

impl LogLevel {
    /// Something failed.
    pub const ERROR: LogLevel = LogLevel(1);
    /// Something is unusual.
    pub const WARN: LogLevel = LogLevel(2);
    /// Worth knowing.
    pub const INFO: LogLevel = LogLevel(3);
    /// For debugging.
    pub const DEBUG: LogLevel = LogLevel(4);
    /// For debugging in detail.
    pub const TRACE: LogLevel = LogLevel(5);
}

/// Type of a knob.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnobKind(pub u32);

impl KnobKind {
    /// `true` or `false`.
    pub const BOOL: KnobKind = KnobKind(1);
    /// A 64-bit integer.
    pub const INT: KnobKind = KnobKind(2);
    /// A 64-bit float.
    pub const FLOAT: KnobKind = KnobKind(3);
    /// Text.
    pub const STRING: KnobKind = KnobKind(4);
}

/// Value of a knob. Filled by the host; `text` is valid until the next call of `knob` on this thread.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct KnobValue {
    /// Which of the fields below is set.
    pub kind: KnobKind,
    /// 0 or 1.
    pub boolean: u32,
    /// For `INT`.
    pub int_value: i64,
    /// For `FLOAT`.
    pub float_value: f64,
    /// For `STRING`.
    pub text: Str,
}

/// The host's services outside a call. Filled by the host; every entry is there; lives as long as the
/// process.
#[repr(C)]
#[derive(StableAbi)]
pub struct Host {
    /// Size of this struct.
    pub struct_size: u32,
    /// Major number of the host's ABI.
    pub abi_major: u32,
    /// Minor number of the host's ABI.
    pub abi_minor: u32,
    /// Zero.
    pub reserved: u32,
    /// Keeps a copy of `message` for the error that the caller is about to return.
    pub report: Option<unsafe extern "C" fn(sink: *mut Sink, message: Str)>,
    /// Writes a log line.
    pub log: Option<unsafe extern "C" fn(plugin: *const Plugin, level: LogLevel, message: Str)>,
    /// Looks an attribute up; `NOT_FOUND` when the node has no attribute of that name.
    pub attr:
        Option<unsafe extern "C" fn(attrs: *const Attrs, name: Str, result: *mut AttrView) -> Code>,
    /// Reads one of the plugin's own knobs; `NOT_FOUND` when it declared no knob of that name. The context of a
    /// kernel, which `Create` has, gives the values of the session that the kernel is made for; the one that a
    /// device type's `probe` and `create` are given, those of the runtime. Null: `NOT_FOUND`.
    pub knob: Option<
        unsafe extern "C" fn(
            context: *const PluginContext,
            name: Str,
            result: *mut KnobValue,
        ) -> Code,
    >,
    /// Keeps a context beyond the call that lent it; null is allowed. `release_context` gives it back.
    pub retain_context: Option<unsafe extern "C" fn(context: *const PluginContext)>,
    /// Gives a context back that `retain_context` kept; null is allowed.
    pub release_context: Option<unsafe extern "C" fn(context: *const PluginContext)>,
    /// Path of the plugin's own file; empty when it is linked into the host.
    pub path: Option<unsafe extern "C" fn(plugin: *const Plugin) -> Str>,
    /// Allocates host memory and counts it; null when there is none. `align` is a power of two.
    pub allocate: Option<unsafe extern "C" fn(bytes: u64, align: u64) -> *mut c_void>,
    /// Frees what `allocate` gave, with the same figures.
    pub deallocate: Option<unsafe extern "C" fn(data: *mut c_void, bytes: u64, align: u64)>,
    /// Nanoseconds of a monotonic clock.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// Keeps the tensor of a set slot beyond the call, without a copy; null for a slot without a tensor. The
    /// slot is one of a call, of a kept tensor, or of a locked variable, whose value stays as it is; or the caller
    /// fills it, without a buffer, with the address of elements of its own, which are copied. `release` gives the
    /// tensor back, and `CallServices::output_kept` makes it an output of a kernel.
    pub keep: Option<unsafe extern "C" fn(slot: *const Slot) -> *mut KeptTensor>,
    /// Shows a kept tensor, valid while it is kept.
    pub view: Option<unsafe extern "C" fn(kept: *const KeptTensor, result: *mut Slot)>,
    /// Gives a kept tensor back.
    pub release: Option<unsafe extern "C" fn(kept: *mut KeptTensor)>,
    /// Reports that a device is lost: its steps fail with `UNAVAILABLE`, and subscribers are notified. After the
    /// call, no further command of the device begins. Commands that run may go on, and may use the memory that they
    /// were enqueued with, the host's included, until `DeviceTable::synchronize_stream` of their stream returns. The
    /// host waits for the entries and kernels that it called, for every notification and completion that is still
    /// outstanding, and for `synchronize_stream` of every stream that it made, which it calls for a lost device too.
    /// Only then does it give memory back; after that it destroys events and streams, and at last the device. May be
    /// called from any thread, also by an entry or a command of the device.
    pub device_lost: Option<unsafe extern "C" fn(device: *mut crate::Device, reason: Str)>,
    /// Elements of string tensors.
    pub strings: *const StringTable,
    /// Shape inference.
    pub shapes: *const ShapeTable,
    /// Resources, variables, variants, reference slots.
    pub state: *const StateTable,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

// SAFETY: a table is immutable data of function pointers.
unsafe impl Sync for Host {}
// SAFETY: as above.
unsafe impl Send for Host {}
