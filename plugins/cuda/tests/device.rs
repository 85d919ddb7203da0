//! The device on the fake CUDA stack: memory, copies, streams, events, notifications, recordings, loss.

mod support;

use std::sync::Arc;
use support::{
    Block,
    notify::{farewell, notification},
    open, settings, shared_turn, turn,
};
use tenon_cuda::{Settings, compile::Variant, kernels, launch::Grid};
use tenon_sdk::{
    Code,
    abi::MemoryKind,
    device::author::{
        DeviceCapture, DeviceEvents, DeviceKind, DeviceMemory, DeviceStreams, DeviceTimers, Place,
    },
};

const DEVICE: MemoryKind = MemoryKind::DEVICE;

fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + seed * 17 + 5) as u8).collect()
}

#[test]
fn a_device_says_what_it_is() {
    let _turn = shared_turn();
    let device = open(0, &settings());
    let info = device.info();
    info.validate().unwrap();
    assert!(
        info.own_pool && info.memory(DEVICE).is_some() && info.memory(MemoryKind::PINNED).is_some()
    );
    assert!(info.description.contains("compute capability 9.0"), "{}", info.description);
}

#[test]
fn memory_of_a_few_bytes_or_none_and_no_stranger_alignment() {
    let _turn = shared_turn();
    let device = open(1, &settings());
    let blocks: Vec<Block<'_>> = [0, 1, 5, 4096, 1 << 20]
        .into_iter()
        .map(|bytes| Block::new(&device, bytes, DEVICE).unwrap())
        .collect();
    assert!(blocks.iter().all(|block| block.address().is_multiple_of(256)));
    let error = device.allocate(16, 1 << 20, DEVICE, None).unwrap_err();
    assert!(error.message.contains("asked for 1048576"), "{}", error.message);
    let error = device.allocate(16, 16, MemoryKind::SHARED, None).unwrap_err();
    assert_eq!(error.code, Code::INVALID_ARGUMENT);
}

#[test]
fn memory_that_is_not_there_is_told_in_figures_and_poisons_nothing() {
    let turn = turn();
    let device = open(2, &settings());
    turn.order("FAKE_CUDA_MEMORY", "1048576");
    let error = device.allocate(4 << 20, 64, DEVICE, None).unwrap_err();
    assert_eq!(error.code, Code::RESOURCE_EXHAUSTED);
    for part in ["asked for 4194304 bytes", "in use by this device's pool", "of the GPU are free"] {
        assert!(error.message.contains(part), "expected '{part}' in: {}", error.message);
    }
    let small = Block::new(&device, 4096, DEVICE).unwrap();
    small.write(&pattern(4096, 1), None).unwrap();
}

#[test]
fn copies_arrive_by_a_stage_by_pinned_memory_and_by_the_driver() {
    let _turn = shared_turn();
    // Beyond `pinned_limit` nothing is staged.
    for (ordinal, pinned_limit) in [(3, 1 << 20), (4, 1000)] {
        let device = open(ordinal, &Settings { pinned_limit, ..settings() });
        let (a, b) = (Block::new(&device, 5000, DEVICE), Block::new(&device, 5000, DEVICE));
        let (a, b) = (a.unwrap(), b.unwrap());
        let stream = device.create_stream().unwrap();
        let (sent, mut found) = (pattern(5000, ordinal as usize), vec![0; 5000]);
        a.write(&sent, Some(&stream)).unwrap();
        // SAFETY: blocks of 5000 bytes that live until the stream is done.
        unsafe { device.copy(&a.place(), &b.place(), 5000, Some(&stream)) }.unwrap();
        b.read(&mut found, Some(&stream)).unwrap();
        device.synchronize_stream(&stream).unwrap();
        assert_eq!(found, sent, "pinned_limit {pinned_limit}");
        let pinned = Block::new(&device, 5000, MemoryKind::PINNED).unwrap();
        // SAFETY: as above.
        unsafe { device.copy(&b.place(), &pinned.place(), 5000, None) }.unwrap();
        // SAFETY: as above.
        unsafe { device.copy(&pinned.place(), &a.place(), 5000, None) }.unwrap();
        found.fill(0);
        a.read(&mut found, None).unwrap();
        assert_eq!(found, sent, "through pinned memory");
        a.write(&[], Some(&stream)).unwrap();
        device.destroy_stream(stream);
    }
}

#[test]
fn two_devices_copy_to_each_other_and_the_host_alone_is_refused() {
    let _turn = shared_turn();
    let (one, two) = (open(5, &settings()), open(6, &settings()));
    let (a, b) = (Block::new(&one, 3000, DEVICE).unwrap(), Block::new(&two, 3000, DEVICE).unwrap());
    let (sent, mut found) = (pattern(3000, 9), vec![0; 3000]);
    a.write(&sent, None).unwrap();
    assert!(two.can_copy(&a.place(), &b.place()));
    // SAFETY: blocks of 3000 bytes.
    unsafe { two.copy(&a.place(), &b.place(), 3000, None) }.unwrap();
    b.read(&mut found, None).unwrap();
    assert_eq!(found, sent);
    let host = Place::host(found.as_mut_ptr().cast());
    assert!(!one.can_copy(&host, &host));
}

#[test]
fn streams_wait_for_events_and_for_nothing_foreign() {
    let _turn = shared_turn();
    let (device, other) = (open(7, &settings()), open(8, &settings()));
    let block = Block::new(&device, 1 << 20, DEVICE).unwrap();
    let (first, second) = (device.create_stream().unwrap(), device.create_stream().unwrap());
    let event = device.create_event().unwrap();
    assert!(device.query_event(&event).unwrap(), "never recorded counts as happened");
    let (sent, mut found) = (pattern(1 << 20, 3), vec![0; 1 << 20]);
    block.write(&sent, Some(&first)).unwrap();
    device.record_event(&event, &first).unwrap();
    device.wait_event(&second, &event).unwrap();
    block.read(&mut found, Some(&second)).unwrap();
    device.synchronize_stream(&second).unwrap();
    assert_eq!(found, sent);
    assert!(device.query_event(&event).unwrap());
    let foreign = other.create_stream().unwrap();
    for error in [
        device.record_event(&event, &foreign).unwrap_err(),
        other.wait_event(&foreign, &event).unwrap_err(),
    ] {
        assert_eq!(error.code, Code::INVALID_ARGUMENT);
        assert!(error.message.contains("of another device"), "{}", error.message);
    }
    let (one, two) = (device.create_timer().unwrap(), device.create_timer().unwrap());
    device.record_event(&one, &first).unwrap();
    device.record_event(&two, &first).unwrap();
    device.synchronize_stream(&first).unwrap();
    device.elapsed_ns(&one, &two).unwrap();
}

#[test]
fn a_device_that_is_closed_has_first_made_every_call_that_it_owes() {
    let turn = turn();
    let device = open(14, &settings());
    let stream = device.create_stream().unwrap();
    turn.order("FAKE_CUDA_SLOW_NS", "50000000");
    let heard: Vec<_> = (0..3)
        .map(|_| {
            let (done, heard) = notification();
            device.notify(&stream, done);
            heard
        })
        .collect();
    device.destroy_stream(stream);
    drop(device);
    for heard in heard {
        assert_eq!(heard.try_recv(), Ok(Code::OK));
    }
}

#[test]
fn a_call_may_let_go_of_the_device_last() {
    let turn = turn();
    let device = Arc::new(open(15, &settings()));
    let stream = device.create_stream().unwrap();
    turn.order("FAKE_CUDA_SLOW_NS", "50000000");
    let (done, heard) = farewell(&device);
    device.notify(&stream, done);
    drop(device);
    assert_eq!(heard.recv(), Ok(Code::OK));
}

#[test]
fn a_lost_device_says_so_settles_what_it_owes_and_leaves_others_alone() {
    let turn = turn();
    let (lost, other) = (open(9, &settings()), open(10, &settings()));
    let stream = lost.create_stream().unwrap();
    let (done, heard) = notification();
    lost.notify(&stream, done);
    assert_eq!(heard.recv(), Ok(Code::OK));
    let block = Block::new(&lost, 64, DEVICE).unwrap();
    turn.order("FAKE_CUDA_FAIL_LATER", "cuMemcpyHtoDAsync_v2:1:700");
    block.write(&[1; 64], Some(&stream)).unwrap();
    let (done, heard) = notification();
    lost.notify(&stream, done);
    // Nobody calls the device: its own thread finds out.
    assert_eq!(heard.recv(), Ok(Code::UNAVAILABLE));
    turn.take_back("FAKE_CUDA_FAIL_LATER");
    for error in [
        lost.synchronize_stream(&stream).unwrap_err(),
        lost.create_event().err().unwrap(),
        lost.allocate(64, 64, DEVICE, None).unwrap_err(),
    ] {
        assert_eq!(error.code, Code::UNAVAILABLE);
        assert!(error.message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{}", error.message);
    }
    let (sent, mut found) = (pattern(64, 2), vec![0; 64]);
    let good = Block::new(&other, 64, DEVICE).unwrap();
    good.write(&sent, None).unwrap();
    good.read(&mut found, None).unwrap();
    assert_eq!(found, sent);
}

fn fill() -> Variant {
    let mut all = kernels::variants().into_iter();
    all.find(|it| it.to_string() == "fill.cu T=u32").expect("fill is one of the sources")
}

#[test]
fn a_kernel_that_writes_where_it_may_not_loses_the_device() {
    let _turn = shared_turn();
    let (lost, other) = (open(16, &settings()), open(17, &settings()));
    let stream = lost.create_stream().unwrap();
    let module = lost.modules().get(&fill()).unwrap();
    // SAFETY: `fill_constant` takes an address, an element and a count.
    let entry = unsafe { module.entry::<(u64, u32, u64)>("fill_constant") }.unwrap();
    // SAFETY: none: nothing lies at 4096, and the fake driver finds out.
    unsafe { entry.launch(&stream, Grid::stride(1, lost.facts()), (4096, 1, 1)) }.unwrap();
    let error = lost.synchronize_stream(&stream).unwrap_err();
    let again = lost.create_stream().err().unwrap();
    for error in [error, again] {
        assert_eq!(error.code, Code::UNAVAILABLE, "{}", error.message);
        assert!(error.message.contains("CUDA:16 is lost"), "{}", error.message);
        assert!(error.message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{}", error.message);
    }
    let stream = other.create_stream().unwrap();
    let module = other.modules().get(&fill()).unwrap();
    let y = Block::new(&other, 4, DEVICE).unwrap();
    // SAFETY: as above, and the block has one element.
    unsafe {
        let entry = module.entry::<(u64, u32, u64)>("fill_constant").unwrap();
        entry.launch(&stream, Grid::stride(1, other.facts()), (y.address(), 7, 1)).unwrap();
    }
    let mut found = [0; 4];
    y.read(&mut found, Some(&stream)).unwrap();
    other.synchronize_stream(&stream).unwrap();
    assert_eq!(found, [7, 0, 0, 0]);
}

#[test]
fn what_is_recorded_runs_again_with_what_is_in_the_buffers_then() {
    let _turn = shared_turn();
    let device = open(11, &settings());
    let (a, b) =
        (Block::new(&device, 256, DEVICE).unwrap(), Block::new(&device, 256, DEVICE).unwrap());
    let stream = device.create_stream().unwrap();
    device.begin_capture(&stream).unwrap();
    // SAFETY: blocks of 256 bytes that outlive the recording.
    unsafe { device.copy(&a.place(), &b.place(), 256, Some(&stream)) }.unwrap();
    let recorded = device.end_capture(&stream).unwrap();
    for seed in 1..4 {
        let (sent, mut found) = (pattern(256, seed), vec![0; 256]);
        a.write(&sent, None).unwrap();
        device.launch_recorded(&recorded, &stream).unwrap();
        device.synchronize_stream(&stream).unwrap();
        b.read(&mut found, None).unwrap();
        assert_eq!(found, sent);
    }
}

#[test]
fn a_copy_that_needs_the_host_ends_a_recording_and_the_stream_goes_on() {
    let _turn = shared_turn();
    let device = open(12, &settings());
    let block = Block::new(&device, 256, DEVICE).unwrap();
    let stream = device.create_stream().unwrap();
    let sent = pattern(256, 7);
    device.begin_capture(&stream).unwrap();
    let error = block.write(&sent, Some(&stream)).unwrap_err();
    assert!(error.message.contains("records"), "{}", error.message);
    // Nothing of it was recorded; what there is may be thrown away.
    let _ = device.end_capture(&stream);
    block.write(&sent, Some(&stream)).unwrap();
    device.synchronize_stream(&stream).unwrap();
    let mut found = vec![0; 256];
    block.read(&mut found, None).unwrap();
    assert_eq!(found, sent);
}

#[test]
fn a_kernel_is_compiled_loaded_and_launched_and_one_that_is_not_there_is_named() {
    let _turn = shared_turn();
    let device = open(13, &settings());
    let stream = device.create_stream().unwrap();
    let variant = fill();
    let module = device.modules().get(&variant).unwrap();
    let y = Block::new(&device, 4 * 1000, DEVICE).unwrap();
    // SAFETY: `fill_constant` takes an address, an element and a count.
    let entry = unsafe { module.entry::<(u64, u32, u64)>("fill_constant") }.unwrap();
    let grid = Grid::stride(250, device.facts());
    // SAFETY: the block has 1000 elements.
    unsafe { entry.launch(&stream, grid, (y.address(), 0x0102_0304, 1000)) }.unwrap();
    let mut found = vec![0; 4000];
    y.read(&mut found, Some(&stream)).unwrap();
    device.synchronize_stream(&stream).unwrap();
    assert!(found.chunks(4).all(|word| word == [4, 3, 2, 1]));
    // SAFETY: it is not launched.
    let error = unsafe { module.entry::<(u64,)>("no_such") }.err().unwrap();
    assert!(error.message.contains("has no entry 'no_such'"), "{}", error.message);
    let error = device.modules().get(&variant.define("T", "no_type")).err().unwrap();
    assert!(error.message.contains("cannot compile fill.cu"), "{}", error.message);
    assert!(error.message.contains("no_type"), "{}", error.message);
}
