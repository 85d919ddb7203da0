use super::*;
use crate::{
    faults::Faults,
    test_support::{Stall, faulty},
};

fn accel(ordinal: u32, settings: &Settings) -> Accel {
    Accel::new(ordinal, settings, DeviceHandle::NONE).unwrap()
}

fn room(device: &Accel, bytes: u64) -> NonNull<c_void> {
    device.allocate(bytes, 64, MemoryKind::DEVICE, None).unwrap()
}

fn on<'a>(device: &'a Accel, data: NonNull<c_void>) -> Place<'a, Accel> {
    Place::on(device, data.as_ptr(), MemoryKind::DEVICE)
}

fn host<'a>(data: &mut [u8]) -> Place<'a, Accel> {
    Place::host(data.as_mut_ptr().cast())
}

#[test]
fn describes_itself() {
    let device = accel(3, &Settings { memory_limit: 512, streams: 2, ..Settings::default() });
    let info = device.info();
    info.validate().unwrap();
    assert_eq!((info.description.as_str(), info.stream_count), ("simulated accelerator 3", 2));
    assert_eq!(info.memory(MemoryKind::DEVICE).map(|memory| memory.limit), Some(512));
    assert!(info.memory(MemoryKind::HOST).is_none());
    assert!(Accel::new(16, &Settings::default(), DeviceHandle::NONE).is_err());
}

#[test]
fn copies_between_host_and_devices() {
    let (a, b) = (accel(0, &Settings::default()), accel(1, &Settings::default()));
    let (on_a, on_b) = (room(&a, 4), room(&b, 4));
    let (mut from, mut to) = (*b"tens", [0u8; 4]);
    // SAFETY: all places have 4 bytes and live to the end.
    unsafe {
        let stream = a.create_stream().unwrap();
        a.copy(&host(&mut from), &on(&a, on_a), 4, Some(&stream)).unwrap();
        a.copy(&on(&a, on_a), &on(&b, on_b), 4, Some(&stream)).unwrap();
        stream.synchronize().unwrap();
        b.copy(&on(&b, on_b), &host(&mut to), 4, None).unwrap();
    }
    assert_eq!(&to, b"tens");
}

#[test]
fn a_copy_is_enqueued() {
    let stall = Stall::default();
    stall.set(true);
    let device = accel(0, &stall.settings());
    let (stream, data) = (device.create_stream().unwrap(), room(&device, 2));
    let (mut from, mut to) = (*b"ab", [0u8; 2]);
    // SAFETY: both places have 2 bytes and live to the end.
    unsafe {
        device.copy(&host(&mut from), &on(&device, data), 2, Some(&stream)).unwrap();
        device.copy(&on(&device, data), &host(&mut to), 2, Some(&stream)).unwrap();
        // Freed after the copies, which therefore still find it.
        device.deallocate(data, 2, MemoryKind::DEVICE, Some(&stream));
    }
    assert_eq!(device.memory().used(), 2);
    stall.set(false);
    stream.synchronize().unwrap();
    assert_eq!((&to, device.memory().used()), (b"ab", 0));
}

#[test]
fn pairs_that_miss_the_device_are_refused() {
    let device = accel(0, &Settings::default());
    let data = room(&device, 1);
    let foreign =
        || Place { data: data.as_ptr(), memory: MemoryKind::DEVICE, owner: Owner::Foreign };
    let host = || host(&mut [0]);
    assert!(device.can_copy(&host(), &on(&device, data)));
    assert!(device.can_copy(&on(&device, data), &host()));
    for (from, to) in
        [(host(), host()), (foreign(), on(&device, data)), (on(&device, data), foreign())]
    {
        assert!(!device.can_copy(&from, &to));
        // SAFETY: the device refuses the copy before it touches memory.
        let error = unsafe { device.copy(&from, &to, 1, None) }.unwrap_err();
        assert_eq!(error.code, Code::UNIMPLEMENTED);
    }
    assert!(device.allocate(1, 1, MemoryKind::PINNED, None).is_err());
}

#[test]
fn a_copy_beyond_a_block_fails_on_its_stream() {
    let device = accel(0, &Settings::default());
    let (stream, data) = (device.create_stream().unwrap(), room(&device, 2));
    let mut from = [0u8; 3];
    // SAFETY: the device checks its own side; the host's has 3 bytes.
    unsafe { device.copy(&host(&mut from), &on(&device, data), 3, Some(&stream)) }.unwrap();
    let error = device.synchronize_stream(&stream).unwrap_err();
    assert_eq!(error.code, Code::INTERNAL);
    assert!(error.message.starts_with("copy: 3 bytes at handle 0xacce"), "{error}");
}

#[test]
fn an_empty_tensor_is_copied() {
    let device = accel(0, &Settings::default());
    let data = room(&device, 0);
    // SAFETY: the copy has no bytes.
    unsafe { device.copy(&Place::host(std::ptr::null_mut()), &on(&device, data), 0, None) }
        .unwrap();
}

#[test]
fn a_lost_device_gives_no_memory_and_takes_it_back() {
    let faults = Faults { lose_after_commands: 1, ..Faults::default() };
    let device = accel(0, &faulty(faults));
    let (stream, data) = (device.create_stream().unwrap(), room(&device, 1));
    stream.kernel("first", || Ok(())).unwrap();
    stream.kernel("second", || Ok(())).unwrap();
    assert_eq!(device.synchronize().unwrap_err().code, Code::UNAVAILABLE);
    let refused = [
        device.allocate(1, 1, MemoryKind::DEVICE, None).unwrap_err(),
        // SAFETY: the device refuses the copy before it touches memory.
        unsafe { device.copy(&host(&mut [0]), &on(&device, data), 1, Some(&stream)) }.unwrap_err(),
        device.create_stream().err().unwrap(),
        device.create_event().err().unwrap(),
    ];
    assert!(refused.iter().all(|error| error.code == Code::UNAVAILABLE));
    // SAFETY: the memory is freed once.
    unsafe { device.deallocate(data, 1, MemoryKind::DEVICE, Some(&stream)) };
    assert_eq!(device.memory().used(), 0);
}
