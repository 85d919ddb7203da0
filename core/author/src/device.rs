//! The interface for authors of device types: [`DeviceKind`], and a trait for each further role that a type has.
//! `register_device!` finds the traits that a type implements, and turns them into a table of entries.
//!
//! | trait | what a type that implements it has | needs |
//! |---|---|---|
//! | [`DeviceKind`] | devices that are counted, opened and described | |
//! | [`DeviceMemory`] | memory of its own, and copies | [`DeviceKind`] |
//! | [`DeviceStreams`] | streams, on which kernels and copies are enqueued | [`DeviceKind`] |
//! | [`DeviceEvents`] | points in a stream that other streams wait for | [`DeviceStreams`] |
//! | [`DeviceTimers`] | events that note when they happen, for traces | [`DeviceEvents`] |
//! | [`DeviceCapture`] | commands that are recorded once and run again | [`DeviceStreams`] |
//! | [`DeviceNative`] | the driver's handles, for kernels of other plugins | [`DeviceStreams`] |
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
//! `plugins/accel` has memory, streams and events, and `sdk/docs/device.md` explains it; `plugins/cuda` has every role.
//!
//! # Invariants
//! - The host may call any method from any thread, also at the same time.
//! - A panic in any method becomes an `INTERNAL` error that carries its message.
//! - Streams and events are destroyed before their device.

pub mod callbacks;
mod capture;
mod entries;
mod events;
mod memory;
mod native;
mod roles;
mod streams;
mod timers;

use crate::Knobs;
use entries::Opened;
use std::ptr;
use tenon_abi::{Device, DeviceState, Str, Stream};
use tenon_framework::{KernelError, plugin};

pub use capture::DeviceCapture;
pub use events::DeviceEvents;
pub use memory::{DeviceMemory, Owner, Place};
pub use native::DeviceNative;
pub use roles::DeviceEntries;
#[doc(hidden)]
pub use roles::{
    Registered, Roles, WithStreamType, WithoutCapture, WithoutEvents, WithoutKind, WithoutMemory,
    WithoutNative, WithoutStreams, WithoutTimers,
};
pub use streams::{DeviceStreams, Notification};
pub use tenon_framework::device::base::DeviceInfo;
pub use timers::DeviceTimers;

/// The type of streams for a device that has none. The type has no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStreams {}

/// A device type; one object is one open device.
pub trait DeviceKind: Send + Sync + Sized + 'static {
    /// A stream: commands enqueued on it run in order. A type with streams implements [`DeviceStreams`]; the stream of
    /// any other is [`NoStreams`].
    type Stream: Send + Sync + 'static;

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

    /// Describes the device; called once, after `open`. `streams` is overwritten by whether the type implements
    /// [`DeviceStreams`]. A `stream_count` above 1 takes effect when it implements [`DeviceEvents`].
    fn info(&self) -> DeviceInfo;
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
