//! The device type: its traits, over memory, streams and events.

use crate::{
    memory::{LIMIT, MAX_ALIGN, Memory, Spot},
    stream::{Command, Event, Stream},
};
use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};
use tenon_sdk::{
    abi::{MemoryInfo, MemoryKind},
    device::author::{Notification, Owner, Place},
    prelude::*,
};

register_knob!("count": INT = "2", "How many devices of type ZOO there are; 0 is none.");

register_device!("ZOO": ZooDevice, priority = -1);

/// Most devices that the knob may ask for.
const MAX_DEVICES: i64 = 8;

/// One device of type `ZOO`.
pub struct ZooDevice {
    ordinal: u32,
    handle: DeviceHandle,
    memory: Arc<Memory>,
    /// Streams that are open, for `synchronize`.
    streams: Mutex<Vec<Weak<Stream>>>,
    lost: OnceLock<String>,
}

impl ZooDevice {
    /// Its memory, for commands.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// From now on every method answers `UNAVAILABLE`. What runs ends before the host is told; what is enqueued
    /// later is refused.
    pub(crate) fn lose(&self, reason: &str) {
        let first = {
            let _turn = self.streams();
            self.lost.set(reason.to_owned()).is_ok()
        };
        if first {
            // What failed on a stream matters no more.
            let _ = self.drain();
            self.handle.lost(reason);
        }
    }

    fn streams(&self) -> MutexGuard<'_, Vec<Weak<Stream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every stream has run what was enqueued on it; the first error.
    fn drain(&self) -> Result<(), KernelError> {
        let streams: Vec<Arc<Stream>> = self.streams().iter().filter_map(Weak::upgrade).collect();
        let results: Vec<_> = streams.iter().map(|stream| stream.synchronize()).collect();
        results.into_iter().collect()
    }

    /// Enqueues a command; `UNAVAILABLE` on a lost device.
    pub(crate) fn enqueue(&self, stream: &Stream, command: Command) -> Result<(), KernelError> {
        let _turn = self.streams();
        self.alive()?;
        stream.enqueue(command)
    }

    fn alive(&self) -> Result<(), KernelError> {
        match self.lost.get() {
            None => Ok(()),
            Some(reason) => Err(KernelError::new(Code::UNAVAILABLE, reason.as_str())),
        }
    }

    fn kinds() -> Vec<MemoryInfo> {
        let info = |kind, alignment, limit| MemoryInfo { kind, alignment, limit };
        vec![
            info(MemoryKind::DEVICE, MAX_ALIGN as u32, LIMIT),
            info(MemoryKind::PINNED, 64, 0),
            info(MemoryKind::SHARED, 64, 0),
        ]
    }
}

/// Where a place lies; `None` when it is foreign.
fn spot(place: &Place<'_, ZooDevice>) -> Option<Spot> {
    let data = place.data as usize;
    match &place.owner {
        Owner::Foreign => None,
        Owner::Device(device) if !place.memory.is_host_address() => {
            Some(Spot::Handle(device.memory.clone(), data))
        }
        _ => Some(Spot::Address(data)),
    }
}

impl DeviceKind for ZooDevice {
    type Stream = Arc<Stream>;

    fn probe(knobs: Knobs<'_>) -> Result<u32, KernelError> {
        match knobs.int("count")? {
            0 => Err(KernelError::new(
                Code::UNAVAILABLE,
                "zoo_device.count is 0: no device asked for",
            )),
            count @ 1..=MAX_DEVICES => Ok(count as u32),
            count => Err(KernelError::invalid_argument(format!(
                "zoo_device.count: expected 0 to {MAX_DEVICES}, found {count}"
            ))),
        }
    }

    fn open(
        ordinal: u32,
        handle: DeviceHandle,
        _knobs: Knobs<'_>,
    ) -> Result<ZooDevice, KernelError> {
        Ok(ZooDevice {
            ordinal,
            handle,
            memory: Arc::default(),
            streams: Mutex::default(),
            lost: OnceLock::new(),
        })
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            own_pool: true,
            numa_node: Some(self.ordinal % 2),
            bus_id: Some(self.ordinal + 1),
            stream_count: 2,
            ..DeviceInfo::new(format!("zoo device {}", self.ordinal), ZooDevice::kinds())
        }
    }
}

impl DeviceMemory for ZooDevice {
    fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        _stream: Option<&Arc<Stream>>,
    ) -> Result<NonNull<c_void>, KernelError> {
        self.alive()?;
        self.memory.allocate(bytes, align, memory)
    }

    unsafe fn deallocate(
        &self,
        data: NonNull<c_void>,
        bytes: u64,
        kind: MemoryKind,
        stream: Option<&Arc<Stream>>,
    ) {
        let (memory, data) = (self.memory.clone(), data.as_ptr() as usize);
        // SAFETY: the caller's promise; on a stream, nothing enqueued before uses it any more then.
        let free = move || unsafe { memory.deallocate(data, bytes, kind) };
        match stream {
            None => free(),
            // A stream that has failed frees all the same.
            Some(stream) => drop(stream.always(move |_| free())),
        }
    }

    fn can_copy(&self, source: &Place<'_, Self>, destination: &Place<'_, Self>) -> bool {
        spot(source).is_some() && spot(destination).is_some()
    }

    unsafe fn copy(
        &self,
        source: &Place<'_, Self>,
        destination: &Place<'_, Self>,
        bytes: u64,
        stream: Option<&Arc<Stream>>,
    ) -> Result<(), KernelError> {
        self.alive()?;
        let (Some(source), Some(destination)) = (spot(source), spot(destination)) else {
            return Err(KernelError::unimplemented(
                "device ZOO copies from and to the host and ZOO",
            ));
        };
        // SAFETY: the caller promises that both places are valid until the copy is done.
        let copy = move || unsafe { destination.write(&source.read(bytes as usize)?) };
        match stream {
            Some(stream) => self.enqueue(stream, Box::new(copy)),
            None => copy(),
        }
    }
}

impl DeviceStreams for ZooDevice {
    fn create_stream(&self) -> Result<Arc<Stream>, KernelError> {
        self.alive()?;
        let stream = Arc::new(Stream::new()?);
        let mut streams = self.streams();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        Ok(stream)
    }

    fn synchronize_stream(&self, stream: &Arc<Stream>) -> Result<(), KernelError> {
        stream.synchronize()?;
        self.alive()
    }

    fn notify(&self, stream: &Arc<Stream>, done: Notification) {
        match self.alive() {
            Ok(()) => stream.notify(done),
            Err(error) => done.run(error.code),
        }
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        self.drain()?;
        self.alive()
    }
}

impl DeviceEvents for ZooDevice {
    type Event = Event;

    fn create_event(&self) -> Result<Event, KernelError> {
        self.alive()?;
        Ok(Event::default())
    }

    fn record_event(&self, event: &Event, stream: &Arc<Stream>) -> Result<(), KernelError> {
        self.alive()?;
        event.record(stream)
    }

    fn wait_event(&self, stream: &Arc<Stream>, event: &Event) -> Result<(), KernelError> {
        self.alive()?;
        event.wait(stream)
    }

    fn query_event(&self, event: &Event) -> Result<bool, KernelError> {
        self.alive()?;
        event.query()
    }
}
