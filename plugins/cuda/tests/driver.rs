//! What the driver wants to be asked for, on the fake CUDA stack: access between GPUs, memory that it keeps for graphs,
//! errors that end a device.

mod support;

use std::sync::Arc;
use support::{Block, Turn, notify::farewell, open, settings, turn};
use tenon_cuda::Cuda;
use tenon_sdk::{
    Code,
    abi::MemoryKind,
    device::author::{DeviceCapture, DeviceEvents, DeviceMemory, DeviceStreams, Place},
};

const DEVICE: MemoryKind = MemoryKind::DEVICE;

fn count(log: &str, what: &str) -> usize {
    log.lines().filter(|line| line.contains(what)).count()
}

/// Copies from one device to the other and back, each on its destination's stream, a few times. The log of it.
fn copied(turn: &Turn, one: &Cuda, other: &Cuda) -> String {
    let bytes = 3000;
    let blocks = |device| Block::new(device, bytes, DEVICE).unwrap();
    let (a, b, c) = (blocks(one), blocks(other), blocks(one));
    let sent: Vec<u8> = (0..bytes as usize).map(|at| (at * 7 + 1) as u8).collect();
    turn.take_log();
    for _ in 0..3 {
        a.write(&sent, None).unwrap();
        // SAFETY: blocks of so many bytes that outlive the copies.
        unsafe { other.copy(&a.place(), &b.place(), bytes, None) }.unwrap();
        // SAFETY: as above.
        unsafe { one.copy(&b.place(), &c.place(), bytes, None) }.unwrap();
    }
    let mut found = vec![0; sent.len()];
    c.read(&mut found, None).unwrap();
    assert_eq!(found, sent);
    turn.take_log()
}

#[test]
fn gpus_that_reach_each_other_copy_directly_once_they_are_let() {
    let turn = turn();
    let (one, other) = (open(0, &settings()), open(1, &settings()));
    let log = copied(&turn, &one, &other);
    assert_eq!(count(&log, "pool_access device=0 reader=1 flags=3"), 1, "{log}");
    assert_eq!(count(&log, "pool_access device=1 reader=0 flags=3"), 1, "{log}");
    assert_eq!(count(&log, "direct=1"), 6, "{log}");
    let again = copied(&turn, &one, &other);
    assert_eq!(count(&again, "pool_access"), 0, "asked once: {again}");
    assert_eq!(count(&again, "direct=1"), 6, "{again}");
}

#[test]
fn gpus_that_do_not_reach_each_other_copy_by_the_host() {
    let turn = turn();
    turn.order("FAKE_CUDA_PEERS", "0");
    let (one, other) = (open(2, &settings()), open(3, &settings()));
    let log = copied(&turn, &one, &other);
    assert_eq!(count(&log, "pool_access"), 0, "{log}");
    assert_eq!((count(&log, "direct=0"), count(&log, "direct=1")), (6, 0), "{log}");
}

#[test]
fn access_that_the_driver_refuses_is_asked_for_once_and_copies_go_on() {
    let turn = turn();
    let (one, other) = (open(4, &settings()), open(5, &settings()));
    // Out of resources for one direction; the other is given.
    turn.order("FAKE_CUDA_FAIL", "cuMemPoolSetAccess:1:2");
    let log = copied(&turn, &one, &other);
    turn.take_back("FAKE_CUDA_FAIL");
    assert_eq!(count(&log, "pool_access device=4"), 0, "{log}");
    assert_eq!(count(&log, "pool_access device=5 reader=4"), 1, "{log}");
    // Device 5 copies from 4, which it does not reach; device 4 copies from 5.
    assert_eq!((count(&log, "direct=0"), count(&log, "direct=1")), (3, 3), "{log}");
}

#[test]
fn a_device_that_is_lost_when_access_is_asked_for_says_so() {
    let turn = turn();
    let (one, other) = (open(6, &settings()), open(7, &settings()));
    let (a, b) = (Block::new(&one, 64, DEVICE).unwrap(), Block::new(&other, 64, DEVICE).unwrap());
    turn.order("FAKE_CUDA_FAIL", "cuMemPoolSetAccess:1:719");
    // SAFETY: blocks of 64 bytes.
    let error = unsafe { other.copy(&a.place(), &b.place(), 64, None) }.unwrap_err();
    turn.take_back("FAKE_CUDA_FAIL");
    assert_eq!(error.code, Code::UNAVAILABLE);
    assert!(error.message.contains("CUDA:6 is lost"), "{}", error.message);
    b.write(&[1; 64], None).expect("the other one is not lost");
}

#[test]
fn memory_that_the_driver_keeps_for_graphs_is_given_back_before_there_is_none() {
    let turn = turn();
    turn.order("FAKE_CUDA_MEMORY", "1048576");
    let device = open(8, &settings());
    let block = Block::new(&device, 256, DEVICE).unwrap();
    let stream = device.create_stream().unwrap();
    device.begin_capture(&stream).unwrap();
    let scratch = device.allocate(700_000, 256, DEVICE, Some(&stream)).unwrap();
    // SAFETY: what was allocated on that stream.
    unsafe { device.deallocate(scratch, 700_000, DEVICE, Some(&stream)) };
    let recorded = device.end_capture(&stream).unwrap();
    device.launch_recorded(&recorded, &stream).unwrap();
    device.synchronize_stream(&stream).unwrap();
    drop(recorded);
    turn.take_log();
    let large = Block::new(&device, 800_000, DEVICE).expect("there is room without the graph's");
    let log = turn.take_log();
    assert_eq!(count(&log, "graph_trim device=8"), 1, "{log}");
    drop((large, block));
}

#[test]
fn every_error_that_the_driver_does_not_forget_loses_the_device() {
    let turn = turn();
    // Errors that cuda.h calls final, and that the list of the device's docs is easily short of.
    for (ordinal, result) in [(9, 226), (10, 721), (11, 810)] {
        let device = open(ordinal, &settings());
        let block = Block::new(&device, 64, DEVICE).unwrap();
        let stream = device.create_stream().unwrap();
        turn.order("FAKE_CUDA_FAIL_LATER", &format!("cuMemcpyHtoDAsync_v2:1:{result}"));
        block.write(&[1; 64], Some(&stream)).unwrap();
        let error = device.synchronize_stream(&stream).unwrap_err();
        turn.take_back("FAKE_CUDA_FAIL_LATER");
        assert_eq!(error.code, Code::UNAVAILABLE, "{result}: {}", error.message);
        let again = device.create_event().err().expect("it stays lost");
        assert!(again.message.contains(&format!("CUDA:{ordinal} is lost")), "{}", again.message);
    }
}

#[test]
fn a_device_that_a_call_lets_go_of_has_ended_what_it_carries_in_host_memory() {
    let turn = turn();
    let device = Arc::new(open(12, &settings()));
    let (first, second) = (device.create_stream().unwrap(), device.create_stream().unwrap());
    let (done, heard) = farewell(&device);
    turn.order("FAKE_CUDA_SLOW_NS", "30000000");
    // A stage of pinned memory, which goes back behind the copy; the driver's thread must not be the last to hold it.
    let block = device.allocate(4096, 256, DEVICE, None).unwrap();
    let bytes = [7u8; 4096];
    let source = Place::host(bytes.as_ptr().cast_mut().cast());
    let target = Place::on(&*device, block.as_ptr(), DEVICE);
    for _ in 0..4 {
        // SAFETY: a block and an array of so many bytes; the source is read during the call.
        unsafe { device.copy(&source, &target, 4096, Some(&second)) }.unwrap();
    }
    device.notify(&first, done);
    // SAFETY: behind its last use on that stream.
    unsafe { device.deallocate(block, 4096, DEVICE, Some(&second)) };
    turn.take_log();
    drop(device);
    assert_eq!(heard.recv(), Ok(Code::OK));
    drop((first, second));
    let log = turn.take_log();
    assert_eq!(count(&log, "called from a function given to cuLaunchHostFunc"), 0, "{log}");
    assert!(count(&log, "free_host") > 0, "stages are freed when the device is closed: {log}");
}
