//! The interface for authors of device types: [`DeviceKind`], which `register_device!` turns into a table of
//! entries.
//!
//! The smallest device has neither memory nor streams of its own: its kernels compute in host memory and
//! are done when they return.
//!
//! ```
//! use tenon_author::{Knobs, device::{DeviceHandle, DeviceInfo, DeviceKind, NoStreams}};
//! use tenon_framework::KernelError;
//!
//! struct Plain;
//!
//! impl DeviceKind for Plain {
//!     type Stream = NoStreams;
//!     type Event = NoStreams;
//!
//!     fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
//!         Ok(1)
//!     }
//!
//!     fn open(_ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Plain, KernelError> {
//!         Ok(Plain)
//!     }
//!
//!     fn info(&self) -> DeviceInfo {
//!         DeviceInfo::host("the processor")
//!     }
//! }
//!
//! tenon_author::register_device!("PLAIN": Plain);
//! # fn main() {}
//! ```
//!
//! A device with memory of its own sets [`DeviceKind::HAS_MEMORY`] and writes `allocate`, `deallocate`,
//! `can_copy` and `copy`; one whose kernels are enqueued sets [`DeviceKind::HAS_STREAMS`] and writes the
//! methods for streams and events. `plugins/accel` does both, and `sdk/docs/device.md` explains it.
//!
//! # Invariants
//! - The host may call any method from any thread, also at the same time.
//! - A panic in any method becomes an `INTERNAL` error that carries its message.
//! - Streams and events are destroyed before their device.

pub mod callbacks;
mod entries;
mod links;

use crate::Knobs;
use entries::Opened;
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
};
use tenon_abi::{
    Code, CopyRequest, Device, DeviceState, DeviceTable, Host, MemoryKind, Notify, PluginContext,
    Sink, Str, Stream,
};
use tenon_framework::{KernelError, plugin};

pub use tenon_framework::device::base::DeviceInfo;

/// The type of streams and of events for a device that has none. The type has no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStreams {}

/// A device type; one object is one open device.
pub trait DeviceKind: Send + Sync + Sized + 'static {
    /// A stream: commands enqueued on it run in order. [`NoStreams`] without.
    type Stream: Send + Sync + 'static;
    /// An event: a point in a stream that other streams wait for. [`NoStreams`] without.
    type Event: Send + Sync + 'static;

    /// Whether the device has memory of its own: the host then calls `allocate`, `deallocate`, `can_copy`
    /// and `copy`, and otherwise gives it host memory.
    const HAS_MEMORY: bool = false;
    /// Whether kernels and copies are enqueued on streams. If it is false, each of them is done when it
    /// returns, and the host calls no method for streams or events.
    const HAS_STREAMS: bool = false;

    /// How many devices of this type are there. Cheap, without side effects. `knobs` are those of the runtime that
    /// calls.
    ///
    /// # Errors
    /// The reason why there are none; the host shows it in lists of devices.
    fn probe(knobs: Knobs<'_>) -> Result<u32, KernelError>;

    /// Opens device `ordinal`, which is less than the result of `probe`, for the runtime that has `knobs`.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    fn open(ordinal: u32, handle: DeviceHandle, knobs: Knobs<'_>) -> Result<Self, KernelError>;

    /// Describes the device; called once, after `open`. `streams` is overwritten by [`DeviceKind::HAS_STREAMS`].
    fn info(&self) -> DeviceInfo;

    /// Memory of a kind, also for 0 bytes, at a multiple of `align`, which is a power of two and at least
    /// what the device declared. With a stream, it need not be usable before commands that are enqueued on the
    /// stream after this call. The result is an address if the kind says so, else a handle of the device.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when there is none, `UNAVAILABLE` when the device is lost.
    fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        stream: Option<&Self::Stream>,
    ) -> Result<NonNull<c_void>, KernelError> {
        let _ = (align, stream);
        Err(KernelError::unimplemented(format!(
            "cannot allocate {bytes} bytes of memory kind {}: this device has no memory of its own",
            memory.0
        )))
    }

    /// Frees what `allocate` gave; with a stream, after what is enqueued on it.
    ///
    /// # Safety
    /// `data` came from `allocate` of this device with the same `bytes` and `memory`, is given back once,
    /// and nothing but what is enqueued on `stream` uses it.
    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        memory: MemoryKind,
        stream: Option<&Self::Stream>,
    ) {
        let _ = (data, bytes, memory, stream);
    }

    /// Whether `copy` supports this pair of places; addresses are ignored.
    fn can_copy(&self, source: &Place<'_, Self>, destination: &Place<'_, Self>) -> bool {
        let _ = (source, destination);
        false
    }

    /// Copies `bytes` bytes; with a stream, enqueues the copy. At least one place is on this device.
    ///
    /// # Errors
    /// `UNIMPLEMENTED` for a pair that `can_copy` refuses; whatever goes wrong.
    ///
    /// # Safety
    /// Both places are valid for `bytes` bytes, do not overlap, and stay so until the copy is done; until
    /// then, no other code writes the source or uses the destination.
    unsafe fn copy(
        &self,
        source: &Place<'_, Self>,
        destination: &Place<'_, Self>,
        bytes: u64,
        stream: Option<&Self::Stream>,
    ) -> Result<(), KernelError> {
        let _ = (source, destination, stream);
        Err(KernelError::unimplemented(format!("this device cannot copy {bytes} bytes itself")))
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn create_stream(&self) -> Result<Self::Stream, KernelError> {
        Err(no_streams())
    }

    /// Destroys a stream that has nothing enqueued.
    fn destroy_stream(&self, stream: Self::Stream) {
        drop(stream);
    }

    /// Waits until all commands that were enqueued on the stream are done. On a lost device, waits only for commands
    /// that have begun; the host calls this before it gives back memory that they use.
    ///
    /// # Errors
    /// The stream's first error, which stays until the stream is destroyed; `UNAVAILABLE` on a lost device.
    fn synchronize_stream(&self, stream: &Self::Stream) -> Result<(), KernelError> {
        let _ = stream;
        Err(no_streams())
    }

    /// Has `done` run, with the stream's first error or `OK`, once all that was enqueued so far is done;
    /// does not block. A notification that is dropped without it runs with `INTERNAL`.
    fn notify(&self, stream: &Self::Stream, done: Notification) {
        let _ = stream;
        done.run(Code::UNIMPLEMENTED);
    }

    /// Makes an event. An event that was never recorded counts as happened.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn create_event(&self) -> Result<Self::Event, KernelError> {
        Err(no_streams())
    }

    /// Destroys an event that no stream waits for.
    fn destroy_event(&self, event: Self::Event) {
        drop(event);
    }

    /// Records the event: it happens once all that was enqueued on the stream so far is done. A later
    /// recording replaces an earlier one.
    ///
    /// # Errors
    /// Whatever goes wrong; only the code reaches the host.
    fn record_event(&self, event: &Self::Event, stream: &Self::Stream) -> Result<(), KernelError> {
        let _ = (event, stream);
        Err(no_streams())
    }

    /// Makes the stream wait for the event's last recording so far, without blocking the caller.
    ///
    /// # Errors
    /// Whatever goes wrong; only the code reaches the host.
    fn wait_event(&self, stream: &Self::Stream, event: &Self::Event) -> Result<(), KernelError> {
        let _ = (stream, event);
        Err(no_streams())
    }

    /// Whether the event's last recording has happened.
    ///
    /// # Errors
    /// The first error of the stream before the recording; only the code reaches the host.
    fn query_event(&self, event: &Self::Event) -> Result<bool, KernelError> {
        let _ = event;
        Err(no_streams())
    }

    /// Waits until the whole device is idle. Called only for a device with streams.
    ///
    /// # Errors
    /// The first error of any stream.
    fn synchronize(&self) -> Result<(), KernelError> {
        Ok(())
    }

    /// Name of the driver's interface whose handles kernels of other plugins may use, such as `cuda`
    /// ([`tenon_abi::ExtNative`]); empty if there are none.
    const NATIVE_API: &'static str = "";

    /// The driver's handle of the device.
    fn native_device(&self) -> *mut c_void {
        ptr::null_mut()
    }

    /// The driver's handle of a stream.
    fn native_stream(&self, stream: &Self::Stream) -> *mut c_void {
        let _ = stream;
        ptr::null_mut()
    }

    /// Whether there are events that note the time, for traces: the two methods below.
    const HAS_TIMERS: bool = false;

    /// Makes an event that notes when it happens. It is recorded and destroyed as other events are.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn create_timer(&self) -> Result<Self::Event, KernelError> {
        Err(no_streams())
    }

    /// Nanoseconds from one such event to a later one; both have happened.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn elapsed_ns(&self, first: &Self::Event, last: &Self::Event) -> Result<u64, KernelError> {
        let _ = (first, last);
        Err(no_streams())
    }

    /// Whether commands can be recorded and run again ([`tenon_abi::ExtCapture`]): the three methods below.
    const HAS_CAPTURE: bool = false;

    /// Begins a recording: commands that are enqueued on the stream are recorded instead of run. So are commands on
    /// streams that wait for an event recorded on this stream in the meantime.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn begin_capture(&self, stream: &Self::Stream) -> Result<(), KernelError> {
        let _ = stream;
        Err(no_streams())
    }

    /// Ends the recording that `begin_capture` began, also after an error.
    ///
    /// # Errors
    /// The reason why nothing was recorded; nothing was run either.
    fn end_capture(&self, stream: &Self::Stream) -> Result<Recorded, KernelError> {
        let _ = stream;
        Err(no_streams())
    }

    /// Enqueues all recorded commands.
    ///
    /// # Errors
    /// Whatever goes wrong.
    fn launch_recorded(
        &self,
        recorded: &Recorded,
        stream: &Self::Stream,
    ) -> Result<(), KernelError> {
        let _ = (recorded, stream);
        Err(no_streams())
    }
}

/// The type in which a device keeps recorded commands. A value is dropped when its commands do not run.
pub type Recorded = Box<dyn std::any::Any + Send + Sync>;

fn no_streams() -> KernelError {
    KernelError::unimplemented("this device has no streams")
}

/// The host's record of a device, to say that it is lost. Copies may be used from any thread as long as
/// the device is open.
#[derive(Clone, Copy)]
pub struct DeviceHandle(*mut Device);

// SAFETY: an opaque pointer; the host's service that takes it may be called from any thread.
unsafe impl Send for DeviceHandle {}
// SAFETY: as above.
unsafe impl Sync for DeviceHandle {}

impl DeviceHandle {
    /// The handle of a device that no host has opened, such as one in an author's own tests: its losses
    /// are not reported.
    pub const NONE: DeviceHandle = DeviceHandle(ptr::null_mut());

    /// Wraps what the host gave.
    pub(super) fn new(raw: *mut Device) -> DeviceHandle {
        DeviceHandle(raw)
    }

    /// Reports that the device is lost: its steps fail with `UNAVAILABLE`, and subscribers are notified. From then
    /// on every method of the device answers `UNAVAILABLE`, and no command begins. Commands that run may go on;
    /// [`tenon_abi::Host::device_lost`] says what the host waits for.
    pub fn lost(self, reason: &str) {
        if self.0.is_null() {
            return;
        }
        let entry = plugin::host().device_lost.expect("the host fills every entry");
        // SAFETY: the host's record, which lives as long as the device is open.
        unsafe { entry(self.0, Str::new(reason)) }
    }
}

/// The owner of the memory at one end of a copy.
pub enum Owner<'a, D> {
    /// The host.
    Host,
    /// A device of this type and this plugin; perhaps the one that is called.
    Device(&'a D),
    /// A device of another type or plugin: a pair with it is refused, and the host stages.
    Foreign,
}

/// One end of a copy.
pub struct Place<'a, D> {
    /// Address, or what `allocate` of the owner returned, plus an offset in bytes where the kind of memory
    /// is addressable. Null when the host only asks whether a copy is possible.
    pub data: *mut c_void,
    /// Kind of the memory.
    pub memory: MemoryKind,
    /// The owner of the memory.
    pub owner: Owner<'a, D>,
}

impl<'a, D: DeviceKind> Place<'a, D> {
    /// Host memory.
    pub fn host(data: *mut c_void) -> Place<'a, D> {
        Place { data, memory: MemoryKind::HOST, owner: Owner::Host }
    }

    /// Memory of a device.
    pub fn on(device: &'a D, data: *mut c_void, memory: MemoryKind) -> Place<'a, D> {
        Place { data, memory, owner: Owner::Device(device) }
    }

    /// Both ends of a request.
    pub(super) unsafe fn pair(raw: &'a CopyRequest) -> (Place<'a, D>, Place<'a, D>) {
        let owner = |device: *mut DeviceState| match device.is_null() {
            true => Owner::Host,
            // SAFETY: the host gives devices that stay open during the call.
            false => unsafe { entries::find::<D>(device) }.map_or(Owner::Foreign, Owner::Device),
        };
        let source = Place {
            data: raw.source.cast_mut(),
            memory: raw.source_memory,
            owner: owner(raw.source_device),
        };
        let destination = Place {
            data: raw.destination,
            memory: raw.destination_memory,
            owner: owner(raw.destination_device),
        };
        (source, destination)
    }
}

/// A call that the device has to make to the host exactly once. If it is dropped unused, it is made with `INTERNAL`.
#[derive(Debug)]
pub struct Notification {
    run: Option<unsafe extern "C" fn(data: *mut c_void, code: Code)>,
    data: *mut c_void,
}

// SAFETY: the host takes the call from any thread.
unsafe impl Send for Notification {}

impl Notification {
    /// Wraps what the host gave.
    ///
    /// # Safety
    /// `notify` may be called once with `data`, from any thread, at any later time.
    pub unsafe fn new(notify: Notify, data: *mut c_void) -> Notification {
        Notification { run: notify.run, data }
    }

    /// Reports to the host that all commands enqueued before are done, or that one failed with this code.
    pub fn run(mut self, code: Code) {
        self.tell(code);
    }

    fn tell(&mut self, code: Code) {
        if let Some(run) = self.run.take() {
            // SAFETY: the promise of `new`; `take` makes it once.
            unsafe { run(self.data, code) }
        }
    }
}

impl Drop for Notification {
    fn drop(&mut self) {
        self.tell(Code::INTERNAL);
    }
}

/// The device behind the pointer that a kernel's context gives: `device_of::<Accel>(c.device_state())`.
///
/// # Safety
/// `state` is of an open device of type `D` of this plugin. The host gives a kernel the device that it is
/// registered for, so a kernel registered for the type that `D` is registered as needs no check.
pub unsafe fn device_of<'a, D: DeviceKind>(state: *mut DeviceState) -> &'a D {
    // SAFETY: `create` made the state for a device of type `D`, which stays open for `'a`, as the caller guarantees.
    unsafe { &(*state.cast_const().cast::<Opened<D>>()).device }
}

/// The stream behind the pointer that a kernel's context gives; `None` for null.
///
/// # Safety
/// `stream` is null or a stream of a device of type `D` of this plugin, alive for `'a`.
pub unsafe fn stream_of<'a, D: DeviceKind>(stream: *mut Stream) -> Option<&'a D::Stream> {
    // SAFETY: the stream is null, or `create_stream` made it and it lives for `'a`, as the caller guarantees.
    unsafe { stream.cast_const().cast::<D::Stream>().as_ref() }
}

type ProbeFn = unsafe extern "C" fn(*const Host, *const PluginContext, *mut Sink) -> u32;
type CreateFn = unsafe extern "C" fn(
    *const Host,
    *const PluginContext,
    u32,
    *mut Device,
    *mut *mut DeviceState,
    *mut Sink,
) -> Code;

/// The entries of a device type, as a registration holds them.
#[derive(Clone, Copy)]
pub struct DeviceEntries {
    pub(crate) probe: Option<ProbeFn>,
    pub(crate) create: Option<CreateFn>,
    pub(crate) table: &'static DeviceTable,
}

impl DeviceEntries {
    /// The entries of a device type.
    pub const fn of<D: DeviceKind>() -> DeviceEntries {
        DeviceEntries {
            probe: Some(entries::probe::<D>),
            create: Some(entries::create::<D>),
            table: entries::Table::<D>::TABLE,
        }
    }
}
