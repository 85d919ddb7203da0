//! Devices: opened, lost, copied between.

use super::*;
use crate::testing::{Bench, FAKE, FAKE_LIMIT, Fake, LOOSE};
use std::sync::{Arc, Mutex, atomic::Ordering};
use tenon_abi::MemoryKind;
use tenon_framework::{
    Code, DType, Shape, Tensor,
    device::{
        DeviceName,
        base::{DeviceBase, LocalDevice},
    },
    registry::RegistryEvent,
    tensor::host_memory,
};

fn fake(bench: &Bench, id: u32) -> Arc<PluginDevice> {
    bench.devices.find(&DeviceName::local(FAKE, id)).unwrap()
}

fn inner(device: &PluginDevice) -> &Fake {
    // SAFETY: an open device of this type, linked into this library.
    unsafe { tenon_author::device::device_of::<Fake>(device.state()) }
}

fn on(device: &PluginDevice, values: &[f32]) -> Tensor {
    let tensor = Tensor::from_slice(&[values.len() as i64], values).unwrap();
    copy_tensor(&tensor, None, &device.ordinary_memory(), Some(device)).unwrap()
}

#[test]
fn devices_are_opened_named_and_numbered_and_what_is_absent_has_a_reason() {
    let bench = Bench::host();
    let names: Vec<String> =
        bench.devices.devices().iter().map(|device| device.full_name().to_owned()).collect();
    let prefix = "/job:localhost/replica:0/task:0/device";
    for expected in [format!("{prefix}:FAKE:0"), format!("{prefix}:FAKE:1")] {
        assert!(names.contains(&expected), "{names:?}");
    }
    let (first, second) = (fake(&bench, 0), fake(&bench, 1));
    assert!(first.incarnation() != 0 && first.incarnation() != second.incarnation());
    assert!(first.number() != 0 && first.number() != second.number());
    assert_eq!(second.info().description, "fake 1");
    let absent = bench.devices.absent();
    let nowhere = absent.iter().find(|absent| absent.device_type == "NOWHERE").unwrap();
    assert_eq!(nowhere.reason, "no driver on this machine");
    let partial = DeviceName::parse("/device:FAKE:*").unwrap();
    assert_eq!(bench.devices.find(&partial).unwrap().number(), first.number());
    // SAFETY: the record of an open device.
    let found = unsafe { device_of(first.as_raw()) }.unwrap();
    assert_eq!(found.number(), first.number());
}

#[test]
fn memory_is_pooled_and_accounted_and_goes_back() {
    let bench = Bench::host();
    let device = fake(&bench, 0);
    let memory = device.ordinary_memory();
    let shape = Shape::new(&[1000]).unwrap();
    let first = Tensor::allocate(&memory, DType::FLOAT, shape).unwrap();
    let handle = first.buffer().data();
    let stats = || device.memory_stats(MemoryKind::DEVICE).unwrap();
    assert_eq!((stats().live_bytes, stats().live_count), (4000, 1));
    assert_eq!(stats().limit_bytes, FAKE_LIMIT);
    drop(first);
    assert_eq!((stats().live_bytes, stats().peak_bytes), (0, 4000));
    let again = Tensor::allocate(&memory, DType::FLOAT, shape).unwrap();
    assert_eq!(again.buffer().data(), handle, "the block is used again");
    assert_eq!(inner(&device).log.allocations.load(Ordering::Relaxed), 1);
    drop(again);
    device.trim();
    assert_eq!(inner(&device).log.deallocations.load(Ordering::Relaxed), 1);
    assert_eq!(stats().cached_bytes, 0);
}

#[test]
fn what_is_cached_makes_room_and_beyond_that_the_error_has_the_figures() {
    let bench = Bench::host();
    let device = fake(&bench, 0);
    let memory = device.ordinary_memory();
    let allocate =
        |bytes: i64| Tensor::allocate(&memory, DType::UINT8, Shape::new(&[bytes]).unwrap());
    // 640 KiB come back to the lists; 700 KiB only fit when they are freed.
    drop(allocate(640 << 10).unwrap());
    let held = allocate(700 << 10).unwrap();
    let error = allocate(400 << 10).unwrap_err();
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED);
    let text = error.to_string();
    let name = "device memory of /job:localhost/replica:0/task:0/device:FAKE:0";
    let figures = "asked for 409600 bytes, 716800 are in use, the limit is 1048576";
    assert!(text.starts_with(name) && text.contains(figures), "{text}");
    drop(held);
    assert_eq!(device.memory_stats(MemoryKind::DEVICE).unwrap().live_count, 0);
}

#[test]
fn copies_go_direct_where_a_device_takes_them_and_else_through_the_host() {
    let bench = Bench::host();
    let (first, second) = (fake(&bench, 0), fake(&bench, 1));
    let tensor = on(&first, &[1.0, 2.0, 3.0]);
    assert!(!tensor.is_on_host());
    let empty = on(&second, &[0.0]);
    let (from, to) =
        (location(tensor.buffer(), Some(&*first)), location(empty.buffer(), Some(&*second)));
    assert_eq!(route(from, to).unwrap(), Route::Staged);
    assert_eq!(route(from, from).unwrap(), Route::Source);
    let before = inner(&first).log.copies.load(Ordering::Relaxed);
    let other =
        copy_tensor(&tensor, Some(&*first), &second.ordinary_memory(), Some(&*second)).unwrap();
    assert_eq!(inner(&first).log.copies.load(Ordering::Relaxed), before + 1);
    assert_eq!(inner(&second).log.copies.load(Ordering::Relaxed), 2);
    let back = copy_tensor(&other, Some(&*second), host_memory(), None).unwrap();
    assert_eq!(back.as_slice::<f32>().unwrap(), &[1.0, 2.0, 3.0]);
    let host = location(back.buffer(), None);
    assert_eq!(route(host, host).unwrap(), Route::Host);
    assert_eq!(route(host, to).unwrap(), Route::Destination);
    let loose = bench.devices.find(&DeviceName::local(LOOSE, 0)).unwrap();
    assert_eq!(loose.ordinary_memory().kind(), MemoryKind::HOST);
    assert_eq!(loose.ordinary_memory().device(), 0);
}

#[test]
fn a_lost_device_fails_everything_with_the_same_error_and_is_told_once() {
    let bench = Bench::host();
    let device = fake(&bench, 0);
    let told = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&told);
    let _subscription =
        bench.plugins.subscribe(move |event| seen.lock().unwrap().push(event.clone()));
    let tensor = on(&device, &[1.0]);
    let stream = device.create_stream().unwrap();
    inner(&device).lose("the cable fell out");
    inner(&device).lose("a second reason");
    let name = DeviceName::local(FAKE, 0);
    let event =
        RegistryEvent::DeviceLost { device: name.clone(), reason: "the cable fell out".into() };
    assert_eq!(*told.lock().unwrap(), [event]);
    assert_eq!(device.lost().as_deref(), Some("the cable fell out"));
    let expected = format!("{name} is lost: the cable fell out");
    let memory = device.ordinary_memory();
    let waited = inner(&device).log.synchronised.load(Ordering::Relaxed);
    let errors = [
        memory.allocate(8).unwrap_err(),
        device.create_stream().unwrap_err(),
        device.synchronize_stream(stream).unwrap_err(),
        device.synchronize().unwrap_err(),
        copy_tensor(&tensor, Some(&*device), host_memory(), None).unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.code, &error.message), (Code::UNAVAILABLE, &expected));
    }
    let waits = inner(&device).log.synchronised.load(Ordering::Relaxed) - waited;
    assert_eq!(waits, 1, "what runs on a stream is waited for, though the device is lost");
    // SAFETY: nothing is enqueued on it.
    unsafe { device.destroy_stream(stream) };
    drop(tensor);
    assert_eq!(device.memory_stats(MemoryKind::DEVICE).unwrap().live_count, 0);
    let on_lost = Bench { device: Some(device), ..bench };
    let error = on_lost.instance("HostTestDouble", &[]).unwrap_err();
    assert_eq!((error.code, &error.message), (Code::UNAVAILABLE, &expected));
}

#[test]
fn streams_and_events_of_others_are_refused() {
    let bench = Bench::host();
    let (first, second) = (fake(&bench, 0), fake(&bench, 1));
    let stream = first.create_stream().unwrap();
    let error = second.synchronize_stream(stream).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
    assert!(second.stream_memory(MemoryKind::DEVICE, stream).is_none());
    let memory = first.stream_memory(MemoryKind::DEVICE, stream).unwrap();
    drop(Tensor::allocate(&memory, DType::FLOAT, Shape::new(&[4]).unwrap()).unwrap());
    assert_eq!(first.memory_stats(MemoryKind::DEVICE).unwrap().live_count, 0);
    // SAFETY: nothing is enqueued on it, and it is not used again.
    unsafe { first.destroy_stream(stream) };
    let loose = bench.devices.find(&DeviceName::local(LOOSE, 0)).unwrap();
    assert_eq!(loose.create_stream().unwrap_err().code, Code::UNIMPLEMENTED);
    loose.synchronize().unwrap();
}

#[test]
fn a_buffer_keeps_its_device_open() {
    let bench = Bench::host();
    let tensor = on(&fake(&bench, 0), &[5.0]);
    let memory = Arc::clone(tensor.buffer().memory());
    drop(bench);
    // The plugin's state is still there: giving the block back reaches it.
    assert!(memory.allocate(16).is_ok_and(|data| {
        // SAFETY: allocated just now, with the same size.
        unsafe { memory.deallocate(data, 16) };
        true
    }));
    drop(tensor);
}
