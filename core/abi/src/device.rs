//! Devices: what a device plugin gives.

use crate::{Code, ExtHeader, Host, MemoryKind, PluginContext, Sink, Source, Str};
use abi_stable::StableAbi;
use core::ffi::c_void;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[repr(C)]
        #[derive(StableAbi)]
        pub struct $name {
            _opaque: [u8; 0],
        })*
    };
}

opaque! {
    /// The host's record of a device. Opaque to plugins.
    Device;
    /// A plugin's own state for one device. Opaque to the host.
    DeviceState;
    /// A stream: commands enqueued on it run in order. Opaque to the host.
    Stream;
    /// An event: a point in a stream that other streams wait for. Opaque to the host.
    Event;
}

/// Bits of [`DeviceAttributes::flags`].
pub mod device_flags {
    /// Computes in ordinary host memory: `MemoryKind::HOST` is its memory.
    pub const HOST_MEMORY: u32 = 1;
    /// `allocate` is a pool of the device's own: the host only accounts.
    pub const OWN_POOL: u32 = 2;
    /// Kernels run in order on streams: "returned" means enqueued.
    pub const STREAMS: u32 = 4;
}

/// One kind of memory of a device. Filled by the plugin.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct MemoryInfo {
    /// Kind.
    pub kind: MemoryKind,
    /// Alignment in bytes of what `allocate` gives: a power of two.
    pub alignment: u32,
    /// Number of bytes; 0 if it is not known.
    pub limit: u64,
}

/// Public properties of a device. Filled by the plugin; what it points to lives as long as the
/// device.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct DeviceAttributes {
    /// Size of this struct.
    pub struct_size: u32,
    /// Bits of [`device_flags`].
    pub flags: u32,
    /// Model and other descriptions, for people.
    pub description: Str,
    /// First kind of memory; the first one is the device's ordinary one.
    pub memories: *const MemoryInfo,
    /// Number of kinds, at least 1.
    pub memory_count: usize,
    /// NUMA node; -1 if it is not known.
    pub numa_node: i32,
    /// Bus; 0 if it is not known.
    pub bus_id: i32,
    /// The largest number of streams that one step uses, at least 1. A number above 1 needs events.
    pub stream_count: u32,
    /// Zero.
    pub reserved: u32,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// A copy between two places, at least one of them on the device that is asked. Filled by the host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct CopyRequest {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Source address or handle.
    pub source: *const c_void,
    /// Destination address or handle.
    pub destination: *mut c_void,
    /// Bytes.
    pub bytes: u64,
    /// Kind of memory of the source.
    pub source_memory: MemoryKind,
    /// Kind of memory of the destination.
    pub destination_memory: MemoryKind,
    /// Device of the source, of this device's type; null for the host's memory.
    pub source_device: *mut DeviceState,
    /// Device of the destination, of this device's type; null for the host's memory.
    pub destination_device: *mut DeviceState,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

/// Called once, from any thread, when all that was enqueued before it is done or has failed.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy)]
pub struct Notify {
    /// Required. `code` is the first error of the stream, or `OK`.
    pub run: Option<unsafe extern "C" fn(data: *mut c_void, code: Code)>,
}

/// Entries of a device. Filled by the plugin; lives as long as the library. A device without streams
/// leaves the stream and event entries null: its kernels and copies are done when they return.
/// `Host::device_lost` says what may still run on a lost device, and what the host waits for.
#[repr(C)]
#[derive(StableAbi)]
pub struct DeviceTable {
    /// Size of this struct.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Closes the device; nothing of it runs when this returns. Required.
    pub destroy: Option<unsafe extern "C" fn(device: *mut DeviceState)>,
    /// Describes it. Required.
    pub attributes:
        Option<unsafe extern "C" fn(device: *mut DeviceState, result: *mut DeviceAttributes)>,
    /// Allocates memory of a kind, aligned to `align` at least; `RESOURCE_EXHAUSTED` if there is none. Null only for
    /// a device with `HOST_MEMORY`, whose memory is the host's.
    pub allocate: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            bytes: u64,
            align: u64,
            memory: MemoryKind,
            stream: *mut Stream,
            result: *mut *mut c_void,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Frees what `allocate` gave; with a stream: after what is enqueued on it. Required with `allocate`.
    pub deallocate: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            data: *mut c_void,
            bytes: u64,
            memory: MemoryKind,
            stream: *mut Stream,
        ),
    >,
    /// Whether `copy` supports this pair of places: 1 or 0. `bytes` and addresses are ignored. Null: no pair is
    /// supported. For another pair, the host copies through its own memory by pairs that are supported.
    pub can_copy:
        Option<unsafe extern "C" fn(device: *mut DeviceState, request: *const CopyRequest) -> u32>,
    /// Copies; with a stream: enqueues the copy. Host memory stays valid until it is done.
    pub copy: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            request: *const CopyRequest,
            stream: *mut Stream,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Makes a stream.
    pub create_stream: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            result: *mut *mut Stream,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Destroys a stream that has nothing enqueued.
    pub destroy_stream: Option<unsafe extern "C" fn(device: *mut DeviceState, stream: *mut Stream)>,
    /// Waits until all commands that were enqueued on the stream are done; returns its first error. On a lost device,
    /// waits only for commands that have begun, and returns `UNAVAILABLE`. In both cases, no command that was
    /// enqueued uses its memory after the return.
    pub synchronize_stream: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            stream: *mut Stream,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Calls `notify` once all that was enqueued so far is done, without blocking.
    pub notify: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            stream: *mut Stream,
            notify: Notify,
            data: *mut c_void,
        ) -> Code,
    >,
    /// Makes an event.
    pub create_event: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            result: *mut *mut Event,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Destroys an event that no stream waits for.
    pub destroy_event: Option<unsafe extern "C" fn(device: *mut DeviceState, event: *mut Event)>,
    /// Records the event: it happens once all that was enqueued so far is done.
    pub record_event: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            event: *mut Event,
            stream: *mut Stream,
        ) -> Code,
    >,
    /// Makes the stream wait for the event's last recording, without blocking the caller.
    pub wait_event: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            stream: *mut Stream,
            event: *mut Event,
        ) -> Code,
    >,
    /// Whether the last recording has happened: `OK`, `PENDING`, or the error.
    pub query_event:
        Option<unsafe extern "C" fn(device: *mut DeviceState, event: *mut Event) -> Code>,
    /// Waits until the whole device is idle; returns its first error. Null: always idle.
    pub synchronize:
        Option<unsafe extern "C" fn(device: *mut DeviceState, sink: *mut Sink) -> Code>,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}

// SAFETY: a table is immutable data of function pointers; its chain is immutable too.
unsafe impl Sync for DeviceTable {}
// SAFETY: as above.
unsafe impl Send for DeviceTable {}

/// A device type. Filled by the registering side; the host copies what it keeps, except `table`.
#[repr(C)]
#[derive(StableAbi)]
pub struct DeviceTypeDef {
    /// Size of this struct.
    pub struct_size: u32,
    /// Placement prefers the type with the higher figure.
    pub priority: i32,
    /// Name in capitals, such as `CPU`.
    pub name: Str,
    /// How many devices of this type are there, without side effects; 0 with the reason in the sink.
    /// `context` is the plugin as the runtime uses it, lent for this call. Required.
    pub probe: Option<
        unsafe extern "C" fn(
            host: *const Host,
            context: *const PluginContext,
            sink: *mut Sink,
        ) -> u32,
    >,
    /// Opens device `ordinal`. `context` is as for `probe`, and lives as long as the device; `device` is the
    /// host's record, for `Host::device_lost`. Required.
    pub create: Option<
        unsafe extern "C" fn(
            host: *const Host,
            context: *const PluginContext,
            ordinal: u32,
            device: *mut Device,
            result: *mut *mut DeviceState,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Entries.
    pub table: *const DeviceTable,
    /// Where it is registered.
    pub source: Source,
    /// Growth; may be null.
    pub ext: *const ExtHeader,
}
