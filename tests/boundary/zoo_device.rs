//! The device zoo through loaded libraries, in both languages: each clause of what a device gives.

use std::sync::{Arc, Mutex};
use tenon_abi::{DType, MemoryKind};
use tenon_framework::{
    Code, Shape, Tensor,
    device::base::{DeviceBase, LocalDevice},
    registry::RegistryEvent,
};
use tenon_host::{
    devices::{PluginDevice, copy_tensor},
    instance::{PreparedCall, call_once},
    memory::HostMemory,
};
use tenon_tests::{
    bench::{Bench, elements, floats, scalar},
    zoo::Language,
};

/// A tensor on a device, in memory of a kind.
fn on(device: &PluginDevice, kind: MemoryKind, values: &[f32]) -> Tensor {
    let memory = device.memory(kind).unwrap();
    copy_tensor(&floats(values), None, &memory, Some(device)).unwrap()
}

/// A tensor of a device, as the host sees it.
fn back(device: &PluginDevice, tensor: &Tensor) -> Vec<f32> {
    let memory: Arc<dyn tenon_framework::tensor::Memory> = HostMemory::shared().clone();
    elements(&copy_tensor(tensor, Some(device), &memory, None).unwrap())
}

#[test]
fn attributes() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let (first, second) = (bench.find(language, 0), bench.find(language, 1));
        for (ordinal, device) in [(0, &first), (1, &second)] {
            let info = device.info();
            assert_eq!(info.description, format!("zoo device {ordinal}"), "{language:?}");
            assert_eq!((info.numa_node, info.bus_id), (Some(ordinal), Some(ordinal + 1)));
            assert_eq!((info.streams, info.stream_count), (true, 2));
            assert!(info.own_pool && !info.host_memory);
            let kinds: Vec<MemoryKind> = info.memories.iter().map(|memory| memory.kind).collect();
            assert_eq!(kinds, [MemoryKind::DEVICE, MemoryKind::PINNED, MemoryKind::SHARED]);
            assert_eq!(info.memories[0].limit, 64 << 20);
        }
        assert_ne!(first.incarnation(), second.incarnation());
        let number = bench.plugins.registry().device_type(language.device_type()).unwrap().priority;
        assert_eq!(number, -1);
    }
}

#[test]
fn memory_kinds() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let device = bench.find(language, 0);
        for kind in [MemoryKind::DEVICE, MemoryKind::PINNED, MemoryKind::SHARED] {
            let tensor = on(&device, kind, &[1.0, 2.0]);
            assert_eq!(tensor.buffer().kind(), kind, "{language:?}");
            assert_eq!(tensor.is_on_host(), kind.is_host_address());
            assert_eq!(back(&device, &tensor), [1.0, 2.0], "{language:?}: {kind:?}");
        }
        let node = bench.node(&language.op("DeviceFacts"));
        let outputs = node.call(&[floats(&[1.0]), scalar(2i32)]).unwrap();
        // x on the device, n and the output in host memory; a device and a stream.
        assert_eq!(elements::<i64>(&outputs[0]), [1, 0, 0, 1, 1], "{language:?}");
    }
}

#[test]
fn other_kinds_of_memory_for_outputs() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let instance = bench.node(&language.op("DeviceKinds")).create().unwrap();
        let inputs = [floats(&[1.0, 2.0])];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        call.run().unwrap();
        let kinds: Vec<MemoryKind> = call.outputs().iter().map(|y| y.buffer().kind()).collect();
        assert_eq!(kinds, [MemoryKind::PINNED, MemoryKind::SHARED], "{language:?}");
        for output in call.host_outputs().unwrap() {
            assert_eq!(elements::<f32>(&output), [1.0, 2.0], "{language:?}");
        }
    }
}

#[test]
fn pool() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 1);
        let device = bench.find(language, 1);
        let memory = device.ordinary_memory();
        let shape = |n: i64| Shape::new(&[n]).unwrap();
        let live = || device.memory_stats(MemoryKind::DEVICE).unwrap().live_bytes;
        assert_eq!(live(), 0, "{language:?}");
        let tensor = Tensor::allocate(&memory, DType::UINT8, shape(1000)).unwrap();
        assert!(live() >= 1000);
        let error = Tensor::allocate(&memory, DType::UINT8, shape(65 << 20)).unwrap_err();
        assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{language:?}: {error}");
        drop(tensor);
        assert_eq!(live(), 0, "{language:?}: the host accounts for a pool of the device's own");
        // The pool gives what it got back: sixty times the whole memory.
        for _ in 0..60 {
            drop(Tensor::allocate(&memory, DType::UINT8, shape(60 << 20)).unwrap());
        }
    }
}

#[test]
fn kernels_are_enqueued() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let instance = bench.node(&language.op("DeviceScale")).create().unwrap();
        let inputs = [floats(&[1.0, -2.0]), scalar(3i32)];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        for _ in 0..20 {
            call.run().unwrap();
            assert_eq!(call.outputs()[0].buffer().kind(), MemoryKind::DEVICE);
            let outputs = call.host_outputs().unwrap();
            assert_eq!(elements::<f32>(&outputs[0]), [3.0, -6.0], "{language:?}");
        }
        let empty = [floats(&[]), scalar(3i32)];
        assert_eq!(
            elements::<f32>(&call_once(&instance, &empty, &bench.env).unwrap()[0]),
            [0f32; 0]
        );
        let error = call_once(&instance, &[floats(&[1.0]), no_ints()], &bench.env).unwrap_err();
        assert_eq!(error.code, Code::INVALID_ARGUMENT, "{language:?}: {error}");
    }
}

fn no_ints() -> Tensor {
    Tensor::from_slice::<i32>(&[0], &[]).unwrap()
}

#[test]
fn device_scratch() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let node = bench.node(&language.op("DeviceScratch"));
        for _ in 0..10 {
            let outputs = node.call(&[floats(&[1.0, 2.0, 3.0])]).unwrap();
            assert_eq!(elements::<f32>(&outputs[0]), [3.0, 2.0, 1.0], "{language:?}");
        }
    }
}

#[test]
fn events() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let device = bench.find(language, 0);
        let (first, second) = (device.create_stream().unwrap(), device.create_stream().unwrap());
        let event = device.create_event().unwrap();
        assert!(device.query_event(event).unwrap(), "{language:?}: never recorded, so it happened");
        device.record_event(event, first).unwrap();
        device.wait_event(second, event).unwrap();
        device.synchronize_stream(second).unwrap();
        assert!(device.query_event(event).unwrap(), "the second stream waited for it");
        device.synchronize().unwrap();
        // SAFETY: both streams are idle, nothing waits for the event, and no name is used again.
        unsafe {
            device.destroy_event(event);
            device.destroy_stream(first);
            device.destroy_stream(second);
        }
    }
}

#[test]
fn copies() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let (first, second) = (bench.find(language, 0), bench.find(language, 1));
        let there = on(&first, MemoryKind::DEVICE, &[1.0, 2.0]);
        let memory = second.ordinary_memory();
        let across = copy_tensor(&there, Some(&*first), &memory, Some(&*second)).unwrap();
        assert_eq!(back(&second, &across), [1.0, 2.0], "{language:?}: device to device");
    }
    // Devices of two plugins know nothing of each other: the host stages.
    let bench = Bench::with(Language::ALL.map(Language::device_zoo));
    let (rust, c) = (bench.find(Language::Rust, 0), bench.find(Language::C, 0));
    let there = on(&rust, MemoryKind::DEVICE, &[3.0, 4.0]);
    let across = copy_tensor(&there, Some(&*rust), &c.ordinary_memory(), Some(&*c)).unwrap();
    assert_eq!(back(&c, &across), [3.0, 4.0]);
}

#[test]
fn asynchronous_on_a_stream() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let instance = bench.node(&language.op("DeviceAsync")).create().unwrap();
        assert!(instance.is_async());
        let inputs = [floats(&[1.0, 2.5])];
        let mut call = PreparedCall::new(&instance, &inputs, &bench.env).unwrap();
        for _ in 0..20 {
            call.run().unwrap();
            let outputs = call.host_outputs().unwrap();
            assert_eq!(elements::<f32>(&outputs[0]), [2.0, 5.0], "{language:?}");
        }
    }
}

#[test]
fn first_error_of_a_stream() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let node = bench.node(&language.op("DeviceFailure"));
        let error = node.call(&[floats(&[1.0])]).unwrap_err();
        assert_eq!(error.code, Code::DATA_LOSS, "{language:?}: {error}");
        assert!(error.message.contains("zoo error on a stream"), "{error}");
        let scale = bench.node(&language.op("DeviceScale"));
        let outputs = scale.call(&[floats(&[1.0]), scalar(2i32)]).unwrap();
        assert_eq!(elements::<f32>(&outputs[0]), [2.0], "another stream goes on");
    }
}

#[test]
fn lost_device() {
    for language in Language::ALL {
        let bench = Bench::device_zoo(language, 0);
        let (device, other) = (bench.find(language, 0), bench.find(language, 1));
        let told = Arc::new(Mutex::new(Vec::new()));
        let (list, name) = (told.clone(), device.name().clone());
        let _subscription = bench.plugins.subscribe(move |event| {
            if let RegistryEvent::DeviceLost { device, reason } = event {
                list.lock().unwrap().push((device.clone(), reason.clone()));
            }
        });
        let mut node = bench.node(&language.op("DeviceLose"));
        if language == Language::Rust {
            node = node.attr("reason", "zoo device lost");
        }
        let scale = bench.node(&language.op("DeviceScale")).create().unwrap();
        let error = node.call(&[floats(&[1.0])]).unwrap_err();
        assert_eq!(error.code, Code::UNAVAILABLE, "{language:?}: {error}");
        assert_eq!(&*told.lock().unwrap(), &[(name, "zoo device lost".to_owned())]);
        assert_eq!(device.lost().as_deref(), Some("zoo device lost"));
        let error = call_once(&scale, &[floats(&[1.0]), scalar(2i32)], &bench.env).unwrap_err();
        assert_eq!(error.code, Code::UNAVAILABLE, "from then on: {error}");
        assert_eq!(device.create_stream().unwrap_err().code, Code::UNAVAILABLE);
        assert!(other.lost().is_none(), "{language:?}: the other device is there");
    }
}
