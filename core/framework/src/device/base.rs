//! What the host knows of a device.
//!
//! [`DeviceBase`] has the public properties; a device of another process has nothing more. A
//! [`LocalDevice`] runs kernels in this process. The host implements both over a plugin's table
//! ([`tenon_abi::DeviceTable`]); an author implements `DeviceKind` of `tenon-author`.
//!
//! # Invariants
//! - All methods may be called from any thread, also at the same time.
//! - Streams and events belong to the code that created them. [`StreamId`] and [`EventId`] are plain names: copies
//!   are free, the owner destroys the stream or event once, and from then on uses no copy.
//! - A device outlives its streams, events and buffers: the host closes it when the last of them is gone.
//! - Once [`DeviceBase::lost`] says a reason, every fallible method answers `UNAVAILABLE` with that reason,
//!   for the rest of this incarnation.
//! - A command that ran when its device was lost may go on, and use the memory that it was enqueued with,
//!   until [`LocalDevice::synchronize_stream`] of its stream has returned. No further command begins.

use super::{
    name::DeviceName,
    replay::{Replay, Timers},
};
use crate::{KernelError, tensor::Memory};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_abi::{
    Code, DeviceAttributes, DeviceState, MemoryInfo, MemoryKind, Notify, device_flags,
};

/// Public properties of a device: an author fills them, the host passes them on.
#[derive(Clone)]
pub struct DeviceInfo {
    /// Model and other descriptions, for people.
    pub description: String,
    /// Kinds of memory, at least one; the first is the ordinary one.
    pub memories: Vec<MemoryInfo>,
    /// Computes in ordinary host memory.
    pub host_memory: bool,
    /// The device's `allocate` is a pool of its own: the host only accounts.
    pub own_pool: bool,
    /// Kernels and copies run in order on streams: "returned" means enqueued.
    pub streams: bool,
    /// NUMA node, if known.
    pub numa_node: Option<u32>,
    /// Bus, if known: a positive number.
    pub bus_id: Option<u32>,
    /// The largest number of streams that one step uses, at least 1. The host takes it as 1 for a device without
    /// events.
    pub stream_count: u32,
}

impl DeviceInfo {
    /// A device that computes in ordinary host memory.
    pub fn host(description: impl Into<String>) -> DeviceInfo {
        let memory = MemoryInfo {
            kind: MemoryKind::HOST,
            alignment: tenon_abi::HOST_ALIGNMENT as u32,
            limit: 0,
        };
        DeviceInfo { host_memory: true, ..DeviceInfo::new(description, vec![memory]) }
    }

    /// A device with memory of its own, the ordinary kind first; without further properties.
    pub fn new(description: impl Into<String>, memories: Vec<MemoryInfo>) -> DeviceInfo {
        DeviceInfo {
            description: description.into(),
            memories,
            host_memory: false,
            own_pool: false,
            streams: false,
            numa_node: None,
            bus_id: None,
            stream_count: 1,
        }
    }

    /// What the device says of one kind of memory.
    pub fn memory(&self, kind: MemoryKind) -> Option<&MemoryInfo> {
        self.memories.iter().find(|memory| memory.kind == kind)
    }

    /// Kind of the ordinary memory.
    pub fn ordinary_memory(&self) -> MemoryKind {
        self.memories.first().map_or(MemoryKind::HOST, |memory| memory.kind)
    }

    /// Checks what an author filled in.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the first thing that is wrong.
    pub fn validate(&self) -> Result<(), KernelError> {
        let wrong = |what: String| Err(KernelError::invalid_argument(what));
        if self.memories.is_empty() {
            return wrong("device: expected at least one kind of memory, found none".to_owned());
        }
        for (at, memory) in self.memories.iter().enumerate() {
            if !memory.alignment.is_power_of_two() {
                return wrong(format!(
                    "device memory {at}: expected a power of two as alignment, found {}",
                    memory.alignment
                ));
            }
            if self.memories[..at].iter().any(|earlier| earlier.kind == memory.kind) {
                return wrong(format!(
                    "device memory {at}: kind {} is listed twice: list each kind once",
                    memory.kind.0
                ));
            }
        }
        if self.host_memory != (self.ordinary_memory() == MemoryKind::HOST) {
            return wrong(format!(
                "device: host_memory is {}, but its ordinary memory is of kind {}: a device computes in host \
                 memory when that is its first kind, and only then",
                self.host_memory,
                self.ordinary_memory().0
            ));
        }
        if self.stream_count == 0 {
            return wrong("device: expected a stream_count of at least 1, found 0".to_owned());
        }
        Ok(())
    }

    /// Bits of [`device_flags`].
    pub fn flags(&self) -> u32 {
        [
            (self.host_memory, device_flags::HOST_MEMORY),
            (self.own_pool, device_flags::OWN_POOL),
            (self.streams, device_flags::STREAMS),
        ]
        .iter()
        .filter(|(is, _)| *is)
        .fold(0, |flags, (_, bit)| flags | bit)
    }

    /// Copies what a plugin's `attributes` entry filled.
    ///
    /// # Errors
    /// As [`DeviceInfo::validate`].
    ///
    /// # Safety
    /// `raw` is filled as its docs say; what it points to lives during the call.
    pub unsafe fn from_raw(raw: &DeviceAttributes) -> Result<DeviceInfo, KernelError> {
        let memories = match raw.memories.is_null() {
            true => Vec::new(),
            // SAFETY: `memory_count` filled elements.
            false => unsafe { std::slice::from_raw_parts(raw.memories, raw.memory_count) }.to_vec(),
        };
        // SAFETY: what `raw` points to lives during the call, as the caller guarantees.
        let description = String::from_utf8_lossy(unsafe { raw.description.bytes() }).into_owned();
        let info = DeviceInfo {
            description,
            memories,
            host_memory: raw.flags & device_flags::HOST_MEMORY != 0,
            own_pool: raw.flags & device_flags::OWN_POOL != 0,
            streams: raw.flags & device_flags::STREAMS != 0,
            numa_node: u32::try_from(raw.numa_node).ok(),
            bus_id: u32::try_from(raw.bus_id).ok().filter(|bus| *bus != 0),
            stream_count: raw.stream_count,
        };
        info.validate()?;
        Ok(info)
    }
}

/// Public properties of a device of this or another process.
pub trait DeviceBase: Send + Sync {
    /// The full name.
    fn name(&self) -> &DeviceName;

    /// Its type, such as `CPU`.
    fn device_type(&self) -> &str {
        self.name().device_type.as_deref().unwrap_or_default()
    }

    /// Description, memory kinds and limits, locality.
    fn info(&self) -> &DeviceInfo;

    /// A random number of this life of the device, never 0: a message for an earlier life is refused.
    fn incarnation(&self) -> u64;

    /// The reason why the device is lost; `None` if it is not.
    fn lost(&self) -> Option<Arc<str>>;

    /// The device as one that runs kernels here; `None` for a device of another process.
    fn as_local(&self) -> Option<&dyn LocalDevice>;
}

/// A stream of one device: commands enqueued on it run in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamId {
    device: u64,
    raw: NonNull<tenon_abi::Stream>,
}

/// An event of one device: a point in a stream that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventId {
    device: u64,
    raw: NonNull<tenon_abi::Event>,
}

// SAFETY: names of things that devices let any thread use; see the invariants of the module.
unsafe impl Send for StreamId {}
// SAFETY: as above.
unsafe impl Sync for StreamId {}
// SAFETY: as above.
unsafe impl Send for EventId {}
// SAFETY: as above.
unsafe impl Sync for EventId {}

impl StreamId {
    /// Names a stream of the device with this number.
    ///
    /// # Safety
    /// `raw` came from `create_stream` of that device and lives until the owner destroys it.
    pub unsafe fn new(device: u64, raw: NonNull<tenon_abi::Stream>) -> StreamId {
        StreamId { device, raw }
    }

    /// [`LocalDevice::number`] of its device.
    pub fn device(self) -> u64 {
        self.device
    }

    /// The plugin's pointer, for [`tenon_abi::Call::stream`].
    pub fn as_raw(self) -> *mut tenon_abi::Stream {
        self.raw.as_ptr()
    }
}

impl EventId {
    /// Names an event of the device with this number.
    ///
    /// # Safety
    /// `raw` came from `create_event` of that device and lives until the owner destroys it.
    pub unsafe fn new(device: u64, raw: NonNull<tenon_abi::Event>) -> EventId {
        EventId { device, raw }
    }

    /// [`LocalDevice::number`] of its device.
    pub fn device(self) -> u64 {
        self.device
    }

    /// The plugin's pointer.
    pub fn as_raw(self) -> *mut tenon_abi::Event {
        self.raw.as_ptr()
    }
}

/// One end of a copy.
#[derive(Clone, Copy)]
pub struct Location<'a> {
    /// Address, or handle of the device.
    pub data: *mut c_void,
    /// Kind of the memory.
    pub memory: MemoryKind,
    /// The owner of the memory; `None` for the host's.
    pub device: Option<&'a dyn LocalDevice>,
}

/// A device that runs kernels in this process.
///
/// Methods that take a [`StreamId`] or an [`EventId`] answer `INVALID_ARGUMENT` for one of another device.
/// On a device without streams those that make streams and events answer `UNIMPLEMENTED`, and kernels and
/// copies are done when they return.
pub trait LocalDevice: DeviceBase {
    /// A number that names this device in this process, never 0: that of its memories
    /// ([`Memory::device`]), its streams and events.
    fn number(&self) -> u64;

    /// Memory of a kind: its buffers are usable at once, and are given back at once when the last
    /// reference goes, so that the holder of the last reference must know that nothing enqueued uses them.
    /// `None` when the device has none of this kind.
    fn memory(&self, kind: MemoryKind) -> Option<Arc<dyn Memory>>;

    /// As [`LocalDevice::memory`], in the order of a stream: a buffer is usable by what is enqueued on the
    /// stream after its allocation, and is given back after what was enqueued on the stream before its last
    /// reference went. Uses on other streams are ordered by events. The memory holds no stream alive: its
    /// buffers go before the stream does.
    fn stream_memory(&self, kind: MemoryKind, stream: StreamId) -> Option<Arc<dyn Memory>>;

    /// The host's record, for [`tenon_abi::Call::device`]; not null.
    fn as_raw(&self) -> *mut tenon_abi::Device;

    /// The plugin's state, for [`tenon_abi::Call::device_state`]; not null while the device is open.
    fn state(&self) -> *mut DeviceState;

    /// Makes a stream; the caller owns it.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` without streams; what the plugin says.
    fn create_stream(&self) -> Result<StreamId, KernelError>;

    /// Destroys a stream.
    ///
    /// # Safety
    /// Nothing is enqueued on it, and no copy of `stream` is used from here on.
    unsafe fn destroy_stream(&self, stream: StreamId);

    /// Waits until all that was enqueued on the stream is done; on a lost device, until none of it runs. Whatever
    /// it returns, nothing that was enqueued uses its memory from then on.
    ///
    /// # Errors
    /// The stream's first error, which stays until the stream is destroyed: after a failed step its streams
    /// are replaced.
    fn synchronize_stream(&self, stream: StreamId) -> Result<(), KernelError>;

    /// Has `notify` called with `data` and the stream's first error or `OK`, exactly once, from any thread,
    /// when all that was enqueued so far is done; does not block. When this returns an error it is not called.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` without streams.
    ///
    /// # Safety
    /// `data` is what `notify` takes, and stays valid until then.
    unsafe fn notify(
        &self,
        stream: StreamId,
        notify: Notify,
        data: *mut c_void,
    ) -> Result<(), KernelError>;

    /// Makes an event; the caller owns it. An event that was never recorded counts as happened.
    ///
    /// # Errors
    /// As [`LocalDevice::create_stream`].
    fn create_event(&self) -> Result<EventId, KernelError>;

    /// Destroys an event.
    ///
    /// # Safety
    /// Nothing waits for it, and no copy of `event` is used from here on.
    unsafe fn destroy_event(&self, event: EventId);

    /// Records the event: it happens once all that was enqueued on the stream so far is done.
    ///
    /// # Errors
    /// What the plugin says.
    fn record_event(&self, event: EventId, stream: StreamId) -> Result<(), KernelError>;

    /// Makes the stream wait for the event's last recording, without blocking the caller.
    ///
    /// # Errors
    /// What the plugin says.
    fn wait_event(&self, stream: StreamId, event: EventId) -> Result<(), KernelError>;

    /// Whether the event's last recording has happened.
    ///
    /// # Errors
    /// The first error of the stream before the recording.
    fn query_event(&self, event: EventId) -> Result<bool, KernelError>;

    /// Whether [`LocalDevice::copy`] takes this pair of places; addresses are ignored. If neither
    /// device of a pair does, the host copies through its own memory.
    fn can_copy(&self, source: Location<'_>, destination: Location<'_>) -> bool;

    /// Copies `bytes` bytes; with a stream: enqueues the copy.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a pair that `can_copy` refuses; what the plugin says.
    ///
    /// # Safety
    /// Both places are valid for `bytes` bytes, do not overlap, and stay so until the copy is done; until
    /// then, no other code writes the source or uses the destination.
    unsafe fn copy(
        &self,
        source: Location<'_>,
        destination: Location<'_>,
        bytes: u64,
        stream: Option<StreamId>,
    ) -> Result<(), KernelError>;

    /// Waits until the whole device is idle; at once on a device without streams.
    ///
    /// # Errors
    /// Its first error.
    fn synchronize(&self) -> Result<(), KernelError>;

    /// Events that note the time, if the device has them.
    fn timers(&self) -> Option<&dyn Timers> {
        None
    }

    /// Graphs of commands, if the device records them.
    fn replay(&self) -> Option<&dyn Replay> {
        None
    }
}

unsafe extern "C" fn run_boxed<F: FnOnce(Code)>(data: *mut c_void, code: Code) {
    // SAFETY: `data` is the box that `on_done` gave away, and this is called once.
    let done = unsafe { Box::from_raw(data.cast::<F>()) };
    // A panic may not cross into the device's plugin.
    if let Err(message) = crate::plugin::guard(|| done(code)) {
        let text = format!("a notification of a stream panicked: {message}");
        crate::plugin::log(tenon_abi::LogLevel::ERROR, &text);
    }
}

impl dyn LocalDevice + '_ {
    /// Calls `done` as [`LocalDevice::notify`] does.
    ///
    /// # Errors
    /// As [`LocalDevice::notify`].
    pub fn on_done<F: FnOnce(Code) + Send + 'static>(
        &self,
        stream: StreamId,
        done: F,
    ) -> Result<(), KernelError> {
        let data = Box::into_raw(Box::new(done));
        // SAFETY: the box is what `run_boxed` takes, and lives until it runs.
        let asked =
            unsafe { self.notify(stream, Notify { run: Some(run_boxed::<F>) }, data.cast()) };
        if asked.is_err() {
            // SAFETY: `notify` failed, so that no other code has the box.
            drop(unsafe { Box::from_raw(data) });
        }
        asked
    }
}
