//! Pinned host memory: feeds that the device copies by itself, and results that it writes there.

use tenon_abi::MemoryKind;
use tenon_graph::{GraphBuilder, GraphError};
use tenon_runtime::{
    Runtime, Session,
    framework::{Code, DType, PartialShape, Tensor, device::base::LocalDevice},
};
use tenon_tests::{
    cuda::{cuda_runtime, take_log},
    session::{floats, run, session, session_as_written, turn, values},
};

const CUDA: &str = "/device:CUDA:0";
const SECOND: &str = "/device:CUDA:1";
const CPU: &str = "/device:CPU:0";
const LENGTH: usize = 6000;

fn numbers(seed: usize) -> Tensor {
    floats(&(0..LENGTH).map(|at| ((at * 37 + seed) % 101) as f32 - 50.0).collect::<Vec<f32>>())
}

fn shape() -> PartialShape {
    PartialShape::new(&[LENGTH as i64]).expect("a shape")
}

/// `y = x^2` on a device, and `z = -x` on the CPU.
fn graph(device: &'static str) -> impl Fn(&mut GraphBuilder<'_>) -> Result<(), GraphError> {
    move |b| {
        let x = b.placeholder("x", DType::FLOAT, shape())?;
        b.op("Square").name("y").input(x).device(device).build()?;
        b.op("Neg").name("z").input(x).device(CPU).build().map(|_| ())
    }
}

fn start(limit: &str) -> Runtime {
    cuda_runtime(&[("runtime.record_after", "-1"), ("cuda.pinned_limit", limit)])
}

#[track_caller]
fn step(session: &Session, x: &Tensor) -> Vec<Tensor> {
    let found = run(session, &[("x", x.clone())], &["y", "z"]).expect("the step runs");
    let x = values(x);
    assert_eq!(values(&found[0]), x.iter().map(|x| x * x).collect::<Vec<f32>>());
    assert_eq!(values(&found[1]), x.iter().map(|x| -x).collect::<Vec<f32>>());
    found
}

fn count(log: &str, what: &str) -> usize {
    log.lines().filter(|line| line.starts_with(what)).count()
}

#[test]
fn a_pinned_feed_is_copied_by_the_device_and_taken_by_the_cpu_too() {
    let _turn = turn();
    let runtime = start("1048576");
    let session = session_as_written(&runtime, graph(CUDA));
    take_log();
    step(&session, &numbers(1));
    let log = take_log();
    // Behind the copy from a stage, which goes back, and behind the result.
    assert_eq!((count(&log, "copy kind=htod"), count(&log, "host_function")), (1, 2), "{log}");
    let pinned = runtime.pinned(&numbers(2)).expect("CUDA has pinned memory");
    assert!(pinned.is_on_host() && pinned.buffer().kind() == MemoryKind::PINNED);
    take_log();
    step(&session, &pinned);
    let log = take_log();
    assert_eq!((count(&log, "copy kind=htod"), count(&log, "host_function")), (1, 1), "{log}");
}

#[test]
fn results_are_written_to_pinned_memory_as_long_as_there_is_some() {
    let _turn = turn();
    let runtime = start("65536");
    let session = session(&runtime, graph(CUDA));
    let mut kept: Vec<Tensor> =
        (0..5).map(|seed| step(&session, &numbers(seed)).remove(0)).collect();
    let kinds = |kept: &[Tensor]| -> Vec<MemoryKind> {
        kept.iter().map(|tensor| tensor.buffer().kind()).collect()
    };
    // Results of 24,000 bytes each.
    let (pinned, host) = (MemoryKind::PINNED, MemoryKind::HOST);
    assert_eq!(kinds(&kept), [pinned, pinned, host, host, host]);
    for (seed, tensor) in kept.iter().enumerate() {
        let expected: Vec<f32> = values(&numbers(seed)).iter().map(|x| x * x).collect();
        assert_eq!(values(tensor), expected, "result {seed} stays as it was");
    }
    kept.clear();
    assert_eq!(step(&session, &numbers(7))[0].buffer().kind(), pinned);
    drop(session);
    let last = step(&self::session(&runtime, graph(CUDA)), &numbers(8)).remove(0);
    drop(runtime);
    assert_eq!(values(&last)[0], 42.0 * 42.0, "a result outlives its runtime");
}

#[test]
fn pinned_memory_of_one_device_serves_another_and_device_memory_is_no_feed() {
    let _turn = turn();
    let runtime = start("1048576");
    let session = session(&runtime, graph(SECOND));
    let pinned = runtime.pinned(&numbers(3)).expect("CUDA has pinned memory");
    step(&session, &pinned);
    let found = step(&session, &pinned).remove(0);
    let other = self::session(&runtime, graph(CUDA));
    step(&other, &found);
    let devices = runtime.devices().devices();
    let cuda = devices.iter().find(|device| device.memory(MemoryKind::DEVICE).is_some());
    let memory = cuda.and_then(|device| device.memory(MemoryKind::DEVICE)).expect("a GPU");
    let there = Tensor::allocate(&memory, DType::FLOAT, *numbers(0).shape()).expect("some memory");
    let error = run(&other, &[("x", there)], &["y"]).expect_err("not from there");
    assert_eq!(error.code(), Code::INVALID_ARGUMENT);
    assert!(error.to_string().contains("expected host memory"), "{error}");
}

#[test]
fn pinned_memory_has_a_limit_and_needs_a_device() {
    let _turn = turn();
    let runtime = start("4096");
    let error = runtime.pinned(&numbers(0)).expect_err("24,000 bytes of 4096");
    assert_eq!(error.code(), Code::RESOURCE_EXHAUSTED, "{error}");
    for part in ["pinned memory", "24000", "4096"] {
        assert!(error.to_string().contains(part), "expected '{part}' in: {error}");
    }
    let plain = tenon_tests::session::runtime(&["tenon_cpu"], &[]);
    let error = plain.pinned(&numbers(0)).expect_err("no such device");
    assert!(error.to_string().contains("no device has pinned memory"), "{error}");
}
