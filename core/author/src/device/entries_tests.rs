//! Devices driven through their tables, as a host drives them.

use super::*;
use crate::device::{
    DeviceEntries, DeviceEvents, DeviceMemory, DeviceStreams, NoStreams, Notification, Owner,
    Place, stream_of,
};
use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI32, Ordering},
    },
};
use tenon_abi::{CopyRequest, DeviceTable, MemoryKind, Notify, device_flags};

struct Plain;

impl DeviceKind for Plain {
    type Stream = NoStreams;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Err(KernelError::new(Code::NOT_FOUND, "nothing plugged in"))
    }

    fn open(ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Plain, KernelError> {
        match ordinal {
            0 => Ok(Plain),
            1 => Err(KernelError::new(Code::PERMISSION_DENIED, "in use")),
            _ => panic!("no such slot"),
        }
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { numa_node: Some(1), ..DeviceInfo::host("plain") }
    }
}

/// Memory and streams that only note how they were asked; everything may be ordered to panic.
struct Full {
    notes: Mutex<Vec<String>>,
    panics: bool,
}

struct Marker(Arc<AtomicI32>);

impl Drop for Marker {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

static DROPPED: Mutex<Option<Arc<AtomicI32>>> = Mutex::new(None);

impl Full {
    fn note(&self, what: String) {
        assert!(!self.panics, "ordered to panic");
        self.notes.lock().unwrap().push(what);
    }
}

impl DeviceKind for Full {
    type Stream = Marker;

    fn probe(_knobs: Knobs<'_>) -> Result<u32, KernelError> {
        Ok(2)
    }

    fn open(ordinal: u32, _handle: DeviceHandle, _knobs: Knobs<'_>) -> Result<Full, KernelError> {
        Ok(Full { notes: Mutex::new(Vec::new()), panics: ordinal == 1 })
    }

    fn info(&self) -> DeviceInfo {
        let memory = MemoryInfo { kind: MemoryKind::DEVICE, alignment: 256, limit: 9 };
        DeviceInfo { bus_id: Some(3), stream_count: 2, ..DeviceInfo::new("full", vec![memory]) }
    }
}

impl DeviceMemory for Full {
    fn allocate(
        &self,
        bytes: u64,
        align: u64,
        memory: MemoryKind,
        stream: Option<&Marker>,
    ) -> Result<NonNull<c_void>, KernelError> {
        self.note(format!("allocate {bytes} {align} {} {}", memory.0, stream.is_some()));
        Ok(NonNull::dangling())
    }

    unsafe fn deallocate(
        &self,
        _data: NonNull<c_void>,
        bytes: u64,
        memory: MemoryKind,
        stream: Option<&Marker>,
    ) {
        self.note(format!("deallocate {bytes} {} {}", memory.0, stream.is_some()));
    }

    fn can_copy(&self, source: &Place<'_, Full>, destination: &Place<'_, Full>) -> bool {
        let name = |place: &Place<'_, Full>| match place.owner {
            Owner::Host => "host",
            Owner::Device(device) if ptr::eq(device, self) => "self",
            Owner::Device(_) => "peer",
            Owner::Foreign => "foreign",
        };
        self.note(format!("{} to {}", name(source), name(destination)));
        true
    }

    unsafe fn copy(
        &self,
        _source: &Place<'_, Full>,
        _destination: &Place<'_, Full>,
        bytes: u64,
        _stream: Option<&Marker>,
    ) -> Result<(), KernelError> {
        self.note(format!("copy {bytes}"));
        Err(KernelError::new(Code::DATA_LOSS, "the cable is out"))
    }
}

impl DeviceStreams for Full {
    fn create_stream(&self) -> Result<Marker, KernelError> {
        Ok(Marker(Arc::clone(DROPPED.lock().unwrap().as_ref().unwrap())))
    }

    fn synchronize_stream(&self, _stream: &Marker) -> Result<(), KernelError> {
        self.note("synchronize_stream".to_owned());
        Ok(())
    }

    fn notify(&self, _stream: &Marker, done: Notification) {
        self.note("notify".to_owned());
        done.run(Code::OK);
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        self.note("synchronize".to_owned());
        Ok(())
    }
}

impl DeviceEvents for Full {
    type Event = u8;

    fn create_event(&self) -> Result<u8, KernelError> {
        Ok(7)
    }

    fn record_event(&self, event: &u8, _stream: &Marker) -> Result<(), KernelError> {
        self.note(format!("record {event}"));
        Err(KernelError::new(Code::ABORTED, "only the code reaches the host"))
    }

    fn wait_event(&self, _stream: &Marker, event: &u8) -> Result<(), KernelError> {
        self.note(format!("wait {event}"));
        Ok(())
    }

    fn query_event(&self, event: &u8) -> Result<bool, KernelError> {
        self.note(format!("query {event}"));
        Ok(false)
    }
}

crate::__registered!(RegisteredPlain: Plain);
crate::__registered!(RegisteredFull: Full);
const PLAIN: DeviceEntries = DeviceEntries::of::<RegisteredPlain>();
const FULL: DeviceEntries = DeviceEntries::of::<RegisteredFull>();

fn opened(
    entries: DeviceEntries,
    ordinal: u32,
) -> Result<(&'static DeviceTable, *mut DeviceState), Code> {
    let mut state = ptr::null_mut();
    // SAFETY: an entry with a place for the result; without a host, no code takes messages.
    let code = unsafe {
        let create = entries.create.unwrap();
        create(ptr::null(), ptr::null(), ordinal, ptr::null_mut(), &mut state, ptr::null_mut())
    };
    if code.is_ok() { Ok((entries.table, state)) } else { Err(code) }
}

fn close(table: &DeviceTable, state: *mut DeviceState) {
    // SAFETY: closed once.
    unsafe { table.destroy.unwrap()(state) }
}

fn info(table: &DeviceTable, state: *mut DeviceState) -> DeviceInfo {
    // SAFETY: a struct of pointers and numbers, which the entry fills.
    unsafe {
        let mut raw: DeviceAttributes = std::mem::zeroed();
        table.attributes.unwrap()(state, &mut raw);
        assert_eq!(raw.flags & device_flags::STREAMS != 0, table.create_stream.is_some());
        DeviceInfo::from_raw(&raw).unwrap()
    }
}

#[test]
fn a_minimal_device_leaves_null_what_it_does_not_have() {
    let (table, state) = opened(PLAIN, 0).unwrap();
    assert!(table.allocate.is_none() && table.copy.is_none() && table.can_copy.is_none());
    assert!(table.create_stream.is_none() && table.notify.is_none());
    assert!(table.query_event.is_none() && table.synchronize.is_none());
    let info = info(table, state);
    assert_eq!((info.description.as_str(), info.host_memory), ("plain", true));
    assert_eq!((info.numa_node, info.bus_id, info.stream_count), (Some(1), None, 1));
    assert_eq!(info.ordinary_memory(), MemoryKind::HOST);
    close(table, state);
}

#[test]
fn probing_and_opening_say_what_is_wrong() {
    let probe = |entries: DeviceEntries| {
        // SAFETY: an entry; without a host, no code takes messages.
        unsafe { entries.probe.unwrap()(ptr::null(), ptr::null(), ptr::null_mut()) }
    };
    assert_eq!(probe(PLAIN), 0);
    assert_eq!(probe(FULL), 2);
    assert_eq!(opened(PLAIN, 1).err(), Some(Code::PERMISSION_DENIED));
    assert_eq!(opened(PLAIN, 2).err(), Some(Code::INTERNAL), "a panic is an error");
}

#[test]
fn memory_and_copies_arrive_with_their_places() {
    let (table, state) = opened(FULL, 0).unwrap();
    let (_, peer) = opened(FULL, 0).unwrap();
    let (plain_table, plain) = opened(PLAIN, 0).unwrap();
    // SAFETY: entries with their device, places for results, and requests whose addresses no code follows.
    unsafe {
        let mut data = ptr::null_mut();
        let (kind, none) = (MemoryKind::DEVICE, ptr::null_mut());
        let entry = table.allocate.unwrap();
        assert_eq!(entry(state, 5, 64, kind, none, &mut data, ptr::null_mut()), Code::OK);
        assert!(!data.is_null());
        for (from, to) in [(ptr::null_mut(), state), (state, peer), (plain, state)] {
            let mut request: CopyRequest = std::mem::zeroed();
            (request.source_device, request.destination_device) = (from, to);
            assert_eq!(table.can_copy.unwrap()(state, &request), 1);
        }
        let mut request: CopyRequest = std::mem::zeroed();
        request.bytes = 3;
        let code = table.copy.unwrap()(state, &request, ptr::null_mut(), ptr::null_mut());
        assert_eq!(code, Code::DATA_LOSS);
        table.deallocate.unwrap()(state, data, 5, kind, none);
        table.deallocate.unwrap()(state, ptr::null_mut(), 6, kind, none);
        let notes = device_of::<Full>(state).notes.lock().unwrap().clone();
        assert_eq!(
            notes,
            [
                "allocate 5 64 1 false",
                "host to self",
                "self to peer",
                "foreign to self",
                "copy 3",
                "deallocate 5 1 false"
            ]
        );
    }
    let info = info(table, state);
    assert_eq!((info.memory(MemoryKind::DEVICE).unwrap().limit, info.stream_count), (9, 2));
    close(table, state);
    close(table, peer);
    close(plain_table, plain);
}

unsafe extern "C" fn keep(data: *mut c_void, code: Code) {
    // SAFETY: the list of the test, which waits for this.
    unsafe { (*data.cast::<Mutex<Vec<Code>>>()).lock().unwrap().push(code) }
}

#[test]
fn streams_and_events_go_to_and_fro_and_a_panic_still_notifies_once() {
    let dropped = Arc::new(AtomicI32::new(0));
    *DROPPED.lock().unwrap() = Some(Arc::clone(&dropped));
    let panicked = Code::INTERNAL;
    for (ordinal, told, recorded, queried) in
        [(0, Code::OK, Code::ABORTED, Code::PENDING), (1, panicked, panicked, panicked)]
    {
        let (table, state) = opened(FULL, ordinal).unwrap();
        let codes = Mutex::new(Vec::<Code>::new());
        let (mut stream, mut event) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: entries with their device, its stream and event; the list outlives the notification.
        unsafe {
            let sink = ptr::null_mut();
            assert_eq!(table.create_stream.unwrap()(state, &mut stream, sink), Code::OK);
            assert_eq!(table.create_event.unwrap()(state, &mut event, sink), Code::OK);
            let data = ptr::from_ref(&codes).cast_mut().cast();
            let notify = Notify { run: Some(keep) };
            assert_eq!(table.notify.unwrap()(state, stream, notify, data), Code::OK);
            assert_eq!(table.query_event.unwrap()(state, event), queried);
            assert_eq!(table.record_event.unwrap()(state, event, stream), recorded);
            assert_eq!(table.wait_event.unwrap()(state, stream, event), told);
            assert_eq!(table.synchronize_stream.unwrap()(state, stream, sink), told);
            assert_eq!(table.synchronize.unwrap()(state, sink), told);
            assert!(stream_of::<Full>(ptr::null_mut()).is_none());
            assert!(stream_of::<Full>(stream).is_some());
            table.destroy_event.unwrap()(state, event);
            table.destroy_stream.unwrap()(state, stream);
        }
        assert_eq!(*codes.lock().unwrap(), [told]);
        close(table, state);
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 2);
}

#[test]
fn a_pointer_of_a_closed_device_is_not_followed() {
    let (table, state) = opened(FULL, 0).unwrap();
    // SAFETY: the device is open.
    assert!(unsafe { find::<Full>(state) }.is_some());
    // SAFETY: as above; another type of device.
    assert!(unsafe { find::<Plain>(state) }.is_none());
    close(table, state);
    // SAFETY: the list alone is looked at.
    assert!(unsafe { find::<Full>(state) }.is_none());
}

#[test]
fn what_an_author_describes_wrongly_is_refused() {
    let memory = |kind, alignment| MemoryInfo { kind, alignment, limit: 0 };
    let host = MemoryKind::HOST;
    let refused = |info: DeviceInfo| info.validate().unwrap_err().message;
    assert!(refused(DeviceInfo::new("x", vec![])).contains("found none"));
    assert!(
        refused(DeviceInfo::new("x", vec![memory(MemoryKind::DEVICE, 3)])).contains("power of two")
    );
    let twice = vec![memory(host, 64), memory(host, 64)];
    assert!(
        refused(DeviceInfo { host_memory: true, ..DeviceInfo::new("x", twice) }).contains("twice")
    );
    assert!(refused(DeviceInfo::new("x", vec![memory(host, 64)])).contains("host_memory is false"));
    let none = DeviceInfo { stream_count: 0, ..DeviceInfo::host("x") };
    assert!(refused(none).contains("stream_count"));
    DeviceInfo::host("x").validate().unwrap();
}
