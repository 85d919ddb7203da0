//! The device type `ACCEL`: memory, queue, streams and events as the host sees them.

use crate::{
    event::Event,
    faults::Health,
    memory::{ALIGNMENT, Handle, Memory},
    queue::Queue,
    settings::{self, Settings},
    stream::Stream,
};
use std::{ffi::c_void, ptr::NonNull, sync::Arc};
use tenon_sdk::{
    Code, KernelError,
    abi::{LogLevel, MemoryInfo, MemoryKind},
    author::{Knobs, log},
    device::author::{
        DeviceEvents, DeviceHandle, DeviceInfo, DeviceKind, DeviceMemory, DeviceStreams,
        Notification, Owner, Place,
    },
    register_device,
};

// Below every fast device: the simulator runs only what names it.
register_device!("ACCEL": Accel, priority = -100);

/// One simulated accelerator.
pub struct Accel {
    ordinal: u32,
    streams: u32,
    health: Arc<Health>,
    memory: Arc<Memory>,
    queue: Arc<Queue>,
}

impl Accel {
    /// Opens device `ordinal` with the given settings.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the system creates no thread for the queue.
    pub fn new(
        ordinal: u32,
        settings: &Settings,
        handle: DeviceHandle,
    ) -> Result<Accel, KernelError> {
        if ordinal >= settings::MAX_DEVICES {
            return Err(KernelError::invalid_argument(format!(
                "ACCEL:{ordinal}: expected a number below {}",
                settings::MAX_DEVICES
            )));
        }
        let health = Arc::new(Health::new(handle));
        let fail_after = settings.faults.fail_alloc_after_bytes;
        let memory = Memory::new(ordinal, settings.memory_limit, fail_after, Arc::clone(&health));
        let queue = Queue::start(&format!("accel-{ordinal}"), settings, Arc::clone(&health))?;
        Ok(Accel {
            ordinal,
            streams: settings.streams,
            health,
            memory: Arc::new(memory),
            queue: Arc::new(queue),
        })
    }

    /// The device's memory.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The device's queue.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }
}

impl DeviceKind for Accel {
    type Stream = Stream;

    fn probe(knobs: Knobs<'_>) -> Result<u32, KernelError> {
        match settings::device_count(knobs)? {
            0 => Err(KernelError::new(Code::NOT_FOUND, "the knob devices is 0")),
            count => Ok(count),
        }
    }

    fn open(ordinal: u32, handle: DeviceHandle, knobs: Knobs<'_>) -> Result<Accel, KernelError> {
        Accel::new(ordinal, &Settings::from_knobs(knobs)?, handle)
    }

    fn info(&self) -> DeviceInfo {
        let memory = MemoryInfo {
            kind: MemoryKind::DEVICE,
            alignment: ALIGNMENT as u32,
            limit: self.memory.limit(),
        };
        let description = format!("simulated accelerator {}", self.ordinal);
        DeviceInfo { stream_count: self.streams, ..DeviceInfo::new(description, vec![memory]) }
    }
}

impl DeviceMemory for Accel {
    fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        _stream: Option<&Stream>,
    ) -> Result<NonNull<c_void>, KernelError> {
        if memory != MemoryKind::DEVICE {
            return Err(KernelError::invalid_argument(format!(
                "ACCEL has memory of kind {}, asked for kind {}",
                MemoryKind::DEVICE.0,
                memory.0
            )));
        }
        let handle = self.memory.allocate(bytes, align)?;
        let data = std::ptr::without_provenance_mut(handle.0 as usize);
        NonNull::new(data).ok_or_else(|| KernelError::internal("a handle is null"))
    }

    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        _bytes: u64,
        _memory: MemoryKind,
        stream: Option<&Stream>,
    ) {
        let (memory, handle) = (Arc::clone(&self.memory), handle_of(data.as_ptr()));
        let free = move || {
            if let Err(error) = memory.deallocate(handle) {
                log(LogLevel::ERROR, &format!("ACCEL cannot free memory: {error}"));
            }
        };
        match stream {
            Some(stream) => stream.cleanup(free),
            None => free(),
        }
    }

    fn can_copy(&self, source: &Place<'_, Accel>, destination: &Place<'_, Accel>) -> bool {
        matches!((End::of(source), End::of(destination)), (Some(from), Some(to)) if from.can_reach(&to))
    }

    unsafe fn copy(
        &self,
        source: &Place<'_, Accel>,
        destination: &Place<'_, Accel>,
        bytes: u64,
        stream: Option<&Stream>,
    ) -> Result<(), KernelError> {
        self.health.check()?;
        let (from, to) = match (End::of(source), End::of(destination)) {
            (Some(from), Some(to)) if from.can_reach(&to) => (from, to),
            _ => {
                return Err(KernelError::unimplemented(
                    "ACCEL copies between its devices, and between them and the host's memory",
                ));
            }
        };
        let bytes = usize::try_from(bytes).map_err(|_| {
            KernelError::invalid_argument("a copy of more bytes than there are addresses")
        })?;
        // SAFETY: the caller keeps both places valid until the copy is done.
        let command = move || unsafe { transfer(from, to, bytes) };
        match stream {
            Some(stream) => stream.copy(command),
            None => {
                let stream = Stream::new(&self.queue)?;
                stream.copy(command)?;
                stream.synchronize()
            }
        }
    }
}

impl DeviceStreams for Accel {
    fn create_stream(&self) -> Result<Stream, KernelError> {
        Stream::new(&self.queue)
    }

    fn synchronize_stream(&self, stream: &Stream) -> Result<(), KernelError> {
        stream.synchronize()
    }

    fn notify(&self, stream: &Stream, done: Notification) {
        stream.notify(done);
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        self.queue.synchronize()
    }
}

impl DeviceEvents for Accel {
    type Event = Event;

    fn create_event(&self) -> Result<Event, KernelError> {
        self.health.check()?;
        Ok(Event::new(Arc::clone(&self.queue)))
    }

    fn record_event(&self, event: &Event, stream: &Stream) -> Result<(), KernelError> {
        stream.record(event)
    }

    fn wait_event(&self, stream: &Stream, event: &Event) -> Result<(), KernelError> {
        stream.wait(event)
    }

    fn query_event(&self, event: &Event) -> Result<bool, KernelError> {
        event.query()
    }
}

/// The handle that the host stores as an address.
pub(crate) fn handle_of(data: *const c_void) -> Handle {
    Handle(data.addr() as u64)
}

/// One end of a copy, in a form that a command can keep.
enum End {
    Host(HostAddress),
    Device(Arc<Memory>, Handle),
}

struct HostAddress(*mut u8);

// SAFETY: only an address; the copy's caller keeps the memory behind it valid until the copy is
// done.
unsafe impl Send for HostAddress {}

impl End {
    /// The memory of a place; `None` for memory that this device cannot reach.
    fn of(place: &Place<'_, Accel>) -> Option<End> {
        match place.owner {
            Owner::Host if place.memory.is_host_address() => {
                Some(End::Host(HostAddress(place.data.cast())))
            }
            Owner::Device(device) if place.memory == MemoryKind::DEVICE => {
                Some(End::Device(Arc::clone(&device.memory), handle_of(place.data)))
            }
            _ => None,
        }
    }

    fn can_reach(&self, other: &End) -> bool {
        matches!((self, other), (End::Device(..), _) | (_, End::Device(..)))
    }
}

/// Copies `bytes` bytes. A copy between devices goes through a buffer, so that neither memory is
/// locked while the other is used.
///
/// # Safety
/// - Host addresses are valid for `bytes` bytes.
unsafe fn transfer(from: End, to: End, bytes: usize) -> Result<(), KernelError> {
    if bytes == 0 {
        return Ok(());
    }
    match (from, to) {
        (End::Host(from), End::Device(memory, to)) => {
            // SAFETY: the caller guarantees that the address is valid for `bytes` bytes until the
            // copy is done.
            unsafe { memory.write_from(to, from.0, bytes) }
        }
        (End::Device(memory, from), End::Host(to)) => {
            // SAFETY: the caller guarantees that the address is valid for `bytes` bytes until the
            // copy is done.
            unsafe { memory.read_to(from, to.0, bytes) }
        }
        (End::Device(source, from), End::Device(destination, to)) => {
            let staged = source.read_elements::<u8>(from, bytes)?;
            destination.write(to, &staged)
        }
        (End::Host(_), End::Host(_)) => {
            Err(KernelError::internal("a copy without an end on the device"))
        }
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
