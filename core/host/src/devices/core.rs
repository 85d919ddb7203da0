//! The parts of an open device: the host's record of it, and the plugin's state behind its table.

use crate::{context::PluginContext, sink::MessageSink};
use std::{
    ffi::c_void,
    hash::{BuildHasher, Hasher, RandomState},
    ptr::NonNull,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tenon_abi::{Code, Device, DeviceAttributes, DeviceState, DeviceTable, Host, MemoryKind, Str};
use tenon_framework::{
    KernelError,
    device::{
        DeviceName,
        base::{DeviceInfo, StreamId},
    },
    plugin::guard,
    registry::{DeviceTypeDef, RegistryEvent, RegistryHandle},
};

use super::plugin_device::PluginDevice;

/// The host's record of a device: the type behind the opaque [`Device`] of the boundary. It exists
/// from before the plugin opens the device until after the plugin has closed it.
pub(super) struct DeviceRecord {
    pub name: DeviceName,
    pub full_name: String,
    lost: OnceLock<Arc<str>>,
    events: Arc<RegistryHandle>,
    /// The adapter; set once the device is open.
    pub adapter: OnceLock<Weak<PluginDevice>>,
}

impl DeviceRecord {
    fn as_raw(&self) -> *mut Device {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// Marks the device as lost; only the first reason counts, and subscribers receive it.
    fn lose(&self, reason: &str) {
        if self.lost.set(reason.into()).is_ok() {
            tracing::warn!(device = self.full_name, "the device is lost: {reason}");
            let event =
                RegistryEvent::DeviceLost { device: self.name.clone(), reason: reason.to_owned() };
            self.events.publish(&event);
        }
    }
}

/// `Host::device_lost`.
///
/// # Safety
/// - `device` is null or the record that the plugin received, of a device that is not closed.
/// - `reason` is readable.
pub unsafe extern "C" fn device_lost_entry(device: *mut Device, reason: Str) {
    // SAFETY: the plugin passes null or the record of a device that is not closed, and a readable
    // reason.
    let (record, reason) = unsafe { (device.cast::<DeviceRecord>().as_ref(), reason.bytes()) };
    if let Some(record) = record {
        // A subscriber's panic must not unwind into the plugin.
        let told = guard(|| record.lose(&String::from_utf8_lossy(reason)));
        if let Err(message) = told {
            tracing::error!("a subscriber panicked when a device was lost: {message}");
        }
    }
}

/// The adapter of the device behind a record.
///
/// # Safety
/// - `raw` is null or the record of a device that is not closed.
pub unsafe fn device_of(raw: *mut Device) -> Option<Arc<PluginDevice>> {
    // SAFETY: `raw` is null or the record of a device that is not closed, as the caller guarantees.
    let record = unsafe { raw.cast::<DeviceRecord>().as_ref() }?;
    record.adapter.get()?.upgrade()
}

/// Full name of the device behind a record; empty for null, which is the host's own memory.
///
/// # Safety
/// - `raw` is null or the record of a device that is not closed for `'a`.
pub unsafe fn name_of<'a>(raw: *mut Device) -> &'a str {
    // SAFETY: `raw` is null or the record of a device that is not closed for `'a`, as the caller
    // guarantees.
    unsafe { raw.cast::<DeviceRecord>().as_ref() }.map_or("", |record| &record.full_name)
}

/// A random number other than 0.
fn random() -> u64 {
    loop {
        // The standard library's keys come from the system's source of randomness.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(crate::clock::monotonic_ns());
        hasher.write_u32(std::process::id());
        match hasher.finish() {
            0 => {}
            number => return number,
        }
    }
}

/// An open device. It is closed when its last owner is dropped: the adapter, its memories and their
/// buffers.
pub struct DeviceCore {
    pub(super) record: Box<DeviceRecord>,
    pub(super) table: &'static DeviceTable,
    state: NonNull<DeviceState>,
    info: DeviceInfo,
    number: u64,
    incarnation: u64,
    /// The plugin may use it as long as the device is open: fields are dropped after `drop`.
    _context: Arc<PluginContext>,
}

// SAFETY: the contract of device tables says that any thread may call their entries; what the host
// keeps here does not change.
unsafe impl Send for DeviceCore {}
// SAFETY: as for `Send`.
unsafe impl Sync for DeviceCore {}

impl DeviceCore {
    /// Opens device `ordinal` of a type, as a device of this task.
    ///
    /// # Errors
    /// The plugin's error; `INTERNAL` for attributes that violate the contract.
    pub(super) fn open(
        host: &'static Host,
        task: &DeviceName,
        def: &DeviceTypeDef,
        ordinal: u32,
        plugin: &Arc<PluginContext>,
        events: &Arc<RegistryHandle>,
    ) -> Result<DeviceCore, KernelError> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let name = task.with_device(&def.name, ordinal);
        let record = Box::new(DeviceRecord {
            full_name: name.to_string(),
            name,
            lost: OnceLock::new(),
            events: Arc::clone(events),
            adapter: OnceLock::new(),
        });
        let sink = MessageSink::new();
        let mut state = std::ptr::null_mut();
        // SAFETY: the type's own entry with valid arguments; the record does not move with its box.
        let code = unsafe {
            (def.create)(
                host,
                plugin.as_raw(),
                ordinal,
                record.as_raw(),
                &mut state,
                sink.as_sink(),
            )
        };
        sink.check(code).map_err(|error| named(&record.full_name, error))?;
        let state = NonNull::new(state).ok_or_else(|| {
            let name = &record.full_name;
            KernelError::internal(format!("{name}: its plugin said OK and gave no device"))
        })?;
        let mut core = DeviceCore {
            record,
            table: def.table,
            state,
            info: DeviceInfo::host(""),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            incarnation: random(),
            _context: Arc::clone(plugin),
        };
        // From here on dropping the core closes the device.
        core.info = core.read_info()?;
        Ok(core)
    }

    fn read_info(&self) -> Result<DeviceInfo, KernelError> {
        let mut raw = DeviceAttributes {
            struct_size: size_of::<DeviceAttributes>() as u32,
            flags: 0,
            description: Str::EMPTY,
            memories: std::ptr::null(),
            memory_count: 0,
            numa_node: -1,
            bus_id: 0,
            stream_count: 1,
            reserved: 0,
            ext: std::ptr::null(),
        };
        let name = &self.record.full_name;
        let entry = self.table.attributes.ok_or_else(|| missing(name, "attributes"))?;
        // SAFETY: an open device, and a result pointer that is valid for writes; what the
        // attributes point to lives as long as the device.
        let info = unsafe {
            entry(self.state.as_ptr(), &mut raw);
            DeviceInfo::from_raw(&raw)
        };
        let mut info = info.map_err(|error| named(name, error))?;
        if !info.host_memory && self.table.allocate.is_none() {
            return Err(missing(name, "allocate"));
        }
        if info.streams && self.table.create_stream.is_none() {
            return Err(missing(name, "create_stream"));
        }
        let table = self.table;
        let has_events = table.create_event.is_some()
            && table.record_event.is_some()
            && table.wait_event.is_some();
        if !has_events {
            // Without events, nothing would order one stream after another.
            info.stream_count = 1;
        }
        Ok(info)
    }

    /// The device's public properties.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// The full name, as text.
    pub fn full_name(&self) -> &str {
        &self.record.full_name
    }

    /// The number of the device in this process, never 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The plugin's state.
    pub(super) fn state(&self) -> *mut DeviceState {
        self.state.as_ptr()
    }

    pub(super) fn as_raw(&self) -> *mut Device {
        self.record.as_raw()
    }

    /// Why the device is lost; `None` while it is not.
    pub fn lost(&self) -> Option<&Arc<str>> {
        self.record.lost.get()
    }

    fn lost_error(&self, reason: &str) -> KernelError {
        let name = self.full_name();
        KernelError::new(Code::UNAVAILABLE, format!("{name} is lost: {reason}"))
    }

    /// Fails if the device is lost.
    ///
    /// # Errors
    /// `UNAVAILABLE` with the reason when it is lost.
    pub fn check(&self) -> Result<(), KernelError> {
        self.lost().map_or(Ok(()), |reason| Err(self.lost_error(reason)))
    }

    /// Runs an operation of the device. It is refused if the device is lost; if the device is lost
    /// during the operation, the error is the same.
    pub(super) fn operation(
        &self,
        what: &str,
        run: impl FnOnce(&MessageSink) -> Code,
    ) -> Result<(), KernelError> {
        self.check()?;
        let sink = MessageSink::new();
        let code = run(&sink);
        sink.check(code).map_err(|error| {
            self.check().err().unwrap_or_else(|| {
                let message = format!("{}: {what}: {}", self.full_name(), error.message);
                KernelError::new(error.code, message)
            })
        })
    }

    /// Runs an operation even on a lost device, such as waiting for work that still runs. Its error
    /// is then that of every other operation.
    pub(super) fn last_operation(
        &self,
        what: &str,
        run: impl FnOnce(&MessageSink) -> Code,
    ) -> Result<(), KernelError> {
        match self.lost() {
            None => self.operation(what, run),
            Some(reason) => {
                let _ = run(&MessageSink::new());
                Err(self.lost_error(reason))
            }
        }
    }

    /// The error of an operation that the device does not support.
    pub(super) fn has_no(&self, what: &str) -> KernelError {
        KernelError::unimplemented(format!("{} has no {what}", self.full_name()))
    }

    /// Allocates memory of the device.
    ///
    /// # Errors
    /// The plugin's error; `UNAVAILABLE` when the device is lost.
    pub(crate) fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        stream: Option<StreamId>,
    ) -> Result<NonNull<c_void>, KernelError> {
        let entry = self.table.allocate.ok_or_else(|| self.has_no("memory of its own"))?;
        let mut data = std::ptr::null_mut();
        let raw_stream = stream.map_or(std::ptr::null_mut(), StreamId::as_raw);
        self.operation("allocate", |sink| {
            // SAFETY: an open device, a stream of it or null, a result pointer that is valid for
            // writes, and a sink.
            unsafe {
                let sink = sink.as_sink();
                entry(self.state(), bytes, align, memory, raw_stream, &mut data, sink)
            }
        })?;
        NonNull::new(data).ok_or_else(|| {
            let name = self.full_name();
            KernelError::internal(format!("{name}: allocate said OK and gave no memory"))
        })
    }

    /// Frees memory, even of a lost device, so that its plugin may clean up.
    ///
    /// # Safety
    /// - `data` came from [`DeviceCore::allocate`] with the same size and kind.
    /// - Only what is enqueued on `stream` uses it.
    pub(crate) unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        memory: MemoryKind,
        stream: Option<StreamId>,
    ) {
        let raw_stream = stream.map_or(std::ptr::null_mut(), StreamId::as_raw);
        if let Some(entry) = self.table.deallocate {
            // SAFETY: the caller guarantees that `data` came from `allocate` with the same size and
            // kind, and that only what is enqueued on `stream` uses it.
            unsafe { entry(self.state(), data.as_ptr(), bytes, memory, raw_stream) }
        }
    }
}

impl Drop for DeviceCore {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: nothing uses the device any more: adapter, memories and buffers each own the
            // core.
            unsafe { destroy(self.state()) }
        }
    }
}

fn named(device: &str, error: KernelError) -> KernelError {
    KernelError::new(error.code, format!("{device}: {}", error.message))
}

fn missing(device: &str, entry: &str) -> KernelError {
    KernelError::internal(format!("{device}: its table lacks `{entry}`, which its attributes need"))
}
