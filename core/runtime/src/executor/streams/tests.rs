use super::*;
use std::{ffi::c_void, ptr::NonNull, sync::Mutex};
use tenon_abi::{Code, Device, DeviceState, MemoryKind, Notify};
use tenon_framework::{
    device::{
        DeviceName,
        base::{DeviceBase, DeviceInfo, Location},
    },
    tensor::Memory,
};

/// A device that logs its calls. Streams and events are numbers from 1.
struct Scribe {
    name: DeviceName,
    info: DeviceInfo,
    log: Mutex<Vec<String>>,
    made: Mutex<usize>,
    /// The call that fails.
    refused: Option<&'static str>,
}

impl Scribe {
    fn new(refused: Option<&'static str>) -> Arc<Scribe> {
        let name = DeviceName::local("SCRIBE", 3);
        let info = DeviceInfo { streams: true, ..DeviceInfo::host("writes down") };
        let (log, made) = (Mutex::default(), Mutex::default());
        Arc::new(Scribe { name, info, log, made, refused })
    }

    fn note(&self, what: String) -> Result<(), KernelError> {
        let refused = self.refused.is_some_and(|refused| what == refused);
        self.log.lock().unwrap().push(what.clone());
        if refused { Err(KernelError::new(Code::ABORTED, what)) } else { Ok(()) }
    }

    fn make<T>(&self, what: &str) -> Result<NonNull<T>, KernelError> {
        let mut made = self.made.lock().unwrap();
        *made += 1;
        self.note(format!("make {what} {made}"))?;
        Ok(NonNull::new(std::ptr::without_provenance_mut(*made)).unwrap())
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

fn number<T>(raw: *mut T) -> usize {
    raw.addr()
}

impl DeviceBase for Scribe {
    fn name(&self) -> &DeviceName {
        &self.name
    }

    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn incarnation(&self) -> u64 {
        1
    }

    fn lost(&self) -> Option<Arc<str>> {
        None
    }

    fn as_local(&self) -> Option<&dyn LocalDevice> {
        Some(self)
    }
}

impl LocalDevice for Scribe {
    fn number(&self) -> u64 {
        1
    }

    fn memory(&self, _kind: MemoryKind) -> Option<Arc<dyn Memory>> {
        None
    }

    fn stream_memory(&self, _kind: MemoryKind, _stream: StreamId) -> Option<Arc<dyn Memory>> {
        None
    }

    fn as_raw(&self) -> *mut Device {
        std::ptr::null_mut()
    }

    fn state(&self) -> *mut DeviceState {
        std::ptr::null_mut()
    }

    fn create_stream(&self) -> Result<StreamId, KernelError> {
        // SAFETY: the number is never dereferenced.
        Ok(unsafe { StreamId::new(1, self.make("stream")?) })
    }

    unsafe fn destroy_stream(&self, stream: StreamId) {
        let _ = self.note(format!("destroy stream {}", number(stream.as_raw())));
    }

    fn synchronize_stream(&self, stream: StreamId) -> Result<(), KernelError> {
        self.note(format!("synchronize {}", number(stream.as_raw())))
    }

    unsafe fn notify(
        &self,
        _stream: StreamId,
        _notify: Notify,
        _data: *mut c_void,
    ) -> Result<(), KernelError> {
        Err(KernelError::unimplemented("not asked for here"))
    }

    fn create_event(&self) -> Result<EventId, KernelError> {
        // SAFETY: the number is never dereferenced.
        Ok(unsafe { EventId::new(1, self.make("event")?) })
    }

    unsafe fn destroy_event(&self, event: EventId) {
        let _ = self.note(format!("destroy event {}", number(event.as_raw())));
    }

    fn record_event(&self, event: EventId, stream: StreamId) -> Result<(), KernelError> {
        self.note(format!("record {} on {}", number(event.as_raw()), number(stream.as_raw())))
    }

    fn wait_event(&self, stream: StreamId, event: EventId) -> Result<(), KernelError> {
        self.note(format!("{} waits for {}", number(stream.as_raw()), number(event.as_raw())))
    }

    fn query_event(&self, _event: EventId) -> Result<bool, KernelError> {
        Ok(true)
    }

    fn can_copy(&self, _source: Location<'_>, _destination: Location<'_>) -> bool {
        false
    }

    unsafe fn copy(
        &self,
        _source: Location<'_>,
        _destination: Location<'_>,
        _bytes: u64,
        _stream: Option<StreamId>,
    ) -> Result<(), KernelError> {
        Err(KernelError::unimplemented("not asked for here"))
    }

    fn synchronize(&self) -> Result<(), KernelError> {
        Ok(())
    }
}

fn streams(device: &Arc<Scribe>, streams: u32, events: u32) -> Result<StepStreams, KernelError> {
    let device: Arc<dyn LocalDevice> = Arc::<Scribe>::clone(device);
    StepStreams::make(&device, streams, events)
}

#[test]
fn streams_and_events_are_made_once_and_a_stream_is_told_once_in_a_step() {
    let device = Scribe::new(None);
    let made = streams(&device, 2, 1).unwrap();
    assert_eq!(device.log(), ["make stream 1", "make stream 2", "make event 3"]);
    for _ in 0..3 {
        made.begin();
        made.record(0, 1).unwrap();
        made.wait(0, 0).unwrap();
        made.wait(0, 0).unwrap();
        made.synchronise().unwrap();
        let step = ["record 3 on 2", "1 waits for 3", "synchronize 1", "synchronize 2"];
        assert_eq!(device.log(), step);
    }
    drop(made);
    let end = ["synchronize 1", "synchronize 2", "destroy event 3"];
    assert_eq!(device.log(), [&end[..], &["destroy stream 1", "destroy stream 2"]].concat());
}

#[test]
fn what_was_made_goes_back_when_more_cannot_be_made() {
    let device = Scribe::new(Some("make event 4"));
    let error = streams(&device, 2, 3).err().expect("the second event is refused");
    assert_eq!(error.code, Code::ABORTED);
    let log = device.log();
    let gone: Vec<&str> = log.iter().filter_map(|line| line.strip_prefix("destroy ")).collect();
    assert_eq!(gone, ["event 3", "stream 1", "stream 2"]);
}

/// A stream whose wait failed must not count as told.
#[test]
fn a_wait_that_is_refused_is_asked_for_again() {
    let device = Scribe::new(Some("2 waits for 3"));
    let made = streams(&device, 2, 1).unwrap();
    made.begin();
    made.record(0, 0).unwrap();
    assert!(made.wait(1, 0).is_err() && made.wait(1, 0).is_err());
    let asked = device.log().iter().filter(|line| *line == "2 waits for 3").count();
    assert_eq!(asked, 2);
}

#[test]
fn all_streams_are_waited_for_also_behind_one_that_failed() {
    let device = Scribe::new(Some("synchronize 1"));
    let made = streams(&device, 3, 0).unwrap();
    let error = made.synchronise().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::ABORTED, "synchronize 1"));
    assert_eq!(device.log()[3..], ["synchronize 1", "synchronize 2", "synchronize 3"]);
}
