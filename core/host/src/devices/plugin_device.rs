//! The adapter that presents a plugin's device as a [`LocalDevice`] of the host.

use super::memory::{DeviceMemory, StreamMemory};
use super::{core::DeviceCore, links::DeviceLinks};
use crate::memory::{HostMemory, MemoryStats};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_abi::{Code, CopyRequest, Device, DeviceState, MemoryKind, Notify};
use tenon_framework::{
    KernelError,
    device::{
        DeviceName,
        base::{DeviceBase, DeviceInfo, EventId, LocalDevice, Location, StreamId},
        replay::{Replay, Timers},
    },
    tensor::Memory,
};

/// An open device of a plugin.
pub struct PluginDevice {
    core: Arc<DeviceCore>,
    links: DeviceLinks,
    memories: Vec<Arc<DeviceMemory>>,
}

impl PluginDevice {
    pub(super) fn new(core: DeviceCore) -> Arc<PluginDevice> {
        let core = Arc::new(core);
        let memories = core
            .info()
            .memories
            .iter()
            .filter(|memory| memory.kind != MemoryKind::HOST)
            .map(|memory| Arc::new(DeviceMemory::new(Arc::clone(&core), memory)))
            .collect();
        let device = Arc::new(PluginDevice { links: DeviceLinks::of(core.table), core, memories });
        // Set only here: the device was created just now.
        let _ = device.core.record.adapter.set(Arc::downgrade(&device));
        device
    }

    /// The full name, as text.
    pub fn full_name(&self) -> &str {
        self.core.full_name()
    }

    /// Fails if the device is lost.
    ///
    /// # Errors
    /// `UNAVAILABLE` with the reason when it is lost.
    pub fn check(&self) -> Result<(), KernelError> {
        self.core.check()
    }

    /// The ordinary memory, which holds outputs of its kernels.
    pub fn ordinary_memory(&self) -> Arc<dyn Memory> {
        self.memory(self.info().ordinary_memory())
            .unwrap_or_else(|| Arc::<HostMemory>::clone(HostMemory::shared()))
    }

    /// Statistics of a kind of memory.
    pub fn memory_stats(&self, kind: MemoryKind) -> Option<MemoryStats> {
        if kind == MemoryKind::HOST {
            return self.info().memory(kind).map(|_| HostMemory::shared().stats());
        }
        self.own_memory(kind).map(|memory| memory.stats())
    }

    /// Resets the peak of each of its own kinds of memory to what is in use now; for host memory,
    /// which all devices share, see [`HostMemory::reset_peak`].
    pub fn reset_peaks(&self) {
        self.memories.iter().for_each(|memory| memory.reset_peak());
    }

    /// Frees the blocks of every kind that are kept for reuse.
    pub fn trim(&self) {
        self.memories.iter().for_each(|memory| memory.trim());
    }

    fn own_memory(&self, kind: MemoryKind) -> Option<&Arc<DeviceMemory>> {
        self.memories.iter().find(|memory| memory.kind() == kind)
    }

    pub(super) fn core(&self) -> &DeviceCore {
        &self.core
    }

    pub(super) fn links(&self) -> &DeviceLinks {
        &self.links
    }

    pub(super) fn own_stream(&self, stream: StreamId) -> Result<(), KernelError> {
        self.own("stream", stream.device())
    }

    pub(super) fn own_event(&self, event: EventId) -> Result<(), KernelError> {
        self.own("event", event.device())
    }

    pub(super) fn own(&self, what: &str, device: u64) -> Result<(), KernelError> {
        if device == self.core.number() {
            return Ok(());
        }
        Err(KernelError::invalid_argument(format!(
            "{}: expected a {what} of its own, found one of device number {device}",
            self.full_name()
        )))
    }

    /// The request of a copy. It names the other end by its device state only if that has the same
    /// type: a plugin must not follow a pointer of another plugin.
    fn request(&self, from: Location<'_>, to: Location<'_>, bytes: u64) -> CopyRequest {
        let state_of = |place: &Location<'_>| match place.device {
            Some(device) => device.state(),
            None => std::ptr::null_mut(),
        };
        CopyRequest {
            struct_size: size_of::<CopyRequest>() as u32,
            reserved: 0,
            source: from.data,
            destination: to.data,
            bytes,
            source_memory: from.memory,
            destination_memory: to.memory,
            source_device: state_of(&from),
            destination_device: state_of(&to),
            ext: std::ptr::null(),
        }
    }

    /// Whether both ends are the host's or devices of this type, and one is this device.
    fn concerns(&self, from: &Location<'_>, to: &Location<'_>) -> bool {
        let own_type = |place: &Location<'_>| {
            place.device.is_none_or(|device| device.device_type() == self.device_type())
        };
        let here = |place: &Location<'_>| {
            place.device.is_some_and(|device| device.number() == self.core.number())
        };
        own_type(from) && own_type(to) && (here(from) || here(to))
    }
}

impl DeviceBase for PluginDevice {
    fn name(&self) -> &DeviceName {
        &self.core.record.name
    }

    fn info(&self) -> &DeviceInfo {
        self.core.info()
    }

    fn incarnation(&self) -> u64 {
        self.core.incarnation()
    }

    fn lost(&self) -> Option<Arc<str>> {
        self.core.lost().cloned()
    }

    fn as_local(&self) -> Option<&dyn LocalDevice> {
        Some(self)
    }
}

/// Calls an entry of the table that returns a code, or reports that the device does not have it.
macro_rules! call {
    ($self:ident, $entry:ident, $what:literal, |$function:ident, $sink:ident| $call:expr) => {{
        let $function = $self.core.table.$entry.ok_or_else(|| $self.core.has_no($what))?;
        // SAFETY: an open device with its own streams and events, valid result pointers and a live
        // sink.
        $self.core.operation(stringify!($entry), |$sink| unsafe { $call })
    }};
}

impl LocalDevice for PluginDevice {
    fn number(&self) -> u64 {
        self.core.number()
    }

    fn memory(&self, kind: MemoryKind) -> Option<Arc<dyn Memory>> {
        if kind == MemoryKind::HOST {
            let shared = || Arc::<HostMemory>::clone(HostMemory::shared()) as Arc<dyn Memory>;
            return self.info().memory(kind).map(|_| shared());
        }
        self.own_memory(kind).map(|memory| Arc::clone(memory) as Arc<dyn Memory>)
    }

    fn stream_memory(&self, kind: MemoryKind, stream: StreamId) -> Option<Arc<dyn Memory>> {
        if kind == MemoryKind::HOST || self.own_stream(stream).is_err() {
            return None;
        }
        let memory = Arc::clone(self.own_memory(kind)?);
        Some(Arc::new(StreamMemory::new(memory, stream)))
    }

    fn as_raw(&self) -> *mut Device {
        self.core.as_raw()
    }

    fn state(&self) -> *mut DeviceState {
        self.core.state()
    }

    fn create_stream(&self) -> Result<StreamId, KernelError> {
        let mut raw = std::ptr::null_mut();
        call!(self, create_stream, "streams", |entry, sink| entry(
            self.state(),
            &mut raw,
            sink.as_sink()
        ))?;
        let raw = NonNull::new(raw).ok_or_else(|| KernelError::internal("no stream was given"))?;
        // SAFETY: this device just created it, and the caller destroys it.
        Ok(unsafe { StreamId::new(self.core.number(), raw) })
    }

    unsafe fn destroy_stream(&self, stream: StreamId) {
        if let (Ok(()), Some(entry)) = (self.own_stream(stream), self.core.table.destroy_stream) {
            // SAFETY: the stream is this device's, nothing is enqueued on it, and the caller uses
            // it no more.
            unsafe { entry(self.state(), stream.as_raw()) }
        }
    }

    fn synchronize_stream(&self, stream: StreamId) -> Result<(), KernelError> {
        self.own_stream(stream)?;
        let entry =
            self.core.table.synchronize_stream.ok_or_else(|| self.core.has_no("streams"))?;
        self.core.last_operation("synchronize_stream", |sink| {
            // SAFETY: an open device with one of its own streams, and a live sink.
            unsafe { entry(self.state(), stream.as_raw(), sink.as_sink()) }
        })
    }

    unsafe fn notify(
        &self,
        stream: StreamId,
        notify: Notify,
        data: *mut c_void,
    ) -> Result<(), KernelError> {
        self.own_stream(stream)?;
        call!(self, notify, "streams", |entry, _sink| entry(
            self.state(),
            stream.as_raw(),
            notify,
            data
        ))
    }

    fn create_event(&self) -> Result<EventId, KernelError> {
        let mut raw = std::ptr::null_mut();
        call!(self, create_event, "events", |entry, sink| entry(
            self.state(),
            &mut raw,
            sink.as_sink()
        ))?;
        let raw = NonNull::new(raw).ok_or_else(|| KernelError::internal("no event was given"))?;
        // SAFETY: this device just created it, and the caller destroys it.
        Ok(unsafe { EventId::new(self.core.number(), raw) })
    }

    unsafe fn destroy_event(&self, event: EventId) {
        if let (Ok(()), Some(entry)) = (self.own_event(event), self.core.table.destroy_event) {
            // SAFETY: the event is this device's, nothing waits for it, and the caller uses it no
            // more.
            unsafe { entry(self.state(), event.as_raw()) }
        }
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> Result<(), KernelError> {
        self.own_event(event)?;
        self.own_stream(stream)?;
        call!(self, record_event, "events", |entry, _sink| entry(
            self.state(),
            event.as_raw(),
            stream.as_raw()
        ))
    }

    fn wait_event(&self, stream: StreamId, event: EventId) -> Result<(), KernelError> {
        self.own_event(event)?;
        self.own_stream(stream)?;
        call!(self, wait_event, "events", |entry, _sink| entry(
            self.state(),
            stream.as_raw(),
            event.as_raw()
        ))
    }

    fn query_event(&self, event: EventId) -> Result<bool, KernelError> {
        self.own_event(event)?;
        let mut pending = false;
        call!(self, query_event, "events", |entry, _sink| {
            let code = entry(self.state(), event.as_raw());
            pending = code == Code::PENDING;
            if pending { Code::OK } else { code }
        })?;
        Ok(!pending)
    }

    fn can_copy(&self, source: Location<'_>, destination: Location<'_>) -> bool {
        let Some(entry) = self.core.table.can_copy else { return false };
        if !self.concerns(&source, &destination) || self.core.lost().is_some() {
            return false;
        }
        let request = self.request(source, destination, 0);
        // SAFETY: an open device and a filled request.
        unsafe { entry(self.state(), &request) != 0 }
    }

    unsafe fn copy(
        &self,
        source: Location<'_>,
        destination: Location<'_>,
        bytes: u64,
        stream: Option<StreamId>,
    ) -> Result<(), KernelError> {
        stream.map_or(Ok(()), |stream| self.own_stream(stream))?;
        if !self.concerns(&source, &destination) {
            return Err(self.core.has_no("copy between these two places"));
        }
        let request = self.request(source, destination, bytes);
        let raw_stream = stream.map_or(std::ptr::null_mut(), StreamId::as_raw);
        call!(self, copy, "copies", |entry, sink| entry(
            self.state(),
            &request,
            raw_stream,
            sink.as_sink()
        ))
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        self.core.check()?;
        if self.core.table.synchronize.is_none() {
            return Ok(());
        }
        call!(self, synchronize, "streams", |entry, sink| entry(self.state(), sink.as_sink()))
    }

    fn timers(&self) -> Option<&dyn Timers> {
        self.links.has_timers().then_some(self as &dyn Timers)
    }

    fn replay(&self) -> Option<&dyn Replay> {
        self.links.has_capture().then_some(self as &dyn Replay)
    }
}
