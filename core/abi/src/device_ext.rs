//! What a device may have beyond its table, as links: the driver's own handles, timers, graphs of commands.

use crate::{Code, Device, DeviceState, Event, ExtHeader, Sink, Str, Stream};
use abi_stable::StableAbi;
use core::ffi::c_void;

/// Commands of a device that were recorded to be run again. Opaque to the host.
#[repr(C)]
#[derive(StableAbi)]
pub struct CommandGraph {
    _opaque: [u8; 0],
}

/// Link [`crate::ext_tags::NATIVE`] of a device's table: what the driver calls the device and its streams, for kernels
/// of other plugins. Filled by the plugin; without it there are no such handles.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtNative {
    /// Head, with tag [`crate::ext_tags::NATIVE`].
    pub header: ExtHeader,
    /// The driver's interface, which says what the handles are: `cuda` is a `CUcontext` and a `CUstream`, and
    /// memory of kind `DEVICE` has `CUdeviceptr` as handles.
    pub api: Str,
    /// The handle of the device. Required.
    pub device: Option<unsafe extern "C" fn(device: *mut DeviceState) -> *mut c_void>,
    /// The handle of a stream. Required.
    pub stream:
        Option<unsafe extern "C" fn(device: *mut DeviceState, stream: *mut Stream) -> *mut c_void>,
}

/// What [`ExtNativeOf::native`] answers. Filled by the host; valid during the call that asks.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct NativeHandles {
    /// As [`ExtNative::api`].
    pub api: Str,
    /// The driver's handle of the device.
    pub device: *mut c_void,
    /// The driver's handle of the stream; null if none was requested.
    pub stream: *mut c_void,
}

/// Link [`crate::ext_tags::NATIVE_OF`] of the host's table: the driver's handles of a device of any plugin. Filled by the
/// host.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtNativeOf {
    /// Head, with tag [`crate::ext_tags::NATIVE_OF`].
    pub header: ExtHeader,
    /// The handles of a device, and of one of its streams or null; `UNIMPLEMENTED` when its plugin gives none. Required.
    pub native: Option<
        unsafe extern "C" fn(
            device: *mut Device,
            stream: *mut Stream,
            result: *mut NativeHandles,
        ) -> Code,
    >,
}

/// Link [`crate::ext_tags::TIMERS`] of a device's table: events that note when they happened. Filled by the plugin;
/// without it traces have the times at which the host was notified.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtTimers {
    /// Head, with tag [`crate::ext_tags::TIMERS`].
    pub header: ExtHeader,
    /// As `create_event`, for an event that notes the time. Required.
    pub create: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            result: *mut *mut Event,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Nanoseconds from one such event to a later one; both have happened. Required.
    pub elapsed_ns: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            first: *mut Event,
            last: *mut Event,
            result: *mut u64,
            sink: *mut Sink,
        ) -> Code,
    >,
}

/// Link [`crate::ext_tags::CAPTURE`] of a device's table: commands are recorded once, and run again with one call.
/// Filled by the plugin; without it nothing is recorded.
///
/// Between `begin` and `end`, commands that are enqueued on the stream are recorded instead of run. So are commands on
/// streams that wait for an event recorded on this stream in the meantime; those streams are joined again before `end`.
/// Addresses and arguments are recorded as they are; the host runs a graph only while none of them has changed.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct ExtCapture {
    /// Head, with tag [`crate::ext_tags::CAPTURE`].
    pub header: ExtHeader,
    /// Begins to record what is enqueued on the stream. Required.
    pub begin: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            stream: *mut Stream,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Ends the recording, also when a command was refused in the meantime; after an error there is no graph, and
    /// nothing was run. Required.
    pub end: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            stream: *mut Stream,
            result: *mut *mut CommandGraph,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Enqueues all recorded commands. A graph does not run twice at the same time: the host enqueues it again when
    /// it is done, or behind itself on the same stream. Required.
    pub launch: Option<
        unsafe extern "C" fn(
            device: *mut DeviceState,
            graph: *mut CommandGraph,
            stream: *mut Stream,
            sink: *mut Sink,
        ) -> Code,
    >,
    /// Destroys a graph that does not run. Required.
    pub destroy: Option<unsafe extern "C" fn(device: *mut DeviceState, graph: *mut CommandGraph)>,
}

// SAFETY: a link is immutable data of function pointers and static text.
unsafe impl Sync for ExtNative {}
// SAFETY: as above.
unsafe impl Sync for ExtNativeOf {}
